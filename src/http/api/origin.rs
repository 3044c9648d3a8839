//! Cross-origin requests of browsers. Listed origins (`server.origins`) may read responses (CORS).
//! The node's own pages need no listing. Other origins may change nothing, since a browser adds
//! client certificates and Basic credentials by itself, whatever page asks.

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, HOST,
    ORIGIN, VARY,
};
use axum::http::uri::Authority;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::error::{HttpRefusal, TransportError};
use super::reply::AppState;
use crate::http::server::peer::PeerInfo;

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, PUT, DELETE");
/// Headers that some route reads, beyond those that every page may send.
const REQUEST_HEADERS: HeaderValue = HeaderValue::from_static(
    "Authorization, Content-Type, X-API-Key, X-PAT, X-Client-Id, X-Client-Secret, Idempotency-Key, If-None-Match, Last-Event-ID, traceparent, tracestate",
);
/// Headers that clients need, beyond those that every page may read.
const RESPONSE_HEADERS: HeaderValue = HeaderValue::from_static(
    "ETag, Retry-After, RateLimit, RateLimit-Policy, Idempotency-Replayed, Countersign-Warning, Exchange-State, WWW-Authenticate, Allow, X-Request-Id",
);
/// Seconds that a browser may cache a preflight: a changed list takes effect within the hour.
const MAX_AGE: HeaderValue = HeaderValue::from_static("3600");

/// Refuses browsers from elsewhere. A request without `Origin` is no browser's.
pub fn check(node: &AppState, request: &Request) -> Result<(), TransportError> {
    match request.headers().get(ORIGIN) {
        Some(origin) if !is_listed(node, origin) && !is_same_host(request, origin) => {
            Err(TransportError::ForeignOrigin)
        }
        _ => Ok(()),
    }
}

fn is_listed(node: &AppState, origin: &HeaderValue) -> bool {
    let origins = &node.context.config.server.origins;
    origins.iter().any(|listed| origin == listed.as_str())
}

/// Whether the page came from the host that the request goes to: the node, or its proxy.
fn is_same_host(request: &Request, origin: &HeaderValue) -> bool {
    let headers = request.headers();
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = host.or_else(|| request.uri().authority().map(Authority::as_str));
    let origin = origin.to_str().ok();
    let (Some(host), Some((scheme, authority))) =
        (host, origin.and_then(|origin| origin.split_once("://")))
    else {
        return false;
    };
    let port = if scheme == "https" { ":443" } else { ":80" };
    let without_port = |authority: &str| {
        let authority = authority.to_ascii_lowercase();
        authority
            .strip_suffix(port)
            .map_or(authority.clone(), str::to_owned)
    };
    // Where the node is reached over TLS, a page that came over plain HTTP may have been injected.
    let encrypted = request.extensions().get::<PeerInfo>();
    let encrypted = encrypted.is_some_and(|peer| peer.encrypted);
    without_port(host) == without_port(authority) && (scheme == "https" || !encrypted)
}

/// Refuses changes requested by a page of another origin.
pub async fn refuse_foreign(
    State(node): State<AppState>,
    request: Request,
    next: Next,
) -> Response {
    let changes = ![Method::GET, Method::HEAD, Method::OPTIONS].contains(request.method());
    if changes && let Err(error) = check(&node, &request) {
        return HttpRefusal::from(error).into_response();
    }
    next.run(request).await
}

/// Lets pages of listed origins call and read responses, refusals included. Never with credentials
/// that a browser adds by itself: a page sends a token of its own.
pub async fn share(State(node): State<AppState>, request: Request, next: Next) -> Response {
    if node.context.config.server.origins.is_empty() {
        return next.run(request).await;
    }
    let origin = request.headers().get(ORIGIN);
    let origin = origin.filter(|origin| is_listed(&node, origin)).cloned();
    let is_preflight = request.method() == Method::OPTIONS
        && request
            .headers()
            .contains_key(ACCESS_CONTROL_REQUEST_METHOD)
        && request.extensions().get::<MatchedPath>().is_some();
    let mut response = match &origin {
        Some(_) if is_preflight => preflight(),
        _ => next.run(request).await,
    };
    let headers = response.headers_mut();
    headers.append(VARY, HeaderValue::from_static("Origin"));
    if let Some(origin) = origin {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, RESPONSE_HEADERS);
    }
    response
}

fn preflight() -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS);
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    response
}
