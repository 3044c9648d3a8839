//! Responses with a document. The script of a page may call this node and no other.

use std::sync::LazyLock;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

/// Clients may keep a document for five minutes.
const KEEP: HeaderValue = HeaderValue::from_static("public, max-age=300");

macro_rules! page {
    ($title:literal, $body:literal) => {
        concat!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
            concat!("<title>", $title, "</title>\n<style>"),
            include_str!("page.css"),
            "</style>\n</head>\n<body>\n",
            include_str!($body),
            "<script>",
            include_str!("page.js"),
            "</script>\n</body>\n</html>\n",
        )
    };
}

pub const DOCS: &str = page!("Countersign API", "docs.html");
pub const LANDING: &str = page!("Countersign", "landing.html");

/// A page may run its own script and call its own node.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
        hash(include_str!("page.css")),
        hash(include_str!("page.js"))
    );
    let nothing = HeaderValue::from_static("default-src 'none'");
    HeaderValue::try_from(policy).unwrap_or(nothing)
});

pub fn respond(media_type: &'static str, document: Bytes) -> Response {
    let mut response = Response::new(Body::from(document));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(header::CACHE_CONTROL, KEEP);
    let no_sniff = HeaderValue::from_static("nosniff");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, no_sniff);
    response
}

pub fn respond_page(html: &'static str) -> Response {
    let mut response = respond(
        "text/html; charset=utf-8",
        Bytes::from_static(html.as_bytes()),
    );
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY.clone());
    let no_referrer = HeaderValue::from_static("no-referrer");
    headers.insert(header::REFERRER_POLICY, no_referrer);
    response
}
