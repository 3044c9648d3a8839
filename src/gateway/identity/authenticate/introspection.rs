//! Opaque tokens: asks the authorization server (RFC 7662) and caches its answer, never past the
//! token's expiry. If it does not answer, the token is neither accepted nor called invalid: the
//! call is refused as unavailable.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderValue, Uri};
use quick_cache::sync::Cache;
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::config::Auth;
use crate::gateway::error::{Error, Result};
use crate::gateway::identity::authenticate::token_quota::{TokenOwner, TokenQuota};
use crate::gateway::limit::{LineLimit, RateLimit};
use crate::outbound::{OutboundClient, form_encoded};
use crate::protocol::timestamp::Timestamp;
use crate::protocol::token::{ClaimNames, TokenClaims, TokenError, judge_introspection};
use crate::short_lock::ShortLock;
use crate::telemetry::trace;

/// How long a refused token is cached.
const REFUSAL_LIFETIME: Duration = Duration::from_secs(5);

/// A server that answers about some tokens only must not fill the log.
const LINES: RateLimit = RateLimit {
    per_second: 1,
    burst: 10,
};

/// Tokens are cached by their hash; the token itself is not kept.
type TokenHash = [u8; 32];
/// The answer of the authorization server; `None` if it was not valid.
type IntrospectionAnswer = Option<Result<Arc<TokenClaims>, TokenError>>;

/// An answer, and the period in which it is used.
#[derive(Clone)]
struct CachedAnswer<T> {
    said: T,
    since: Timestamp,
    until: Timestamp,
}

impl<T> CachedAnswer<T> {
    fn is_fresh(&self, now: Timestamp) -> bool {
        self.since <= now && now < self.until
    }
}

pub(in crate::gateway) struct TokenIntrospection {
    url: Uri,
    authorization: HeaderValue,
    outbound: OutboundClient,
    names: ClaimNames,
    audience: Option<String>,
    leeway: Duration,
    time_limit: Duration,
    lifetime: Duration,
    clock: Clock,
    quota: TokenQuota,
    known: Cache<TokenHash, CachedAnswer<Arc<TokenClaims>>>,
    /// Apart, so that no number of them pushes out one that is valid.
    refused: Cache<TokenHash, CachedAnswer<TokenError>>,
    /// Requests in flight.
    asking: ShortLock<HashMap<TokenHash, watch::Receiver<Option<IntrospectionAnswer>>>>,
    /// Whether requests get no valid answer, as far as it was logged.
    failing: AtomicBool,
    lines: LineLimit,
}

impl TokenIntrospection {
    /// None if introspection is not configured.
    pub(in crate::gateway) fn new(
        config: &Auth,
        names: &ClaimNames,
        outbound: &OutboundClient,
        clock: &Clock,
        quota: TokenQuota,
    ) -> Option<Self> {
        if !config.introspection() {
            return None;
        }
        // Both are form-encoded before they are joined (RFC 6749, section 2.3.1).
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
            leeway: Duration::from_secs(config.jwt_leeway_seconds),
            time_limit: Duration::from_millis(config.introspection_timeout_ms),
            lifetime: Duration::from_secs(config.introspection_cache_seconds),
            clock: clock.clone(),
            quota,
            known: Cache::new(config.introspection_cache_entries),
            refused: Cache::new(config.introspection_cache_entries),
            asking: ShortLock::default(),
            failing: AtomicBool::new(false),
            lines: LineLimit::new(LINES),
        })
    }

    /// The claims of a token that came from an address. Concurrent calls with one token share a
    /// request.
    pub(in crate::gateway) async fn judge(
        self: &Arc<Self>,
        token: &str,
        from: Option<IpAddr>,
        tasks: &TaskTracker,
    ) -> Result<Arc<TokenClaims>> {
        let hash: TokenHash = Sha256::digest(token).into();
        let mut told = {
            let mut asking = self.asking.lock();
            let now = self.clock.now();
            let known = self.known.get(&hash);
            if let Some(known) = known.as_ref().filter(|known| known.is_fresh(now)) {
                return Ok(Arc::clone(&known.said));
            }
            if let Some(refused) = self.refused.get(&hash)
                && refused.is_fresh(now)
            {
                return Err(refused.said.into());
            }
            match asking.get(&hash) {
                Some(told) if told.has_changed().is_ok() => told.clone(),
                _ => {
                    let asker = match known {
                        Some(_) => TokenOwner::Known,
                        None => self.quota.stranger(from, now)?,
                    };
                    let (tell, told) = watch::channel(None);
                    asking.insert(hash, told.clone());
                    let (this, token) = (Arc::clone(self), token.to_owned());
                    // A task of its own: others may wait for the answer if this client hangs up.
                    let request = async move {
                        let answer = this.ask(&token, asker).await;
                        this.remember(hash, now, &answer);
                        this.asking.lock().remove(&hash);
                        tell.send_replace(Some(answer));
                    };
                    tasks.spawn(trace::within(trace::current(), request));
                    told
                }
            }
        };
        let answer = told.wait_for(Option::is_some).await;
        match answer.ok().and_then(|answer| answer.clone()).flatten() {
            Some(said) => Ok(said?),
            None => Err(Error::Unavailable),
        }
    }

    async fn ask(&self, token: &str, asker: TokenOwner) -> IntrospectionAnswer {
        let deadline = Instant::now() + self.time_limit;
        let Some(_place) = self.quota.place(asker, deadline).await else {
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
                let now = self.clock.now();
                let judged = judge_introspection(body, &self.names, audience, self.leeway, now);
                judged.ok_or_else(|| "the answer makes no sense".to_owned())
            }
            Err(error) => Err(error.to_string()),
        };
        match answer {
            Ok(said) => {
                if self.turned(false) {
                    tracing::info!("tokens can be introspected again");
                }
                if said.is_err() {
                    self.quota.note_refused(asker, self.clock.now());
                }
                Some(said.map(Arc::new))
            }
            Err(problem) => {
                if self.turned(true) {
                    tracing::warn!(problem, "tokens cannot be introspected");
                }
                // The token may be the cause, and it costs as much as one that is refused.
                self.quota.note_refused(asker, self.clock.now());
                None
            }
        }
    }

    /// Whether to log now that requests fail, or no longer do. If not now, the next request logs
    /// it.
    fn turned(&self, failing: bool) -> bool {
        let logged = self.failing.load(Ordering::Relaxed);
        let turned = logged != failing && self.lines.admit(self.clock.now()).is_some();
        if turned {
            self.failing.store(failing, Ordering::Relaxed);
        }
        turned
    }

    /// Caches an answer. Its lifetime starts with the request: the answer may be as old as that.
    fn remember(&self, hash: TokenHash, since: Timestamp, answer: &IntrospectionAnswer) {
        let Some(said) = answer else {
            return;
        };
        let until = |lifetime: Duration| {
            let lifetime = time::Duration::try_from(lifetime).unwrap_or_default();
            Timestamp::from(since.inner().saturating_add(lifetime))
        };
        match said {
            Ok(claims) => {
                let until = until(self.lifetime);
                let known = CachedAnswer {
                    said: Arc::clone(claims),
                    since,
                    until: claims.expires_at.map_or(until, |end| end.min(until)),
                };
                self.known.insert(hash, known);
            }
            Err(error) => {
                self.known.remove(&hash);
                let refused = CachedAnswer {
                    said: *error,
                    since,
                    until: until(self.lifetime.min(REFUSAL_LIFETIME)),
                };
                self.refused.insert(hash, refused);
            }
        }
    }
}
