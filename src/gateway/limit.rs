//! How much of a node one caller may take: token buckets per principal and the id it acts as, one for each kind of call,
//! so that throttled submissions never keep decisions or acks waiting; and per address, before anyone is known.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::Gateway;
use super::caller::Origin;
use super::error::{Error, Throttled};
use crate::config;
use crate::protocol::timestamp::Timestamp;

/// Buckets kept at once; full ones say nothing and are dropped first.
const MAX_BUCKETS: usize = 100_000;

/// How many times the rate of one id a credential may have that may be any.
const FLEET: u32 = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Artifacts, prompts, session events, pairings begun.
    Submission,
    /// Decisions, and whatever else changes an exchange or a pairing.
    Decision,
    Ack,
    Read,
    Connect,
    Address,
}

impl Kind {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Submission => "submissions",
            Self::Decision => "decisions",
            Self::Ack => "acks",
            Self::Read => "reads",
            Self::Connect => "connects",
            Self::Address => "address",
        }
    }

    /// The refusal of a call of this kind.
    #[must_use]
    pub fn throttled(self, rate: Rate, retry_after: Duration) -> Error {
        let calls = match self {
            Self::Address => "calls from this address",
            kind => kind.as_str(),
        };
        Error::Throttled(Throttled {
            policy: self.as_str(),
            calls: format!("{calls} at once"),
            quota: rate.burst,
            window_seconds: rate.burst.div_ceil(rate.per_second.max(1)).into(),
            retry_after,
        })
    }
}

/// How fast a bucket fills, and how much it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Calls a second; 0 for no limit.
    pub per_second: u32,
    /// Calls at once.
    pub burst: u32,
}

struct Bucket {
    tokens: f64,
    at: Timestamp,
    rate: Rate,
}

impl Bucket {
    /// What it holds at an instant. A clock that was set back fills nothing.
    fn filled(&self, now: Timestamp) -> f64 {
        let passed = (now.inner() - self.at.inner()).as_seconds_f64().max(0.0);
        let Rate { per_second, burst } = self.rate;
        (self.tokens + passed * f64::from(per_second)).min(f64::from(burst))
    }
}

struct Buckets<K> {
    /// Held for a few instructions, never across an await.
    by_caller: Mutex<HashMap<(Kind, K), Bucket>>,
}

impl<K> Default for Buckets<K> {
    fn default() -> Self {
        Self {
            by_caller: Mutex::default(),
        }
    }
}

impl<K: Eq + Hash> Buckets<K> {
    fn take(&self, kind: Kind, caller: K, rate: Rate, now: Timestamp) -> Result<(), Error> {
        if rate.per_second == 0 {
            return Ok(());
        }
        let mut buckets = self
            .by_caller
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_BUCKETS {
            buckets.retain(|_, bucket| bucket.filled(now) < f64::from(bucket.rate.burst));
            // All of them in use at once: whoever comes next starts afresh, which costs less than refusing everyone.
            if buckets.len() >= MAX_BUCKETS {
                buckets.clear();
            }
        }
        let bucket = buckets.entry((kind, caller)).or_insert(Bucket {
            tokens: f64::from(rate.burst),
            at: now,
            rate,
        });
        let tokens = bucket.filled(now);
        let (left, outcome) = if tokens >= 1.0 {
            (tokens - 1.0, Ok(()))
        } else {
            let wait = (1.0 - tokens) / f64::from(rate.per_second);
            let wait = Duration::try_from_secs_f64(wait).unwrap_or(Duration::from_secs(1));
            (tokens, Err(kind.throttled(rate, wait)))
        };
        *bucket = Bucket {
            tokens: left,
            at: now,
            rate,
        };
        outcome
    }
}

#[derive(Default)]
pub(super) struct Limiter {
    principals: Buckets<(String, String)>,
    addresses: Buckets<IpAddr>,
}

impl Gateway {
    /// Takes a call from a principal that acts as `id`, or refuses it until there is room. An issuer may use one name in
    /// several tenants: those are different callers.
    pub fn admit(&self, kind: Kind, origin: &Origin, id: Option<&str>) -> Result<(), Error> {
        let principal = format!("{}\n{}", origin.tenant, origin.principal);
        self.take(kind, principal, id)
    }

    /// Takes a call of a principal that may be many, before it says which: as many as a fleet might make, and no more.
    pub fn admit_any_id(&self, kind: Kind, origin: &Origin) -> Result<(), Error> {
        let Rate { per_second, burst } = rate_of(&self.config.rates, kind);
        let rate = Rate {
            per_second: per_second.saturating_mul(FLEET),
            burst: burst.saturating_mul(FLEET),
        };
        let principal = format!("{}\n{}", origin.tenant, origin.principal);
        self.limiter
            .principals
            // No id is two line feeds.
            .take(kind, (principal, "\n\n".to_owned()), rate, self.clock.now())
    }

    /// The same of the operator, who belongs to no tenant.
    pub fn admit_operator(&self, kind: Kind) -> Result<(), Error> {
        self.take(kind, "operator".to_owned(), None)
    }

    fn take(&self, kind: Kind, principal: String, id: Option<&str>) -> Result<(), Error> {
        let caller = (principal, id.unwrap_or_default().to_owned());
        self.limiter.principals.take(
            kind,
            caller,
            rate_of(&self.config.rates, kind),
            self.clock.now(),
        )
    }

    /// Takes a call from an address, before anyone is known, or refuses it until there is room.
    pub fn admit_address(&self, address: IpAddr) -> Result<(), Error> {
        let kind = Kind::Address;
        self.limiter.addresses.take(
            kind,
            network(address),
            rate_of(&self.config.rates, kind),
            self.clock.now(),
        )
    }
}

fn rate_of(rates: &config::Rates, kind: Kind) -> Rate {
    let (per_second, burst) = match kind {
        Kind::Submission => (rates.submissions, rates.submissions_burst),
        Kind::Decision => (rates.decisions, rates.decisions_burst),
        Kind::Ack => (rates.acks, rates.acks_burst),
        Kind::Read => (rates.reads, rates.reads_burst),
        Kind::Connect => (rates.connects, rates.connects_burst),
        Kind::Address => (rates.address, rates.address_burst),
    };
    Rate {
        per_second: if rates.enabled { per_second } else { 0 },
        burst: burst.max(1),
    }
}

/// What counts as one address: whoever has one of version 6 has 2^64 of them.
#[must_use]
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}
