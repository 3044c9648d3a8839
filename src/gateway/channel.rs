//! Live channels of this node: registered, counted, and closed for a reason. Their rows are what routing goes by; a
//! channel that ends, however it ends, is taken off the books and the others of its identity are woken.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use time::OffsetDateTime;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Gateway;
use super::caller::Origin;
use super::error::Error;
use crate::config;
use crate::config::Secret;
use crate::protocol::id::{CredentialId, TenantId, TextId};
use crate::store::channel::{LEASE_SECONDS, Transport};
use crate::wake::{Key, Waiter};

/// Longest wait for the database to renew a lease.
const HEARTBEAT_PATIENCE: Duration = Duration::from_secs(5);

/// Why the gateway ends a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closing {
    /// The node is stopping: reconnect, to another.
    Drain,
    /// The credential ended.
    Credential,
    /// The identity has too many; this was its oldest.
    Replaced,
    /// Others took this node for dead: reconnect.
    LeaseLost,
    /// The peer does not take what it is sent: reconnect and catch up.
    Slow,
    /// The peer shows no sign of life.
    Silent,
}

impl Closing {
    /// The word for it in metrics.
    fn as_str(self) -> &'static str {
        match self {
            Self::Drain => "drain",
            Self::Credential => "credential",
            Self::Replaced => "replaced",
            Self::LeaseLost => "lease_lost",
            Self::Slow => "slow",
            Self::Silent => "silent",
        }
    }
}

/// One channel, as its node knows it.
struct Handle {
    id: Uuid,
    principal: String,
    /// A token to be asked about again.
    recheck: Option<Secret>,
    closed: CancellationToken,
    why: OnceLock<Closing>,
}

impl Handle {
    fn close(&self, why: Closing) {
        self.why.get_or_init(|| why);
        self.closed.cancel();
    }
}

/// The channels of this node.
#[derive(Default)]
pub(super) struct Channels {
    /// Held for a few instructions, never across an await.
    state: Mutex<State>,
}

/// Them all.
#[derive(Default)]
struct State {
    by_identity: HashMap<Key, VecDeque<Arc<Handle>>>,
    by_tenant: HashMap<TenantId, usize>,
    count: usize,
}

impl Channels {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place, closing the identity's oldest channel if it has too many.
    fn enter(&self, key: &Key, handle: Arc<Handle>, limits: &config::Limits) -> Result<(), Error> {
        let per_identity = limits.channels_per_identity;
        let mut state = self.state();
        let of_tenant = state.by_tenant.get(key.tenant()).copied();
        let of_tenant = of_tenant.unwrap_or_default();
        // No tenant takes the places of all the others.
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
            oldest.close(Closing::Replaced);
        }
        Ok(())
    }

    fn leave(&self, key: &Key, id: Uuid) {
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

    fn all(&self) -> Vec<Arc<Handle>> {
        self.state()
            .by_identity
            .values()
            .flatten()
            .cloned()
            .collect()
    }
}

/// A live channel. Dropped, it is taken off the books.
pub struct Channel {
    /// Its id.
    pub id: Uuid,
    /// Whose it is.
    pub key: Key,
    /// What it runs over.
    pub(super) transport: Transport,
    /// When it was opened, to the database.
    pub(super) opened_at: OffsetDateTime,
    /// Woken when there may be something to send.
    waiter: Waiter,
    watch: Watch,
    gateway: Arc<Gateway>,
}

/// What can end a channel from the gateway's side.
pub(super) struct Watch {
    handle: Arc<Handle>,
    draining: CancellationToken,
    /// Over how long a drain is spread.
    spread: Duration,
    /// When the credential ends.
    ends: Option<Instant>,
}

impl Watch {
    /// Waits until the gateway wants the channel closed.
    pub(super) async fn closed(&self) -> Closing {
        let expiry = async {
            match self.ends {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.handle.closed.cancelled() => self.handle.why.get().copied().unwrap_or(Closing::Drain),
            () = expiry => Closing::Credential,
            () = self.draining.cancelled() => {
                // Spread, so that the other nodes are not stormed.
                sleep(crate::jitter::below(self.spread)).await;
                Closing::Drain
            }
        }
    }
}

/// The role of the identity that a key stands for.
pub(super) fn role_of(key: &Key) -> &'static str {
    match key {
        Key::Approver(..) => "approver",
        Key::Enforcer(..) | Key::Exchange(..) => "enforcer",
    }
}

impl Channel {
    /// Notes why the gateway ends it.
    pub fn note_closing(&self, closing: Closing) {
        self.gateway
            .metrics
            .closed
            .of([closing.as_str()])
            .increment();
    }

    /// What ends it, and what wakes it.
    pub(super) fn parts(&mut self) -> (&Watch, &mut Waiter) {
        (&self.watch, &mut self.waiter)
    }

    /// Counts it among the channels of its sort.
    fn count(&self, by: f64) {
        let role = role_of(&self.key);
        let channels = &self.gateway.metrics.channels;
        channels.of([self.transport.as_str(), role]).add(by);
    }

