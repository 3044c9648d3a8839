//! Limits connections, in all and per address. A permit is acquired before anything is read.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use crate::config;
use crate::gateway::limit::network;
use crate::telemetry::Metrics;

#[derive(Clone)]
pub struct ConnectionLimiter {
    /// Held for a few instructions, never across an await.
    counts: Arc<Mutex<Counts>>,
    limit: usize,
    limit_per_address: usize,
    metrics: Arc<Metrics>,
}

#[derive(Default)]
struct Counts {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// One counted connection, released when dropped.
pub struct ConnectionPermit {
    pub peer: SocketAddr,
    limiter: ConnectionLimiter,
}

impl ConnectionLimiter {
    pub fn new(config: &config::Server, metrics: &Arc<Metrics>) -> Self {
        Self {
            counts: Arc::default(),
            limit: config.max_connections,
            limit_per_address: config.max_connections_per_address,
            metrics: Arc::clone(metrics),
        }
    }

    pub fn acquire(&self, peer: SocketAddr) -> Option<ConnectionPermit> {
        let address = network(peer.ip());
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let here = counts.by_address.get(&address).copied().unwrap_or_default();
        let refused = match (counts.all >= self.limit, here >= self.limit_per_address) {
            (true, _) => Some("full"),
            (false, true) => Some("address"),
            (false, false) => None,
        };
        if let Some(reason) = refused {
            self.metrics.turned_away.of([reason]).increment();
            return None;
        }
        counts.all += 1;
        counts.by_address.insert(address, here + 1);
        self.metrics.connections.add(1.0);
        Some(ConnectionPermit {
            peer,
            limiter: self.clone(),
        })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut counts = self
            .limiter
            .counts
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        counts.all -= 1;
        self.limiter.metrics.connections.add(-1.0);
        let address = network(self.peer.ip());
        if let Some(here) = counts.by_address.get_mut(&address) {
            *here -= 1;
            if *here == 0 {
                counts.by_address.remove(&address);
            }
        }
    }
}
