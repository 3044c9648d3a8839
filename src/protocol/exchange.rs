//! The state machine of an exchange, and the judgement of what a guarded statement found.
//! A statement reports facts; the functions here turn them into an outcome. Nothing else decides.

use super::id::OperationId;
use super::idempotent::{InsertFact, InsertRefusal, Inserted};
use super::timestamp::Timestamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    PendingApproval,
    /// Decided, not yet acknowledged by the enforcer.
    Decided,
    Delivered,
    Expired,
    Withdrawn,
    Cancelled,
}

impl State {
    pub const ALL: [Self; 6] = [
        Self::PendingApproval,
        Self::Decided,
        Self::Delivered,
        Self::Expired,
        Self::Withdrawn,
        Self::Cancelled,
    ];

    /// The word for it, on the wire and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PendingApproval => "pendingApproval",
            Self::Decided => "decided",
            Self::Delivered => "delivered",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
            Self::Cancelled => "cancelled",
        }
    }

    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// The state as of an instant: past its time, nothing is pending, whether or not the sweep has been by.
    #[must_use]
    pub fn at(self, past: bool) -> Self {
        if past && self == Self::PendingApproval {
            Self::Expired
        } else {
            self
        }
    }
}

/// Why a submission was not written, if no exchange has its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotWritten {
    /// It arrived past its expiry.
    Expired,
    InboxFull,
    /// It asks nobody, or the exchange that had its id was gone when it was read.
    Other,
}

/// Of an exchange that has the id of a submission, its state and expiry.
pub type SubmissionFact = InsertFact<(), (State, Timestamp), NotWritten>;

#[derive(Debug, Clone)]
pub struct Submitted {
    pub state: State,
    /// When it ends.
    pub expires_at: Timestamp,
    /// Whether it had been accepted before.
    pub duplicate: bool,
    pub replayed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubmissionRefusal {
    KeyReused,
    AlreadyExists,
    /// It arrived past its time.
    Expired,
    Crowded,
    /// The row that stood in the way was gone when looked at.
    Unsettled,
}

pub fn judge_submission(
    fact: SubmissionFact,
    operation: OperationId,
    expires_at: Timestamp,
) -> Result<Submitted, SubmissionRefusal> {
    match fact.judge(operation) {
        Ok(Inserted::New(())) => Ok(Submitted {
            state: State::PendingApproval,
            expires_at,
            duplicate: false,
            replayed: false,
        }),
        Ok(Inserted::Repeated {
            value: (state, expires_at),
            duplicate,
            replayed,
        }) => Ok(Submitted {
            state,
            expires_at,
            duplicate,
            replayed,
        }),
        Err(InsertRefusal::KeyReused) => Err(SubmissionRefusal::KeyReused),
        Err(InsertRefusal::AlreadyExists) => Err(SubmissionRefusal::AlreadyExists),
        Err(InsertRefusal::NotWritten(reason)) => Err(match reason {
            NotWritten::Expired => SubmissionRefusal::Expired,
            NotWritten::InboxFull => SubmissionRefusal::Crowded,
            NotWritten::Other => SubmissionRefusal::Unsettled,
        }),
    }
}

/// What the store found where a decision was to go, looked at under the row's lock.
#[derive(Debug, Default, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one fact of the statement, judged in order below"
)]
pub struct DecisionFact {
    pub written: bool,
    /// Whether an earlier try of this very attempt wrote it.
    pub own: bool,
    /// The exchange's state, if there is an exchange; as of the lock.
    pub state: Option<State>,
    pub asked: bool,
    pub same: bool,
    pub hash_matches: bool,
    pub repo_matches: bool,
    /// Whether the key is no longer what the signature was judged by: revoked meanwhile, or limited in time.
    pub key_changed: bool,
    pub verified: Option<bool>,
}

#[derive(Debug, Clone)]
pub struct Decided {
    pub state: State,
    pub verified: bool,
    /// Whether it had been accepted before.
    pub duplicate: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecisionRefusal {
    /// No such exchange for this approver.
    NotFound,
    AlreadyDecided,
    Expired,
    HashMismatch,
    RepoMismatch,
    /// The approver's keys changed meanwhile: judge the signature again.
    JudgeAgain,
}

/// Judges a decision by what the store found. The order is the contract (decisions 5).
pub fn judge_decision(fact: &DecisionFact, verified: bool) -> Result<Decided, DecisionRefusal> {
    if fact.written || fact.own {
        return Ok(Decided {
            state: State::Decided,
            verified,
            duplicate: false,
        });
    }
    if fact.key_changed {
        return Err(DecisionRefusal::JudgeAgain);
    }
    let Some(state) = fact.state.filter(|_| fact.asked) else {
        return Err(DecisionRefusal::NotFound);
    };
    match state {
        State::Withdrawn | State::Cancelled => Err(DecisionRefusal::NotFound),
        State::Decided | State::Delivered if fact.same => Ok(Decided {
            state,
            verified: fact.verified.unwrap_or(false),
            duplicate: true,
        }),
        State::Decided | State::Delivered => Err(DecisionRefusal::AlreadyDecided),
        State::Expired => Err(DecisionRefusal::Expired),
        State::PendingApproval if !fact.hash_matches => Err(DecisionRefusal::HashMismatch),
        State::PendingApproval if !fact.repo_matches => Err(DecisionRefusal::RepoMismatch),
        State::PendingApproval => Err(DecisionRefusal::JudgeAgain),
    }
}

/// What the store found where an exchange was to end by withdrawal or cancellation.
#[derive(Debug, Clone)]
pub struct EndFact {
    /// When it ended, if this attempt (or an earlier try of it) ended it.
    pub ended_at: Option<Timestamp>,
    /// The exchange's true state before, if there is an exchange for this caller.
    pub state: Option<State>,
    /// When it would have expired.
    pub expires_at: Option<Timestamp>,
}

/// Why an exchange cannot be ended, refreshed or cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateRefusal {
    /// No such exchange for this caller.
    NotFound,
    /// It is past the state this needs.
    Conflict(State),
}

/// Judges a withdrawal or cancellation; on success says when it took effect.
pub fn judge_end(fact: &EndFact) -> Result<Timestamp, StateRefusal> {
    match (fact.ended_at, fact.state) {
        (Some(at), _) => Ok(at),
        (None, None) => Err(StateRefusal::NotFound),
        (None, Some(state)) => Err(StateRefusal::Conflict(state)),
    }
}
