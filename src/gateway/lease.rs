//! The node's lease: what its channels live by. Renewed every few seconds, given back when the node stops, and ended by others
//! when it has died.

use std::sync::PoisonError;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use uuid::Uuid;

use super::Gateway;
use super::closing::Closing;
use super::error::Error;
use crate::store::channel::LEASE_SECONDS;

/// Longest wait for the database to renew a lease.
const HEARTBEAT_PATIENCE: Duration = Duration::from_secs(5);

impl Gateway {
    pub(super) fn lease_age(&self) -> Duration {
        let renewed = self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        renewed.elapsed()
    }

    /// Renews the node's lease, and takes rows off the books whose channels are gone. If the lease had run out, or cannot be
    /// renewed for as long, others have taken the channels for dead: they are closed.
    pub(super) async fn heartbeat(&self) -> Result<(), Error> {
        let live: Vec<Uuid> = self.channels.all().iter().map(|handle| handle.id).collect();
        let check = self.secret.check();
        // A database that has vanished without a word would hold the call for minutes.
        let beat = timeout(HEARTBEAT_PATIENCE, self.store.heartbeat(&check)).await;
        let lost = {
            let mut last = self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
            if let Ok(Ok(beat)) = beat {
                *last = Instant::now();
                !beat.renewed
            } else {
                last.elapsed().as_secs_f64() > LEASE_SECONDS
            }
        };
        if lost {
            for handle in self.channels.all() {
                handle.close(Closing::LeaseLost);
            }
        }
        let beat = beat.map_err(|_| Error::Unavailable)??;
        self.note_secrets(beat.secrets_differ);
        let ghosts = self.store.remove_stale_channels(&live).await?;
        self.wake.wake(ghosts);
        Ok(())
    }

    /// Takes this node off the books, and wakes whoever shared an identity with its channels. What calls it has served is
    /// written down meanwhile.
    pub async fn leave(&self) {
        let (left, written) = tokio::join!(self.store.leave(), self.write_calls());
        if let Err(error) = written {
            tracing::warn!(%error, "the last calls could not be written down");
        }
        match left {
            Ok(keys) => self.wake.wake(keys),
            Err(error) => {
                tracing::warn!(%error, "the node could not be taken off the books; its lease will end it");
            }
        }
    }

    /// Takes dead nodes off the books, and wakes whoever shared an identity with their channels.
    pub(super) async fn reap_expired_nodes(&self) -> Result<(), Error> {
        let keys = self.store.reap_expired_nodes().await?;
        self.wake.wake(keys);
        Ok(())
    }
}
