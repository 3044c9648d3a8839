//! Small batches of a node run one after another, whatever their kinds. Waiting for each other they gather rows, so that under
//! load a statement has more of them: on a busy machine most of a small statement is its fixed cost. A large batch does not wait.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long a batch keeps the others waiting. One that takes longer waits for something else than a processor.
pub(in crate::store) const PERMIT_LIFETIME: Duration = Duration::from_millis(20);

#[derive(Clone)]
pub struct BatchGate(Arc<Semaphore>);

/// The turn of a batch, until it is dropped.
pub(in crate::store) type BatchPermit = OwnedSemaphorePermit;

impl Default for BatchGate {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

impl BatchGate {
    /// Waits for a turn. Nobody closes the gate, so there always is one.
    pub(in crate::store) async fn enter(&self) -> Option<BatchPermit> {
        Arc::clone(&self.0).acquire_owned().await.ok()
    }
}
