//! Calls by HTTP: attempts, each of them sampled, until there is a definite answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::random::Random;
use super::record::{Book, Outcome, Sample};

/// How long a client waits for an answer that needs nobody else.
pub const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone)]
pub struct Keys {
    pub tenant: String,
    pub enforcer: String,
    pub approver: String,
    pub admin: String,
    /// Those of the real commands, each of one identity.
    pub bot: String,
    pub person: String,
}

/// Shared by all clients.
pub struct Clients {
    pub book: Arc<Book>,
    pub random: Random,
    pub http: reqwest::Client,
    /// The balancer, then each node.
    pub entrances: Vec<String>,
    pub keys: Keys,
    /// How many of a hundred calls are aborted within milliseconds.
    pub abort_percent: AtomicUsize,
    /// Calls that were aborted.
    pub aborted: AtomicUsize,
    /// Nobody retries any more.
    pub over: CancellationToken,
    pub tasks: TaskTracker,
}

/// A call that can be repeated as it is.
#[derive(Clone)]
pub struct Call {
    pub entrance: usize,
    pub method: Method,
    pub path: String,
    pub key: String,
    pub idempotency_key: Option<String>,
    pub body: Option<String>,
    pub patience: Duration,
    /// Whether it waits for nobody but the gateway, so that its time says something.
    pub timed: bool,
}

impl Call {
    pub fn post(entrance: usize, path: &str, key: &str, body: &Value) -> Self {
        Self {
            entrance,
            method: Method::POST,
            path: path.to_owned(),
            key: key.to_owned(),
            idempotency_key: None,
            body: Some(body.to_string()),
            patience: PATIENCE,
            timed: true,
        }
    }

    pub fn get(entrance: usize, path: &str, key: &str) -> Self {
        Self {
            method: Method::GET,
            body: None,
            ..Self::post(entrance, path, key, &Value::Null)
        }
    }
}

pub struct Answer {
    pub status: u16,
    /// The header of a wait that ended.
    pub state: Option<String>,
    pub body: Value,
    /// Whether an earlier attempt may have done the work.
    pub retried: bool,
}

impl Answer {
    /// The error's code, without its prefix.
    pub fn code(&self) -> &str {
        code(&self.body)
    }
}

/// The code of an error, Envelope or plain, without its prefix.
pub fn code(error: &Value) -> &str {
    let code = error.pointer("/body/code").or_else(|| error.get("code"));
    let code = code.and_then(Value::as_str).unwrap_or_default();
    code.trim_start_matches("PROTO_ERR_")
}

impl Clients {
    fn request(&self, call: &Call) -> reqwest::RequestBuilder {
        let url = self.entrances.get(call.entrance);
        let url = format!("{}{}", url.map_or("", String::as_str), call.path);
        let mut request = self
            .http
            .request(call.method.clone(), url)
            .bearer_auth(&call.key);
        if let Some(key) = &call.idempotency_key {
            request = request.header("idempotency-key", key);
        }
        if let Some(body) = &call.body {
            request = request
                .header("content-type", "application/json")
                .body(body.clone());
        }
        request
    }

    /// One attempt. Nothing is sampled of one that the client aborts.
    pub async fn attempt(&self, call: &Call) -> Result<Answer, Outcome> {
        let begun = self.book.now();
        let sending = async {
            let response = self.request(call).send().await?;
            let status = response.status().as_u16();
            let state = response.headers().get("exchange-state");
            let state = state.and_then(|state| Some(state.to_str().ok()?.to_owned()));
            let text = response.text().await?;
            Ok::<_, reqwest::Error>((status, state, text))
        };
        let percent = self.abort_percent.load(Ordering::Relaxed);
        let patience = if self.random.percent(percent) {
            Duration::from_micros(self.random.next() % 8_000)
        } else {
            call.patience
        };
        let aborts = patience < call.patience;
        let result = match timeout(patience, sending).await {
            Ok(Ok((status, state, text))) => {
                let body = serde_json::from_str(&text).unwrap_or_default();
                if matches!(status, 408 | 429 | 500..) {
                    Err(Outcome::Status(status))
                } else {
                    Ok(Answer {
                        status,
                        state,
                        body,
                        retried: false,
                    })
                }
            }
            Ok(Err(_)) => Err(Outcome::Broken),
            Err(_) => Err(Outcome::TimedOut),
        };
        if aborts && result.is_err() {
            self.aborted.fetch_add(1, Ordering::Relaxed);
        } else if call.timed || result.is_err() {
            self.book.sample(Sample {
                timed: call.timed,
                begun,
                ended: self.book.now(),
                entrance: call.entrance,
                outcome: result.as_ref().err().copied().unwrap_or(Outcome::Answered),
            });
        }
        result
    }

    /// Attempts until there is an answer that says what has happened; nothing once the run is over.
    pub async fn definite(&self, call: &Call) -> Option<Answer> {
        let mut pause = 50;
        let mut retried = false;
        loop {
            let attempt = self.over.run_until_cancelled(self.attempt(call)).await?;
            if let Ok(answer) = attempt {
                return Some(Answer { retried, ..answer });
            }
            retried = true;
            let jittered = pause / 2 + self.random.next() % pause;
            sleep(Duration::from_millis(jittered)).await;
            pause = (pause * 2).min(1_000);
        }
    }
}

/// An Envelope.
pub fn envelope(msg_type: &str, request: &str, role: &str, id: &str, body: &Value) -> Value {
    json!({
        "msgType": msg_type,
        "requestId": request,
        "createdAt": in_seconds(0),
        "sender": { (format!("{role}Id")): id },
        "body": body,
    })
}

/// A time from now, as clients print it.
#[expect(
    clippy::disallowed_methods,
    reason = "clients have clocks of their own"
)]
pub fn in_seconds(ahead: i64) -> String {
    let at = OffsetDateTime::now_utc() + time::Duration::seconds(ahead);
    at.format(&Rfc3339).unwrap_or_default()
}
