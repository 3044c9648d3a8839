//! Every refusal of the gateway, with its message, and the one table of statuses, codes and
//! details. Refusals of the HTTP transport alone are in `http::error`.

mod code;
mod description;
mod device;
mod notification;
mod team;

pub use self::code::{Code, CodeNames};
pub use self::description::{ErrorDescription, ThrottleDetails};
pub use self::device::DeviceError;
pub use self::notification::NotificationError;
pub use self::team::TeamError;
use super::invalid::{InvalidMember, MemberFault};
use super::json::{JsonError, JsonProblem};

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Json(#[from] JsonError),
    #[error("{0}")]
    Invalid(#[from] InvalidMember),
    /// A member of an open artifact that does not conform.
    #[error("{0}")]
    InvalidArtifact(InvalidMember),
    /// A query parameter, path segment or header that does not conform.
    #[error("{name} should be {expected}")]
    Parameter {
        name: &'static str,
        expected: &'static str,
    },
    #[error("{pointer} is larger than {limit} bytes")]
    PayloadTooLarge { pointer: &'static str, limit: usize },
    #[error("the body is larger than {limit} bytes")]
    BodyTooLarge { limit: usize },

    #[error("artifactHash does not match the artifact")]
    ArtifactHash,
    #[error("promptHash does not match the prompt")]
    PromptHash,
    #[error("snapshotHash does not match the snapshot")]
    SnapshotHash,
    #[error("the decision is about another artifact")]
    DecisionHash,
    #[error("the submission is past its expiresAt")]
    ArtifactExpired,
    #[error("the prompt is past its expiresAt")]
    PromptExpired { pointer: String },
    #[error("the decision is past its expiresAt")]
    DecisionExpired,
    #[error("the exchange has expired")]
    Expired,

    // Both read the same to the caller, so that it learns nothing about the credential.
    #[error("a valid credential is required")]
    Unauthenticated,
    #[error("a valid credential is required")]
    InvalidToken,
    /// An API key with a part missing, or a placeholder.
    #[error("a valid credential is required")]
    MalformedKey,
    #[error("a client certificate is required")]
    NoCertificate,
    #[error("the code is unknown, used or expired")]
    CodeRefused,
    /// `pointer` is the member or parameter that the credential may not use.
    #[error("the credential does not allow this; it needs {expected}")]
    Forbidden {
        pointer: Option<String>,
        expected: &'static str,
    },
    #[error("this gateway accepts only sealed artifacts")]
    OpenRefused,
    #[error("this gateway accepts only full decisions")]
    CompactRefused,
    /// `pointer` is the member that names the approver.
    #[error("this gateway lets an enforcer ask only approvers that it is paired with")]
    NotPaired { pointer: &'static str },
    #[error("the signature does not verify under the approver's keys")]
    SignatureInvalid,
    /// `text` should have been signed by the key.
    #[error("the proof does not verify under the key to be registered")]
    KeyProof { text: String },
    #[error("the signing key has been revoked")]
    KeyRevoked,
    #[error("{0}")]
    Device(#[from] DeviceError),
    #[error("{0}")]
    Notification(#[from] NotificationError),
    #[error("{0}")]
    Team(#[from] TeamError),
    #[error("the routing token was revoked, or replaced by a newer pairing")]
    PairingRevoked,
    #[error("not found, or not visible to this caller")]
    NotFound,

    /// `pointer` is the member that names nobody.
    #[error("the submission names no approver")]
    NoApprover { pointer: &'static str },
    #[error("the submission would ask {count} approvers; at most {limit} may be asked")]
    TooManyApprovers {
        pointer: &'static str,
        count: usize,
        limit: usize,
    },
    #[error("the prompt names no enforcer to send it to")]
    NoRecipient,

    #[error("this requestId was used for another artifact")]
    AlreadyExists,
    #[error("this requestId was used for another prompt")]
    PromptExists,
    #[error("{pointer} is already in use")]
    Taken { pointer: &'static str },
    #[error("the certificate is bound to another credential")]
    CertificateBound,
    #[error("the invitation was used")]
    InvitationUsed,
    #[error("this Idempotency-Key was used for another request")]
    IdempotencyKeyReused,
    #[error("the exchange has already been decided")]
    AlreadyDecided,
    #[error("this signing key has used the nonce for another exchange")]
    NonceReused,
    #[error("the exchange is {0}")]
    InvalidState(&'static str),
    #[error("this pairing is already complete")]
    AlreadyPaired,
    #[error("the acknowledgement is for another prompt")]
    PromptMismatch,
    #[error("the prompt is {0}, which is final")]
    PromptSettled(&'static str),
    #[error("the session has ended")]
    SessionClosed,
    #[error("the session was started with another session.start")]
    SessionStarted,
    #[error("this snapshotId was used for another snapshot")]
    SnapshotExists,

    #[error("too many {}", .0.calls)]
    Throttled(ThrottleDetails),
    #[error("the approver's inbox is full")]
    InboxFull,
    #[error(
        "this enforcer already has {limit} requests waiting in the approver's inbox, which is its limit"
    )]
    InboxShare { limit: u32 },
    #[error(
        "the tenant has reached its limit of revocations; revoke all tokens with issuedBefore instead"
    )]
    TooManyRevocations,
    #[error("this identity has too many waits open")]
    TooManyWaits,
    #[error("this node has reached its limit of channels")]
    TooManyChannels,
    /// The database is unavailable, or the node is draining or overloaded.
    #[error("the gateway cannot handle this right now; try again")]
    Unavailable,
    #[error("internal error")]
    Internal,
}

impl Error {
    pub fn invalid(pointer: impl Into<String>, expected: &'static str) -> Self {
        Self::Invalid(InvalidMember::shape(pointer, expected))
    }

    pub fn describe(&self) -> ErrorDescription {
        let refusal = |status, code| ErrorDescription::new(status, code, self.to_string());
        let refused_token = || ErrorDescription {
            invalid_token: true,
            ..refusal(401, Code::Unauthenticated)
        };
        match self {
            Self::Json(error) => refusal(400, code_of_json(error.reason)).at(&error.pointer),
            Self::Invalid(invalid) => refusal(400, code_of_fault(invalid.fault)).about(invalid),
            Self::InvalidArtifact(invalid) => refusal(422, Code::InvalidArtifact).about(invalid),
            Self::Parameter { name, expected } => refusal(400, Code::Validation)
                .with("parameter", *name)
                .expecting(expected),
            Self::PayloadTooLarge { pointer, limit } => refusal(413, Code::TooLarge)
                .at(pointer)
                .with("limit", *limit),
            Self::BodyTooLarge { limit } => refusal(413, Code::TooLarge).with("limit", *limit),

            Self::ArtifactHash => refusal(422, Code::HashMismatch)
                .at("/body/artifactHash")
                .expecting("SHA-256 of the canonical artifact without artifactHash"),
            Self::PromptHash => refusal(422, Code::HashMismatch)
                .at("/body/promptHash")
                .expecting("SHA-256 of the canonical prompt without promptHash"),
            Self::SnapshotHash => refusal(422, Code::HashMismatch)
                .at("/body/snapshotHash")
                .expecting("SHA-256 of the canonical event without snapshotHash"),
            Self::DecisionHash => refusal(400, Code::HashMismatch)
                .at("/body/artifactHash")
                .expecting("the artifactHash of the exchange"),
            Self::ArtifactExpired => refusal(422, Code::Expired)
                .at("/body/expiresAt")
                .expecting("a time in the future"),
            Self::PromptExpired { pointer } => refusal(422, Code::Expired)
                .at(pointer)
                .expecting("a time in the future"),
            Self::DecisionExpired => refusal(400, Code::Expired)
                .at("/body/expiresAt")
                .expecting("a time in the future"),
            Self::Expired => refusal(409, Code::Expired),

            Self::Unauthenticated => refusal(401, Code::Unauthenticated),
            Self::InvalidToken => refused_token(),
            Self::MalformedKey => refused_token().expecting(
                "an API key as printed when it was made: csk_…, complete and without placeholders",
            ),
            Self::NoCertificate => refusal(401, Code::Unauthenticated).expecting(
                "a connection that presents a certificate of an authority that the gateway trusts",
            ),
            Self::CodeRefused => refusal(401, Code::Unauthenticated)
                .at("/code")
                .expecting("the one-time code of a credential that waits for its certificate"),
            Self::Forbidden { pointer, expected } => {
                let refusal = refusal(403, Code::Forbidden).expecting(expected);
                match pointer {
                    Some(pointer) if pointer.starts_with('/') => refusal.at(pointer),
                    Some(parameter) => refusal.with("parameter", parameter.as_str()),
                    None => refusal,
                }
            }
            Self::OpenRefused => refusal(403, Code::PolicyDeny)
                .at("/body/ciphertext")
                .expecting("a sealed artifact"),
            Self::CompactRefused => refusal(403, Code::PolicyDeny)
                .at("/body/sigAlg")
                .expecting("a full decision"),
            Self::NotPaired { pointer } => refusal(403, Code::PolicyDeny)
                .at(pointer)
                .expecting("an approver that this enforcer is paired with"),
            Self::SignatureInvalid => refusal(403, Code::SignatureInvalid).at("/body/signature"),
            Self::KeyProof { text } => refusal(403, Code::SignatureInvalid)
                .at("/proof/signature")
                .expecting(&format!("an Ed25519 signature by this key over {text:?}")),
            Self::KeyRevoked => refusal(403, Code::KeyRevoked).at("/body/signerKeyId"),
            Self::Device(error) => error.describe(),
            Self::Notification(error) => error.describe(),
            Self::Team(error) => error.describe(),
            Self::PairingRevoked => refusal(403, Code::PairingRevoked)
                .at("/body/metadata/routingToken")
                .expecting("the token of a pairing in force"),
            Self::NotFound => refusal(404, Code::NotFound),

            Self::NoApprover { pointer } => refusal(422, Code::NoApprover)
                .at(pointer)
                .expecting("an approver, or a pairing with one"),
            Self::TooManyApprovers { pointer, limit, .. } => refusal(422, Code::TooLarge)
                .at(pointer)
                .expecting("an approver, or fewer pairings")
                .with("limit", *limit),
            Self::NoRecipient => refusal(422, Code::NoRecipient)
                .at("/recipient/enforcerId")
                .expecting("an enforcer, the session of one, or metadata.enforcerId"),

            Self::AlreadyExists => refusal(409, Code::AlreadyExists)
                .at("/requestId")
                .with("conflict", "AlreadyExistsConflict"),
            Self::PromptExists => refusal(409, Code::AlreadyExists)
                .at("/body/requestId")
                .with("conflict", "AlreadyExistsConflict"),
            Self::Taken { pointer } => refusal(409, Code::AlreadyExists).at(pointer),
            Self::CertificateBound => refusal(409, Code::AlreadyExists)
                .expecting("another certificate, or the end of that credential"),
            Self::InvitationUsed => {
                refusal(409, Code::InvalidState).expecting("the end of the credential that it gave")
            }
            Self::IdempotencyKeyReused => {
                refusal(409, Code::IdempotencyKeyReused).with("parameter", "Idempotency-Key")
            }
            Self::AlreadyDecided => {
                refusal(409, Code::AlreadyDecided).with("conflict", "AlreadyDecidedConflict")
            }
            Self::NonceReused => refusal(409, Code::NonceReused)
                .at("/body/nonce")
                .expecting("a nonce that this key has not used"),
            Self::InvalidState(state) => refusal(409, Code::InvalidState).with("state", *state),
            Self::AlreadyPaired => refusal(409, Code::InvalidState).at("/nonce"),
            Self::PromptMismatch => refusal(409, Code::InvalidState)
                .at("/body/promptHash")
                .expecting("the promptHash of the prompt"),
            Self::PromptSettled(status) => refusal(409, Code::InvalidState)
                .at("/body/status")
                .with("state", *status),
            Self::SessionClosed => refusal(409, Code::SessionClosed).at("/body/sessionId"),
            Self::SessionStarted => refusal(409, Code::AlreadyExists).at("/body/sessionId"),
            Self::SnapshotExists => refusal(409, Code::DuplicateSnapshot).at("/body/snapshotId"),

            Self::Throttled(throttled) => ErrorDescription {
                throttled: Some(throttled.clone()),
                ..refusal(429, Code::RateLimited)
            },
            Self::InboxShare { limit } => refusal(429, Code::RateLimited)
                .at("/recipient/approverId")
                .with("limit", *limit),
            Self::InboxFull | Self::TooManyRevocations | Self::TooManyWaits => {
                refusal(429, Code::RateLimited)
            }
            Self::TooManyChannels | Self::Unavailable => refusal(503, Code::Unavailable),
            Self::Internal => refusal(500, Code::Internal),
        }
    }
}

fn code_of_json(reason: JsonProblem) -> Code {
    match reason {
        JsonProblem::NotUtf8
        | JsonProblem::Syntax
        | JsonProblem::UnexpectedEnd
        | JsonProblem::TrailingBytes
        | JsonProblem::TooDeep
        | JsonProblem::TooManyValues => Code::MalformedJson,
        JsonProblem::DuplicateMember
        | JsonProblem::LoneSurrogate
        | JsonProblem::NulCharacter
        | JsonProblem::IntegerRange
        | JsonProblem::NumberOverflow => Code::Canonicalization,
    }
}

fn code_of_fault(fault: MemberFault) -> Code {
    match fault {
        MemberFault::Shape => Code::Validation,
        MemberFault::Timestamp => Code::Timestamp,
        MemberFault::Unsupported => Code::Unsupported,
    }
}
