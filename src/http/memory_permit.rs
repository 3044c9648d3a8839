//! Room for what is large and still being read or worked on, of which a node has so much in all. It is taken as bytes arrive:
//! nobody holds any for what was only announced.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// What is taken at a time, in KiB.
const STEP: usize = 64;
const PATIENCE: Duration = Duration::from_secs(2);

/// What one body or message holds of it, given back when dropped.
#[derive(Default)]
pub struct MemoryPermit(Option<OwnedSemaphorePermit>);

impl MemoryPermit {
    /// How many KiB so many bytes need beyond what is held.
    fn lacking(&self, bytes: usize) -> usize {
        let held = self.0.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        (bytes.div_ceil(STEP << 10) * STEP).saturating_sub(held)
    }

    /// Whether so many bytes fit into what is held.
    #[must_use]
    pub fn holds(&self, bytes: usize) -> bool {
        self.lacking(bytes) == 0
    }

    /// Takes as much as so many bytes need, and waits a moment for it. False if there is none.
    pub async fn take(&mut self, all: &Arc<Semaphore>, bytes: usize) -> bool {
        let lacking = self.lacking(bytes);
        if lacking == 0 {
            return true;
        }
        let lacking = u32::try_from(lacking).unwrap_or(u32::MAX);
        let taking = Arc::clone(all).acquire_many_owned(lacking);
        let Ok(Ok(more)) = timeout(PATIENCE, taking).await else {
            return false;
        };
        match &mut self.0 {
            Some(held) => held.merge(more),
            None => self.0 = Some(more),
        }
        true
    }
}
