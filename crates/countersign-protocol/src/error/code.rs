//! The catalogue of error codes, and the names that follow from the protocol's own name.

use crate::words::words;

words! {
    /// On the wire a code carries the protocol's prefix.
    Code {
        Validation = "VALIDATION",
        MalformedJson = "MALFORMED_JSON",
        Canonicalization = "CANONICALIZATION",
        Timestamp = "TIMESTAMP",
        Unsupported = "UNSUPPORTED",
        HashMismatch = "HASH_MISMATCH",
        Expired = "EXPIRED",
        Unauthenticated = "UNAUTHENTICATED",
        Forbidden = "FORBIDDEN",
        PolicyDeny = "POLICY_DENY",
        SignatureInvalid = "SIGNATURE_INVALID",
        KeyRevoked = "KEY_REVOKED",
        PairingRevoked = "PAIRING_REVOKED",
        NotFound = "NOT_FOUND",
        MethodNotAllowed = "METHOD_NOT_ALLOWED",
        AlreadyExists = "ALREADY_EXISTS",
        AlreadyDecided = "ALREADY_DECIDED",
        NonceReused = "NONCE_REUSED",
        InvalidState = "INVALID_STATE",
        IdempotencyKeyReused = "IDEMPOTENCY_KEY_REUSED",
        SessionClosed = "SESSION_CLOSED",
        TeamStateTaken = "TEAM_STATE_TAKEN",
        DuplicateSnapshot = "DUPLICATE_SNAPSHOT",
        TooLarge = "TOO_LARGE",
        UnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE",
        InvalidArtifact = "INVALID_ARTIFACT",
        NoApprover = "NO_APPROVER",
        NoRecipient = "NO_RECIPIENT",
        RateLimited = "RATE_LIMITED",
        Internal = "INTERNAL",
        Unavailable = "UNAVAILABLE",
    }
}

impl Code {
    /// Whether the same call may succeed later.
    pub fn retryable(self) -> bool {
        matches!(self, Self::RateLimited | Self::Internal | Self::Unavailable)
    }
}

#[derive(Debug, Clone)]
pub struct CodeNames {
    pub media_type: String,
    pub error_prefix: String,
    /// Key of the extension that lists an artifact's requested actions.
    pub requested_actions: String,
    /// Key of the extension that sets when a prompt expires.
    pub prompt: String,
}

impl CodeNames {
    pub fn new(name: &str) -> Self {
        Self {
            media_type: format!("application/{name}+json"),
            error_prefix: format!("{}_ERR_", name.to_uppercase()),
            requested_actions: format!("org.{name}.requestedActions"),
            prompt: format!("org.{name}.prompt"),
        }
    }

    pub fn code(&self, code: Code) -> String {
        format!("{}{}", self.error_prefix, code.as_str())
    }
}
