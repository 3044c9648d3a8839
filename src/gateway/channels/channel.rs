//! The live channels of this node. Each has a row that routing reads. When a channel ends, its row
//! is removed and the other channels of its identity are woken.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use time::OffsetDateTime;
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use crate::gateway::admission::CounterPermit;
use crate::gateway::channels::closing::ChannelCloseReason;
use crate::gateway::channels::presence::EnforcerPresence;
use crate::gateway::channels::registry::{ChannelHandle, ChannelRegistry};
use crate::gateway::context::GatewayContext;
use crate::gateway::error::{Error, Result};
use crate::gateway::identity::caller::CallerIdentity;
use crate::gateway::identity::secret::ClusterSecret;
use crate::protocol::id::TenantId;
use crate::protocol::presence::Transport;
use crate::store::ChannelStore;
use crate::wake::{Waiter, WakeKey};

/// A live channel. Dropping it removes its registration.
pub struct Channel {
    pub id: Uuid,
    pub key: WakeKey,
    pub(in crate::gateway) transport: Transport,
    /// When it was opened, by the database's clock.
    pub(in crate::gateway) opened_at: OffsetDateTime,
    waiter: Waiter,
    watch: CloseWatch,
    channels: Arc<ChannelService>,
    _permit: CounterPermit<TenantId>,
}

/// The events that make the gateway close a channel.
pub(in crate::gateway) struct CloseWatch {
    handle: Arc<ChannelHandle>,
    spread: Duration,
    /// When it closes, once all channels of the node are to.
    closes_at: OnceLock<Instant>,
    /// When the credential expires.
    ends: Option<Instant>,
}

impl CloseWatch {
    /// Waits until the gateway wants the channel closed.
    pub(in crate::gateway) async fn closed(&self) -> ChannelCloseReason {
        // Boxed, as is the timer of a drain: most channels need neither, and each has this future.
        let expiry = async {
            match self.ends {
                Some(at) => Box::pin(sleep_until(at)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            closing = self.told() => closing,
            () = expiry => ChannelCloseReason::Credential,
        }
    }

    /// Waits until this channel or the node ends. If all channels end, they do so spread over time:
    /// clients must not reconnect to the other nodes all at once.
    async fn told(&self) -> ChannelCloseReason {
        let closing = self.handle.closed().await;
        if matches!(
            closing,
            ChannelCloseReason::Drain | ChannelCloseReason::LeaseLost
        ) {
            // Chosen once: this future is made anew for every page.
            let at = || Instant::now() + crate::jitter::below(self.spread);
            Box::pin(sleep_until(*self.closes_at.get_or_init(at))).await;
        }
        closing
    }
}

pub(in crate::gateway) fn role_of(key: &WakeKey) -> &'static str {
    match key {
        WakeKey::Approver(..) => "approver",
        WakeKey::Enforcer(..) | WakeKey::Exchange(..) => "enforcer",
    }
}

impl Channel {
    pub fn note_closing(&self, closing: ChannelCloseReason) {
        let closed = &self.channels.context.metrics.closed;
        closed.of([closing.as_str()]).increment();
    }

    pub(in crate::gateway) fn closed(&self) -> impl Future<Output = ChannelCloseReason> {
        self.watch.closed()
    }

    pub(in crate::gateway) fn parts(&mut self) -> (&CloseWatch, &mut Waiter) {
        (&self.watch, &mut self.waiter)
    }

    fn count(&self, by: f64) {
        let role = role_of(&self.key);
        let channels = &self.channels.context.metrics.channels;
        channels.of([self.transport.as_str(), role]).add(by);
    }

    /// Whether the node's lease has expired, because it does not reach the database. The channel
    /// then sends nothing: it counts as closed on the other nodes, and its credential may have been
    /// revoked.
    pub fn is_cut_off(&self) -> bool {
        self.channels.is_cut_off()
    }

