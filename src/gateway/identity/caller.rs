//! Authenticated callers. A use case takes the role it needs as a type, so the check cannot be
//! forgotten.

use std::fmt::Display;
use std::net::IpAddr;
use std::sync::Arc;

use crate::config::Secret;
use crate::gateway::error::{Error, Result};
use crate::protocol::credential::CredentialProfile;
use crate::protocol::envelope::EnvelopeSender;
use crate::protocol::id::{ApproverId, EnforcerId, TenantId, TextId};
use crate::protocol::timestamp::Timestamp;
use crate::protocol::token::TokenIdentity;
use crate::store::identity::credential::RoleName;

/// Where a call comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallerIdentity {
    pub tenant: TenantId,
    /// The name of the credential, in idempotency keys and the audit log.
    pub principal: String,
    /// The issuer, if it is a token.
    pub issuer: Option<String>,
    /// When the credential expires; channels are closed then.
    pub expires_at: Option<Timestamp>,
    /// A token that may be revoked before it expires, and is rechecked while a channel is open.
    pub recheck: Option<Secret>,
    /// The identity by which a tenant can revoke it, if it is an external token.
    pub token: Option<Arc<TokenIdentity>>,
    /// The dialect that the credential was created for; tokens are always strict.
    pub profile: CredentialProfile,
    pub from: Option<IpAddr>,
}

/// A caller that acts as an enforcer or as an approver: as one, or as any of its tenant.
#[derive(Debug, Clone)]
pub struct ActingCaller<Id> {
    pub origin: CallerIdentity,
    /// The one id it may act as.
    pub bound: Option<Id>,
}

pub type Enforcer = ActingCaller<EnforcerId>;
pub type Approver = ActingCaller<ApproverId>;

/// An id that a caller may act as, and where an envelope names it.
pub trait ActingId: Clone + Display + PartialEq {
    /// The other kind of id. A sender has one of the two.
    type Other: ActingId;

    const ROLE: &'static str;
    const POINTER: &'static str;

    fn sender(sender: &EnvelopeSender) -> Option<&Self>;
}

impl ActingId for EnforcerId {
    type Other = ApproverId;

    const ROLE: &'static str = "enforcer";
    const POINTER: &'static str = "/sender/enforcerId";

    fn sender(sender: &EnvelopeSender) -> Option<&Self> {
        sender.enforcer_id.as_ref()
    }
}

impl ActingId for ApproverId {
    type Other = EnforcerId;

    const ROLE: &'static str = "approver";
    const POINTER: &'static str = "/sender/approverId";

    fn sender(sender: &EnvelopeSender) -> Option<&Self> {
        sender.approver_id.as_ref()
    }
}

fn check_absent<Id: ActingId>(sender: &EnvelopeSender) -> Result<()> {
    match Id::sender(sender) {
        None => Ok(()),
        Some(_) => Err(not_yours(Id::POINTER)),
    }
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
    pub(in crate::gateway) fn in_role(
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
    ($($name:ident = $($variant:ident)|+, $expected:literal;)+) => {$(
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

/// Roles that belong to a tenant.
macro_rules! tenant_roles {
    ($($name:ident = $($variant:ident)|+, $expected:literal;)+) => {
        roles! { $($name = $($variant)|+, $expected;)+ }

        $(impl $name {
            pub fn origin(&self) -> &CallerIdentity {
                match self {
                    $(Self::$variant(caller) => &caller.origin,)+
                }
            }
        })+
    };
}

tenant_roles! {
    Member = Enforcer | Approver | Admin, "a credential of a tenant";
    EnforcerOrApprover = Enforcer | Approver, "an enforcer or an approver";
    EnforcerOrAdmin = Enforcer | Admin, "an enforcer or an administrator";
    ApproverOrAdmin = Approver | Admin, "an approver or an administrator";
}

roles! {
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
        check_absent::<EnforcerId>(sender)?;
        check_absent::<ApproverId>(sender)
    }
}

impl Member {
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

impl<Id: ActingId> ActingCaller<Id> {
    /// The id that this call acts as, by the envelope's sender.
    pub fn sending(&self, sender: &EnvelopeSender) -> Result<Id> {
        check_absent::<Id::Other>(sender)?;
        self.acting(Id::sender(sender).cloned(), Id::POINTER)
    }

    /// The same, where the sender is required.
    pub fn named(&self, sender: &EnvelopeSender) -> Result<Id> {
        match Id::sender(sender) {
            Some(_) => self.sending(sender),
            None => Err(Error::invalid(Id::POINTER, "the id to act as (required)")),
        }
    }

    /// The id that this call acts as: the one named at `pointer`, if allowed, else the one that the
    /// credential is bound to.
    pub fn acting(&self, named: Option<Id>, pointer: &str) -> Result<Id> {
        match (&self.bound, named) {
            (Some(bound), Some(named)) if *bound != named => Err(not_yours(pointer)),
            (_, Some(named)) => Ok(named),
            (Some(bound), None) => Ok(bound.clone()),
            (None, None) => Err(Error::invalid(pointer, "the id to act as (required)")),
        }
    }

    pub fn may_be(&self, id: &Id) -> bool {
        self.bound.as_ref().is_none_or(|bound| bound == id)
    }
}

impl Approver {
    /// Refuses a caller that may not give this approver keys. A credential for any approver may
    /// not: its holder would speak for somebody who has not chosen a key yet.
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
}
