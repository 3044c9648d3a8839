//! The audit: who did what to tenants, credentials, keys, pairings and pending exchanges, and from
//! where. Events are written by the statements that act, and only if they take effect; here is who
//! they name, and `read` reads them.

pub(in crate::store) mod read;

use std::net::IpAddr;

use crate::protocol::id::CredentialId;

#[derive(Debug, Clone, Default)]
pub struct AuditSource {
    /// The credential that was used; `None` for the operator's key and the command line.
    pub principal: Option<String>,
    pub address: Option<IpAddr>,
}

impl AuditSource {
    pub(super) fn address(&self) -> Option<String> {
        self.address.map(|address| address.to_string())
    }
}

#[derive(Debug, Clone)]
pub struct AuditActor {
    /// `enforcer:<id>`, `approver:<id>`, `admin:<credential>`, `operator`, `gateway`, `certificate
    /// holder`, `invitation holder` or `command line`.
    pub name: String,
    pub source: AuditSource,
}

impl AuditActor {
    /// A caller with a certificate that is not bound yet.
    pub fn certificate_holder(address: Option<IpAddr>) -> Self {
        Self::without_credential("certificate holder", address)
    }

    /// A caller with the code of an invitation.
    pub fn invitation_holder(address: Option<IpAddr>) -> Self {
        Self::without_credential("invitation holder", address)
    }

    /// A node that acts by itself.
    pub fn gateway() -> Self {
        Self::without_credential("gateway", None)
    }

    pub fn command_line() -> Self {
        Self::without_credential("command line", None)
    }

    fn without_credential(name: &str, address: Option<IpAddr>) -> Self {
        Self {
            name: name.into(),
            source: AuditSource {
                principal: None,
                address,
            },
        }
    }

    /// The same actor with the credential that it gets by this action.
    pub(super) fn with_credential(&self, id: &CredentialId) -> Self {
        let mut actor = self.clone();
        actor.source.principal = Some(id.to_string());
        actor
    }
}
