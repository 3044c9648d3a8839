//! What a rate limit is, and how a throttled call is refused. `limit` does the counting.

use std::time::Duration;

use super::error::{Error, Throttled};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Artifacts, prompts, session events, pairings begun.
    Submission,
    /// Decisions, and whatever else changes an exchange or a pairing.
    Decision,
    Ack,
    Read,
    Connect,
    Address,
}

impl Kind {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Submission => "submissions",
            Self::Decision => "decisions",
            Self::Ack => "acks",
            Self::Read => "reads",
            Self::Connect => "connects",
            Self::Address => "address",
        }
    }

    /// The refusal of a call of this kind.
    #[must_use]
    pub fn throttled(self, rate: Rate, retry_after: Duration) -> Error {
        let calls = match self {
            Self::Address => "calls from this address",
            kind => kind.as_str(),
        };
        Error::Throttled(Throttled {
            policy: self.as_str(),
            calls: format!("{calls} at once"),
            quota: rate.burst,
            window_seconds: rate.burst.div_ceil(rate.per_second.max(1)).into(),
            retry_after,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Calls a second; 0 for no limit.
    pub per_second: u32,
    /// Calls at once.
    pub burst: u32,
}
