//! Authenticated callers. A use case takes the role that it needs as a type, so that the check cannot be forgotten.

use std::net::IpAddr;
use std::sync::Arc;

use super::error::{Error, Result};
use crate::config::Secret;
use crate::protocol::envelope::EnvelopeSender;
use crate::protocol::id::{ApproverId, EnforcerId, TenantId, TextId};
use crate::protocol::timestamp::Timestamp;
use crate::protocol::token::TokenIdentity;
use crate::store::credential::RoleName;

/// Where a call comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerIdentity {
    pub tenant: TenantId,
    /// The name of the credential, in idempotency keys and the audit log.
    pub principal: String,
    /// Who issued it, if it is a token.
    pub issuer: Option<String>,
    /// When the credential expires; channels are closed then.
    pub expires_at: Option<Timestamp>,
    /// A token that may be revoked before it expires, and is rechecked while a channel is open.
    pub recheck: Option<Secret>,
    /// What a tenant can revoke, if the caller presented a token that the gateway did not issue.
    pub token: Option<Arc<TokenIdentity>>,
    pub from: Option<IpAddr>,
}

/// A caller that acts as an enforcer: one, or any of its tenant.
#[derive(Debug, Clone)]
pub struct Enforcer {
    pub origin: CallerIdentity,
    /// The one id it may act as.
    pub bound: Option<EnforcerId>,
}

/// A caller that acts as an approver: one, or any of its tenant.
#[derive(Debug, Clone)]
pub struct Approver {
    pub origin: CallerIdentity,
    /// The one id it may act as.
    pub bound: Option<ApproverId>,
}

#[derive(Debug, Clone)]
pub struct Admin {
    pub origin: CallerIdentity,
}

/// The caller that manages tenants and reads no exchange.
#[derive(Debug, Clone)]
pub struct Operator {
    pub from: Option<IpAddr>,
}

#[derive(Debug, Clone)]
pub enum Caller {
    Enforcer(Enforcer),
    Approver(Approver),
    Admin(Admin),
    Operator(Operator),
}

impl Caller {
    /// Where it comes from; `None` for the operator, who belongs to no tenant.
    pub fn origin(&self) -> Option<&CallerIdentity> {
        match self {
            Self::Enforcer(caller) => Some(&caller.origin),
            Self::Approver(caller) => Some(&caller.origin),
            Self::Admin(caller) => Some(&caller.origin),
            Self::Operator(_) => None,
        }
    }

    /// The caller of a credential with this role, bound to an id or to none.
    pub(super) fn in_role(
        role: RoleName,
        origin: CallerIdentity,
        bound: Option<&str>,
    ) -> Result<Self> {
        Ok(match role {
            RoleName::Enforcer => Self::Enforcer(Enforcer {
                origin,
                bound: bound_id(bound)?,
            }),
            RoleName::Approver => Self::Approver(Approver {
                origin,
                bound: bound_id(bound)?,
            }),
            RoleName::Admin => Self::Admin(Admin { origin }),
        })
    }
}

/// The id a credential is bound to. A malformed one is an error, never treated as unbound.
fn bound_id<T: TextId>(bound: Option<&str>) -> Result<Option<T>> {
    bound
        .map(|id| T::parse(id).ok_or(Error::Internal))
        .transpose()
}

pub trait CallerRole: Sized {
    const EXPECTED: &'static str;

    fn of(caller: Caller) -> Option<Self>;
}

