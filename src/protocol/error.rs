//! The catalogue of error codes. Which refusal carries which code is decided in `http::error`, in one place.

/// A code of the catalogue; on the wire it carries the protocol's prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// A member is missing, unknown, of the wrong type or out of range.
    Validation,
    /// Not JSON.
    MalformedJson,
    /// JSON that has no canonical form everyone agrees on.
    Canonicalization,
    /// A time that is none, or cannot be.
    Timestamp,
    /// A choice this version does not offer.
    Unsupported,
    /// A hash that is not the hash of what it claims to cover.
    HashMismatch,
    /// Past its time.
    Expired,
    /// No credential, or none that is known.
    Unauthenticated,
    /// The credential does not reach that far.
    Forbidden,
    /// The gateway is set not to take this.
    PolicyDeny,
    /// A signature that does not verify, or an unknown key.
    SignatureInvalid,
    KeyRevoked,
    /// A pairing that has been revoked or replaced.
    PairingRevoked,
    /// Not there, or not for this caller.
    NotFound,
    MethodNotAllowed,
    AlreadyExists,
    AlreadyDecided,
    /// The exchange is past the state this needs.
    InvalidState,
    /// The idempotency key was used for something else.
    IdempotencyKeyReused,
    SessionClosed,
    DuplicateSnapshot,
    TooLarge,
    /// A media type or encoding the gateway does not read.
    UnsupportedMediaType,
    InvalidArtifact,
    /// Nobody to ask.
    NoApprover,
    /// Nobody to send it to.
    NoRecipient,
    /// Too much at once.
    RateLimited,
    Internal,
    /// Not now: the database is away, or the node is draining or overloaded.
    Unavailable,
}

impl Code {
    pub const ALL: [Self; 29] = [
        Self::Validation,
        Self::MalformedJson,
        Self::Canonicalization,
        Self::Timestamp,
        Self::Unsupported,
        Self::HashMismatch,
        Self::Expired,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::PolicyDeny,
        Self::SignatureInvalid,
        Self::KeyRevoked,
        Self::PairingRevoked,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::AlreadyExists,
        Self::AlreadyDecided,
        Self::InvalidState,
        Self::IdempotencyKeyReused,
        Self::SessionClosed,
        Self::DuplicateSnapshot,
        Self::TooLarge,
        Self::UnsupportedMediaType,
        Self::InvalidArtifact,
        Self::NoApprover,
        Self::NoRecipient,
        Self::RateLimited,
        Self::Internal,
        Self::Unavailable,
    ];

    /// The code without its prefix.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Validation => "VALIDATION",
            Self::MalformedJson => "MALFORMED_JSON",
            Self::Canonicalization => "CANONICALIZATION",
            Self::Timestamp => "TIMESTAMP",
            Self::Unsupported => "UNSUPPORTED",
            Self::HashMismatch => "HASH_MISMATCH",
            Self::Expired => "EXPIRED",
            Self::Unauthenticated => "UNAUTHENTICATED",
            Self::Forbidden => "FORBIDDEN",
            Self::PolicyDeny => "POLICY_DENY",
            Self::SignatureInvalid => "SIGNATURE_INVALID",
            Self::KeyRevoked => "KEY_REVOKED",
            Self::PairingRevoked => "PAIRING_REVOKED",
            Self::NotFound => "NOT_FOUND",
            Self::MethodNotAllowed => "METHOD_NOT_ALLOWED",
            Self::AlreadyExists => "ALREADY_EXISTS",
            Self::AlreadyDecided => "ALREADY_DECIDED",
            Self::InvalidState => "INVALID_STATE",
            Self::IdempotencyKeyReused => "IDEMPOTENCY_KEY_REUSED",
            Self::SessionClosed => "SESSION_CLOSED",
            Self::DuplicateSnapshot => "DUPLICATE_SNAPSHOT",
            Self::TooLarge => "TOO_LARGE",
            Self::UnsupportedMediaType => "UNSUPPORTED_MEDIA_TYPE",
            Self::InvalidArtifact => "INVALID_ARTIFACT",
            Self::NoApprover => "NO_APPROVER",
            Self::NoRecipient => "NO_RECIPIENT",
            Self::RateLimited => "RATE_LIMITED",
            Self::Internal => "INTERNAL",
            Self::Unavailable => "UNAVAILABLE",
        }
    }

    /// Whether the same call may succeed later.
    #[must_use]
    pub fn retryable(self) -> bool {
        matches!(self, Self::RateLimited | Self::Internal | Self::Unavailable)
    }
}

/// The names that follow from the protocol's short name (`protocol.name`).
#[derive(Debug, Clone)]
pub struct Names {
    pub media_type: String,
    pub error_prefix: String,
    pub requested_actions: String,
    /// Key of the extension that says when a prompt ends.
    pub prompt: String,
}

impl Names {
    /// The names of the protocol called `name`.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            media_type: format!("application/{name}+json"),
            error_prefix: format!("{}_ERR_", name.to_uppercase()),
            requested_actions: format!("org.{name}.requestedActions"),
            prompt: format!("org.{name}.prompt"),
        }
    }

    #[must_use]
    pub fn code(&self, code: Code) -> String {
        format!("{}{}", self.error_prefix, code.as_str())
    }
}
