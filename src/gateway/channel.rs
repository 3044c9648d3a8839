//! The live channels of this node. Each has a row that routing reads; when a channel ends, its row is removed and the other
//! channels of its identity are woken.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use time::OffsetDateTime;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::caller::CallerIdentity;
use super::closing::ChannelCloseReason;
use super::context::GatewayContext;
use super::error::{Error, Result};
use super::presence::EnforcerPresence;
use super::secret::ClusterSecret;
use crate::config::{self, Secret};
use crate::protocol::id::TenantId;
use crate::protocol::presence::Transport;
use crate::protocol::token::TokenIdentity;
use crate::store::ChannelStore;
use crate::store::channel_lifecycle::OpenRow;
use crate::wake::{Waiter, WakeKey};

pub(super) struct ChannelHandle {
    pub(super) id: Uuid,
    pub(super) principal: String,
    pub(super) recheck: Option<Secret>,
    pub(super) token: Option<Arc<TokenIdentity>>,
    transport: Transport,
    opened: Instant,
    /// Whether the peer responds.
    active: AtomicBool,
    closed: CancellationToken,
    why: OnceLock<ChannelCloseReason>,
}

impl ChannelHandle {
    pub(super) fn close(&self, why: ChannelCloseReason) {
        self.why.get_or_init(|| why);
        self.closed.cancel();
    }
}

#[derive(Default)]
pub(super) struct ChannelRegistry {
    /// Held for a few instructions, never across an await.
    state: Mutex<ChannelState>,
}

#[derive(Default)]
pub(super) struct ChannelState {
    pub(super) by_identity: HashMap<WakeKey, VecDeque<Arc<ChannelHandle>>>,
    by_tenant: HashMap<TenantId, usize>,
    count: usize,
}

impl ChannelRegistry {
    pub(super) fn state(&self) -> MutexGuard<'_, ChannelState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a channel, and closes the identity's oldest one if it has too many.
    fn enter(
        &self,
        key: &WakeKey,
        handle: Arc<ChannelHandle>,
        limits: &config::Limits,
    ) -> Result<()> {
        let per_identity = limits.channels_per_identity;
        let mut state = self.state();
        let of_tenant = state.by_tenant.get(key.tenant()).copied();
        let of_tenant = of_tenant.unwrap_or_default();
        // The limit per tenant keeps one tenant from using up the node.
        if state.count >= limits.channels_per_node || of_tenant >= limits.channels_per_tenant {
            return Err(Error::TooManyChannels);
        }
        state.count += 1;
        state.by_tenant.insert(key.tenant().clone(), of_tenant + 1);
        let own = state.by_identity.entry(key.clone()).or_default();
        own.push_back(handle);
        let open = own.iter().filter(|handle| !handle.closed.is_cancelled());
        if open.clone().count() > per_identity
            && let Some(oldest) = open.into_iter().next()
        {
            oldest.close(ChannelCloseReason::Replaced);
        }
        Ok(())
    }

    fn leave(&self, key: &WakeKey, id: Uuid) {
        let mut state = self.state();
        let Some(own) = state.by_identity.get_mut(key) else {
            return;
        };
        let before = own.len();
        own.retain(|handle| handle.id != id);
        let gone = before - own.len();
        if own.is_empty() {
            state.by_identity.remove(key);
        }
        state.count -= gone;
        if let Some(count) = state.by_tenant.get_mut(key.tenant()) {
            *count -= gone;
            if *count == 0 {
                state.by_tenant.remove(key.tenant());
            }
        }
    }

    pub(super) fn all(&self) -> Vec<Arc<ChannelHandle>> {
        let state = self.state();
        state.by_identity.values().flatten().cloned().collect()
    }

    /// The rows of those of these channels that are still open.
    pub(super) fn rows_of(&self, ids: &HashSet<Uuid>) -> Vec<OpenRow> {
        let state = self.state();
        let channels = (state.by_identity.iter())
            .flat_map(|(key, handles)| handles.iter().map(move |handle| (key, handle)));
        channels
            .filter(|(_, handle)| ids.contains(&handle.id))
            .map(|(key, handle)| OpenRow {
                key: key.clone(),
                channel: handle.id,
                transport: handle.transport,
                age: handle.opened.elapsed(),
                active: handle.active.load(Ordering::Relaxed),
            })
            .collect()
    }
}

