//! The node's lease, without which its channels count as dead. Renewed every few seconds, released when the node stops, and
//! removed by other nodes once it has expired.

use std::sync::PoisonError;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use uuid::Uuid;

use super::Channels;
use super::closing::Closing;
use super::error::{Error, Result};
use crate::store::channel::LEASE_SECONDS;

const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(5);

impl Channels {
    pub(super) fn lease_age(&self) -> Duration {
        let renewed = self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        renewed.elapsed()
    }

    /// Renews the node's lease and removes rows without a channel. If the lease had expired, or could not be renewed for as
    /// long, other nodes treat the channels as dead, so they are closed.
    pub(super) async fn heartbeat(&self) -> Result<()> {
        let live: Vec<Uuid> = self.registry.all().iter().map(|handle| handle.id).collect();
        let check = self.secret.check();
        // An unreachable database would otherwise block the call for minutes.
        let beat = timeout(HEARTBEAT_TIMEOUT, self.store.heartbeat(&check)).await;
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
            for handle in self.registry.all() {
                handle.close(Closing::LeaseLost);
            }
        }
        let beat = beat.map_err(|_| Error::Unavailable)??;
        self.note_secrets(beat.secrets_differ);
        let stale = self.store.remove_stale_channels(&live).await?;
        self.context.wake.wake(stale);
        Ok(())
    }

    /// Deregisters this node, wakes the channels that shared an identity with its own, and writes the pending calls.
    pub async fn leave(&self) {
        let (left, written) = tokio::join!(self.store.leave(), self.presence.write_calls());
        if let Err(error) = written {
            tracing::warn!(%error, "the last calls could not be written");
        }
        match left {
            Ok(keys) => self.context.wake.wake(keys),
            Err(error) => {
                tracing::warn!(%error, "the node could not be deregistered; its lease will expire");
            }
        }
    }

    /// Removes nodes whose lease has expired, and wakes the channels that shared an identity with theirs.
    pub(super) async fn reap_expired_nodes(&self) -> Result<()> {
        let keys = self.store.reap_expired_nodes().await?;
        self.context.wake.wake(keys);
        Ok(())
    }
}
