//! Calls to the gateway: any node of a list, attempts that are bounded in time, and retries where
//! they can do no harm.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Method, Request, Response, Url};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout_at};

use crate::address::{is_loopback, parse_url};
use crate::error::{ClientError, GatewayRefusal, Result};
use crate::retry::RetryPause;
use crate::tls;
use crate::unreachable::{cause_of, is_untrusted, other_scheme, unreachable};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// For one attempt, unless a call waits for something.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(15);
const FIRST_RETRY_INTERVAL: Duration = Duration::from_millis(100);
const MAX_RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// More than the largest page of an inbox.
const MAX_ANSWER_BYTES: usize = 32 << 20;

/// Where a gateway is, and how it proves to be it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GatewayLocation<'a> {
    /// The nodes, or a load balancer.
    pub urls: &'a [String],
    /// Root certificates in PEM to trust instead of the system's.
    pub ca: Option<&'a Path>,
    /// Whether to send a credential unencrypted to another machine.
    pub allow_http: bool,
}

pub struct GatewayClient {
    pub(super) http: Client,
    nodes: Vec<Url>,
    /// The node that answered last.
    current: AtomicUsize,
    authorization: Option<HeaderValue>,
    trouble: watch::Sender<Option<String>>,
}

/// One call. Its effect must be the same however often it arrives, unless it is sent `once`.
pub struct GatewayCall {
    method: Method,
    path: String,
    body: Option<String>,
    once: bool,
    attempt: Duration,
}

#[derive(Debug)]
pub struct GatewayAnswer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl GatewayAnswer {
    pub fn text(&self) -> Result<&str> {
        std::str::from_utf8(&self.body).map_err(|_| ClientError::answer("text in UTF-8"))
    }

    pub fn json(&self) -> Result<serde_json::Value> {
        serde_json::from_slice(&self.body).map_err(ClientError::answer)
    }
}

pub(super) fn encode(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, NON_ALPHANUMERIC)
}

/// A path with one segment for each part, whatever characters they have.
pub(super) fn path(parts: &[&str]) -> String {
    let parts = parts.iter().map(|part| format!("/{}", encode(part)));
    parts.collect()
}

/// The path of a page of a list.
pub(super) fn page_path(path: &str, limit: usize, cursor: Option<&str>) -> String {
    match cursor {
        Some(cursor) => format!("{path}?limit={limit}&cursor={}", encode(cursor)),
        None => format!("{path}?limit={limit}"),
    }
}

impl GatewayCall {
    fn new(method: Method, path: impl Into<String>, body: Option<String>) -> Self {
        Self {
            method,
            path: path.into(),
            body,
            once: false,
            attempt: ATTEMPT_TIMEOUT,
        }
    }

    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path, None)
    }

    pub fn post(path: impl Into<String>, body: impl Into<String>) -> Self {
        Self::new(Method::POST, path, Some(body.into()))
    }

    pub fn put(path: impl Into<String>, body: impl Into<String>) -> Self {
        Self::new(Method::PUT, path, Some(body.into()))
    }

    pub fn delete(path: impl Into<String>, body: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path, Some(body.into()))
    }

    /// Prevents a retry once the call may have arrived.
    #[must_use]
    pub fn once(self) -> Self {
        Self { once: true, ..self }
    }

    /// For a call that the gateway answers only after up to `time`.
    #[must_use]
    pub fn waiting(self, time: Duration) -> Self {
        let attempt = ATTEMPT_TIMEOUT + time;
        Self { attempt, ..self }
    }
}

enum CallFailure {
    /// Trying again would not help.
    Final(ClientError),
    /// Nothing was sent.
    NotSent(ClientError),
    /// The call may have arrived, with or without effect.
    Unknown(ClientError),
    /// The gateway is too busy, and says for how long.
    Later(GatewayAnswer, Option<Duration>),
}

impl GatewayClient {
    /// `api_key` is a credential, if the calls need one.
    pub fn new(location: &GatewayLocation<'_>, api_key: Option<&str>) -> Result<Self> {
        let nodes: Vec<Url> = (location.urls.iter())
            .map(|url| parse_url(url, location.allow_http))
            .collect::<Result<_, _>>()?;
        if nodes.is_empty() {
            return Err(ClientError::Address("no gateway is named".to_owned()));
        }
        let mut builder = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .http1_only()
            .no_hickory_dns()
            .redirect(reqwest::redirect::Policy::none())
            .tcp_keepalive(Duration::from_secs(30))
            .user_agent(concat!("countersign/", env!("CARGO_PKG_VERSION")));
        let encrypted = nodes.iter().any(|url| url.scheme() == "https");
        builder = builder.tls_backend_preconfigured(tls::config(encrypted, location.ca)?);
        // A proxy that the environment names cannot reach this machine's own ports, and must not
        // see calls in plain text.
        if nodes.iter().any(is_loopback) {
            builder = builder.no_proxy();
        }
        let authorization = api_key.map(|key| HeaderValue::try_from(format!("Bearer {key}")));
        let mut authorization = authorization.transpose().map_err(|_| {
            ClientError::Address("the credential contains invalid characters".to_owned())
        })?;
        if let Some(value) = &mut authorization {
            value.set_sensitive(true);
        }
        Ok(Self {
            http: (builder.build()).map_err(|error| ClientError::Address(cause_of(&error)))?,
            nodes,
            current: AtomicUsize::new(0),
            authorization,
            trouble: watch::Sender::new(None),
        })
    }

    pub(super) fn leave_node(&self) {
        self.current.fetch_add(1, Ordering::Relaxed);
    }

