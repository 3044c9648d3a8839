//! Calls to other services: one client, bounded in time and size, that follows no redirect and uses
//! no proxy. Errors say what went wrong and contain nothing that was sent.

mod guard;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper_rustls::{ConfigBuilderExt as _, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self as client, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};
use tokio::time::{Instant, timeout, timeout_at};

pub use self::guard::AddressGuard;
use self::guard::{GuardedResolver, is_not_permitted};
use crate::protocol::trace::TraceContext;

pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
pub const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
const MAX_ANSWER_BYTES: usize = 1 << 20;
/// Of an answer that nobody reads: so much may follow before its connection is used again.
const MAX_UNREAD_BYTES: usize = 4 << 10;
const UNREAD_TIMEOUT: Duration = Duration::from_secs(1);
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, thiserror::Error)]
pub enum OutboundError {
    #[error("no answer in time")]
    Slow,
    #[error("no connection: {0}")]
    Unreachable(String),
    #[error("the address is not one that may be connected to")]
    NotPermitted,
    /// The status is not 200.
    #[error("the answer is {0}")]
    Status(StatusCode),
    #[error("the answer broke off or is over 1 MiB")]
    Unread,
    #[error("the request cannot be put together")]
    Malformed,
}

/// An answer without its body.
#[derive(Debug)]
pub struct OutboundAnswer {
    pub status: StatusCode,
    pub headers: HeaderMap,
}

#[derive(Debug, Clone)]
pub struct OutboundClient {
    client: Client<HttpsConnector<HttpConnector<GuardedResolver>>, Full<Bytes>>,
    guard: AddressGuard,
    /// The trace context of the task that makes a call.
    context: fn() -> Option<TraceContext>,
}

impl OutboundClient {
    /// A client that trusts the system's root certificates, or those in `SSL_CERT_FILE`. Without
    /// `tls` it trusts none, and none have to be installed.
    pub fn new(tls: bool) -> io::Result<Self> {
        Self::guarded(tls, AddressGuard::Any)
    }

    /// A client for URLs that callers choose: it connects to permitted addresses only.
    pub fn guarded(tls: bool, guard: AddressGuard) -> io::Result<Self> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?;
        let builder = if tls {
            builder.with_native_roots()?
        } else {
            builder.with_root_certificates(RootCertStore::empty())
        };
        let mut connector = HttpConnector::new_with_resolver(GuardedResolver(guard.clone()));
        // TLS is up to the connector around it.
        connector.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(builder.with_no_client_auth())
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .build(connector);
        Ok(Self {
            client,
            guard,
            context: || None,
        })
    }

    /// The same client, whose calls are part of the trace that `context` names.
    #[must_use]
    pub fn traced(self, context: fn() -> Option<TraceContext>) -> Self {
        Self { context, ..self }
    }

    pub async fn get(&self, url: &Uri, deadline: Instant) -> Result<Bytes, OutboundError> {
        let request = Request::get(url)
            .header(header::ACCEPT, "application/json")
            .body(Full::default());
        self.call(request, deadline).await
    }

    pub async fn post_form(
        &self,
        url: &Uri,
        authorization: &HeaderValue,
        form: String,
        deadline: Instant,
    ) -> Result<Bytes, OutboundError> {
        let request = Request::post(url)
            .header(header::ACCEPT, "application/json")
            .header(header::AUTHORIZATION, authorization)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Full::from(form));
        self.call(request, deadline).await
    }

    pub async fn post_protobuf(
        &self,
        url: &Uri,
        headers: &HeaderMap,
        message: Bytes,
        deadline: Instant,
    ) -> Result<Bytes, OutboundError> {
        let mut request = Request::post(url);
        if let Some(own) = request.headers_mut() {
            own.clone_from(headers);
        }
        let request = request
            .header(header::CONTENT_TYPE, "application/x-protobuf")
            .body(Full::new(message));
        self.call(request, deadline).await
    }

    /// Posts, and returns whatever is answered, a redirect too.
    pub async fn post(
        &self,
        url: &Uri,
        headers: HeaderMap,
        body: Vec<u8>,
        deadline: Instant,
    ) -> Result<OutboundAnswer, OutboundError> {
        if !self.guard.permits_host(url) {
            return Err(OutboundError::NotPermitted);
        }
        let mut request = Request::new(Full::from(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = url.clone();
        *request.headers_mut() = headers;
        let answer = timeout_at(deadline, self.client.request(request)).await;
        let answer = answer.map_err(|_| OutboundError::Slow)?;
        let (parts, body) = answer.map_err(|error| unreachable(&error))?.into_parts();
        // The body is not needed. A short one is read, so that the connection can be used again.
        let unread = Limited::new(body, MAX_UNREAD_BYTES).collect();
        let _unread = timeout(UNREAD_TIMEOUT, unread).await;
        Ok(OutboundAnswer {
            status: parts.status,
            headers: parts.headers,
        })
    }

    async fn call(
        &self,
        request: Result<Request<Full<Bytes>>, http::Error>,
        deadline: Instant,
    ) -> Result<Bytes, OutboundError> {
        let mut request = request.map_err(|_| OutboundError::Malformed)?;
        if let Some(context) = (self.context)() {
            let headers = request.headers_mut();
            let parent = HeaderValue::try_from(context.traceparent());
            headers.extend(parent.ok().map(|parent| (TRACEPARENT, parent)));
            let state = context.state.map(HeaderValue::try_from);
            let state = state.and_then(Result::ok);
            headers.extend(state.map(|state| (TRACESTATE, state)));
        }
        let calling = async {
            let response = self.client.request(request).await;
            let response = response.map_err(|error| unreachable(&error))?;
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

fn unreachable(error: &client::Error) -> OutboundError {
    if is_not_permitted(error) {
        return OutboundError::NotPermitted;
    }
    OutboundError::Unreachable(error.to_string())
}

/// `text` as a value of a form. A space is `%20`, which is right for those that only decode percent
/// signs too.
pub fn form_encoded(text: &str) -> String {
    let encoded: String = form_urlencoded::byte_serialize(text.as_bytes()).collect();
    encoded.replace('+', "%20")
}