macro_rules! roles {
    ($($(#[$doc:meta])* $name:ident = $($variant:ident)|+, $expected:literal;)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub enum $name { $($variant($variant)),+ }

        impl CallerRole for $name {
            const EXPECTED: &'static str = $expected;

            fn of(caller: Caller) -> Option<Self> {
                match caller {
                    $(Caller::$variant(caller) => Some(Self::$variant(caller)),)+
                    _ => None,
                }
            }
        }
    )+};
}

roles! {
    Member = Enforcer | Approver | Admin, "a credential of a tenant";
    EnforcerOrApprover = Enforcer | Approver, "an enforcer or an approver";
    EnforcerOrAdmin = Enforcer | Admin, "an enforcer or an administrator";
    ApproverOrAdmin = Approver | Admin, "an approver or an administrator";
    AdminOrOperator = Admin | Operator, "an administrator or the operator";
}

macro_rules! single_roles {
    ($($name:ident, $expected:literal;)+) => {$(
        impl CallerRole for $name {
            const EXPECTED: &'static str = $expected;

            fn of(caller: Caller) -> Option<Self> {
                match caller {
                    Caller::$name(caller) => Some(caller),
                    _ => None,
                }
            }
        }
    )+};
}

single_roles! {
    Enforcer, "an enforcer";
    Approver, "an approver";
    Admin, "an administrator";
    Operator, "the operator";
}

impl Admin {
    /// Refuses an envelope whose sender an administrator may not be.
    pub fn sending(&self, sender: &EnvelopeSender) -> Result<()> {
        only(sender.enforcer_id.as_ref(), "/sender/enforcerId")?;
        only(sender.approver_id.as_ref(), "/sender/approverId")
    }
}

impl Member {
    pub fn origin(&self) -> &CallerIdentity {
        match self {
            Self::Enforcer(caller) => &caller.origin,
            Self::Approver(caller) => &caller.origin,
            Self::Admin(caller) => &caller.origin,
        }
    }

    pub fn role(&self) -> RoleName {
        match self {
            Self::Enforcer(_) => RoleName::Enforcer,
            Self::Approver(_) => RoleName::Approver,
            Self::Admin(_) => RoleName::Admin,
        }
    }

    /// The one id it may act as.
    pub fn bound(&self) -> Option<&str> {
        match self {
            Self::Enforcer(caller) => caller.bound.as_ref().map(EnforcerId::as_str),
            Self::Approver(caller) => caller.bound.as_ref().map(ApproverId::as_str),
            Self::Admin(_) => None,
        }
    }
}

impl EnforcerOrApprover {
    pub fn origin(&self) -> &CallerIdentity {
        match self {
            Self::Enforcer(caller) => &caller.origin,
            Self::Approver(caller) => &caller.origin,
        }
    }

    /// The one id it may act as.
    pub fn bound(&self) -> Option<&str> {
        match self {
            Self::Enforcer(caller) => caller.bound.as_ref().map(EnforcerId::as_str),
            Self::Approver(caller) => caller.bound.as_ref().map(ApproverId::as_str),
        }
    }
}

impl From<EnforcerOrAdmin> for Member {
    fn from(caller: EnforcerOrAdmin) -> Self {
        match caller {
            EnforcerOrAdmin::Enforcer(caller) => Self::Enforcer(caller),
            EnforcerOrAdmin::Admin(caller) => Self::Admin(caller),
        }
    }
}

fn not_yours(pointer: &str) -> Error {
    Error::Forbidden {
        pointer: Some(pointer.to_owned()),
        expected: "an id that this credential may act as",
    }
}

/// Refuses a sender that names an id of another role.
fn only<T>(other: Option<&T>, pointer: &str) -> Result<()> {
    match other {
        None => Ok(()),
        Some(_) => Err(not_yours(pointer)),
    }
}

/// The id a caller acts as: the one it names, if allowed, else the one it is bound to.
fn acting<T: Clone + PartialEq>(bound: Option<&T>, named: Option<T>, pointer: &str) -> Result<T> {
    match (bound, named) {
        (Some(bound), Some(named)) if *bound != named => Err(not_yours(pointer)),
        (_, Some(named)) => Ok(named),
        (Some(bound), None) => Ok(bound.clone()),
        (None, None) => Err(Error::invalid(pointer, "the id to act as (required)")),
    }
}

impl Enforcer {
    /// The enforcer that this call acts as, by the envelope's sender.
    pub fn sending(&self, sender: &EnvelopeSender) -> Result<EnforcerId> {
        only(sender.approver_id.as_ref(), "/sender/approverId")?;
        self.acting(sender.enforcer_id.clone(), "/sender/enforcerId")
    }

    /// The same, where the sender is required.
    pub fn named(&self, sender: &EnvelopeSender) -> Result<EnforcerId> {
        match sender.enforcer_id {
            Some(_) => self.sending(sender),
            None => Err(Error::invalid(
                "/sender/enforcerId",
                "the id to act as (required)",
            )),
        }
    }

    /// The enforcer that this call acts as: the one named at `pointer`, or the one the credential is bound to.
    pub fn acting(&self, named: Option<EnforcerId>, pointer: &str) -> Result<EnforcerId> {
        acting(self.bound.as_ref(), named, pointer)
    }

    pub fn may_be(&self, id: &EnforcerId) -> bool {
        self.bound.as_ref().is_none_or(|bound| bound == id)
    }
}

impl Approver {
    /// The approver that this call acts as, by the envelope's sender.
    pub fn sending(&self, sender: &EnvelopeSender) -> Result<ApproverId> {
        only(sender.enforcer_id.as_ref(), "/sender/enforcerId")?;
        self.acting(sender.approver_id.clone(), "/sender/approverId")
    }

    /// The same, where the sender is required.
    pub fn named(&self, sender: &EnvelopeSender) -> Result<ApproverId> {
        match sender.approver_id {
            Some(_) => self.sending(sender),
            None => Err(Error::invalid(
                "/sender/approverId",
                "the id to act as (required)",
            )),
        }
    }

    /// The approver that this call acts as: the one named at `pointer`, or the one the credential is bound to.
    pub fn acting(&self, named: Option<ApproverId>, pointer: &str) -> Result<ApproverId> {
        acting(self.bound.as_ref(), named, pointer)
    }

    /// Refuses a caller that may not give this approver keys. A credential for any approver may not: its holder would speak
    /// for somebody who has not chosen a key yet.
    pub fn speaking_for(&self, id: &ApproverId) -> Result<()> {
        self.acting(Some(id.clone()), "approverId")?;
        match self.bound {
            Some(_) => Ok(()),
            None => Err(Error::Forbidden {
                pointer: Some("approverId".into()),
                expected: "a credential that is bound to this approver, or an administrator",
            }),
        }
    }

    pub fn may_be(&self, id: &ApproverId) -> bool {
        self.bound.as_ref().is_none_or(|bound| bound == id)
    }
}
