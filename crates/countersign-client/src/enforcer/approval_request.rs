//! A request for approval, and its results.

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value};

use super::orders::AgentPause;
use crate::error::ClientError;
use crate::visible::visible;
use countersign_e2e::{self as e2e, PlainArtifact, VerifiedApproval, VerifiedRejection};
use countersign_protocol::timestamp::Timestamp;

/// Of a request that a library makes. Approvals that were used are remembered a day longer.
pub(crate) const MAX_TIMEOUT: Duration = Duration::from_secs(30 * 24 * 3600);

/// The subject of a decision, and its deadlines.
#[derive(Debug, Clone)]
pub struct ApprovalRequest {
    /// One of the types of the protocol, such as `command.review`.
    pub artifact_type: String,
    pub repository: String,
    pub payload: Map<String, Value>,
    /// Further members of the artifact: `sessionId`, `baseRevision`, `metadata`, `extensions`.
    pub members: Map<String, Value>,
    /// Only this approver, instead of all that are paired.
    pub approver: Option<String>,
    /// Without a decision in this time the request is denied.
    pub timeout: Duration,
    /// If the gateway does not take the request in this time, it is denied.
    pub submit_timeout: Duration,
}

/// An approval that passed every check.
#[derive(Debug, Clone)]
pub struct AcceptedApproval {
    pub approval: VerifiedApproval,
    /// The signed body, byte for byte.
    pub decision: String,
    /// The artifact of the request.
    pub artifact: PlainArtifact,
    pub accepted_at: Timestamp,
}

/// Why a request was not approved.
#[derive(Debug)]
pub enum ApprovalDenial {
    Rejected(Box<VerifiedRejection>),
    /// The exchange ended without a decision: `expired`, `withdrawn` or `cancelled`.
    Ended(String),
    TimedOut,
    Unavailable(ClientError),
    Refused(ClientError),
    /// The decision must not be believed.
    Untrusted(e2e::Error),
    /// Of the people that a rule names, too few approved or can still approve. With an explanation.
    TooFew(String),
    /// Too few have decided yet. The same call continues to wait for them.
    Parked {
        needed: String,
        until: Timestamp,
    },
    /// An approver wants the agent to stop for now.
    Paused(AgentPause),
    /// Approved, but the call would no longer do what was shown.
    Changed(String),
    /// Approved, but the receipt that the policy requires was not saved.
    NoReceipt(String),
    /// The approval was used before: it counts for one execution.
    AlreadyUsed,
    /// The key of a submission was used before, for another call.
    KeyReused,
    NotPaired,
}

impl fmt::Display for ApprovalDenial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected(rejection) => {
                write!(f, "{} rejected it", visible(rejection.approver.as_str()))?;
                match &rejection.hints.reason {
                    Some(reason) => write!(f, ": {}", visible(reason)),
                    None => Ok(()),
                }
            }
            Self::Ended(state) => {
                let state = visible(state);
                write!(f, "the request ended without a decision ({state})")
            }
            Self::TimedOut => f.write_str("nobody decided in time"),
            Self::Unavailable(error) | Self::Refused(error) => write!(f, "{error}"),
            Self::Untrusted(error) => {
                let cause = visible(&error.to_string());
                write!(f, "the decision is not trusted: {cause}")
            }
            Self::Paused(pause) => write!(f, "{pause}"),
            Self::Parked { needed, until } => write!(
                f,
                "not decided yet, waiting for {needed}; open until {until}: the same call, unchanged, continues to wait"
            ),
            Self::TooFew(lacking) => f.write_str(lacking),
            Self::Changed(change) => f.write_str(change),
            Self::NoReceipt(problem) => {
                write!(f, "{problem}; the policy requires it")
            }
            Self::AlreadyUsed => f.write_str("the approval was used before"),
            Self::KeyReused => f.write_str("the key was used before, for another call"),
            Self::NotPaired => {
                f.write_str("no approver is paired with this machine; pair one: countersign pair")
            }
        }
    }
}

impl ApprovalDenial {
    /// One paragraph for the model: why, that nothing was executed, and what not to do. It says
    /// nothing about a decision that failed a check, and no words of the gateway.
    pub fn for_model(&self) -> String {
        let why = match self {
            Self::Parked { .. } => return format!("Nothing was executed: {self}."),
            Self::Rejected(_)
            | Self::Paused(_)
            | Self::Changed(_)
            | Self::TimedOut
            | Self::AlreadyUsed
            | Self::KeyReused => self.to_string(),
            Self::Ended(_) => "the request ended without a decision".to_owned(),
            Self::Unavailable(_) | Self::Refused(_) => "nobody could be asked".to_owned(),
            Self::TooFew(_) => "too few of the people who must approve it did so".to_owned(),
            Self::Untrusted(_) => "it was not approved".to_owned(),
            Self::NoReceipt(_) => "the receipt that the policy requires was not saved".to_owned(),
            Self::NotPaired => "no approver is paired with this machine".to_owned(),
        };
        format!(
            "This call was denied: {why}. Nothing was executed. Do not repeat this call, and do \
             not try to reach the same effect in another way. Tell the user that it was not done."
        )
    }

    /// Whether the approver ended the pairing.
    pub fn is_unpaired(&self) -> bool {
        matches!(self, Self::Refused(ClientError::Unpaired { .. }))
    }

    /// Whether nobody decided in time, by the clock here or at the gateway.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::TimedOut) || matches!(self, Self::Ended(state) if state == "expired")
    }
}

impl From<ClientError> for ApprovalDenial {
    fn from(error: ClientError) -> Self {
        match error {
            error if error.is_unavailable() => Self::Unavailable(error),
            error => Self::Refused(error),
        }
    }
}

impl From<e2e::Error> for ApprovalDenial {
    fn from(error: e2e::Error) -> Self {
        Self::Refused(ClientError::Crypto(error))
    }
}
