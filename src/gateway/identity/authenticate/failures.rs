//! Failed authentications. Each is counted, and logged with the credential's id if that exists.
//! Secrets and unknown ids are never logged: they may contain anything.

use std::net::IpAddr;

use crate::gateway::context::GatewayContext;
use crate::gateway::limit::{LineLimit, RateLimit};
use crate::protocol::id::CredentialId;

/// Lines a second: someone who tries keys must not fill the disk.
const LINES: RateLimit = RateLimit {
    per_second: 5,
    burst: 20,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::gateway) enum AuthFailure {
    /// No credential, or none of a known scheme. Counted, not logged: nobody has tried anything.
    Missing,
    /// Neither an API key nor anything else that is accepted.
    Malformed,
    /// No credential has this id, or this certificate.
    Unknown,
    /// The id is right and the secret is not.
    Secret,
    Revoked,
    Expired,
    /// A code that binds a certificate, and is not valid.
    Code,
    /// A token of an issuer. Why is logged where it was judged.
    Token,
}

impl AuthFailure {
    fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Malformed => "malformed",
            Self::Unknown => "unknown",
            Self::Secret => "secret",
            Self::Revoked => "revoked",
            Self::Expired => "expired",
            Self::Code => "code",
            Self::Token => "token",
        }
    }
}

pub(in crate::gateway) struct AuthFailures {
    lines: LineLimit,
}

impl AuthFailures {
    pub fn new() -> Self {
        Self {
            lines: LineLimit::new(LINES),
        }
    }

    pub fn note(
        &self,
        context: &GatewayContext,
        failure: AuthFailure,
        credential: Option<&CredentialId>,
        from: Option<IpAddr>,
    ) {
        let reason = failure.as_str();
        context.metrics.unauthenticated.of([reason]).increment();
        if failure == AuthFailure::Missing {
            return;
        }
        let Some(unlogged) = self.lines.admit(context.clock.now()) else {
            return;
        };
        tracing::info!(
            reason,
            credential = credential.map(tracing::field::display),
            address = from.map(tracing::field::display),
            unlogged = (unlogged > 0).then_some(unlogged),
            "authentication failed"
        );
    }
}
