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
    #[error("the gateway at {url} did not answer in time")]
    Slow { url: String },
    #[error("the gateway refused this: {0}")]
    Refused(GatewayRefusal),
    #[error("the gateway's answer is not what was expected: {0}")]
    Answer(String),
    #[error("the pairing with {} has been revoked; pair again: countersign pair", visible(.approver))]
    Unpaired { approver: String },
    #[error("that isn't an invitation link; copy the whole link that your administrator sent")]
    Invitation,
    #[error(
        "this invitation link has been used, has expired or was withdrawn; ask your administrator for a new one"
    )]
    NoSuchInvitation,
    #[error(
        "the profile already has this role; join with another profile (--profile NAME), or replace its keys (--replace)"
    )]
    RolesTaken,
    #[error("this pairing code has been used or has expired; start the pairing again")]
    NoSuchCode,
    #[error(
        "the key of {0} has changed: if that machine was set up again, add --replace; otherwise someone may be impersonating it"
    )]
    KnownWithOtherKey(String),
    #[error("this request cannot be approved: {0}")]
    NotApprovable(String),
    #[error("{0}")]
    Choice(&'static str),
    /// An id that could mean several, with the candidates.
    #[error("{0}")]
    Ambiguous(String),
    #[error(
        "the gateway says that this was already decided, perhaps on another device; your signed decision was sent and may still take effect"
    )]
    AlreadyDecided,
    #[error(
        "the gateway says that this request is no longer open; your signed decision was sent and may still take effect"
    )]
    GoneAfterSigning,
    #[error(
        "the gateway says that it does not accept this device's signature; your signed decision was sent and may still take effect"
    )]
    RefusedAfterSigning,
    #[error(
        "the gateway says that this request has expired; your signed decision was sent and may still take effect"
    )]
    ExpiredAfterSigning,
    #[error("this request is no longer open")]
    NoLongerPending,
    #[error(
        "this device is not approved yet; approve it from one you already use: countersign join"
    )]
    DeviceNotInForce,
    #[error("this device was revoked; join again with a new invitation and --replace")]
    DeviceRevoked,
    #[error(
        "all your devices were revoked, so none can approve this one; ask an administrator to reset them"
    )]
    NoDeviceInForce,
    #[error("the profile's keys were replaced meanwhile; try again")]
    ProfileReplaced,
    #[error(
        "the grants in {path} are not used: {problem}; remove them: countersign grants forget --all"
    )]
    Grants { path: PathBuf, problem: String },
    #[error(
        "no prompts are accepted, because {path}, which records earlier ones, cannot be used: {problem}"
    )]
    Prompts { path: PathBuf, problem: String },
    #[error(
        "grants don't apply, because {path}, which records the ended ones, cannot be used: {problem}; remove the file once you have looked at it"
    )]
    Orders { path: PathBuf, problem: String },
    #[error(
        "nothing of any team counts, because {path}, which has their members, cannot be used: {problem}; remove the file, then pair with the teams or join them again"
    )]
    Teams { path: PathBuf, problem: String },
    #[error(
        "the gateway withholds changes of the team {}: the device of {} knows a newer state; try again, and tell the team's owners and the gateway's operator if it stays so", visible(.team), visible(.approver)
    )]
    WithheldTeam { team: String, approver: String },
    #[error("cannot tell which grants were given: {path} cannot be used: {problem}")]
    GivenGrants { path: PathBuf, problem: String },
    #[error(
        "the log cannot be checked: {path} cannot be used: {problem}; look at it before you remove it"
    )]
    LogMemory { path: PathBuf, problem: String },
    #[error(
        "the gateway's log does not have this decision; it is logged a few seconds after it was made, if the gateway has a log"
    )]
    NotLogged,
    #[error("cannot tell which commands were approved: {path} cannot be used: {problem}")]
    ApprovedCommands { path: PathBuf, problem: String },
    #[error("the request cannot be kept: {path} cannot be used: {problem}")]
    Kept { path: PathBuf, problem: String },
    #[error(
        "the gateway does not take the names of those who work with {}, as if it were of an older version; ask its operator to update it, or pair each of your other devices with that agent", visible(.0)
    )]
    OperatorsRefused(String),
    #[error("the receipt was not saved in {directory}: {problem}")]
    NoReceipt { directory: PathBuf, problem: String },
    #[error("this is not a saved decision: {0}")]
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
        "the profile {path} has no {role}; join with an invitation for an {role}: countersign join LINK"
    )]
    NoRole { path: PathBuf, role: &'static str },
    #[error(
        "the profile {path} can be read by others (mode {mode:o}), so it is not used; others may know its keys: join again, or chmod 600 it"
    )]
    Exposed { path: PathBuf, mode: u32 },
    #[error("the profile {0} belongs to another user, so it is not used")]
    Foreign(PathBuf),
    #[error(
        "a profile's name consists of letters, digits, dots, dashes and underscores, and begins with a letter or digit"
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
        "the profile's keys are encrypted, and there is no terminal to ask for the passphrase; put it into a file and name that in COUNTERSIGN_PASSPHRASE_FILE"
    )]
    Sealed,
    #[error("wrong passphrase")]
    Passphrase,
    #[error("the passphrase in {path}: {problem}")]
    PassphraseFile { path: PathBuf, problem: String },
    #[error("the profile is damaged: {0}")]
    Damaged(&'static str),
    #[error("the devices that other programs learned of are not used: {path}: {problem}")]
    Learned { path: PathBuf, problem: String },
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
