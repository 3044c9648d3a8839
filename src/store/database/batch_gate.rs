//! Small batches of a node run one after another, whatever their kinds. Waiting for each other they gather rows, so that under
//! load a statement has more of them: on a busy machine most of a small statement is its fixed cost. A large batch does not wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long a batch keeps the others waiting. A statement that takes longer is stuck.
pub(in crate::store) const PERMIT_LIFETIME: Duration = Duration::from_millis(40);

#[derive(Clone)]
pub struct BatchGate {
    turns: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
}

/// The turn of a batch, until it is dropped.
pub(in crate::store) type BatchPermit = OwnedSemaphorePermit;

/// Counts a batch that waits, until it is dropped.
struct GateWaiter<'g>(&'g AtomicUsize);

impl Drop for GateWaiter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Default for BatchGate {
    fn default() -> Self {
        Self {
            turns: Arc::new(Semaphore::new(1)),
            waiting: Arc::default(),
        }
    }
}

impl BatchGate {
    /// Waits for a turn. Nobody closes the gate, so there always is one.
    pub(in crate::store) async fn enter(&self) -> Option<BatchPermit> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiter = GateWaiter(&self.waiting);
        Arc::clone(&self.turns).acquire_owned().await.ok()
    }

    /// Whether a batch waits for its turn.
    pub(in crate::store) fn is_wanted(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }
}
