//! The state machine of an exchange. A guarded statement of the store reports facts. Only the
//! functions here turn them into an outcome.

use super::error::{Error, Result};
use super::id::{MessageId, OperationId};
use super::idempotent::{InsertFact, InsertOutcome, InsertRefusal};
use super::timestamp::Timestamp;
use super::words::words;

words! {
    ExchangeState {
        PendingApproval = "pendingApproval",
        /// Decided, not yet acknowledged by the enforcer.
        Decided = "decided",
        Delivered = "delivered",
        Expired = "expired",
        Withdrawn = "withdrawn",
        Cancelled = "cancelled",
    }
}

impl ExchangeState {
    /// The state at an instant: a pending exchange past its expiry is expired, whether or not the
    /// sweep has written it.
    #[must_use]
    pub fn at(self, past: bool) -> Self {
        if past && self == Self::PendingApproval {
            Self::Expired
        } else {
            self
        }
    }

    /// The refusal of a transition that needs the exchange to be pending.
    fn conflict(self) -> Error {
        match self {
            Self::Decided | Self::Delivered => Error::AlreadyDecided,
            Self::Expired => Error::Expired,
            Self::PendingApproval | Self::Withdrawn | Self::Cancelled => {
                Error::InvalidState(self.as_str())
            }
        }
    }
}

/// Why a submission was not written, if no exchange has its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotWritten {
    Expired,
    InboxFull,
    /// The enforcer has this many pending in the approver's inbox, as many as it may.
    ShareUsed(u32),
    /// It asks an approver that the enforcer must be paired with, and is not.
    Unpaired,
    /// It asks nobody, or the exchange that had its id was gone when it was read.
    Other,
}

/// An exchange as it was just written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewExchange {
    pub accepted_at: Timestamp,
    /// The enforcer's labels for the approvers with a channel on this node, by their messages.
    pub labels: Vec<(MessageId, Option<String>)>,
}

/// Of an exchange that has the id of a submission, its state and expiry.
pub type SubmissionFact = InsertFact<NewExchange, (ExchangeState, Timestamp), NotWritten>;

#[derive(Debug, Clone)]
pub struct JudgedSubmission {
    pub state: ExchangeState,
    pub expires_at: Timestamp,
    /// Whether it had been accepted before.
    pub duplicate: bool,
    /// Whether an idempotency key gave the answer.
    pub replayed: bool,
    /// If this attempt wrote it.
    pub new: Option<NewExchange>,
}

pub fn judge_submission(
    fact: SubmissionFact,
    operation: OperationId,
    expires_at: Timestamp,
) -> Result<JudgedSubmission> {
    match fact.judge(operation) {
        Ok(InsertOutcome::New(new)) => Ok(JudgedSubmission {
            state: ExchangeState::PendingApproval,
            expires_at,
            duplicate: false,
            replayed: false,
            new: Some(new),
        }),
        Ok(InsertOutcome::Repeated {
            value: (state, expires_at),
            duplicate,
            replayed,
        }) => Ok(JudgedSubmission {
            state,
            expires_at,
            duplicate,
            replayed,
            new: None,
        }),
        Err(InsertRefusal::KeyReused) => Err(Error::IdempotencyKeyReused),
        Err(InsertRefusal::AlreadyExists) => Err(Error::AlreadyExists),
        Err(InsertRefusal::NotWritten(reason)) => Err(match reason {
            NotWritten::Expired => Error::ArtifactExpired,
            NotWritten::InboxFull => Error::InboxFull,
            NotWritten::ShareUsed(limit) => Error::InboxShare { limit },
            NotWritten::Unpaired => Error::NotPaired {
                pointer: "/recipient/approverId",
            },
            NotWritten::Other => Error::Unavailable,
        }),
    }
}

/// The exchange as the store found it, under the row's lock.
#[derive(Debug, Default, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one fact of the statement, judged in order below"
)]
pub struct DecisionFact {
    pub written: bool,
    /// Whether an earlier try of this attempt wrote it.
    pub own: bool,
    pub state: Option<ExchangeState>,
    /// Whether this approver was asked.
    pub asked: bool,
    /// Whether the stored decision is this one.
    pub same: bool,
    pub hash_matches: bool,
    pub repo_matches: bool,
    /// Whether the key differs from the one the signature was judged by.
    pub key_changed: bool,
    /// Whether the key's nonce has decided another exchange.
    pub nonce_used: bool,
    pub verified: Option<bool>,
}

#[derive(Debug, Clone)]
pub struct JudgedDecision {
    pub state: ExchangeState,
    pub verified: bool,
    /// Whether it had been accepted before.
    pub duplicate: bool,
}

/// Judges a decision by the facts of the store; the order of the checks is part of the contract.
/// `None`: the approver's keys have changed, and the signature is to be judged again.
pub fn judge_decision(fact: &DecisionFact, verified: bool) -> Result<Option<JudgedDecision>> {
    if fact.written || fact.own {
        return Ok(Some(JudgedDecision {
            state: ExchangeState::Decided,
            verified,
            duplicate: false,
        }));
    }
    if fact.key_changed {
        return Ok(None);
    }
    let state = fact.state.filter(|_| fact.asked).ok_or(Error::NotFound)?;
    match state {
        ExchangeState::Withdrawn | ExchangeState::Cancelled => Err(Error::NotFound),
        ExchangeState::Decided | ExchangeState::Delivered if fact.same => {
            Ok(Some(JudgedDecision {
                state,
                verified: fact.verified.unwrap_or(false),
                duplicate: true,
            }))
        }
        ExchangeState::Decided | ExchangeState::Delivered => Err(Error::AlreadyDecided),
        ExchangeState::Expired => Err(Error::Expired),
        ExchangeState::PendingApproval if !fact.hash_matches => Err(Error::DecisionHash),
        ExchangeState::PendingApproval if !fact.repo_matches => Err(Error::invalid(
            "/body/repoRef",
            "the repoRef of the artifact",
        )),
        ExchangeState::PendingApproval if fact.nonce_used => Err(Error::NonceReused),
        ExchangeState::PendingApproval => Ok(None),
    }
}

/// An exchange that is to be withdrawn or cancelled, as the store found it.
#[derive(Debug, Clone)]
pub struct EndFact {
    /// Set if this attempt, or an earlier try of it, ended the exchange.
    pub ended_at: Option<Timestamp>,
    /// The state before, if there is an exchange for this caller.
    pub state: Option<ExchangeState>,
    pub expires_at: Option<Timestamp>,
}

/// Whether the ciphertext of an exchange was replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResealFact {
    Written,
    /// There is no such exchange of this enforcer.
    Missing,
    /// Type, hash or expiry differ, or the exchange has an open artifact.
    Other,
    Ended(ExchangeState),
}

pub fn judge_reseal(fact: ResealFact) -> Result<()> {
    match fact {
        ResealFact::Written => Ok(()),
        ResealFact::Missing => Err(Error::NotFound),
        ResealFact::Other => Err(Error::AlreadyExists),
        ResealFact::Ended(state) => Err(state.conflict()),
    }
}

/// Judges a withdrawal or cancellation; on success says when it took effect.
pub fn judge_end(fact: &EndFact) -> Result<Timestamp> {
    match (fact.ended_at, fact.state) {
        (Some(at), _) => Ok(at),
        (None, None) => Err(Error::NotFound),
        (None, Some(state)) => Err(state.conflict()),
    }
}
