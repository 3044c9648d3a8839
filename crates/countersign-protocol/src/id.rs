//! Ids. A client's id has 1 to 128 characters, none of them a control or bidirectional one, and is
//! case-sensitive. The gateway's own ids are version 7 UUIDs.

use std::fmt;

use uuid::Uuid;

use super::text::{is_control_or_bidi, is_longer};

pub const MAX_ID_CHARS: usize = 128;

pub const ID_EXPECTED: &str =
    "1 to 128 characters without control characters and bidirectional controls";

fn is_id(text: &str) -> bool {
    !text.is_empty() && !is_longer(text, MAX_ID_CHARS) && !text.chars().any(is_control_or_bidi)
}

pub trait TextId: Sized {
    fn parse(text: &str) -> Option<Self>;
}

macro_rules! text_id {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TextId for $name {
            fn parse(text: &str) -> Option<Self> {
                is_id(text).then(|| Self(text.to_owned()))
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::parse(&text).ok_or_else(|| serde::de::Error::custom(ID_EXPECTED))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.0)
            }
        }
    )+};
}

text_id! {
    TenantId,
    EnforcerId,
    ApproverId,
    /// An exchange, within its tenant: chosen by the enforcer.
    RequestId,
    /// A session, within its tenant: chosen by the enforcer.
    SessionId,
    /// A snapshot, within its session: chosen by the enforcer.
    SnapshotId,
    SignerKeyId,
    CredentialId,
    InvitationId,
    NodeId,
}

macro_rules! own_id {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Deserialize, serde::Serialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )+};
}

own_id! {
    /// A message of the gateway. An ack names it.
    MessageId,
    /// One attempt at a transition, made by the node that tries it: a retry recognises its own row
    /// by it.
    OperationId,
}

/// Whether `text` is a hyphenated UUID or has the shape of a ULID (26 letters and digits).
pub fn is_uuid_or_ulid(text: &str) -> bool {
    let ulid = text.len() == 26 && text.bytes().all(|b| b.is_ascii_alphanumeric());
    ulid || (text.len() == 36 && Uuid::try_parse(text).is_ok())
}
