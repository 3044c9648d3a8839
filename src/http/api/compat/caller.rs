//! Callers whose credential has the profile `compat`. The routes of the dialect take no others.

use crate::gateway::identity::caller::{Approver, Caller, CallerRole, Enforcer};

pub struct CompatEnforcer(pub Enforcer);

impl CallerRole for CompatEnforcer {
    const EXPECTED: &'static str = "an enforcer whose credential has the profile compat";

    fn of(caller: Caller) -> Option<Self> {
        match caller {
            Caller::Enforcer(caller) if caller.origin.profile.is_compat() => Some(Self(caller)),
            _ => None,
        }
    }
}

pub struct CompatApprover(pub Approver);

impl CallerRole for CompatApprover {
    const EXPECTED: &'static str = "an approver whose credential has the profile compat";

    fn of(caller: Caller) -> Option<Self> {
        match caller {
            Caller::Approver(caller) if caller.origin.profile.is_compat() => Some(Self(caller)),
            _ => None,
        }
    }
}
