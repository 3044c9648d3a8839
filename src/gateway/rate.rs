//! What a rate limit is, and what a throttled call is told. `limit` does the counting.

use std::time::Duration;

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

    #[must_use]
    pub fn calls(self) -> &'static str {
        match self {
            Self::Address => "calls from this address",
            kind => kind.as_str(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Calls a second; 0 for no limit.
    pub per_second: u32,
    /// Calls at once.
    pub burst: u32,
}

/// A call that must wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Throttled {
    pub kind: Kind,
    pub rate: Rate,
    pub retry_after: Duration,
}
