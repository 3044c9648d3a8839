//! Limits connections, in all and per address. A permit is acquired before anything is read. A node
//! that is full closes the oldest connection that has not authenticated; if there is none, it
//! accepts a few more that may only ask for health.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::memory::lower;
use crate::config;
use crate::gateway::limit::network;
use crate::telemetry::Metrics;

/// Connections beyond the limit for health checks, or a full node would be restarted.
const HEALTH_RESERVE: usize = 16;
/// Lifetime of such a connection.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub struct ConnectionLimiter {
    /// Held for a few instructions, never across an await.
    state: Arc<Mutex<LimiterState>>,
    limit: usize,
    limit_per_address: usize,
    metrics: Arc<Metrics>,
}

#[derive(Default)]
struct LimiterState {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
    /// Connections that have not authenticated yet, oldest first.
    unknown: BTreeMap<u64, CancellationToken>,
    next: u64,
}

/// One counted connection, released when dropped.
pub struct ConnectionPermit {
    pub peer: SocketAddr,
    /// Whether the node is full, so that it may only ask for health.
    pub health_only: bool,
    /// Cancelled if it must make room for another.
    evicted: CancellationToken,
    known: AtomicBool,
    number: u64,
    limiter: ConnectionLimiter,
}

impl ConnectionLimiter {
    /// `direct` says whether clients connect themselves, and not through a proxy.
    pub fn new(config: &config::Server, direct: bool, metrics: &Arc<Metrics>) -> Self {
        Self {
            state: Arc::default(),
            limit: config.max_connections,
            limit_per_address: match config.max_connections_per_address {
                0 if direct => config::DIRECT_CONNECTIONS_PER_ADDRESS,
                0 => usize::MAX,
                limit => limit,
            },
            metrics: Arc::clone(metrics),
        }
    }

    fn state(&self) -> MutexGuard<'_, LimiterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn acquire(&self, peer: SocketAddr) -> Option<ConnectionPermit> {
        let address = network(peer.ip());
        let mut state = self.state();
        let here = state.by_address.get(&address).copied().unwrap_or_default();
        if here >= self.limit_per_address {
            self.metrics.turned_away.of(["address"]).increment();
            return None;
        }
        let full = state.all >= self.limit;
        let evicted = full.then(|| state.unknown.pop_first()).flatten();
        if let Some((_, oldest)) = &evicted {
            oldest.cancel();
        }
        let health_only = full && evicted.is_none();
        if health_only && state.all >= self.limit + HEALTH_RESERVE {
            self.metrics.turned_away.of(["full"]).increment();
            return None;
        }
        state.all += 1;
        state.by_address.insert(address, here + 1);
        let (number, evicted) = (state.next, CancellationToken::new());
        state.next += 1;
        // One for health alone takes nobody's place, and ends soon.
        if !health_only {
            state.unknown.insert(number, evicted.clone());
        }
        self.metrics.connections.add(1.0);
        Some(ConnectionPermit {
            peer,
            health_only,
            evicted,
            known: AtomicBool::new(false),
            number,
            limiter: self.clone(),
        })
    }
}

impl ConnectionPermit {
    /// Runs a connection until it ends, or must make room for another.
    pub async fn until_evicted<T>(&self, connection: impl Future<Output = T>) -> Option<T> {
        let time_limit = if self.health_only {
            HEALTH_TIMEOUT
        } else {
            Duration::MAX
        };
        let serving = self.evicted.run_until_cancelled(connection);
        timeout(time_limit, serving).await.ok().flatten()
    }

    /// Keeps the connection of a caller that has authenticated.
    pub fn keep(&self) {
        if !self.known.swap(true, Ordering::Relaxed) {
            self.limiter.state().unknown.remove(&self.number);
        }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut state = self.limiter.state();
        state.all -= 1;
        state.unknown.remove(&self.number);
        self.limiter.metrics.connections.add(-1.0);
        lower(&mut state.by_address, &network(self.peer.ip()), 1);
    }
}
