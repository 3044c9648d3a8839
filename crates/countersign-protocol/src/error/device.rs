//! Why the gateway refuses a statement about a device.

use super::code::Code;
use super::description::ErrorDescription;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    #[error("the statement is not from an active device")]
    UnknownSigner,
    #[error("the statement is from a revoked device")]
    RevokedSigner,
    #[error("the signature does not verify under the device that the statement names")]
    Signature,
    #[error("the new device has not signed the statement")]
    Possession,
    #[error("this device was revoked; that can't be undone")]
    Revoked,
    #[error("this approver has, or had, a device or a signing key")]
    NotFirst,
    #[error("the device's id belongs to another key")]
    Taken,
    #[error("an approver may have at most {limit} devices")]
    TooMany { limit: usize },
    #[error("there are {limit} statements about this approver's devices, and no more may be added")]
    ListFull { limit: usize },
    #[error("this approver is not paired with the enforcer")]
    NotPaired,
    #[error("an approver's devices may introduce at most {limit} times")]
    TooManyIntroductions { limit: usize },
    #[error("an approver's devices may invite at most {limit} times in 10 minutes")]
    TooManyInvitations { limit: usize },
    /// On the routes of signing keys.
    #[error("this signing key is a device's")]
    KeyOfDevice,
}

impl DeviceError {
    pub(super) fn describe(&self) -> ErrorDescription {
        let refusal = |status, code| ErrorDescription::new(status, code, self.to_string());
        match self {
            Self::UnknownSigner => refusal(403, Code::SignatureInvalid)
                .at("/statement/by")
                .expecting("a device of this approver that is in force"),
            Self::RevokedSigner => refusal(403, Code::KeyRevoked)
                .at("/statement/by")
                .expecting("a device of this approver that is in force"),
            Self::Signature => refusal(403, Code::SignatureInvalid)
                .at("/signature")
                .expecting("an Ed25519 signature over the canonical statement, by the device that it names in by"),
            Self::Possession => refusal(403, Code::SignatureInvalid)
                .at("/possession")
                .expecting("an Ed25519 signature over the canonical statement, by the new device"),
            Self::Revoked => refusal(403, Code::KeyRevoked)
                .at("/statement/bundle")
                .expecting("a device with new keys"),
            Self::NotFirst => refusal(403, Code::Forbidden).at("/statement/by").expecting(
                "a device in force; if there is none, an administrator resets the devices first",
            ),
            Self::Taken => refusal(409, Code::AlreadyExists)
                .at("/statement/bundle")
                .expecting("a device with new keys"),
            Self::TooMany { limit } => refusal(422, Code::TooLarge)
                .at("/statement/bundle")
                .expecting("fewer devices: revoke one first")
                .with("limit", *limit),
            Self::ListFull { limit } => refusal(422, Code::TooLarge)
                .expecting("a reset of the devices by an administrator first")
                .with("limit", *limit),
            Self::NotPaired => refusal(403, Code::PolicyDeny)
                .at("/statement/enforcerId")
                .expecting("an enforcer that this approver is paired with"),
            Self::TooManyIntroductions { limit } => refusal(422, Code::TooLarge)
                .expecting("fewer introductions: end pairings or revoke devices first")
                .with("limit", *limit),
            Self::TooManyInvitations { limit } => refusal(422, Code::TooLarge)
                .expecting("fewer invitations: use one, or wait until they have expired")
                .with("limit", *limit),
            Self::KeyOfDevice => refusal(409, Code::AlreadyExists)
                .with("parameter", "signerKeyId")
                .expecting("an id that is no device's; a device's key comes and goes with the device"),
        }
    }
}
