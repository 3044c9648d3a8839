//! Small batches of a node take turns, whatever their kinds. Waiting for each other they gather rows, so that under load a
//! statement has more of them: on a busy machine most of a small statement is its fixed cost. A large batch does not wait.
//!
//! A node that is alone gives two turns at a time: while one batch waits for the disk, PostgreSQL works on the other. Beside other
//! nodes it gives one, since PostgreSQL has their batches too.
//!
//! Reads have turns of their own. A turn of a write includes its flush to the disk, and a message is read while its reader waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long a batch keeps the others waiting. One that takes longer waits for something else than a processor.
pub(in crate::store) const PERMIT_LIFETIME: Duration = Duration::from_millis(20);

/// Turns of a node that is alone. Beside others, each turn takes all of them.
const TURNS: u32 = 2;

#[derive(Clone)]
pub struct BatchGate {
    turns: Arc<Semaphore>,
    is_alone: Arc<AtomicBool>,
}

/// The gates of a node.
#[derive(Clone, Default)]
pub(in crate::store) struct BatchGates {
    pub writes: BatchGate,
    pub reads: BatchGate,
}

impl BatchGates {
    pub fn set_alone(&self, is_alone: bool) {
        self.writes.set_alone(is_alone);
        self.reads.set_alone(is_alone);
    }
}

/// The turn of a batch, until it is dropped.
pub type BatchPermit = OwnedSemaphorePermit;

impl Default for BatchGate {
    fn default() -> Self {
        Self {
            turns: Arc::new(Semaphore::new(TURNS as usize)),
            is_alone: Arc::default(),
        }
    }
}

impl BatchGate {
    /// Says whether this node is alone. Before, it has one turn: there may be others.
    pub fn set_alone(&self, is_alone: bool) {
        self.is_alone.store(is_alone, Ordering::Relaxed);
    }

    /// Waits for a turn. Nobody closes the gate, so there always is one.
    pub async fn enter(&self) -> Option<BatchPermit> {
        let turns = if self.is_alone.load(Ordering::Relaxed) {
            1
        } else {
            TURNS
        };
        Arc::clone(&self.turns).acquire_many_owned(turns).await.ok()
    }
}
