//! Refusals as HTTP: those of the transport, and headers and pointers that depend on the caller.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use crate::gateway::error::Error;
use crate::protocol::error::{Code, ErrorDescription};
use crate::protocol::framing::Framing;
use crate::protocol::id::RequestId;

/// `Retry-After` where no rate limit says more.
const RETRY_AFTER_SECONDS: u64 = 1;

/// Refusals of the transport, before a use case sees the call.
#[derive(Debug, Clone, Copy, thiserror::Error)]
pub enum TransportError {
    #[error("there is nothing at this path")]
    NoSuchRoute,
    #[error("this path takes other methods; see Allow")]
    MethodNotAllowed,
    #[error("the body should be JSON, uncompressed, and say so in Content-Type")]
    UnsupportedMediaType,
    #[error("the body did not arrive whole and in time")]
    BodyIncomplete,
    #[error("the header {0} should be sent once")]
    RepeatedHeader(&'static str),
    #[error("this Origin may not connect")]
    ForeignOrigin,
    #[error("calls are taken over TLS only; this one needs {expected}")]
    Unencrypted { expected: &'static str },
}

impl TransportError {
    pub fn describe(self) -> ErrorDescription {
        let refusal = |status, code| ErrorDescription::new(status, code, self.to_string());
        match self {
            Self::NoSuchRoute => refusal(404, Code::NotFound),
            Self::MethodNotAllowed => refusal(405, Code::MethodNotAllowed),
            Self::UnsupportedMediaType => refusal(415, Code::UnsupportedMediaType),
            Self::BodyIncomplete => refusal(400, Code::Validation),
            Self::RepeatedHeader(name) => refusal(400, Code::Validation)
                .with("parameter", name)
                .expecting("one header of this name"),
            Self::ForeignOrigin => refusal(403, Code::Forbidden)
                .with("parameter", "Origin")
                .expecting("an origin listed in server.origins"),
            Self::Unencrypted { expected } => refusal(403, Code::Forbidden).expecting(expected),
        }
    }
}

/// A refusal on its way out. Its route prints it as an envelope or as plain JSON.
#[derive(Debug, Clone)]
pub struct HttpRefusal {
    /// Boxed to keep results small.
    pub description: Box<ErrorDescription>,
    /// The exchange it is about, where one is known.
    pub about: Option<String>,
    /// The framing of the caller's message, which pointers refer to.
    pub framing: Framing,
}

impl From<ErrorDescription> for HttpRefusal {
    fn from(description: ErrorDescription) -> Self {
        Self {
            description: Box::new(description),
            about: None,
            framing: Framing::Wire,
        }
    }
}

impl From<Error> for HttpRefusal {
    fn from(error: Error) -> Self {
        error.describe().into()
    }
}

impl From<TransportError> for HttpRefusal {
    fn from(error: TransportError) -> Self {
        error.describe().into()
    }
}

pub type HttpResult = Result<Response, HttpRefusal>;

pub trait RefusalContext<T> {
    fn about(self, request: &RequestId) -> Result<T, HttpRefusal>;
}

impl<T> RefusalContext<T> for Result<T, Error> {
    fn about(self, request: &RequestId) -> Result<T, HttpRefusal> {
        self.map_err(|error| HttpRefusal {
            about: Some(request.as_str().to_owned()),
            ..error.into()
        })
    }
}

/// Makes a refusal point into the caller's own framing.
pub fn refused<E: Into<HttpRefusal>>(framing: Framing) -> impl Fn(E) -> HttpRefusal {
    move |error| HttpRefusal {
        framing,
        ..error.into()
    }
}

impl IntoResponse for HttpRefusal {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl HttpRefusal {
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.description.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Translates the pointer to the caller's framing.
    #[must_use]
    pub fn framed(mut self) -> Self {
        // Errors in a core Envelope itself already point into it.
        if self.framing == Framing::Core && self.description.status == 400 {
            return self;
        }
        let ErrorDescription {
            message, details, ..
        } = &mut *self.description;
        if let Some(Value::String(pointer)) = details.get_mut("pointer") {
            let own = self.framing.pointer(pointer).to_owned();
            if own != *pointer {
                let shown = if own.is_empty() { "the body" } else { &own };
                *message = message.replace(pointer.as_str(), shown);
                *pointer = own;
            }
        }
        self
    }
}

/// Adds the headers that go with a refusal; `basic` says whether Basic authentication is on.
pub fn add_headers(description: &ErrorDescription, response: &mut Response, basic: bool) {
    let headers = response.headers_mut();
    if description.status == 401 {
        headers.insert(
            header::WWW_AUTHENTICATE,
            HeaderValue::from_static(if description.invalid_token {
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
    let throttled = description.throttled.as_ref();
    let retry_after = throttled.map_or(RETRY_AFTER_SECONDS, |throttled| {
        let pause = throttled.retry_after;
        pause.as_secs() + u64::from(pause.subsec_nanos() > 0)
    });
    if matches!(description.status, 429 | 503) {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(retry_after));
    }
    if let Some(throttled) = throttled {
        let name = throttled.policy;
        let (quota, window) = (throttled.quota, throttled.window_seconds);
        let policy = format!("\"{name}\";q={quota};w={window}");
        let state = format!("\"{name}\";r=0;t={retry_after}");
        for (name, value) in [("ratelimit-policy", policy), ("ratelimit", state)] {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(name, value);
            }
        }
    }
}
