//! The live channels of this node by identity, and the closing of those that may not go on.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::config::{self, Secret};
use crate::gateway::admission::{CountLimit, CounterPermit, KeyedCounter};
use crate::gateway::channels::closing::ChannelCloseReason;
use crate::gateway::error::{Error, Result};
use crate::gateway::identity::caller::CallerIdentity;
use crate::protocol::id::TenantId;
use crate::protocol::presence::Transport;
use crate::protocol::token::TokenIdentity;
use crate::short_lock::ShortLock;
use crate::store::channels::open_statement::OpenRow;
use crate::wake::WakeKey;

pub(in crate::gateway) struct ChannelHandle {
    pub id: Uuid,
    pub key: WakeKey,
    pub principal: String,
    pub recheck: Option<Secret>,
    pub token: Option<Arc<TokenIdentity>>,
    pub transport: Transport,
    opened: Instant,
    /// Whether the peer responds.
    active: AtomicBool,
    /// A child of the node's draining token, so it is cancelled with it.
    closed: CancellationToken,
    /// Set by `close`. If it is unset, the node drains.
    reason: OnceLock<ChannelCloseReason>,
}

impl ChannelHandle {
    pub fn new(
        id: Uuid,
        key: WakeKey,
        origin: &CallerIdentity,
        transport: Transport,
        draining: &CancellationToken,
    ) -> Self {
        Self {
            id,
            key,
            principal: origin.principal.clone(),
            recheck: origin.recheck.clone(),
            token: origin.token.clone(),
            transport,
            opened: Instant::now(),
            active: AtomicBool::new(true),
            closed: draining.child_token(),
            reason: OnceLock::new(),
        }
    }

    pub fn close(&self, reason: ChannelCloseReason) {
        self.reason.get_or_init(|| reason);
        self.closed.cancel();
    }

    pub async fn closed(&self) -> ChannelCloseReason {
        self.closed.cancelled().await;
        let reason = self.reason.get().copied();
        reason.unwrap_or(ChannelCloseReason::Drain)
    }

    pub fn set_active(&self, active: bool) {
        self.active.store(active, Ordering::Relaxed);
    }

    pub fn row(&self) -> OpenRow {
        OpenRow {
            key: self.key.clone(),
            channel: self.id,
            transport: self.transport,
            age: self.opened.elapsed(),
            active: self.active.load(Ordering::Relaxed),
        }
    }
}

type ChannelMap = HashMap<WakeKey, VecDeque<Arc<ChannelHandle>>>;

#[derive(Default)]
pub(in crate::gateway) struct ChannelRegistry {
    channels: ShortLock<ChannelMap>,
    /// Channels per tenant: one tenant must not use up the node.
    tenants: Arc<KeyedCounter<TenantId>>,
}

impl ChannelRegistry {
    /// Registers a channel, and closes the identity's oldest one if it has too many.
    pub fn enter(
        &self,
        handle: &Arc<ChannelHandle>,
        limits: &config::Limits,
    ) -> Result<CounterPermit<TenantId>> {
        let limit = CountLimit {
            per_key: limits.channels_per_tenant,
            total: limits.channels_per_node,
        };
        let permit = self.tenants.enter(handle.key.tenant().clone(), 1, limit);
        let permit = permit.ok_or(Error::TooManyChannels)?;
        let mut channels = self.channels.lock();
        let own = channels.entry(handle.key.clone()).or_default();
        own.push_back(Arc::clone(handle));
        let open = own.iter().filter(|handle| !handle.closed.is_cancelled());
        if open.clone().count() > limits.channels_per_identity
            && let Some(oldest) = open.into_iter().next()
        {
            oldest.close(ChannelCloseReason::Replaced);
        }
        Ok(permit)
    }

    pub fn leave(&self, left: &ChannelHandle) {
        let mut channels = self.channels.lock();
        if let Some(own) = channels.get_mut(&left.key) {
            own.retain(|handle| handle.id != left.id);
            if own.is_empty() {
                channels.remove(&left.key);
            }
        }
    }

    pub fn count(&self) -> usize {
        self.tenants.total()
    }

    pub fn all(&self) -> Vec<Arc<ChannelHandle>> {
        self.channels.lock().values().flatten().cloned().collect()
    }

    /// The rows of those of these channels that are still open.
    pub fn rows_of(&self, ids: &HashSet<Uuid>) -> Vec<OpenRow> {
        let all = self.all().into_iter();
        let those = all.filter(|handle| ids.contains(&handle.id));
        those.map(|handle| handle.row()).collect()
    }

    pub fn tenants(&self) -> HashSet<TenantId> {
        let channels = self.channels.lock();
        channels.keys().map(WakeKey::tenant).cloned().collect()
    }

    /// The distinct tokens of channels that are to be rechecked.
    pub fn tokens(&self) -> HashSet<Secret> {
        let all = self.all();
        all.iter()
            .filter_map(|handle| handle.recheck.clone())
            .collect()
    }

    /// Closes the channels whose credential has ended.
    pub fn close_ended(&self, ended: impl Fn(&ChannelHandle) -> bool) {
        let channels = self.channels.lock();
        let all = channels.values().flatten();
        all.filter(|handle| ended(handle))
            .for_each(|handle| handle.close(ChannelCloseReason::Credential));
    }
}
