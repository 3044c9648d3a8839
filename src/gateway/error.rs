//! Every way a use case can refuse. It knows no HTTP: `http::error` gives each its status and code, with no wildcard.

use std::time::Duration;

use super::limit::Throttled;
use crate::protocol::artifact::ArtifactError;
use crate::protocol::decision::TrustError;
use crate::protocol::exchange::{DecisionRefusal, State, StateRefusal, SubmissionRefusal};
use crate::protocol::json::JsonError;
use crate::protocol::message::NotJson;
use crate::protocol::prompt::{AckRefusal, PromptError, PromptRefusal};
use crate::protocol::reader::Invalid;
use crate::protocol::session::{EventError, ReportRefusal};
use crate::store::error::StoreError;

#[derive(Debug, Clone)]
pub enum Error {
    /// Not strict JSON.
    Json(JsonError),
    /// A member or parameter that does not conform.
    Invalid(Invalid),
    /// A query parameter, path segment or header that does not conform.
    Parameter {
        name: &'static str,
        expected: &'static str,
    },
    /// An open Artifact that does not conform.
    InvalidArtifact(Invalid),
    /// An open Artifact that is not what its hash says.
    ArtifactHash,
    /// A submission past its time.
    ArtifactExpired,
    PayloadTooLarge {
        pointer: &'static str,
        /// The limit in bytes.
        limit: usize,
    },
    /// Open Artifacts are not taken here.
    OpenRefused,
    /// Nobody to ask.
    NoApprover {
        /// The member that names nobody.
        pointer: &'static str,
    },
    /// The routing token was revoked, or replaced by another.
    PairingRevoked,
    TooManyGuesses {
        /// When there is room for another.
        retry_after: Duration,
        quota: u32,
    },
    Throttled(Throttled),
    AlreadyPaired,
    /// A prompt that is not what its hash says.
    PromptHash,
    /// A prompt past its time.
    PromptExpired {
        /// The member that says when it ends.
        pointer: String,
    },
    /// Nobody to send a prompt to.
    NoRecipient,
    PromptExists,
    PromptMismatch,
    PromptSettled(&'static str),
    /// A snapshot that is not what its hash says.
    SnapshotHash,
    SessionClosed,
    SessionStarted,
    SnapshotExists,
    AlreadyExists,
    /// The idempotency key was used for something else.
    IdempotencyKeyReused,
    InboxFull,
    BodyTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// A body that did not arrive in time, or whole.
    BodyIncomplete,
    /// A media type or encoding the gateway does not read.
    UnsupportedMediaType,
    /// Nothing at this path.
    NoSuchRoute,
    MethodNotAllowed,
    /// The node holds as many channels as it may.
    TooManyChannels,
    /// An origin that browsers may not connect from.
    ForeignOrigin,
    /// Too many waits at once.
    TooManyWaits,
    /// A call that did not come over TLS to a proxy that is believed.
    Unencrypted {
        expected: &'static str,
    },
    /// No credential, or none that is good.
    Unauthenticated,
    /// A token, and none that is good.
    InvalidToken,
    /// An API key that cannot be one: a part is missing, or it is a placeholder.
    MalformedKey,
    /// The credential does not reach that far.
    Forbidden {
        /// The member or path segment it may not name, if that is why.
        pointer: Option<String>,
        expected: &'static str,
    },
    DecisionExpired,
    DecisionHash,
    /// The signature does not verify, or the key is unknown.
    SignatureInvalid,
    KeyRevoked,
    /// Not there, or not for this caller.
    NotFound,
    AlreadyDecided,
    Expired,
    /// The exchange is in a state that does not allow this.
    InvalidState(State),
    Taken {
        pointer: &'static str,
    },
    /// The database is away, or the node is draining or overloaded.
    Unavailable,
    Internal,
}

impl Error {
    /// A member that does not conform.
    pub fn invalid(pointer: impl Into<String>, expected: &'static str) -> Self {
        Self::Invalid(Invalid::shape(pointer, expected))
    }
}

impl From<JsonError> for Error {
    fn from(error: JsonError) -> Self {
        Self::Json(error)
    }
}

impl From<Invalid> for Error {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

impl From<ArtifactError> for Error {
    fn from(error: ArtifactError) -> Self {
        match error {
            ArtifactError::Invalid(invalid) => Self::Invalid(invalid),
            ArtifactError::InvalidArtifact(invalid) => Self::InvalidArtifact(invalid),
            ArtifactError::HashMismatch => Self::ArtifactHash,
            ArtifactError::TooLarge { pointer, limit } => Self::PayloadTooLarge { pointer, limit },
        }
    }
}

impl From<SubmissionRefusal> for Error {
    fn from(refusal: SubmissionRefusal) -> Self {
        match refusal {
            SubmissionRefusal::KeyReused => Self::IdempotencyKeyReused,
            SubmissionRefusal::AlreadyExists => Self::AlreadyExists,
            SubmissionRefusal::Expired => Self::ArtifactExpired,
            SubmissionRefusal::Crowded => Self::InboxFull,
            SubmissionRefusal::Unsettled => Self::Unavailable,
        }
    }
}

impl From<DecisionRefusal> for Error {
    fn from(refusal: DecisionRefusal) -> Self {
        match refusal {
            DecisionRefusal::NotFound => Self::NotFound,
            DecisionRefusal::AlreadyDecided => Self::AlreadyDecided,
            DecisionRefusal::Expired => Self::Expired,
            DecisionRefusal::HashMismatch => Self::DecisionHash,
            DecisionRefusal::RepoMismatch => {
                Self::invalid("/body/repoRef", "the repoRef of the artifact")
            }
            // The keys changed on every try: someone is registering keys in a loop.
            DecisionRefusal::JudgeAgain => Self::Unavailable,
        }
    }
}

impl Error {
    /// The refusal of a prompt whose text may have `limit` bytes.
    #[must_use]
    pub fn of_prompt(error: PromptError, limit: usize) -> Self {
        match error {
            PromptError::Invalid(invalid) => Self::Invalid(invalid),
            PromptError::HashMismatch => Self::PromptHash,
            PromptError::TooLarge { pointer } => Self::PayloadTooLarge { pointer, limit },
        }
    }
}

impl Error {
    /// The refusal of a prompt that says at `expiry` when it ends.
    #[must_use]
    pub fn of_sending(refusal: PromptRefusal, expiry: &str) -> Self {
        match refusal {
            PromptRefusal::KeyReused => Self::IdempotencyKeyReused,
            PromptRefusal::AlreadyExists => Self::PromptExists,
            PromptRefusal::Expired => Self::PromptExpired {
                pointer: expiry.to_owned(),
            },
            PromptRefusal::NoRecipient => Self::NoRecipient,
            PromptRefusal::Barred => Self::Forbidden {
                pointer: None,
                expected: "an approver paired with the enforcer, or an administrator",
            },
            PromptRefusal::Unsettled => Self::Unavailable,
        }
    }
}

impl From<AckRefusal> for Error {
    fn from(refusal: AckRefusal) -> Self {
        match refusal {
            AckRefusal::NotFound => Self::NotFound,
            AckRefusal::HashMismatch => Self::PromptMismatch,
            AckRefusal::Settled(status) => Self::PromptSettled(status.as_str()),
        }
    }
}

impl From<TrustError> for Error {
    fn from(distrust: TrustError) -> Self {
        match distrust {
            TrustError::Invalid => Self::SignatureInvalid,
            TrustError::Revoked => Self::KeyRevoked,
        }
    }
}

impl From<StateRefusal> for Error {
    fn from(refusal: StateRefusal) -> Self {
        match refusal {
            StateRefusal::NotFound => Self::NotFound,
            StateRefusal::Conflict(State::Decided | State::Delivered) => Self::AlreadyDecided,
            StateRefusal::Conflict(State::Expired) => Self::Expired,
            StateRefusal::Conflict(state) => Self::InvalidState(state),
        }
    }
}

impl From<EventError> for Error {
    fn from(error: EventError) -> Self {
        match error {
            EventError::Invalid(invalid) => Self::Invalid(invalid),
            EventError::HashMismatch => Self::SnapshotHash,
            EventError::TooLarge { pointer, limit } => Self::PayloadTooLarge { pointer, limit },
        }
    }
}

impl From<ReportRefusal> for Error {
    fn from(refusal: ReportRefusal) -> Self {
        match refusal {
            ReportRefusal::Foreign => Self::Forbidden {
                pointer: Some("/body/sessionId".to_owned()),
                expected: "a session of the sender's own",
            },
            ReportRefusal::Closed => Self::SessionClosed,
            ReportRefusal::Started => Self::SessionStarted,
            ReportRefusal::SnapshotExists => Self::SnapshotExists,
            ReportRefusal::Unsettled => Self::Unavailable,
        }
    }
}

impl From<NotJson> for Error {
    fn from(error: NotJson) -> Self {
        tracing::error!(%error, "an envelope could not be put together");
        Self::Internal
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) => {
                tracing::debug!(%error, "a call could not be served");
                Self::Unavailable
            }
            StoreError::Fault(_) | StoreError::Taken(_) => {
                tracing::error!(%error, "a call failed");
                Self::Internal
            }
        }
    }
}
