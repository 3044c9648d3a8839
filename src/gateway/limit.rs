//! Limits how fast one caller may call: token buckets per credential, id and kind of call, so that
//! throttled submissions never delay decisions or acks; and per address before a caller is known.
//!
//! Hand-written, because governor's keyed limiter has one quota for all keys and bounds them only
//! by a scan of every key. Here a cache bounds the buckets. It evicts those that are seldom used,
//! so a flood of new callers does not reset busy ones.

use std::convert::Infallible;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quick_cache::sync::Cache;
use time::OffsetDateTime;

use super::context::GatewayContext;
use super::error::{Error, Result, ThrottleDetails};
use crate::config;
use crate::gateway::identity::caller::CallerIdentity;
use crate::protocol::timestamp::Timestamp;
use crate::protocol::words::words;
use crate::short_lock::ShortLock;

const MAX_BUCKETS: usize = 100_000;

/// How many times the rate of one id a credential for any id may have.
const ANY_ID_FACTOR: u32 = 20;

words! {
    #[derive(Hash)]
    RateClass {
        /// Artifacts, prompts, session events, pairings begun.
        Submission = "submissions",
        /// Decisions, and other changes of an exchange or a pairing.
        Decision = "decisions",
        Ack = "acks",
        Read = "reads",
        Connect = "connects",
        Address = "address",
        /// KiB of large bodies.
        Body = "body",
        /// Tokens that the authorization server refused.
        Token = "tokens",
    }
}

impl RateClass {
    /// The refusal of a call of this kind.
    pub fn throttled(self, rate: RateLimit, retry_after: Duration) -> Error {
        let calls = match self {
            Self::Address => "calls from this address",
            Self::Body => "KiB of large bodies",
            Self::Token => "refused tokens from this address",
            kind => kind.as_str(),
        };
        Error::Throttled(ThrottleDetails {
            policy: self.as_str(),
            calls: format!("{calls} at once"),
            quota: rate.burst,
            window_seconds: rate.burst.div_ceil(rate.per_second.max(1)).into(),
            retry_after,
        })
    }

