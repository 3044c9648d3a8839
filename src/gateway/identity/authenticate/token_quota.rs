//! Bounds the cost of unknown tokens: concurrent requests to the authorization server, and refused
//! or unanswered tokens a second from one address. A flood of invented tokens delays neither known
//! tokens nor fresh ones from elsewhere.

use std::net::IpAddr;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::config::{Config, TlsMode};
use crate::gateway::admission::{KeyedSemaphore, TurnPermit, turn_of_each};
use crate::gateway::error::Result;
use crate::gateway::limit::{BucketTable, RateClass, RateLimit, network};
use crate::protocol::timestamp::Timestamp;

/// Most requests at once.
const MAX_ASKING: usize = 80;
/// Most of them about tokens of which nothing is known.
const MAX_UNKNOWN: usize = 64;
/// Most of them from one address. Further ones from there wait without delaying other addresses.
const MAX_PER_ADDRESS: usize = 4;
/// Most addresses whose refused tokens are counted.
const MAX_BUCKETS: usize = 10_000;

/// The owner of a token that is introspected.
#[derive(Debug, Clone, Copy)]
pub(in crate::gateway) enum TokenOwner {
    /// The token was valid before.
    Known,
    /// Nothing is known of the token; the address, if it is that of a client.
    Stranger(Option<IpAddr>),
}

pub(in crate::gateway) struct TokenQuota {
    all: Arc<Semaphore>,
    unknown: Arc<Semaphore>,
    addresses: KeyedSemaphore<IpAddr>,
    refused: BucketTable<IpAddr>,
    rate: RateLimit,
    /// Whether addresses are those of clients. Plain connections come from this machine.
    by_address: bool,
}

impl TokenQuota {
    pub(in crate::gateway) fn new(config: &Config) -> Self {
        Self {
            all: Arc::new(Semaphore::new(MAX_ASKING)),
            unknown: Arc::new(Semaphore::new(MAX_UNKNOWN)),
            addresses: KeyedSemaphore::new(MAX_PER_ADDRESS),
            refused: BucketTable::new(MAX_BUCKETS),
            rate: RateClass::Token.rate(&config.rates),
            by_address: config.tls.mode != TlsMode::Off,
        }
    }

    /// The owner of an unknown token, unless too many from that address were refused.
    pub(in crate::gateway) fn stranger(
        &self,
        from: Option<IpAddr>,
        now: Timestamp,
    ) -> Result<TokenOwner> {
        let from = from.filter(|_| self.by_address).map(network);
        if let Some(from) = &from {
            let left = self.refused.check(from, self.rate, now);
            left.map_err(|retry_after| RateClass::Token.throttled(self.rate, retry_after))?;
        }
        Ok(TokenOwner::Stranger(from))
    }

    pub(in crate::gateway) fn note_refused(&self, asker: TokenOwner, now: Timestamp) {
        if let TokenOwner::Stranger(Some(from)) = asker {
            // Without one left, the next is refused before it is asked about.
            let _none_left = self.refused.take(&from, self.rate, now);
        }
    }

    /// Waits for the turn to make a request; `None` if it does not come in time.
    pub(in crate::gateway) async fn place(
        &self,
        asker: TokenOwner,
        deadline: Instant,
    ) -> Option<TurnPermit> {
        let mut turns = Vec::new();
        if let TokenOwner::Stranger(from) = asker {
            turns.extend(from.map(|from| self.addresses.of(&from)));
            turns.push(Arc::clone(&self.unknown));
        }
        turns.push(Arc::clone(&self.all));
        turn_of_each(turns, deadline).await
    }
}
