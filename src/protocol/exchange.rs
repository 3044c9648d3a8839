//! The state machine of an exchange, and the judgement of what a guarded statement found.
//! A statement reports facts; the functions here turn them into an outcome. Nothing else decides.

use super::canonical::Sha256Hex;
use super::id::{EnforcerId, OperationId};
use super::timestamp::Timestamp;

/// Where an exchange stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// Waiting for a decision.
    PendingApproval,
    /// Decided, not yet acknowledged by the enforcer.
    Decided,
    /// Decided, and the enforcer has it.
    Delivered,
    /// Its time ran out.
    Expired,
    /// Taken back by the enforcer.
    Withdrawn,
    /// Ended by an administrator.
    Cancelled,
}

impl State {
    /// Every state.
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

    /// The state a word stands for.
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

/// An exchange that a submission met.
#[derive(Debug, Clone)]
pub struct Existing {
    /// The attempt that made it.
    pub submission_id: OperationId,
    /// Whose it is.
    pub enforcer_id: EnforcerId,
    /// What it asks about.
    pub artifact_hash: Sha256Hex,
    /// Its true state.
    pub state: State,
    /// When it ends.
    pub expires_at: Timestamp,
}

/// What the store knows of an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyFact {
    /// None was sent, or it is not bound.
    Free,
    /// Bound to this very request.
    Same,
    /// Bound to another request.
    Other,
}

/// What became of one submission in the store.
#[derive(Debug, Clone)]
pub enum SubmissionFact {
    /// The exchange was made.
    Written,
    /// It was not, because of what stood there or what it was.
    Unwritten {
        /// The exchange of that id, if there is one.
        existing: Option<Existing>,
        /// The idempotency key.
        key: KeyFact,
        /// Whether `expiresAt` had passed.
        past: bool,
        /// Whether an inbox was full.
        crowded: bool,
    },
}

/// An accepted submission.
#[derive(Debug, Clone)]
pub struct Submitted {
    /// The exchange's state.
    pub state: State,
    /// When it ends.
    pub expires_at: Timestamp,
    /// Whether it had been accepted before.
    pub duplicate: bool,
    /// Whether an idempotency key told so.
    pub replayed: bool,
}

/// Why a submission is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubmissionRefusal {
    /// The key was used for something else.
    KeyReused,
    /// The id was used for something else.
    AlreadyExists,
    /// It arrived past its time.
    Expired,
    /// An approver's inbox is full.
    Crowded,
    /// The row that stood in the way was gone when looked at.
    Unsettled,
}

/// Judges a submission by what the store found.
pub fn judge_submission(
    fact: SubmissionFact,
    operation: OperationId,
    enforcer: &EnforcerId,
    hash: Sha256Hex,
    expires_at: Timestamp,
) -> Result<Submitted, SubmissionRefusal> {
    let (existing, key, past, crowded) = match fact {
        SubmissionFact::Written => {
            return Ok(Submitted {
                state: State::PendingApproval,
                expires_at,
                duplicate: false,
                replayed: false,
            });
        }
        SubmissionFact::Unwritten {
            existing,
            key,
            past,
            crowded,
        } => (existing, key, past, crowded),
    };
    match (existing, key) {
        (_, KeyFact::Other) => Err(SubmissionRefusal::KeyReused),
        (Some(found), _) if found.enforcer_id == *enforcer && found.artifact_hash == hash => {
            // A retry after a lost reply finds its own work: to the caller it is the first time.
            let duplicate = found.submission_id != operation;
            let replayed = duplicate && key == KeyFact::Same;
            Ok(Submitted {
                state: found.state,
                expires_at: found.expires_at,
                duplicate,
                replayed,
            })
        }
        (Some(_), _) => Err(SubmissionRefusal::AlreadyExists),
        (None, _) if past => Err(SubmissionRefusal::Expired),
        (None, _) if crowded => Err(SubmissionRefusal::Crowded),
        (None, _) => Err(SubmissionRefusal::Unsettled),
    }
}

/// What the store found where a decision was to go, looked at under the row's lock.
#[derive(Debug, Default, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one fact of the statement, judged in order below"
)]
pub struct DecisionFact {
    /// Whether it was written.
    pub written: bool,
    /// Whether an earlier try of this very attempt wrote it.
    pub own: bool,
    /// The exchange's state, if there is an exchange; as of the lock.
    pub state: Option<State>,
    /// Whether this approver was asked.
    pub asked: bool,
    /// Whether the decision on record is this one.
    pub same: bool,
    /// Whether it names the exchange's artifact.
    pub hash_matches: bool,
    /// Whether it names the artifact's repository.
    pub repo_matches: bool,
    /// Whether the key is no longer what the signature was judged by: revoked meanwhile, or limited in time.
    pub key_changed: bool,
    /// Whether the decision on record verified.
    pub verified: Option<bool>,
}

/// An accepted decision.
#[derive(Debug, Clone)]
pub struct Decided {
    /// The exchange's state.
    pub state: State,
    /// Whether the gateway verified the signature.
    pub verified: bool,
    /// Whether it had been accepted before.
    pub duplicate: bool,
}

/// Why a decision is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecisionRefusal {
    /// No such exchange for this approver.
    NotFound,
    /// It has its decision.
    AlreadyDecided,
    /// Its time ran out.
    Expired,
    /// The decision is about another artifact.
    HashMismatch,
    /// The decision is about another repository.
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
