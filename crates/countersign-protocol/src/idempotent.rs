//! Inserts that a caller may repeat: submissions and prompts. At most one is written per id; the
//! same content from the same sender again gets the outcome of the first.

use super::id::OperationId;

/// The state of an idempotency key in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyFact {
    /// No key was sent, or it is not bound.
    Free,
    Same,
    Other,
}

/// The stored row that has the id of an insert.
#[derive(Debug, Clone)]
pub struct ExistingRow<T> {
    /// The attempt that wrote it.
    pub submission_id: OperationId,
    /// Whether sender and content are those of the insert.
    pub same: bool,
    pub value: T,
}

/// The result of an insert in the store.
#[derive(Debug, Clone)]
pub enum InsertFact<W, T, R> {
    Written(W),
    Unwritten {
        existing: Option<ExistingRow<T>>,
        key: KeyFact,
        /// Why it was not written, if there is no row with its id.
        reason: R,
    },
}

#[derive(Debug)]
pub enum InsertOutcome<W, T> {
    New(W),
    Repeated {
        value: T,
        /// Whether another attempt wrote it.
        duplicate: bool,
        /// Whether an idempotency key gave the answer.
        replayed: bool,
    },
}

#[derive(Debug)]
pub enum InsertRefusal<R> {
    KeyReused,
    AlreadyExists,
    NotWritten(R),
}

impl<W, T, R> InsertFact<W, T, R> {
    pub fn judge(self, operation: OperationId) -> Result<InsertOutcome<W, T>, InsertRefusal<R>> {
        let (found, key) = match self {
            Self::Written(written) => return Ok(InsertOutcome::New(written)),
            Self::Unwritten {
                key: KeyFact::Other,
                ..
            } => return Err(InsertRefusal::KeyReused),
            Self::Unwritten {
                existing,
                key,
                reason,
            } => (existing.ok_or(InsertRefusal::NotWritten(reason))?, key),
        };
        if !found.same {
            return Err(InsertRefusal::AlreadyExists);
        }
        // A retry after a lost reply finds its own row, which is no duplicate to the caller.
        let duplicate = found.submission_id != operation;
        Ok(InsertOutcome::Repeated {
            value: found.value,
            duplicate,
            replayed: duplicate && key == KeyFact::Same,
        })
    }

    /// Whether its id belongs to another row.
    pub fn already_exists(&self) -> bool {
        matches!(self, Self::Unwritten { existing: Some(existing), .. } if !existing.same)
    }

    /// The attempt that a repeat found, if an idempotency key of its own is to be bound to it.
    pub fn unbound_repeat(&self) -> Option<OperationId> {
        match self {
            Self::Unwritten {
                existing: Some(existing),
                key: KeyFact::Free,
                ..
            } if existing.same => Some(existing.submission_id),
            _ => None,
        }
    }
}