/// A live channel. Dropping it removes its registration.
pub struct Channel {
    pub id: Uuid,
    pub key: WakeKey,
    pub(super) transport: Transport,
    /// When it was opened, by the database's clock.
    pub(super) opened_at: OffsetDateTime,
    waiter: Waiter,
    watch: CloseWatch,
    channels: Arc<ChannelService>,
}

/// What makes the gateway close a channel.
pub(super) struct CloseWatch {
    handle: Arc<ChannelHandle>,
    draining: CancellationToken,
    spread: Duration,
    /// When it closes, once all channels of the node are to.
    closes_at: OnceLock<Instant>,
    /// When the credential expires.
    ends: Option<Instant>,
}

impl CloseWatch {
    /// Waits until the gateway wants the channel closed.
    pub(super) async fn closed(&self) -> ChannelCloseReason {
        let expiry = async {
            match self.ends {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            closing = self.told() => closing,
            () = expiry => ChannelCloseReason::Credential,
        }
    }

    /// Waits until this channel or the node ends. What ends all channels is spread over time, so that clients do not
    /// reconnect to the other nodes all at once.
    async fn told(&self) -> ChannelCloseReason {
        let closing = tokio::select! {
            () = self.handle.closed.cancelled() => self.handle.why.get().copied().unwrap_or(ChannelCloseReason::Drain),
            () = self.draining.cancelled() => ChannelCloseReason::Drain,
        };
        if matches!(
            closing,
            ChannelCloseReason::Drain | ChannelCloseReason::LeaseLost
        ) {
            // Chosen once: this future is made anew for every page.
            let at = || Instant::now() + crate::jitter::below(self.spread);
            sleep_until(*self.closes_at.get_or_init(at)).await;
        }
        closing
    }
}

pub(super) fn role_of(key: &WakeKey) -> &'static str {
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

    pub(super) fn closed(&self) -> impl Future<Output = ChannelCloseReason> {
        self.watch.closed()
    }

    pub(super) fn parts(&mut self) -> (&CloseWatch, &mut Waiter) {
        (&self.watch, &mut self.waiter)
    }

    fn count(&self, by: f64) {
        let role = role_of(&self.key);
        let channels = &self.channels.context.metrics.channels;
        channels.of([self.transport.as_str(), role]).add(by);
    }

    /// Whether the node's lease has expired, because it does not reach the database. The channel then sends nothing: it
    /// counts as closed on the other nodes, and its credential may have been revoked.
    pub fn is_cut_off(&self) -> bool {
        self.channels.is_cut_off()
    }

    /// Stores whether the peer responds; decisions are sent only to one that does. Returns false if it could not be stored.
    pub async fn set_active(&self, active: bool) -> bool {
        self.watch.handle.active.store(active, Ordering::Relaxed);
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
        self.channels.registry.leave(&self.key, self.id);
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
    pub(super) context: Arc<GatewayContext>,
    pub(super) store: Arc<ChannelStore>,
    pub(super) presence: Arc<EnforcerPresence>,
    pub(super) registry: ChannelRegistry,
    /// When the node's lease was last renewed.
    pub(super) renewed: Mutex<Instant>,
    pub(super) secret: Arc<ClusterSecret>,
    /// Whether another live node was last seen with another secret.
    pub(super) secrets_differ: AtomicBool,
}

impl ChannelService {
    pub(super) fn new(
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
        let handle = Arc::new(ChannelHandle {
            id,
            principal: origin.principal.clone(),
            recheck: origin.recheck.clone(),
            token: origin.token.clone(),
            transport,
            opened: Instant::now(),
            active: AtomicBool::new(true),
            closed: CancellationToken::new(),
            why: OnceLock::new(),
        });
        let limits = &self.context.config.limits;
        self.registry.enter(&key, Arc::clone(&handle), limits)?;
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
                draining: self.context.draining.clone(),
                spread,
                closes_at: OnceLock::new(),
                ends,
            },
            channels: Arc::clone(self),
        };
        channel.count(1.0);
        let row = OpenRow {
            key: channel.key.clone(),
            channel: id,
            transport,
            age: Duration::ZERO,
            active: true,
        };
        self.store.open_channel(row).await?;
        Ok(channel)
    }

    pub fn channel_count(&self) -> usize {
        self.registry.state().count
    }
}
