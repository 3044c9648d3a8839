//! Tenants, credentials, invitations, signing keys and revoked tokens.

pub(in crate::store) mod approver_lock;
pub(in crate::store) mod certificate;
pub mod credential;
pub(in crate::store) mod credentials;
pub mod invitation;
pub(in crate::store) mod list_credentials;
pub(in crate::store) mod manage_credentials;
pub(in crate::store) mod read_keys;
pub(in crate::store) mod read_revocations;
pub mod signing_key;
pub mod token_revocation;
