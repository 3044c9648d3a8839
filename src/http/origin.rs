//! Browsers, which say where the page came from that calls. Listed origins (`server.origins`) may read answers (CORS); any
//! other changes nothing here, since a browser sends client certificates and Basic by itself, whoever asks it to.

use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, HOST,
    ORIGIN, VARY,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::error::{Refusal, TransportError};
use super::peer::Peer;
use super::reply::Node;

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, PUT, DELETE");
/// Headers that some route reads, beyond those that every page may send.
const REQUEST_HEADERS: HeaderValue = HeaderValue::from_static(
    "Authorization, Content-Type, X-API-Key, Idempotency-Key, Last-Event-ID, traceparent, tracestate",
);
/// Headers that clients go by, beyond those that every page may read.
const RESPONSE_HEADERS: HeaderValue = HeaderValue::from_static(
    "Retry-After, RateLimit, RateLimit-Policy, Idempotency-Replayed, Exchange-State, WWW-Authenticate, Allow, X-Request-Id",
);
/// How long a browser may remember a preflight, in seconds: a changed list is to work within the hour.
const MAX_AGE: HeaderValue = HeaderValue::from_static("3600");

/// Refuses browsers from elsewhere. A request without `Origin` is no browser's.
pub fn check(node: &Node, headers: &HeaderMap) -> Result<(), TransportError> {
    match headers.get(ORIGIN) {
        Some(origin) if !is_listed(node, origin) => Err(TransportError::ForeignOrigin),
        _ => Ok(()),
    }
}

fn is_listed(node: &Node, origin: &HeaderValue) -> bool {
    let listed = &node.gateway.config.server.origins;
    listed.iter().any(|known| origin == known.as_str())
}

/// Whether a page came from where the request goes: from the node itself, or from a proxy before it.
fn is_own(request: &Request, origin: &HeaderValue) -> bool {
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
    let bare = |authority: &str| {
        let authority = authority.to_ascii_lowercase();
        authority
            .strip_suffix(port)
            .map_or(authority.clone(), str::to_owned)
    };
    // A page that came over plain HTTP may be anyone's, where we are reached over TLS.
    let encrypted = request.extensions().get::<Peer>();
    let encrypted = encrypted.is_some_and(|peer| peer.encrypted);
    bare(host) == bare(authority) && (scheme == "https" || !encrypted)
}

/// Refuses to change anything for a page that came from elsewhere.
pub async fn refuse_foreign(State(node): State<Node>, request: Request, next: Next) -> Response {
    let changes = ![Method::GET, Method::HEAD, Method::OPTIONS].contains(request.method());
    if changes
        && let Some(origin) = request.headers().get(ORIGIN)
        && !is_listed(&node, origin)
        && !is_own(&request, origin)
    {
        return Refusal::from(TransportError::ForeignOrigin).into_response();
    }
    next.run(request).await
}

/// Lets pages of listed origins call, and read what is answered, refusals included. Never with the credentials that a
/// browser would add by itself: whoever calls from a page has a token of its own.
pub async fn share(State(node): State<Node>, request: Request, next: Next) -> Response {
    if node.gateway.config.server.origins.is_empty() {
        return next.run(request).await;
    }
    let origin = request.headers().get(ORIGIN);
    let origin = origin.filter(|origin| is_listed(&node, origin)).cloned();
    let asks = request.method() == Method::OPTIONS
        && request
            .headers()
            .contains_key(ACCESS_CONTROL_REQUEST_METHOD)
        && request.extensions().get::<MatchedPath>().is_some();
    let mut response = match &origin {
        Some(_) if asks => preflight(),
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

/// What a page may send.
fn preflight() -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS);
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    response
}
