//! Every refusal on the wire: status, code, message, details. The one place that knows, with no wildcard arm, so that a
//! new refusal does not compile until it is mapped. Nothing internal leaves in a message.

use axum::http::StatusCode;

use super::refusal::clip;
pub use super::refusal::{About, Description, Refusal};
use crate::gateway::GUESS_WINDOW_SECONDS;
use crate::gateway::error::Error;
use crate::protocol::error::Code;
use crate::protocol::json::Reason;
use crate::protocol::reader::Fault;

impl Description {
    #[must_use]
    pub fn of(error: &Error) -> Self {
        use StatusCode as S;
        match error {
            Error::Json(error) => {
                let code = match error.reason {
                    Reason::NotUtf8
                    | Reason::Syntax
                    | Reason::UnexpectedEnd
                    | Reason::TrailingBytes
                    | Reason::TooDeep => Code::MalformedJson,
                    Reason::DuplicateMember
                    | Reason::LoneSurrogate
                    | Reason::NulCharacter
                    | Reason::IntegerRange
                    | Reason::NumberOverflow => Code::Canonicalization,
                };
                Self::new(S::BAD_REQUEST, code, error.to_string())
                    .with("pointer", clip(&error.pointer))
            }
            Error::Invalid(invalid) => {
                let code = match invalid.fault {
                    Fault::Shape => Code::Validation,
                    Fault::Timestamp => Code::Timestamp,
                    Fault::Unsupported => Code::Unsupported,
                };
                Self::member(S::BAD_REQUEST, code, invalid)
            }
            Error::Parameter { name, expected } => Self::new(
                S::BAD_REQUEST,
                Code::Validation,
                format!("{name} should be {expected}"),
            )
            .with("parameter", *name)
            .with("expected", *expected),
            Error::InvalidArtifact(invalid) => {
                Self::member(S::UNPROCESSABLE_ENTITY, Code::InvalidArtifact, invalid)
            }
            Error::ArtifactHash => Self::new(
                S::UNPROCESSABLE_ENTITY,
                Code::HashMismatch,
                "the artifact is not what its artifactHash says",
            )
            .with("pointer", "/body/artifactHash")
            .with(
                "expected",
                "SHA-256 of the canonical artifact without artifactHash",
            ),
            Error::ArtifactExpired => Self::new(
                S::UNPROCESSABLE_ENTITY,
                Code::Expired,
                "the submission is past its expiresAt",
            )
            .with("pointer", "/body/expiresAt")
            .with("expected", "a time to come"),
            Error::PayloadTooLarge { pointer, limit } => Self::new(
                S::PAYLOAD_TOO_LARGE,
                Code::TooLarge,
                format!("{pointer} is over {limit} bytes"),
            )
            .with("pointer", *pointer)
            .with("limit", *limit),
            Error::BodyTooLarge { limit } => Self::new(
                S::PAYLOAD_TOO_LARGE,
                Code::TooLarge,
                format!("the body is over {limit} bytes"),
            )
            .with("limit", *limit),
            Error::BodyIncomplete => Self::new(
                S::BAD_REQUEST,
                Code::Validation,
                "the body did not arrive whole and in time",
            ),
            Error::UnsupportedMediaType => Self::new(
                S::UNSUPPORTED_MEDIA_TYPE,
                Code::UnsupportedMediaType,
                "the body should be JSON, uncompressed, and say so in Content-Type",
            ),
            Error::OpenRefused => Self::new(
                S::FORBIDDEN,
                Code::PolicyDeny,
                "this gateway takes sealed artifacts only",
            )
            .with("pointer", "/body/ciphertext")
            .with("expected", "a sealed artifact"),
            Error::NoApprover { pointer } => Self::new(
                S::UNPROCESSABLE_ENTITY,
                Code::NoApprover,
                "the submission names nobody to ask",
            )
            .with("pointer", *pointer)
            .with("expected", "an approver, or a pairing with one"),
            Error::PairingRevoked => Self::new(
                S::FORBIDDEN,
                Code::PairingRevoked,
                "the routing token was revoked, or replaced by a newer pairing",
            )
            .with("pointer", "/body/metadata/routingToken")
            .with("expected", "the token of a pairing in force"),
            Error::TooManyGuesses { retry_after, quota } => Self::new(
                S::TOO_MANY_REQUESTS,
                Code::RateLimited,
                "too many wrong codes",
            )
            .throttled("guesses", *quota, GUESS_WINDOW_SECONDS, *retry_after),
            Error::Throttled(throttled) => Self::new(
                S::TOO_MANY_REQUESTS,
                Code::RateLimited,
                format!("too many {} at once", throttled.kind.calls()),
            )
            .throttled(
                throttled.kind.as_str(),
                throttled.rate.burst,
                u64::from(
                    throttled
                        .rate
                        .burst
                        .div_ceil(throttled.rate.per_second.max(1)),
                ),
                throttled.retry_after,
            ),
            Error::AlreadyPaired => Self::new(
                S::CONFLICT,
                Code::InvalidState,
                "this pairing has been completed",
            )
            .with("pointer", "/nonce"),
            Error::PromptHash => Self::new(
                S::UNPROCESSABLE_ENTITY,
                Code::HashMismatch,
                "the prompt is not what its promptHash says",
            )
            .with("pointer", "/body/promptHash")
            .with(
                "expected",
                "SHA-256 of the canonical prompt without promptHash",
            ),
            Error::PromptExpired { pointer } => Self::new(
                S::UNPROCESSABLE_ENTITY,
                Code::Expired,
                "the prompt is past its expiresAt",
            )
            .with("pointer", clip(pointer))
            .with("expected", "a time to come"),
            Error::NoRecipient => Self::new(
                S::UNPROCESSABLE_ENTITY,
                Code::NoRecipient,
                "the prompt names no enforcer to send it to",
            )
            .with("pointer", "/recipient/enforcerId")
            .with(
                "expected",
                "an enforcer, the session of one, or metadata.enforcerId",
            ),
            Error::PromptExists => Self::new(
                S::CONFLICT,
                Code::AlreadyExists,
                "this requestId was used for another prompt",
            )
            .with("pointer", "/body/requestId")
            .with("conflict", "AlreadyExistsConflict"),
            Error::PromptMismatch => Self::new(
                S::CONFLICT,
                Code::InvalidState,
                "the acknowledgement is of another prompt",
            )
            .with("pointer", "/body/promptHash")
            .with("expected", "the promptHash of the prompt"),
            Error::PromptSettled(status) => Self::new(
                S::CONFLICT,
                Code::InvalidState,
                format!("the prompt is {status}, which is final"),
            )
            .with("pointer", "/body/status")
            .with("state", *status),
            Error::SnapshotHash => Self::new(
                S::UNPROCESSABLE_ENTITY,
                Code::HashMismatch,
                "the snapshot is not what its snapshotHash says",
            )
            .with("pointer", "/body/snapshotHash")
            .with(
                "expected",
                "SHA-256 of the canonical event without snapshotHash",
            ),
            Error::SessionClosed => {
                Self::new(S::CONFLICT, Code::SessionClosed, "the session has ended")
                    .with("pointer", "/body/sessionId")
            }
            Error::SessionStarted => Self::new(
                S::CONFLICT,
                Code::AlreadyExists,
                "the session was started with another session.start",
            )
            .with("pointer", "/body/sessionId"),
            Error::SnapshotExists => Self::new(
                S::CONFLICT,
                Code::DuplicateSnapshot,
                "this snapshotId was used for another snapshot",
            )
            .with("pointer", "/body/snapshotId"),
            Error::AlreadyExists => Self::new(
                S::CONFLICT,
                Code::AlreadyExists,
                "this requestId was used for another artifact",
            )
            .with("pointer", "/requestId")
            .with("conflict", "AlreadyExistsConflict"),
            Error::IdempotencyKeyReused => Self::new(
                S::CONFLICT,
                Code::IdempotencyKeyReused,
                "this Idempotency-Key was used for another request",
            )
            .with("parameter", "Idempotency-Key"),
            Error::InboxFull => Self::new(
                S::TOO_MANY_REQUESTS,
                Code::RateLimited,
                "the approver's inbox is full",
            ),
            Error::TooManyChannels => Self::new(
                S::SERVICE_UNAVAILABLE,
                Code::Unavailable,
                "this node holds as many channels as it may",
            ),
            Error::ForeignOrigin => {
                Self::new(S::FORBIDDEN, Code::Forbidden, "this Origin may not connect")
                    .with("parameter", "Origin")
                    .with("expected", "an origin listed in server.origins")
            }
            Error::TooManyWaits => Self::new(
                S::TOO_MANY_REQUESTS,
                Code::RateLimited,
                "too many waits at once for this identity",
            ),
            Error::Unencrypted { expected } => Self::new(
                S::FORBIDDEN,
                Code::Forbidden,
                format!("calls are taken over TLS only; this one needs {expected}"),
            )
            .with("expected", *expected),
            // One and the same to the caller, whatever is wrong with what it presents.
            Error::Unauthenticated | Error::InvalidToken => Self::new(
                S::UNAUTHORIZED,
                Code::Unauthenticated,
                "a valid credential is needed",
            )
            .about_token(matches!(error, Error::InvalidToken)),
            Error::MalformedKey => Self::new(
                S::UNAUTHORIZED,
                Code::Unauthenticated,
                "a valid credential is needed",
            )
            .with(
                "expected",
                "an API key as printed when it was made: csk_…, complete and without placeholders",
            )
            .about_token(true),
            Error::Forbidden { pointer, expected } => {
                let described = Self::new(
                    S::FORBIDDEN,
                    Code::Forbidden,
                    format!("the credential does not allow this; it takes {expected}"),
                )
                .with("expected", *expected);
                match pointer {
                    Some(pointer) if pointer.starts_with('/') => {
                        described.with("pointer", pointer.clone())
                    }
                    Some(parameter) => described.with("parameter", parameter.clone()),
                    None => described,
                }
            }
            Error::DecisionExpired => Self::new(
                S::BAD_REQUEST,
                Code::Expired,
                "the decision is past its expiresAt",
            )
            .with("pointer", "/body/expiresAt")
            .with("expected", "a time to come"),
            Error::DecisionHash => Self::new(
                S::BAD_REQUEST,
                Code::HashMismatch,
                "the decision is about another artifact",
            )
            .with("pointer", "/body/artifactHash")
            .with("expected", "the artifactHash of the exchange"),
            Error::SignatureInvalid => Self::new(
                S::FORBIDDEN,
                Code::SignatureInvalid,
                "the signature does not verify under the approver's keys",
            )
            .with("pointer", "/body/signature"),
            Error::KeyRevoked => Self::new(
                S::FORBIDDEN,
                Code::KeyRevoked,
                "the signing key has been revoked",
            )
            .with("pointer", "/body/signerKeyId"),
            Error::NotFound => Self::new(
                S::NOT_FOUND,
                Code::NotFound,
                "there is no such thing, or it is not for this caller",
            ),
            Error::NoSuchRoute => Self::new(
                S::NOT_FOUND,
                Code::NotFound,
                "there is nothing at this path",
            ),
            Error::MethodNotAllowed => Self::new(
                S::METHOD_NOT_ALLOWED,
                Code::MethodNotAllowed,
                "this path takes other methods; see Allow",
            ),
            Error::AlreadyDecided => Self::new(
                S::CONFLICT,
                Code::AlreadyDecided,
                "the exchange has its decision already",
            )
            .with("conflict", "AlreadyDecidedConflict"),
            Error::Expired => Self::new(S::CONFLICT, Code::Expired, "the exchange has expired"),
            Error::InvalidState(state) => Self::new(
                S::CONFLICT,
                Code::InvalidState,
                format!("the exchange is {}", state.as_str()),
            )
            .with("state", state.as_str()),
            Error::Taken { pointer } => Self::new(
                S::CONFLICT,
                Code::AlreadyExists,
                format!("{pointer} is taken"),
            )
            .with("pointer", *pointer),
            Error::Unavailable => Self::new(
                S::SERVICE_UNAVAILABLE,
                Code::Unavailable,
                "the gateway cannot serve this now; try again",
            ),
            Error::Internal => Self::new(
                S::INTERNAL_SERVER_ERROR,
                Code::Internal,
                "a fault of the gateway",
            ),
        }
    }
}
