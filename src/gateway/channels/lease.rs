//! The node's lease, without which its channels count as closed. Renewed every few seconds,
//! released when the node stops, and removed by other nodes once it has expired. While the database
//! is away channels stay open and send nothing; afterwards the heartbeat registers the node and its
//! channels again.

use std::collections::HashSet;
use std::sync::PoisonError;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use uuid::Uuid;

use crate::gateway::ChannelService;
use crate::gateway::channels::closing::ChannelCloseReason;
use crate::gateway::error::{Error, Result};
use crate::store::channels::terms::LEASE_SECONDS;

const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(5);

impl ChannelService {
    pub(in crate::gateway) fn lease_age(&self) -> Duration {
        let renewed = self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        renewed.elapsed()
    }

    /// Whether the node's lease has expired: other nodes treat its channels as closed.
    pub fn is_cut_off(&self) -> bool {
        self.lease_age().as_secs_f64() > LEASE_SECONDS
    }

    /// Closes all channels after a long time without the database: it may be only this node that
    /// does not reach it.
    pub(in crate::gateway) fn close_after_outage(&self) {
        let patience = Duration::from_secs(self.context.config.push.outage_seconds);
        if self.is_cut_off() && self.lease_age() > patience {
            for handle in self.registry.all() {
                handle.close(ChannelCloseReason::LeaseLost);
            }
        }
    }

    /// Renews the node's lease, registers channels whose row is gone, and removes rows without a
    /// channel.
    pub(in crate::gateway) async fn heartbeat(&self) -> Result<()> {
        let begun = Instant::now();
        let check = self.secret.check();
        // An unreachable database would otherwise block the call for minutes.
        let beat = timeout(HEARTBEAT_TIMEOUT, self.store.heartbeat(&check)).await;
        let beat = beat.map_err(|_| Error::Unavailable)??;
        *self.renewed.lock().unwrap_or_else(PoisonError::into_inner) = begun;
        self.note_secrets(beat.secrets_differ);
        self.compare_channels().await
    }

    /// Makes the rows of this node's channels those of its live ones. They differ after a removal
    /// was lost, after other nodes removed the rows of a node that seemed dead, and after a
    /// failover to a standby that lacked the latest.
    async fn compare_channels(&self) -> Result<()> {
        let live: Vec<Uuid> = self.registry.all().iter().map(|handle| handle.id).collect();
        let differing = self.store.compare_channels(&live).await?;
        let missing: HashSet<Uuid> = differing.missing.into_iter().collect();
        if !missing.is_empty() {
            let rows = self.registry.rows_of(&missing);
            let keys: Vec<_> = rows.iter().map(|row| row.key.clone()).collect();
            self.store.register_channels(&rows).await?;
            // They read the messages that came meanwhile.
            self.context.wake.wake_here(keys);
        }
        let stale = self.store.remove_channels(differing.stale).await?;
        self.context.wake.wake(stale);
        Ok(())
    }

    /// Deregisters this node, wakes the channels that shared an identity with its own, and writes
    /// the pending calls.
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

    /// Removes nodes whose lease has expired, and wakes the channels that shared an identity with
    /// theirs.
    pub(in crate::gateway) async fn reap_expired_nodes(&self) -> Result<()> {
        let keys = self.store.reap_expired_nodes().await?;
        self.context.wake.wake(keys);
        Ok(())
    }
}
