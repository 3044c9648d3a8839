//! Limits the memory for large bodies and messages in progress. Permits are acquired as bytes arrive: announcing a size
//! reserves nothing.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Acquired at a time, in KiB.
const STEP: usize = 64;
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(2);

/// What one body or message holds, released when dropped.
#[derive(Default)]
pub struct MemoryPermit(Option<OwnedSemaphorePermit>);

impl MemoryPermit {
    /// How many KiB are missing for so many bytes.
    fn lacking(&self, bytes: usize) -> usize {
        let held = self.0.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        (bytes.div_ceil(STEP << 10) * STEP).saturating_sub(held)
    }

    /// Whether what is held is enough for so many bytes.
    pub fn covers(&self, bytes: usize) -> bool {
        self.lacking(bytes) == 0
    }

    /// Acquires enough for so many bytes, waiting a moment if need be. False if there is no memory left.
    pub async fn acquire(&mut self, all: &Arc<Semaphore>, bytes: usize) -> bool {
        let lacking = self.lacking(bytes);
        if lacking == 0 {
            return true;
        }
        let lacking = u32::try_from(lacking).unwrap_or(u32::MAX);
        let acquiring = Arc::clone(all).acquire_many_owned(lacking);
        let Ok(Ok(more)) = timeout(ACQUIRE_TIMEOUT, acquiring).await else {
            return false;
        };
        match &mut self.0 {
            Some(held) => held.merge(more),
            None => self.0 = Some(more),
        }
        true
    }
}
