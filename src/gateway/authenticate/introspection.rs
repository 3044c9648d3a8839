//! Opaque tokens: the authorization server is asked (RFC 7662) and believed for a while, never past the token's end. Whatever
//! keeps it from answering is 503: no token is let in, and none is called bad, on account of it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::{HeaderValue, Uri};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use tokio::sync::{Semaphore, watch};
use tokio::time::{Instant, timeout_at};
use tokio_util::task::TaskTracker;

use super::tokens::refused;
use crate::clock::Clock;
use crate::config::Auth;
use crate::gateway::error::Error;
use crate::outbound::{Outbound, form_encoded};
use crate::protocol::timestamp::Timestamp;
use crate::protocol::token::{ClaimNames, Claims, Refused, judge_introspection};
use crate::telemetry::trace;

/// How long a token that is not good is remembered as such.
const REFUSED_FOR: Duration = Duration::from_secs(5);
/// Most questions at once.
const MAX_ASKING: usize = 64;

/// What is known of a token by its hash; the token itself is not kept.
type Hash = [u8; 32];
/// What the authorization server said; `None` if nothing that makes sense.
type Answer = Option<Result<Arc<Claims>, Refused>>;

enum Entry {
    Asking(watch::Receiver<Option<Answer>>),
    /// What was said, and when that may be believed.
    Known {
        said: Result<Arc<Claims>, Refused>,
        since: Timestamp,
        until: Timestamp,
    },
}

pub(super) struct Introspection {
    url: Uri,
    authorization: HeaderValue,
    outbound: Outbound,
    names: ClaimNames,
    audience: Option<String>,
    time_limit: Duration,
    believed_for: Duration,
    most_known: usize,
    clock: Clock,
    places: Semaphore,
    /// Held for a few instructions, never across an await.
    known: Mutex<HashMap<Hash, Entry>>,
    /// Whether the last question brought no answer.
    failing: AtomicBool,
}

impl Introspection {
    /// As configured, if it is.
    pub(super) fn new(
        config: &Auth,
        names: &ClaimNames,
        outbound: &Outbound,
        clock: &Clock,
    ) -> Option<Self> {
        if !config.introspection() {
            return None;
        }
        // Both are form-encoded before they are joined, as RFC 6749 (2.3.1) has it.
        let client = form_encoded(&config.introspection_client_id);
        let secret = form_encoded(config.introspection_client_secret.expose());
        let basic = format!("Basic {}", STANDARD.encode(format!("{client}:{secret}")));
        let mut authorization = HeaderValue::from_str(&basic).ok()?;
        authorization.set_sensitive(true);
        Some(Self {
            url: config.introspection_url.parse().ok()?,
            authorization,
            outbound: outbound.clone(),
            names: names.clone(),
            audience: Some(config.introspection_audience.clone()).filter(|text| !text.is_empty()),
            time_limit: Duration::from_millis(config.introspection_timeout_ms),
            believed_for: Duration::from_secs(config.introspection_cache_seconds),
            most_known: config.introspection_cache_entries,
            clock: clock.clone(),
            places: Semaphore::new(MAX_ASKING),
            known: Mutex::default(),
            failing: AtomicBool::new(false),
        })
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Hash, Entry>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whom a token stands for. However many present it at once, it is asked about once.
    pub(super) async fn judge(
        self: &Arc<Self>,
        token: &str,
        tasks: &TaskTracker,
    ) -> Result<Arc<Claims>, Error> {
        let hash: Hash = Sha256::digest(token).into();
        let mut told = {
            let mut known = self.known();
            let now = self.clock.now();
            match known.get(&hash) {
                Some(Entry::Known { said, since, until }) if *since <= now && now < *until => {
                    return said.clone().map_err(refused);
                }
                Some(Entry::Asking(told)) if told.has_changed().is_ok() => told.clone(),
                _ => {
                    make_room(&mut known, self.most_known, now);
                    let (tell, told) = watch::channel(None);
                    known.insert(hash, Entry::Asking(told.clone()));
                    let (this, token) = (Arc::clone(self), token.to_owned());
                    // A task of its own: others may wait for the answer when this caller hangs up.
                    let asking = async move {
                        let answer = this.ask(&token).await;
                        this.remember(hash, now, &answer);
                        tell.send_replace(Some(answer));
                    };
                    tasks.spawn(trace::within(trace::current(), asking));
                    told
                }
            }
        };
        let answer = told.wait_for(Option::is_some).await;
        match answer.ok().and_then(|answer| answer.clone()).flatten() {
            Some(said) => said.map_err(refused),
            None => Err(Error::Unavailable),
        }
    }

    async fn ask(&self, token: &str) -> Answer {
        let deadline = Instant::now() + self.time_limit;
        let Ok(Ok(_place)) = timeout_at(deadline, self.places.acquire()).await else {
            tracing::debug!("a token could not be introspected: too many at once");
            return None;
        };
        let form = format!("token={}&token_type_hint=access_token", form_encoded(token));
        let asked = self
            .outbound
            .post_form(&self.url, &self.authorization, form, deadline)
            .await;
        let answer = match &asked {
            Ok(body) => {
                let audience = self.audience.as_deref();
                let judged = judge_introspection(body, &self.names, audience, self.clock.now());
                judged.ok_or_else(|| "the answer makes no sense".to_owned())
            }
            Err(error) => Err(error.to_string()),
        };
        match answer {
            Ok(said) => {
                if self.failing.swap(false, Ordering::Relaxed) {
                    tracing::info!("tokens can be introspected again");
                }
                Some(said.map(Arc::new))
            }
            Err(problem) => {
                if !self.failing.swap(true, Ordering::Relaxed) {
                    tracing::warn!(problem, "tokens cannot be introspected");
                }
                None
            }
        }
    }

    /// Remembers an answer, from when it was asked for: what it says may be as old as that.
    fn remember(&self, hash: Hash, since: Timestamp, answer: &Answer) {
        let mut known = self.known();
        let Some(said) = answer else {
            known.remove(&hash);
            return;
        };
        let (believed_for, end) = match said {
            Ok(claims) => (self.believed_for, claims.expires_at),
            Err(_) => (self.believed_for.min(REFUSED_FOR), None),
        };
        let believed_for = time::Duration::try_from(believed_for).unwrap_or_default();
        let until = Timestamp::from(since.inner().saturating_add(believed_for));
        let entry = Entry::Known {
            said: said.clone(),
            since,
            until: end.map_or(until, |end| end.min(until)),
        };
        known.insert(hash, entry);
    }
}

/// Makes room for one more: what is over goes first, then what a flood of bad tokens left, and at last everything.
fn make_room(known: &mut HashMap<Hash, Entry>, most: usize, now: Timestamp) {
    if known.len() < most {
        return;
    }
    known.retain(|_, entry| match entry {
        Entry::Asking(_) => true,
        Entry::Known { until, .. } => now < *until,
    });
    if known.len() < most {
        return;
    }
    known.retain(|_, entry| !matches!(entry, Entry::Known { said: Err(_), .. }));
    if known.len() >= most {
        known.clear();
    }
}
