//! The issuer's keys, from a file or URL. They are read periodically, and when a token names an
//! unknown key, but then at most every 30 s. If they cannot be read, the last known keys stay in
//! use.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Uri;
use tokio::io::AsyncReadExt as _;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::gateway::error::Error;
use crate::outbound::OutboundClient;
use crate::protocol::timestamp::Timestamp;
use crate::protocol::token::{KeySet, SignedToken, TokenError};
use crate::short_lock::ShortLock;

/// How often unknown keys may cause a read.
const REFETCH_INTERVAL: Duration = Duration::from_secs(30);
/// The same while no keys are known at all.
const FIRST_FETCH_INTERVAL: Duration = Duration::from_secs(1);
const READ_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_FILE_BYTES: u64 = 1 << 20;

pub(in crate::gateway) enum KeySource {
    File(PathBuf),
    Url(Uri),
}

pub(in crate::gateway) struct Jwks {
    source: KeySource,
    outbound: OutboundClient,
    clock: Clock,
    stop: CancellationToken,
    /// Held while keys are read, so that concurrent callers share one read.
    turn: tokio::sync::Mutex<()>,
    state: ShortLock<JwksState>,
    failing: AtomicBool,
}

#[derive(Default)]
struct JwksState {
    keys: Option<Arc<KeySet>>,
    /// When they were last read, successfully or not.
    tried: Option<Timestamp>,
    /// When a token last caused a read.
    asked: Option<Timestamp>,
}

impl Jwks {
    pub(in crate::gateway) fn new(
        source: KeySource,
        outbound: OutboundClient,
        clock: Clock,
        stop: CancellationToken,
    ) -> Self {
        Self {
            source,
            outbound,
            clock,
            stop,
            turn: tokio::sync::Mutex::default(),
            state: ShortLock::default(),
            failing: AtomicBool::new(false),
        }
    }

    /// Checks a token's signature with the known keys; `None` if its key is not among them.
    pub(in crate::gateway) fn check(
        &self,
        token: &SignedToken<'_>,
    ) -> Option<Result<(), TokenError>> {
        let keys = self.state.lock().keys.clone()?;
        match keys.check(token) {
            Err(TokenError::UnknownKey) => None,
            judged => Some(judged),
        }
    }

    /// The refusal of a token whose key was not found, even after reading the keys again.
    pub(in crate::gateway) fn not_found(&self) -> Error {
        // If the keys could not be read, the token may be good.
        if self.state.lock().keys.is_none() || self.failing.load(Ordering::Relaxed) {
            return Error::Unavailable;
        }
        TokenError::UnknownKey.into()
    }

    /// Whether a token may cause a read now.
    fn may_ask(&self) -> bool {
        let state = self.state.lock();
        let (last, pause) = match state.keys {
            Some(_) => (state.asked, REFETCH_INTERVAL),
            None => (state.tried, FIRST_FETCH_INTERVAL),
        };
        let now = self.clock.now().inner();
        // A clock that was set back must not prevent reads.
        last.is_none_or(|at| at.inner() > now || now - at.inner() >= pause)
    }

    /// Reads the keys again because a token names an unknown one.
    pub(in crate::gateway) async fn ask(&self) {
        let known = self.state.lock().keys.is_some();
        if !self.may_ask() {
            return;
        }
        let _turn = self.turn.lock().await;
        let found_meanwhile = !known && self.state.lock().keys.is_some();
        if !found_meanwhile && self.may_ask() {
            self.state.lock().asked = Some(self.clock.now());
            self.read().await;
        }
    }

    /// The periodic read.
    pub(in crate::gateway) async fn refresh(&self) {
        let _turn = self.turn.lock().await;
        self.read().await;
    }

    async fn read(&self) {
        let Some(found) = self.stop.run_until_cancelled(self.fetch()).await else {
            return;
        };
        let mut state = self.state.lock();
        state.tried = Some(self.clock.now());
        match found {
            Ok(keys) => {
                if self.failing.swap(false, Ordering::Relaxed) || state.keys.is_none() {
                    tracing::info!(keys = keys.len(), "the issuer's keys are known");
                }
                state.keys = Some(Arc::new(keys));
            }
            Err(problem) => {
                if !self.failing.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        problem,
                        known = state.keys.is_some(),
                        "the issuer's keys cannot be read; trying again, with those last known"
                    );
                }
            }
        }
    }

    async fn fetch(&self) -> Result<KeySet, String> {
        let bytes = match &self.source {
            KeySource::Url(url) => {
                let got = self.outbound.get(url, Instant::now() + READ_TIMEOUT).await;
                got.map_err(|error| error.to_string())?.to_vec()
            }
            KeySource::File(path) => {
                let mut bytes = Vec::new();
                let file = tokio::fs::File::open(path).await;
                let file = file.map_err(|error| error.to_string())?;
                let read = file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).await;
                read.map_err(|error| error.to_string())?;
                bytes
            }
        };
        KeySet::parse(&bytes).ok_or_else(|| "they are no JWK set".to_owned())
    }
}