    /// Stores whether the peer responds; decisions are sent only to one that does. False if storing
    /// failed.
    pub async fn set_active(&self, active: bool) -> bool {
        self.watch.handle.set_active(active);
        let store = &self.channels.store;
        let noted = store.set_channel_active(&self.key, self.id, active).await;
        if let Err(error) = &noted {
            tracing::debug!(%error, "a channel's liveness could not be stored");
        }
        self.channels.context.wake.wake([self.key.clone()]);
        noted.is_ok()
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.channels.registry.leave(&self.watch.handle);
        self.count(-1.0);
        let (channels, key, id) = (Arc::clone(&self.channels), self.key.clone(), self.id);
        self.channels.context.tasks.spawn(async move {
            if let Err(error) = channels.store.close_channel(&key, id).await {
                // The next heartbeat removes rows without a channel.
                tracing::debug!(%error, "a channel could not be deregistered");
            }
            channels.context.wake.wake([key]);
        });
    }
}

pub struct ChannelService {
    pub(in crate::gateway) context: Arc<GatewayContext>,
    pub(in crate::gateway) store: Arc<ChannelStore>,
    pub(in crate::gateway) presence: Arc<EnforcerPresence>,
    pub(in crate::gateway) registry: ChannelRegistry,
    /// When the node's lease was last renewed.
    pub(in crate::gateway) renewed: Mutex<Instant>,
    pub(in crate::gateway) secret: Arc<ClusterSecret>,
    /// Whether another live node was last seen with another secret.
    pub(in crate::gateway) secrets_differ: AtomicBool,
}

impl ChannelService {
    pub(in crate::gateway) fn new(
        context: &Arc<GatewayContext>,
        presence: &Arc<EnforcerPresence>,
        secret: &Arc<ClusterSecret>,
    ) -> Self {
        Self {
            context: Arc::clone(context),
            store: Arc::clone(&context.store.channels),
            presence: Arc::clone(presence),
            registry: ChannelRegistry::default(),
            renewed: Mutex::new(Instant::now()),
            secret: Arc::clone(secret),
            secrets_differ: AtomicBool::new(false),
        }
    }

    /// Opens a channel for an identity that the caller may act as.
    pub async fn open_channel(
        self: &Arc<Self>,
        origin: &CallerIdentity,
        key: WakeKey,
        transport: Transport,
    ) -> Result<Channel> {
        if self.context.draining.is_cancelled() {
            return Err(Error::Unavailable);
        }
        let id = self.context.clock.operation_id().0;
        let handle = Arc::new(ChannelHandle::new(
            id,
            key.clone(),
            origin,
            transport,
            &self.context.draining,
        ));
        let row = handle.row();
        let permit = self.registry.enter(&handle, &self.context.config.limits)?;
        let ends = origin.expires_at.map(|at| {
            let left = Duration::try_from(at.inner() - self.context.clock.now().inner())
                .unwrap_or_default();
            Instant::now() + left
        });
        let spread = Duration::from_millis(self.context.config.push.drain_spread_ms);
        // Built before its row is written, so that dropping it cleans up whatever happens next.
        let channel = Channel {
            id,
            waiter: self.context.wake.register(key.clone()),
            key,
            transport,
            opened_at: self.context.store.database.database_now(),
            watch: CloseWatch {
                handle,
                spread,
                closes_at: OnceLock::new(),
                ends,
            },
            channels: Arc::clone(self),
            _permit: permit,
        };
        channel.count(1.0);
        self.store.open_channel(row).await?;
        if matches!(channel.key, WakeKey::Enforcer(..)) {
            // An older channel is not the newest any more.
            self.context.wake.wake([channel.key.clone()]);
        }
        Ok(channel)
    }

    pub fn channel_count(&self) -> usize {
        self.registry.count()
    }

    /// Warns the operator when the nodes' secrets differ: once, until they agree again.
    pub(in crate::gateway) fn note_secrets(&self, differ: bool) {
        if differ && !self.secrets_differ.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "another node has a different security.cluster_secret, so pairing codes of one do not work on the other; \
                 set the same on every node"
            );
        }
        if !differ {
            self.secrets_differ.store(false, Ordering::Relaxed);
        }
    }
}
