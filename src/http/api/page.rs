//! The page of the approvers. Its files need no credential; what they do needs one.

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, STRICT_TRANSPORT_SECURITY, VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::Response;
use sha2::{Digest as _, Sha256};

use super::auth::AdmittedAddress;
use super::error::{HttpResult, TransportError};
use super::openapi;
use super::reply::AppState;
use crate::config::TlsMode;
use crate::gateway::error::Error;
use crate::page::{CACHING, HEADERS, PageFile, page, policy};
use crate::protocol::hex;

const FOR_GOOD: HeaderValue = HeaderValue::from_static(CACHING[0]);
const ASK_AGAIN: HeaderValue = HeaderValue::from_static(CACHING[1]);
const ONE_YEAR: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// `GET /`.
pub async fn index(
    State(node): State<AppState>,
    _: AdmittedAddress,
    headers: HeaderMap,
) -> HttpResult {
    if !node.context.config.page.enabled {
        return Ok(openapi::landing());
    }
    respond(&node, &page().index, ASK_AGAIN, &headers)
}

/// `GET /sw.js` and the other files with names of their own.
pub async fn fixed(
    State(node): State<AppState>,
    _: AdmittedAddress,
    uri: Uri,
    headers: HeaderMap,
) -> HttpResult {
    let file = page().fixed.get(uri.path().trim_start_matches('/'));
    let file = file.filter(|_| node.context.config.page.enabled);
    let file = file.ok_or(TransportError::NoSuchRoute)?;
    respond(&node, file, ASK_AGAIN, &headers)
}

/// `GET /page/{version}/{file}`. It does not count against the rate of an address: a browser asks
/// for all files at once, and a refusal would cost as much as the file.
pub async fn versioned(State(node): State<AppState>, uri: Uri, headers: HeaderMap) -> HttpResult {
    let page = page();
    let file = uri
        .path()
        .strip_prefix("/page/")
        .and_then(|rest| rest.strip_prefix(&page.version)?.strip_prefix('/'))
        .and_then(|name| page.versioned.get(name))
        .filter(|_| node.context.config.page.enabled);
    let file = file.ok_or(TransportError::NoSuchRoute)?;
    respond(&node, file, FOR_GOOD, &headers)
}

fn respond(
    node: &AppState,
    file: &PageFile,
    caching: HeaderValue,
    asked: &HeaderMap,
) -> HttpResult {
    let origins = node.context.config.page.oidc.connect_origins();
    let policy = policy(origins.iter().map(String::as_str));
    // A browser that has the file keeps its policy too, so a changed policy has to change the tag.
    let tag = Sha256::new().chain_update(file.hash).chain_update(&policy);
    // Weak, because the same tag stands for the compressed file.
    let tag = format!("W/\"{}\"", hex::encode(&tag.finalize()[..16]));
    let is_known = lists(asked, IF_NONE_MATCH, |one| {
        one == "*" || one.trim_start_matches("W/") == tag.trim_start_matches("W/")
    });
    let gzipped = file.gzipped();
    let accepted = gzipped.filter(|_| lists(asked, ACCEPT_ENCODING, is_gzip));
    let mut response = match accepted {
        _ if is_known => Response::new(Body::empty()),
        Some(gzipped) => Response::new(Body::from(gzipped.clone())),
        None => Response::new(Body::from(file.content.clone())),
    };
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    if node.context.config.tls.mode != TlsMode::Off {
        headers.insert(STRICT_TRANSPORT_SECURITY, ONE_YEAR);
    }
    let text = |text: String| HeaderValue::try_from(text).map_err(|_| Error::Internal);
    headers.insert(CONTENT_SECURITY_POLICY, text(policy)?);
    headers.insert(ETAG, text(tag)?);
    headers.insert(CACHE_CONTROL, caching);
    if gzipped.is_some() {
        headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    if !is_known {
        let media_type = HeaderValue::from_static(file.media_type);
        headers.insert(CONTENT_TYPE, media_type);
        if accepted.is_some() {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
    }
    Ok(response)
}

/// Whether a header that is a list, perhaps over several lines, has such an item.
fn lists(headers: &HeaderMap, name: HeaderName, is_it: impl Fn(&str) -> bool) -> bool {
    let lines = headers.get_all(name).iter();
    let lines = lines.filter_map(|line| line.to_str().ok());
    lines
        .flat_map(|line| line.split(','))
        .any(|item| is_it(item.trim()))
}

/// Whether an item of `Accept-Encoding` allows gzip.
fn is_gzip(item: &str) -> bool {
    let (coding, weight) = item.split_once(';').unwrap_or((item, ""));
    let weight = weight.trim().trim_start_matches(['q', 'Q', '=', ' ']);
    let is_refused = weight.parse::<f32>().is_ok_and(|weight| weight <= 0.0);
    ["gzip", "x-gzip"].contains(&coding.trim().to_ascii_lowercase().as_str()) && !is_refused
}
