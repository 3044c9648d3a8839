//! The handshake of a WebSocket (RFC 6455, section 4.2). Our own, because the frames that follow are read and written through
//! a stream of our own.

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode, Version};
use axum::response::Response;
use hyper::upgrade::OnUpgrade;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::SUBPROTOCOL;
use crate::gateway::error::Error;
use crate::http::error::Refusal;

pub struct Handshake {
    accept: HeaderValue,
    offered: bool,
    upgrade: OnUpgrade,
}

fn words(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let values = headers.get_all(name).into_iter();
    let lists = values.filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',').map(str::trim))
}

impl Handshake {
    fn of(parts: &mut Parts) -> Option<Self> {
        let headers = &parts.headers;
        let says = |name, word: &str| {
            words(headers, name).any(|listed: &str| listed.eq_ignore_ascii_case(word))
        };
        let asked = parts.method == Method::GET
            && parts.version == Version::HTTP_11
            && says(header::CONNECTION, "upgrade")
            && says(header::UPGRADE, "websocket")
            && says(header::SEC_WEBSOCKET_VERSION, "13");
        let key = headers.get(header::SEC_WEBSOCKET_KEY).filter(|_| asked)?;
        let accept = derive_accept_key(key.as_bytes());
        let mut offers = words(headers, header::SEC_WEBSOCKET_PROTOCOL);
        Some(Self {
            accept: HeaderValue::try_from(accept).ok()?,
            offered: offers.any(|offer| offer == SUBPROTOCOL),
            upgrade: parts.extensions.remove()?,
        })
    }

    /// The node's half, and the connection that the socket will have.
    pub fn accept(self) -> (Response, OnUpgrade) {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, self.accept);
        if self.offered {
            let ours = HeaderValue::from_static(SUBPROTOCOL);
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, ours);
        }
        (response, self.upgrade)
    }
}

impl<S: Sync> FromRequestParts<S> for Handshake {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let handshake = Self::of(parts);
        let refused = Error::Parameter {
            name: "Upgrade",
            expected: "a WebSocket handshake",
        };
        handshake.ok_or_else(|| refused.into())
    }
}