    pub(super) fn rate(self, rates: &config::Rates) -> RateLimit {
        let (per_second, burst) = match self {
            Self::Submission => (rates.submissions, rates.submissions_burst),
            Self::Decision => (rates.decisions, rates.decisions_burst),
            Self::Ack => (rates.acks, rates.acks_burst),
            Self::Read => (rates.reads, rates.reads_burst),
            Self::Connect => (rates.connects, rates.connects_burst),
            Self::Address => (rates.address, rates.address_burst),
            Self::Body => (rates.body_kib, rates.body_kib_burst),
            Self::Token => (rates.refused_tokens, rates.refused_tokens_burst),
        };
        RateLimit {
            per_second: if rates.enabled { per_second } else { 0 },
            // A second's worth, at least.
            burst: burst.max(per_second).max(1),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Calls a second; 0 for no limit.
    pub per_second: u32,
    /// Calls at once.
    pub burst: u32,
}

struct RateBucket {
    tokens: f64,
    at: Timestamp,
}

impl RateBucket {
    /// A clock that was set back adds no tokens.
    fn take(&mut self, count: f64, rate: RateLimit, now: Timestamp) -> Result<(), Duration> {
        self.check(count, rate, now)?;
        self.tokens -= count;
        Ok(())
    }

    /// Whether there are so many tokens, or how long it takes until there are.
    fn check(&mut self, count: f64, rate: RateLimit, now: Timestamp) -> Result<(), Duration> {
        let passed = (now.inner() - self.at.inner()).as_seconds_f64().max(0.0);
        let added = passed * f64::from(rate.per_second);
        self.tokens = (self.tokens + added).min(f64::from(rate.burst));
        self.at = now;
        if self.tokens < count {
            let wait = (count - self.tokens) / f64::from(rate.per_second);
            return Err(Duration::try_from_secs_f64(wait).unwrap_or(Duration::from_secs(1)));
        }
        Ok(())
    }
}

/// Limits log lines that callers can cause: they must not fill the disk.
pub struct LineLimit {
    rate: RateLimit,
    bucket: ShortLock<RateBucket>,
    left_out: AtomicU64,
}

impl LineLimit {
    pub fn new(rate: RateLimit) -> Self {
        // A bucket is full after a while, and the epoch was long ago.
        let at = Timestamp::from(OffsetDateTime::UNIX_EPOCH);
        Self {
            rate,
            bucket: ShortLock::new(RateBucket { tokens: 0.0, at }),
            left_out: AtomicU64::new(0),
        }
    }

    /// How many lines were left out since the last one, or `None` if this one is.
    pub fn admit(&self, now: Timestamp) -> Option<u64> {
        let mut bucket = self.bucket.lock();
        if bucket.take(1.0, self.rate, now).is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(self.left_out.swap(0, Ordering::Relaxed))
    }
}

/// Buckets by caller. A caller without one starts with a full bucket.
pub struct BucketTable<K> {
    by_caller: Cache<K, Arc<ShortLock<RateBucket>>>,
}

impl<K: Clone + Eq + Hash> BucketTable<K> {
    pub fn new(capacity: usize) -> Self {
        Self {
            by_caller: Cache::new(capacity),
        }
    }

    /// Takes a token of a caller, or returns how long it takes until there is one.
    pub fn take(&self, caller: &K, rate: RateLimit, now: Timestamp) -> Result<(), Duration> {
        self.take_many(caller, 1, rate, now)
    }

    /// Whether a caller has a token, or how long it takes until there is one.
    pub fn check(&self, caller: &K, rate: RateLimit, now: Timestamp) -> Result<(), Duration> {
        match self.by_caller.get(caller) {
            Some(bucket) if rate.per_second > 0 => {
                let mut bucket = bucket.lock();
                bucket.check(1.0, rate, now)
            }
            _ => Ok(()),
        }
    }

    /// Takes as many tokens, but no more than there can be at once.
    fn take_many(
        &self,
        caller: &K,
        count: u32,
        rate: RateLimit,
        now: Timestamp,
    ) -> Result<(), Duration> {
        if rate.per_second == 0 {
            return Ok(());
        }
        let Ok(bucket) = self
            .by_caller
            .get_or_insert_with(caller, || -> Result<_, Infallible> {
                let tokens = f64::from(rate.burst);
                Ok(Arc::new(ShortLock::new(RateBucket { tokens, at: now })))
            });
        let mut bucket = bucket.lock();
        bucket.take(f64::from(count.min(rate.burst)), rate, now)
    }
}

/// A credential's calls of one kind.
#[derive(Clone, PartialEq, Eq, Hash)]
struct CredentialCalls {
    kind: RateClass,
    /// With its tenant: an issuer may use one name in several of them.
    credential: String,
    acting_as: ActingAs,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum ActingAs {
    Itself,
    Id(String),
    /// Any id: the body that names it has not been read.
    Any,
}

pub struct RateLimiter {
    context: Arc<GatewayContext>,
    credentials: BucketTable<CredentialCalls>,
    /// Apart, so that strangers cannot evict the buckets of credentials.
    addresses: BucketTable<IpAddr>,
}

impl RateLimiter {
    pub(super) fn new(context: &Arc<GatewayContext>) -> Self {
        Self {
            context: Arc::clone(context),
            credentials: BucketTable::new(MAX_BUCKETS),
            addresses: BucketTable::new(MAX_BUCKETS),
        }
    }

    /// Counts a call of a credential that acts as `id`, or refuses it.
    pub fn admit(&self, kind: RateClass, origin: &CallerIdentity, id: Option<&str>) -> Result<()> {
        let acting_as = id.map_or(ActingAs::Itself, |id| ActingAs::Id(id.to_owned()));
        self.take(kind, credential(origin), acting_as, 1, self.rate_of(kind))
    }

    /// Counts a call of an unbound credential before the body names an id: as many as a fleet might
    /// make.
    pub fn admit_any_id(&self, kind: RateClass, origin: &CallerIdentity) -> Result<()> {
        let RateLimit { per_second, burst } = self.rate_of(kind);
        let rate = RateLimit {
            per_second: per_second.saturating_mul(ANY_ID_FACTOR),
            burst: burst.saturating_mul(ANY_ID_FACTOR),
        };
        self.take(kind, credential(origin), ActingAs::Any, 1, rate)
    }

    /// Counts a call of the operator, who belongs to no tenant.
    pub fn admit_operator(&self, kind: RateClass) -> Result<()> {
        let (operator, rate) = ("operator".to_owned(), self.rate_of(kind));
        self.take(kind, operator, ActingAs::Itself, 1, rate)
    }

    /// Counts a large body by its size: reading it costs as much as many calls.
    pub fn admit_body(&self, origin: &CallerIdentity, bytes: usize) -> Result<()> {
        let kib = u32::try_from(bytes >> 10).unwrap_or(u32::MAX);
        let (kind, rate) = (RateClass::Body, self.rate_of(RateClass::Body));
        self.take(kind, credential(origin), ActingAs::Itself, kib, rate)
    }

    fn take(
        &self,
        kind: RateClass,
        credential: String,
        acting_as: ActingAs,
        count: u32,
        rate: RateLimit,
    ) -> Result<()> {
        let caller = CredentialCalls {
            kind,
            credential,
            acting_as,
        };
        let (credentials, now) = (&self.credentials, self.context.clock.now());
        let counted = credentials.take_many(&caller, count, rate, now);
        counted.map_err(|retry_after| kind.throttled(rate, retry_after))
    }

    /// Counts a call from an address before its caller is known, or refuses it.
    pub fn admit_address(&self, address: IpAddr) -> Result<()> {
        let (kind, rate) = (RateClass::Address, self.rate_of(RateClass::Address));
        let addresses = &self.addresses;
        let counted = addresses.take(&network(address), rate, self.context.clock.now());
        counted.map_err(|retry_after| kind.throttled(rate, retry_after))
    }

    fn rate_of(&self, kind: RateClass) -> RateLimit {
        kind.rate(&self.context.config.rates)
    }
}

fn credential(origin: &CallerIdentity) -> String {
    format!("{}\n{}", origin.tenant, origin.principal)
}

/// The part of an address that is counted: a host with IPv6 usually has a network of 2^64.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}
