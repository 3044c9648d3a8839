//! Credentials as they are created, stored and found changed.

pub use crate::protocol::credential::{CredentialProfile, RoleName};
use crate::protocol::id::{CredentialId, TenantId};
use crate::protocol::timestamp::Timestamp;

#[derive(Debug, Clone)]
pub enum CredentialProof {
    /// SHA-256 of a secret, which itself is not stored.
    ApiKey([u8; 32]),
    /// A client certificate, which its holder is to bind.
    Certificate(NewCode),
}

/// The code that binds a certificate, once.
#[derive(Debug, Clone)]
pub struct NewCode {
    /// SHA-256 of its secret, which itself is not stored.
    pub hash: [u8; 32],
    pub expires_at: Timestamp,
}

#[derive(Debug)]
pub struct NewCredential {
    pub tenant: TenantId,
    pub id: CredentialId,
    pub role: RoleName,
    /// The one id it may act as, if it is bound.
    pub bound_id: Option<String>,
    pub proof: CredentialProof,
    pub profile: CredentialProfile,
    pub expires_at: Option<Timestamp>,
}

#[derive(Debug, Clone)]
pub struct Credential {
    pub tenant: TenantId,
    pub id: CredentialId,
    pub role: RoleName,
    /// The one id it may act as, if it is bound.
    pub bound_id: Option<String>,
    /// SHA-256 of its secret, if it has one.
    pub secret_hash: Option<[u8; 32]>,
    /// SHA-256 of its certificate, if it has one.
    pub thumbprint: Option<[u8; 32]>,
    pub profile: CredentialProfile,
    pub expires_at: Option<Timestamp>,
    /// Whether it is revoked or its tenant disabled.
    pub revoked: bool,
}

#[derive(Debug)]
pub struct ChangedCredential {
    pub id: CredentialId,
    /// Whether it is revoked or its tenant disabled.
    pub revoked: bool,
}