    /// Why the gateway does not answer at the moment, if so.
    pub fn trouble(&self) -> watch::Receiver<Option<String>> {
        self.trouble.subscribe()
    }

    fn set_trouble(&self, trouble: Option<String>) {
        self.trouble.send_if_modified(|before| {
            let is_news = *before != trouble;
            *before = trouble;
            is_news
        });
    }

    /// The address of the current node.
    pub fn address(&self) -> String {
        let index = self.current.load(Ordering::Relaxed) % self.nodes.len();
        let node = self.nodes[index].as_str();
        node.trim_end_matches('/').to_owned()
    }

    pub(super) fn request(&self, method: Method, path: &str) -> Result<Request> {
        let url = Url::parse(&format!("{}{path}", self.address()));
        let url = url.map_err(|error| ClientError::Address(error.to_string()))?;
        let mut request = Request::new(method, url);
        if let Some(authorization) = &self.authorization {
            (request.headers_mut()).insert(AUTHORIZATION, authorization.clone());
        }
        Ok(request)
    }

    /// Makes a call, and retries until an answer or `deadline`. The answer may be a refusal; see
    /// `expect`.
    pub async fn call(&self, call: &GatewayCall, deadline: Instant) -> Result<GatewayAnswer> {
        let mut pause = RetryPause::new(FIRST_RETRY_INTERVAL, MAX_RETRY_INTERVAL);
        let mut tried = 1;
        let mut before = None;
        loop {
            use CallFailure::{Final, Later, NotSent, Unknown};
            let (last, wait) = match self.attempt(call, deadline).await {
                Ok(answer) => {
                    self.set_trouble(None);
                    return Ok(answer);
                }
                Err(Final(error)) => return Err(error),
                Err(Unknown(error)) if call.once => return Err(error),
                // Only a limit says that nothing was done.
                Err(Later(answer, _)) if call.once && answer.status != 429 => return Ok(answer),
                Err(Later(answer, wait)) => (Ok(answer), wait),
                Err(Unknown(error) | NotSent(error)) => (Err(error), None),
            };
            self.set_trouble(Some(match &last {
                Ok(answer) => format!("the gateway is busy (status {})", answer.status),
                Err(error) => error.to_string(),
            }));
            self.leave_node();
            // Another node may be fine: there is no pause before each was tried once.
            let untried = tried < self.nodes.len() && wait.is_none();
            let wait = match wait {
                Some(wait) => wait,
                None if untried => Duration::ZERO,
                None => pause.current(),
            };
            // Not by adding: the gateway may name any number of seconds.
            let left = deadline.saturating_duration_since(Instant::now());
            if wait >= left {
                // An attempt that the end has cut off says less than the one before it.
                let is_cut = left.is_zero() && matches!(last, Err(ClientError::Slow { .. }));
                return before.filter(|_| is_cut).unwrap_or(last);
            }
            before = Some(last);
            sleep(wait).await;
            tried += 1;
            if !untried {
                pause.lengthen();
            }
        }
    }

    /// Makes a call, and turns any status but those `expected` into an error.
    pub async fn expect(
        &self,
        call: &GatewayCall,
        expected: &[u16],
        deadline: Instant,
    ) -> Result<GatewayAnswer> {
        let answer = self.call(call, deadline).await?;
        if expected.contains(&answer.status) {
            return Ok(answer);
        }
        let refusal = GatewayRefusal::read(answer.status, &answer.body);
        Err(ClientError::Refused(refusal))
    }

    async fn attempt(
        &self,
        call: &GatewayCall,
        deadline: Instant,
    ) -> Result<GatewayAnswer, CallFailure> {
        let request = self.request(call.method.clone(), &call.path);
        let mut request = request.map_err(CallFailure::Final)?;
        let accepted = HeaderValue::from_static("application/json, */*");
        request.headers_mut().insert(ACCEPT, accepted);
        if let Some(body) = &call.body {
            let json = HeaderValue::from_static("application/json");
            request.headers_mut().insert(CONTENT_TYPE, json);
            *request.body_mut() = Some(body.clone().into());
        }
        let url = self.address();
        let until = deadline.min(Instant::now() + call.attempt);
        let calling = async {
            match self.http.execute(request).await {
                Ok(response) => read(response, &url).await,
                Err(error) => {
                    let failure = match &error {
                        error if is_untrusted(error) => CallFailure::Final,
                        // Another node may be configured right.
                        error if self.nodes.len() == 1 && other_scheme(&url, error).is_some() => {
                            CallFailure::Final
                        }
                        error if error.is_connect() => CallFailure::NotSent,
                        _ => CallFailure::Unknown,
                    };
                    Err(failure(unreachable(&url, &error)))
                }
            }
        };
        let answer = match timeout_at(until, calling).await {
            Ok(answer) => answer?,
            Err(_) => return Err(CallFailure::Unknown(ClientError::Slow { url })),
        };
        if matches!(answer.status, 429 | 502..=504) {
            let seconds = answer.headers.get(RETRY_AFTER);
            let seconds = seconds.and_then(|value| value.to_str().ok()?.parse().ok());
            return Err(CallFailure::Later(answer, seconds.map(Duration::from_secs)));
        }
        Ok(answer)
    }
}

async fn read(mut response: Response, url: &str) -> Result<GatewayAnswer, CallFailure> {
    let mut body = Vec::new();
    let broken = |error| CallFailure::Unknown(unreachable(url, &error));
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        if body.len() + chunk.len() > MAX_ANSWER_BYTES {
            return Err(CallFailure::Final(ClientError::answer("at most 32 MiB")));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(GatewayAnswer {
        status: response.status().as_u16(),
        headers: std::mem::take(response.headers_mut()),
        body,
    })
}
