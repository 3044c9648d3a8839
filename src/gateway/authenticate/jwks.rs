//! The issuer's keys, from a file or its URL. They are read again at intervals, and when a token names a key that is not among
//! them, but then at most every 30 s whatever arrives. Where they cannot be read, the last known ones stay in force.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::Uri;
use tokio::io::AsyncReadExt as _;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::gateway::error::Error;
use crate::outbound::Outbound;
use crate::protocol::timestamp::Timestamp;
use crate::protocol::token::{Jws, KeySet, Refused};

/// How often unknown keys may send us to the issuer.
const ASK_EVERY: Duration = Duration::from_secs(30);
/// How often tokens may send us there as long as no key is known at all.
const FIRST_EVERY: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(5);
const MAX_FILE_BYTES: u64 = 1 << 20;

pub(super) enum KeySource {
    File(PathBuf),
    Url(Uri),
}

pub(super) struct Jwks {
    source: KeySource,
    outbound: Outbound,
    clock: Clock,
    stop: CancellationToken,
    /// Held while keys are read: one reads, the others see what it found.
    turn: tokio::sync::Mutex<()>,
    /// Held for a few instructions, never across an await.
    state: Mutex<JwksState>,
    failing: AtomicBool,
}

#[derive(Default)]
struct JwksState {
    keys: Option<Arc<KeySet>>,
    /// When they were last tried for.
    tried: Option<Timestamp>,
    /// When a token last sent us for them.
    asked: Option<Timestamp>,
}

impl Jwks {
    pub(super) fn new(
        source: KeySource,
        outbound: Outbound,
        clock: Clock,
        stop: CancellationToken,
    ) -> Self {
        Self {
            source,
            outbound,
            clock,
            stop,
            turn: tokio::sync::Mutex::default(),
            state: Mutex::default(),
            failing: AtomicBool::new(false),
        }
    }

    fn state(&self) -> MutexGuard<'_, JwksState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks a token's signature under the keys that are known; `None` where better ones would have to be known.
    pub(super) fn check(&self, token: &Jws<'_>) -> Option<Result<(), Refused>> {
        let keys = self.state().keys.clone()?;
        match keys.check(token) {
            Err(Refused::UnknownKey) => None,
            judged => Some(judged),
        }
    }

    /// The refusal of a token for which no key was found, even after looking again.
    pub(super) fn not_found(&self) -> Result<Refused, Error> {
        // Where the keys could not be read, nobody can say that the token is bad.
        if self.state().keys.is_none() || self.failing.load(Ordering::Relaxed) {
            return Err(Error::Unavailable);
        }
        Ok(Refused::UnknownKey)
    }

    /// Whether a token may send us for the keys now.
    fn may_ask(&self) -> bool {
        let state = self.state();
        let (last, pause) = match state.keys {
            Some(_) => (state.asked, ASK_EVERY),
            None => (state.tried, FIRST_EVERY),
        };
        let now = self.clock.now().inner();
        // A clock that was put back must not keep us from asking.
        last.is_none_or(|at| at.inner() > now || now - at.inner() >= pause)
    }

    /// Reads the keys again because a token names one that is not among them.
    pub(super) async fn ask(&self) {
        let known = self.state().keys.is_some();
        if !self.may_ask() {
            return;
        }
        let _turn = self.turn.lock().await;
        let found_meanwhile = !known && self.state().keys.is_some();
        if !found_meanwhile && self.may_ask() {
            self.state().asked = Some(self.clock.now());
            self.read().await;
        }
    }

    /// Reads the keys again because it is time to.
    pub(super) async fn refresh(&self) {
        let _turn = self.turn.lock().await;
        self.read().await;
    }

    async fn read(&self) {
        let Some(found) = self.stop.run_until_cancelled(self.fetch()).await else {
            return;
        };
        let mut state = self.state();
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
                let got = self.outbound.get(url, Instant::now() + PATIENCE).await;
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
