//! A refusal on its way out, and how it is printed: the status, code and details that the catalogue in `error` gives it, named
//! in the caller's own framing, with the headers that go with them.

use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use crate::gateway::error::Error;
use crate::protocol::error::{Code, Names};
use crate::protocol::framing::Framing;
use crate::protocol::id::RequestId;
use crate::protocol::reader::Invalid;

/// Longest pointer that is echoed: member names are the caller's, and may be as long as the body.
const MAX_POINTER_CHARS: usize = 512;
/// What a caller that was told to come back should wait, unless there is more to say.
const RETRY_AFTER_SECONDS: u64 = 1;

/// A refusal on its way out; which framing it gets is decided by the route it leaves through.
#[derive(Debug, Clone)]
pub struct Refusal {
    pub error: Error,
    /// The exchange it is about, where one is known.
    pub about: Option<String>,
    /// How the caller wrapped its message, which tells where the member stands that was wrong.
    pub framing: Framing,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self {
            error,
            about: None,
            framing: Framing::Wire,
        }
    }
}

pub trait About<T> {
    fn about(self, request: &RequestId) -> Result<T, Refusal>;
}

impl<T> About<T> for Result<T, Error> {
    fn about(self, request: &RequestId) -> Result<T, Refusal> {
        self.map_err(|error| Refusal {
            error,
            about: Some(request.as_str().to_owned()),
            framing: Framing::Wire,
        })
    }
}

/// A refusal as one sentence, for logs and for a person at the terminal.
impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&Description::of(self).message)
    }
}

impl std::error::Error for Error {}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = Description::of(&self.error).status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

pub struct Description {
    pub status: StatusCode,
    pub code: Code,
    pub message: String,
    pub details: Map<String, Value>,
    /// What a caller that was told to come back should wait, in seconds.
    retry_after: u64,
    /// The policy it met, if that is why: its name, how many calls, in how many seconds.
    policy: Option<(&'static str, u32, u64)>,
    /// Whether a token was presented, and not taken.
    invalid_token: bool,
}

impl Description {
    pub(super) fn new(status: StatusCode, code: Code, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            details: Map::new(),
            retry_after: RETRY_AFTER_SECONDS,
            policy: None,
            invalid_token: false,
        }
    }

    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// Says when to come back: in whole seconds, and not too soon.
    pub(super) fn after(mut self, pause: Duration) -> Self {
        self.retry_after = pause.as_secs() + u64::from(pause.subsec_nanos() > 0);
        self
    }

    /// Says which policy was met: so many calls in so many seconds.
    pub(super) fn throttled(
        mut self,
        policy: &'static str,
        quota: u32,
        window: u64,
        pause: Duration,
    ) -> Self {
        self.policy = Some((policy, quota, window));
        self.after(pause)
    }

    /// Says whether a token was presented, and not taken.
    pub(super) fn about_token(mut self, invalid: bool) -> Self {
        self.invalid_token = invalid;
        self
    }

    pub(super) fn member(status: StatusCode, code: Code, invalid: &Invalid) -> Self {
        let message = if invalid.pointer.is_empty() {
            format!("the body should be {}", invalid.expected)
        } else {
            format!("{} should be: {}", clip(&invalid.pointer), invalid.expected)
        };
        Self::new(status, code, message)
            .with("pointer", clip(&invalid.pointer))
            .with("expected", invalid.expected.clone().into_owned())
    }

    /// Names the member by where it stands in the caller's own framing.
    #[must_use]
    pub fn framed(mut self, framing: Framing) -> Self {
        // What a core Envelope itself got wrong was found in the caller's own framing.
        if framing == Framing::Core && self.status == StatusCode::BAD_REQUEST {
            return self;
        }
        if let Some(Value::String(pointer)) = self.details.get_mut("pointer") {
            let own = framing.pointer(pointer).to_owned();
            if own != *pointer {
                let shown = if own.is_empty() { "the body" } else { &own };
                self.message = self.message.replace(pointer.as_str(), shown);
                *pointer = own;
            }
        }
        self
    }

    /// Headers that go with the status; `basic` says whether Basic authentication is on.
    pub fn headers(&self, response: &mut Response, basic: bool) {
        let headers = response.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(
                header::WWW_AUTHENTICATE,
                HeaderValue::from_static(if self.invalid_token {
                    "Bearer realm=\"countersign\", error=\"invalid_token\""
                } else {
                    "Bearer realm=\"countersign\""
                }),
            );
            if basic {
                headers.append(
                    header::WWW_AUTHENTICATE,
                    HeaderValue::from_static("Basic realm=\"countersign\", charset=\"UTF-8\""),
                );
            }
        }
        if matches!(
            self.status,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
        ) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(self.retry_after));
        }
        if let Some((name, quota, window)) = self.policy {
            let policy = format!("\"{name}\";q={quota};w={window}");
            let state = format!("\"{name}\";r=0;t={}", self.retry_after);
            for (name, value) in [("ratelimit-policy", policy), ("ratelimit", state)] {
                if let Ok(value) = HeaderValue::from_str(&value) {
                    headers.insert(name, value);
                }
            }
        }
    }

    /// The transport JSON of an error, which is also the body of its envelope.
    #[must_use]
    pub fn body(&self, names: &Names, about: Option<&str>) -> Value {
        let mut body = json!({
            "code": names.code(self.code),
            "message": self.message,
            "retryable": self.code.retryable(),
        });
        if let Some(request) = about {
            body["requestId"] = request.into();
        }
        if !self.details.is_empty() {
            body["details"] = Value::Object(self.details.clone());
        }
        body
    }
}

pub(super) fn clip(pointer: &str) -> String {
    pointer.chars().take(MAX_POINTER_CHARS).collect()
}
