//! Calls to other services: one client, bounded in time and size, that follows no redirect and sees no proxy. Errors say what
//! went wrong and hold nothing that was sent.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};
use tokio::time::{Instant, timeout_at};

use crate::telemetry::trace;

/// The header that names a call's trace, and the span in it.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// The header that carries what others add to that.
pub const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
const MAX_ANSWER_BYTES: usize = 1 << 20;
const KEPT_FOR: Duration = Duration::from_secs(30);

/// Why a call brought no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum OutboundError {
    #[error("no answer in time")]
    Slow,
    /// It could not be made.
    #[error("no connection: {0}")]
    Unreachable(String),
    /// The answer is no 200.
    #[error("the answer is {0}")]
    Status(StatusCode),
    /// The answer broke off, or is too large.
    #[error("the answer broke off or is over 1 MiB")]
    Unread,
    /// The request cannot be put together.
    #[error("the request cannot be put together")]
    Malformed,
}

#[derive(Clone)]
pub struct Outbound {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl Outbound {
    /// A client that believes the certificates this system believes; `SSL_CERT_FILE` names others. Without `tls` it believes
    /// none, and needs none to be there.
    pub fn new(tls: bool) -> io::Result<Self> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?;
        let builder = if tls {
            builder.with_native_roots()?
        } else {
            builder.with_root_certificates(RootCertStore::empty())
        };
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(builder.with_no_client_auth())
            .https_or_http()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(KEPT_FOR)
            .build(connector);
        Ok(Self { client })
    }

    /// What a GET brings, by `deadline`.
    pub async fn get(&self, url: &Uri, deadline: Instant) -> Result<Bytes, OutboundError> {
        let request = Request::builder()
            .method(Method::GET)
            .uri(url)
            .header(header::ACCEPT, "application/json")
            .body(Full::default());
        self.call(request, deadline).await
    }

    /// What a POST of a form brings, by `deadline`.
    pub async fn post_form(
        &self,
        url: &Uri,
        authorization: &HeaderValue,
        form: String,
        deadline: Instant,
    ) -> Result<Bytes, OutboundError> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(url)
            .header(header::ACCEPT, "application/json")
            .header(header::AUTHORIZATION, authorization)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Full::from(form));
        self.call(request, deadline).await
    }

    /// What a POST of a protobuf message brings, by `deadline`.
    pub async fn post_protobuf(
        &self,
        url: &Uri,
        headers: &HeaderMap,
        message: Vec<u8>,
        deadline: Instant,
    ) -> Result<Bytes, OutboundError> {
        let mut request = Request::builder().method(Method::POST).uri(url);
        if let Some(own) = request.headers_mut() {
            own.clone_from(headers);
        }
        let request = request
            .header(header::CONTENT_TYPE, "application/x-protobuf")
            .body(Full::from(message));
        self.call(request, deadline).await
    }

    /// Makes a call, as part of the trace of whoever made it necessary.
    async fn call(
        &self,
        request: Result<Request<Full<Bytes>>, axum::http::Error>,
        deadline: Instant,
    ) -> Result<Bytes, OutboundError> {
        let mut request = request.map_err(|_| OutboundError::Malformed)?;
        if let Some(context) = trace::context() {
            let headers = request.headers_mut();
            let parent = HeaderValue::try_from(context.traceparent());
            headers.extend(parent.ok().map(|parent| (TRACEPARENT, parent)));
            let state = context.state.map(HeaderValue::try_from);
            let state = state.and_then(Result::ok);
            headers.extend(state.map(|state| (TRACESTATE, state)));
        }
        let calling = async {
            let response = self.client.request(request).await;
            let response =
                response.map_err(|error| OutboundError::Unreachable(error.to_string()))?;
            if response.status() != StatusCode::OK {
                return Err(OutboundError::Status(response.status()));
            }
            let body = Limited::new(response.into_body(), MAX_ANSWER_BYTES);
            let body = body.collect().await.map_err(|_| OutboundError::Unread)?;
            Ok(body.to_bytes())
        };
        timeout_at(deadline, calling)
            .await
            .unwrap_or(Err(OutboundError::Slow))
    }
}

/// `text` as a value of a form.
#[must_use]
pub fn form_encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
}
