//! Takes the credential out of a request. The gateway judges it; which role a handler needs is the
//! type it asks for. No body has been read when this runs.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use tokio::time::{Instant, sleep};

use super::compat::credential;
use super::error::{HttpRefusal, TransportError};
use super::limit;
use super::reply::AppState;
use super::request_scope::RequestScope;
use crate::gateway::error::Error;
use crate::gateway::identity::authenticate::PresentedCredential;
use crate::gateway::identity::caller::{Caller, CallerRole};
use crate::http::server::connection_limit::ConnectionPermit;
use crate::http::server::peer::PeerInfo;

/// A credential counts as checked for this time. A revocation reaches all caches within 3 s.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The node, and a caller of the role `R`.
pub struct As<R>(pub AppState, pub R);

impl<R: CallerRole + Send> FromRequestParts<AppState> for As<R> {
    type Rejection = HttpRefusal;

    async fn from_request_parts(parts: &mut Parts, node: &AppState) -> Result<Self, HttpRefusal> {
        AdmittedAddress::from_request_parts(parts, node).await?;
        refuse_repeated(&parts.headers)?;
        let caller = authenticate(node, parts).await?;
        if let Some(permit) = parts.extensions.get::<Arc<ConnectionPermit>>() {
            permit.keep();
        }
        if let (Some(scope), Some(origin)) =
            (parts.extensions.get::<RequestScope>(), caller.origin())
        {
            scope.authenticated(node.memory.account(origin), origin.profile);
        }
        let role = R::of(caller.clone()).ok_or(Error::Forbidden {
            pointer: None,
            expected: R::EXPECTED,
        })?;
        limit::own_path(node, parts, &caller).await?;
        limit::admit(node, parts, &caller).await?;
        Ok(Self(node.clone(), role))
    }
}

async fn authenticate(node: &AppState, parts: &Parts) -> Result<Caller, Error> {
    let presented = presented(parts);
    let from = parts.extensions.get::<PeerInfo>().map(|peer| peer.address);
    let authenticator = &node.authenticator;
    if credential::is_presented(&parts.headers) {
        return credential::authenticate(authenticator, &parts.headers, presented, from).await;
    }
    authenticator.authenticate(presented.as_ref(), from).await
}

/// Authenticates a call again whose body took its time: the credential may have ended meanwhile.
pub async fn authenticate_again(
    node: &AppState,
    parts: &Parts,
    since: Instant,
) -> Result<(), Error> {
    let scope = parts.extensions.get::<RequestScope>();
    let is_authenticated = scope.is_some_and(|scope| scope.account().is_some());
    if is_authenticated && since.elapsed() > RECHECK_INTERVAL {
        authenticate(node, parts).await?;
    }
    Ok(())
}

/// Runs a call that waits, until its credential ends.
pub async fn while_authenticated<T>(
    node: &AppState,
    parts: &Parts,
    call: impl Future<Output = T>,
) -> Result<T, Error> {
    let ended = async {
        loop {
            sleep(RECHECK_INTERVAL).await;
            // A database that does not answer says nothing about the credential.
            if let Err(error @ (Error::Unauthenticated | Error::InvalidToken)) =
                authenticate(node, parts).await
            {
                return error;
            }
        }
    };
    tokio::select! {
        biased;
        done = call => Ok(done),
        error = ended => Err(error),
    }
}

/// Counts a call by its address. That of a plain connection says nothing: it may be a proxy's.
pub fn admit_address(node: &AppState, peer: PeerInfo) -> Result<(), Error> {
    if peer.encrypted {
        node.limiter.admit_address(peer.address)?;
    }
    Ok(())
}

/// A call that needs no credential, within the rate of its address.
pub struct AdmittedAddress(pub Option<PeerInfo>);

impl FromRequestParts<AppState> for AdmittedAddress {
    type Rejection = HttpRefusal;

    async fn from_request_parts(parts: &mut Parts, node: &AppState) -> Result<Self, HttpRefusal> {
        let peer = parts.extensions.get::<PeerInfo>().copied();
        if let Some(peer) = peer {
            admit_address(node, peer)?;
        }
        Ok(Self(peer))
    }
}

/// Refuses two of a header that says who calls: a proxy might believe one, the node the other.
fn refuse_repeated(headers: &HeaderMap) -> Result<(), TransportError> {
    let own = ["Authorization", "X-API-Key", "Host"];
    let repeated = (own.into_iter().chain(credential::HEADERS))
        .find(|name| headers.get_all(*name).iter().nth(1).is_some());
    repeated.map_or(Ok(()), |name| Err(TransportError::RepeatedHeader(name)))
}

/// A header's text. A placeholder such as `csk_…` is not ASCII, and gets a hint.
fn text(value: &HeaderValue) -> Option<&str> {
    std::str::from_utf8(value.as_bytes()).ok()
}

/// The credential of a request: a bearer token, an id and secret, an API key in its own header, or,
/// from a browser that cannot set headers on a WebSocket, one of the subprotocols it offers. A
/// certificate counts only if there is none of these.
fn presented(parts: &Parts) -> Option<PresentedCredential<'_>> {
    if let Some(value) = parts.headers.get(AUTHORIZATION) {
        let (scheme, token) = text(value)?.split_once(' ')?;
        return match scheme.to_ascii_lowercase().as_str() {
            "bearer" => Some(PresentedCredential::Token(token.trim())),
            "basic" => Some(PresentedCredential::Basic(token.trim())),
            _ => None,
        };
    }
    if let Some(value) = parts.headers.get("x-api-key") {
        return text(value).map(PresentedCredential::Token);
    }
    let offered = parts.headers.get(SEC_WEBSOCKET_PROTOCOL);
    let token = offered
        .and_then(|offered| offered.to_str().ok())
        .and_then(|offered| {
            let mut protocols = offered.split(',');
            protocols.find_map(|protocol| protocol.trim().strip_prefix("bearer."))
        });
    token.map(PresentedCredential::Token).or_else(|| {
        let peer = parts.extensions.get::<PeerInfo>()?;
        peer.certificate.map(PresentedCredential::Certificate)
    })
}