    /// Notes whether the peer shows signs of life; only a living one is sent decisions. False if that could not be noted.
    pub async fn set_active(&self, active: bool) -> bool {
        let noted = self
            .gateway
            .store
            .set_channel_active(&self.key, self.id, active)
            .await;
        if let Err(error) = &noted {
            tracing::debug!(%error, "a channel's liveness could not be noted");
        }
        self.gateway.wake.wake([self.key.clone()]);
        noted.is_ok()
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.gateway.channels.leave(&self.key, self.id);
        self.count(-1.0);
        let (gateway, key, id) = (Arc::clone(&self.gateway), self.key.clone(), self.id);
        self.gateway.tasks.spawn(async move {
            if let Err(error) = gateway.store.close_channel(&key, id).await {
                // The next heartbeat finds the row without its channel.
                tracing::debug!(%error, "a channel could not be taken off the books");
            }
            gateway.wake.wake([key]);
        });
    }
}

impl Gateway {
    /// Opens a channel for an identity that the caller may act as.
    pub async fn open_channel(
        self: &Arc<Self>,
        origin: &Origin,
        key: Key,
        transport: Transport,
    ) -> Result<Channel, Error> {
        if self.draining.is_cancelled() {
            return Err(Error::Unavailable);
        }
        let id = self.clock.operation_id().0;
        let handle = Arc::new(Handle {
            id,
            principal: origin.principal.clone(),
            recheck: origin.recheck.clone(),
            closed: CancellationToken::new(),
            why: OnceLock::new(),
        });
        let limits = &self.config.limits;
        self.channels.enter(&key, Arc::clone(&handle), limits)?;
        let ends = origin.expires_at.map(|at| {
            let left =
                Duration::try_from(at.inner() - self.clock.now().inner()).unwrap_or_default();
            Instant::now() + left
        });
        let spread = Duration::from_millis(self.config.push.drain_spread_ms);
        // Made before its row is written, so that it is dropped, and tidied up, whatever happens next.
        let channel = Channel {
            id,
            waiter: self.wake.register(key.clone()),
            key,
            transport,
            opened_at: self.store.database_now(),
            watch: Watch {
                handle,
                draining: self.draining.clone(),
                spread,
                ends,
            },
            gateway: Arc::clone(self),
        };
        channel.count(1.0);
        self.store.open_channel(&channel.key, id, transport).await?;
        Ok(channel)
    }

    /// How long ago the node's lease was renewed.
    pub(super) fn lease_age(&self) -> Duration {
        let renewed = self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        renewed.elapsed()
    }

    /// How many channels this node holds.
    #[must_use]
    pub fn channel_count(&self) -> usize {
        self.channels.state().count
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
        let ghosts = self.store.forget_ghosts(&live).await?;
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
    pub(super) async fn bury_dead_nodes(&self) -> Result<(), Error> {
        let keys = self.store.bury_dead_nodes().await?;
        self.wake.wake(keys);
        Ok(())
    }

    /// The tenants that have channels here.
    pub(super) fn tenants_with_channels(&self) -> HashSet<TenantId> {
        let state = self.channels.state();
        state.by_identity.keys().map(Key::tenant).cloned().collect()
    }

    /// Closes the channels of a tenant.
    pub(super) fn close_channels_of(&self, tenant: &TenantId) {
        let state = self.channels.state();
        let own = state
            .by_identity
            .iter()
            .filter(|(key, _)| key.tenant() == tenant);
        for handle in own.flat_map(|(_, handles)| handles) {
            handle.close(Closing::Credential);
        }
    }

    /// The tokens of channels that are to be asked about again, each once.
    pub(super) fn channel_tokens(&self) -> Vec<Secret> {
        let handles = self.channels.all();
        let mut seen = HashSet::new();
        let tokens = handles.iter().filter_map(|handle| handle.recheck.as_ref());
        tokens
            .filter(|token| seen.insert(token.expose()))
            .cloned()
            .collect()
    }

    /// Closes the channels that were opened with a token.
    pub(super) fn close_channels_by(&self, token: &Secret) {
        for handle in self.channels.all() {
            if handle.recheck.as_ref() == Some(token) {
                handle.close(Closing::Credential);
            }
        }
    }

    /// Closes the channels of credentials that changed and are no longer good.
    pub(super) async fn close_revoked(&self, changed: &[CredentialId]) -> Result<(), Error> {
        let handles = self.channels.all();
        let live: HashSet<&str> = handles
            .iter()
            .map(|handle| handle.principal.as_str())
            .collect();
        for id in changed.iter().filter(|id| live.contains(id.as_str())) {
            let found = self.store.credential(id).await?;
            if found.is_none_or(|credential| credential.revoked) {
                for handle in handles
                    .iter()
                    .filter(|handle| CredentialId::parse(&handle.principal).as_ref() == Some(id))
                {
                    handle.close(Closing::Credential);
                }
            }
        }
        Ok(())
    }
}
