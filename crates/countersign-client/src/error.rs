//! Errors of the clients. Messages are for the person at the terminal. Text of the gateway is made
//! visible first, since the gateway may be hostile.

use std::io;
use std::path::PathBuf;

use crate::visible::visible;
use countersign_e2e as e2e;
use countersign_protocol::reader::InvalidMember;

pub type Result<T, E = ClientError> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("{0}")]
    Address(String),
    #[error("the gateway at {url} cannot be reached: {cause}")]
    Unreachable { url: String, cause: String },
    #[error("the gateway at {url} gave no answer in time")]
    Slow { url: String },
    #[error("the gateway refused this: {0}")]
    Refused(GatewayRefusal),
    #[error("the gateway's answer is not what was expected: {0}")]
    Answer(String),
    #[error("the pairing with {} has been revoked; pair again: countersign pair", visible(.approver))]
    Unpaired { approver: String },
    #[error(
        "this is no invitation; copy all of the link that your administrator sent, from the page's address to its end"
    )]
    Invitation,
    #[error(
        "the gateway does not know this invitation: it was used, has expired or was withdrawn; ask for a new one"
    )]
    NoSuchInvitation,
    #[error(
        "the profile already has this role; join into another one with --profile NAME, or give up its keys with --replace"
    )]
    RolesTaken,
    #[error(
        "the gateway does not know this code: it has expired or was used; start the pairing again"
    )]
    NoSuchCode,
    #[error(
        "{0} is paired already, with another key: if the enforcer was set up anew, pair it again with --replace; otherwise someone takes its place"
    )]
    KnownWithOtherKey(String),
    #[error("this cannot be approved: {0}")]
    NotApprovable(String),
    #[error("{0}")]
    Choice(&'static str),
    #[error(
        "the gateway says that somebody has decided this already, perhaps on another device; you have signed and sent your decision, and it may still take effect"
    )]
    AlreadyDecided,
    #[error(
        "the gateway says that this request no longer waits; you have signed and sent your decision, and it may still take effect"
    )]
    GoneAfterSigning,
    #[error(
        "the gateway says that the signature of this device does not count; you have signed and sent your decision, and it may still take effect"
    )]
    RefusedAfterSigning,
    #[error(
        "the gateway says that this request has expired; you have signed and sent your decision, and it may still take effect"
    )]
    ExpiredAfterSigning,
    #[error("this request no longer waits for a decision")]
    NoLongerPending,
    #[error(
        "this device is not in force, so its signature does not count; bring it into force: countersign join"
    )]
    DeviceNotInForce,
    #[error("this device was revoked; join again with a new invitation and --replace")]
    DeviceRevoked,
    #[error(
        "all devices of this approver were revoked, so none can add this one; an administrator has to reset them"
    )]
    NoDeviceInForce,
    #[error("the profile was given other keys meanwhile; try again")]
    ProfileReplaced,
    #[error(
        "the grants in {path} are not used: {problem}; remove them: countersign grants forget --all"
    )]
    Grants { path: PathBuf, problem: String },
    #[error("prompts are not taken, because {path} has to tell which were: {problem}")]
    Prompts { path: PathBuf, problem: String },
    #[error("this is no record of a decision: {0}")]
    Record(String),
    #[error(transparent)]
    Crypto(#[from] e2e::Error),
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

/// A member of the gateway's answer.
impl From<InvalidMember> for ClientError {
    fn from(invalid: InvalidMember) -> Self {
        Self::answer(invalid)
    }
}

impl ClientError {
    pub(super) fn answer(expected: impl std::fmt::Display) -> Self {
        Self::Answer(visible(&expected.to_string()))
    }

    /// Whether the gateway is away, rather than refuses.
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Slow { .. } => true,
            Self::Refused(refusal) => refusal.status >= 500 || refusal.status == 429,
            _ => false,
        }
    }

    pub(super) fn is_refusal(&self, status: u16) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.status == status)
    }

    /// `meaning`, if the gateway refused with one of these statuses.
    pub(super) fn refused_as(self, statuses: &[u16], meaning: Self) -> Self {
        if statuses.iter().any(|status| self.is_refusal(*status)) {
            return meaning;
        }
        self
    }

    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused(refusal) => Some(&refusal.code),
            _ => None,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    #[error(
        "there is no profile {0}; join with the link that your administrator sent: countersign join LINK"
    )]
    Missing(PathBuf),
    #[error(
        "the profile {path} has no {role}; join with an invitation for one: countersign join LINK"
    )]
    NoRole { path: PathBuf, role: &'static str },
    #[error(
        "the profile {path} can be read by others (mode {mode:o}) and is not used; its keys may be known: chmod 600 it, or join again"
    )]
    Exposed { path: PathBuf, mode: u32 },
    #[error("the profile {0} belongs to another user and is not used")]
    Foreign(PathBuf),
    #[error(
        "a profile's name has letters, digits, dots, dashes and underscores, and begins with none of the last three"
    )]
    Name,
    #[error("neither XDG_CONFIG_HOME nor HOME is set, so there is no place for a profile")]
    NoHome,
    /// Without the text of the file, which has secrets.
    #[error("the profile {path} is damaged in line {line}: {problem}")]
    Malformed {
        path: PathBuf,
        line: usize,
        problem: String,
    },
    #[error(
        "the keys of this profile are encrypted with a passphrase, and there is no terminal to ask for it; name a file in COUNTERSIGN_PASSPHRASE_FILE"
    )]
    Sealed,
    #[error("this is not the passphrase of the profile")]
    Passphrase,
    #[error("the passphrase in {path}: {problem}")]
    PassphraseFile { path: PathBuf, problem: String },
    #[error("the profile is damaged: {0}")]
    Damaged(&'static str),
    #[error("the profile {path}: {error}")]
    Io { path: PathBuf, error: io::Error },
}

/// An `error` of the gateway, as an Envelope or as plain JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayRefusal {
    pub status: u16,
    /// Without the protocol's prefix, such as `NOT_FOUND`.
    pub code: String,
    pub message: String,
    pub expected: Option<String>,
}

impl GatewayRefusal {
    pub(super) fn read(status: u16, body: &[u8]) -> Self {
        let value: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
        let error = value.get("body").unwrap_or(&value);
        let text = |member: &serde_json::Value| member.as_str().map(visible);
        let code = text(&error["code"]).unwrap_or_default();
        Self {
            status,
            code: (code.split_once("_ERR_")).map_or(code.clone(), |(_, code)| code.to_owned()),
            message: text(&error["message"]).unwrap_or_else(|| format!("status {status}")),
            expected: text(&error["details"]["expected"]),
        }
    }
}

impl std::fmt::Display for GatewayRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)?;
        // Most messages end with the expectation.
        let expected = self.expected.as_deref();
        if let Some(expected) = expected.filter(|text| !self.message.contains(text)) {
            write!(f, "; expected {expected}")?;
        }
        if !self.code.is_empty() {
            write!(f, " ({} {})", self.status, self.code)?;
        }
        Ok(())
    }
}
