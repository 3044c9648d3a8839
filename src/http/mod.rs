//! Transport: parse, call, print. Every route stands on this one screen; no rule about exchanges lives in this room.

mod audit;
mod auth;
mod body;
pub mod door;
pub mod error;
mod exchange;
mod frame;
mod generic;
mod health;
mod inbox;
mod limit;
mod metered;
mod origin;
mod own;
mod pairing;
pub mod peer;
pub mod platform;
mod presence;
mod prompt;
pub mod proxied;
mod refusal;
pub mod reply;
mod seats;
pub mod serve;
mod session;
mod sse;
mod status;
pub mod tls;
mod unread;
mod ws;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{delete, get, post, put};
use tower_http::catch_panic::CatchPanicLayer;

use self::error::Refusal;
use self::reply::Node;
use crate::gateway::error::Error;

/// Every route of a node.
pub fn router(node: Node) -> Router {
    let protocol = Router::new()
        .route("/v1/artifacts", post(exchange::submit))
        .route("/v1/decisions", post(exchange::decide))
        .route("/v1/acks", post(exchange::acknowledge))
        .route("/v1/approvers/{approverId}/inbox", get(inbox::active))
        .route(
            "/v1/approvers/{approverId}/inbox/expired",
            get(inbox::expired),
        )
        .route(
            "/v1/approvers/{approverId}/inbox/{requestId}",
            delete(inbox::remove),
        )
        .route("/v1/exchanges/{requestId}", get(exchange::status))
        .route("/v1/exchanges/{requestId}/wait", get(exchange::wait))
        .route(
            "/v1/exchanges/{requestId}/withdraw",
            post(exchange::withdraw),
        )
        .route("/v1/exchanges/{requestId}/refresh", post(exchange::refresh))
        .route("/v1/requests/{requestId}/refresh", post(exchange::refresh))
        .route("/v1/sse/approvers/{approverId}", get(sse::approver))
        .route("/v1/sse/enforcers/{enforcerId}", get(sse::enforcer))
        .route("/v1/ws", get(ws::connect))
        .method_not_allowed_fallback(method_not_allowed)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(node.clone(), origin::refuse_foreign))
        .layer(from_fn(proxied::refuse_unproxied))
        .layer(from_fn_with_state(node.clone(), reply::refuse_in_envelopes));

    let plain = Router::new()
        .route("/v1/artifact", post(generic::submit))
        .route("/v1/decision", post(generic::decide))
        .route("/v1/prompt", post(prompt::post))
        .route("/v1/prompt/{requestId}", get(prompt::get))
        .route("/v1/session/event", post(session::report))
        .route("/v1/session/{sessionId}", get(session::read))
        .route("/v1/status", get(status::status))
        .route("/v1/pairing/initiate", post(pairing::initiate))
        .route("/v1/pairing/resolve/{code}", get(pairing::resolve))
        .route("/v1/pairing/status/{nonce}", get(pairing::status))
        .route("/v1/pairing/{nonce}/status", get(pairing::status))
        .route("/v1/pairing/complete", post(pairing::complete))
        .route("/v1/pairing/revoke", post(pairing::revoke))
        .route("/v1/pairings", get(pairing::list))
        .route("/v1/presence/enforcers", get(presence::list))
        .route(
            "/v1/presence/enforcers/{enforcerDeviceId}",
            get(presence::one),
        )
        .route(
            "/platform/v1/tenants",
            post(platform::create_tenant).get(platform::list_tenants),
        )
        .route(
            "/platform/v1/tenants/{tenantId}",
            delete(platform::disable_tenant),
        )
        .route(
            "/platform/v1/credentials",
            post(platform::create_credential).get(platform::list_credentials),
        )
        .route(
            "/platform/v1/credentials/{credentialId}",
            delete(platform::revoke_credential),
        )
        .route(
            "/platform/v1/approvers/{approverId}/keys",
            get(platform::list_keys),
        )
        .route(
            "/platform/v1/approvers/{approverId}/keys/{signerKeyId}",
            put(platform::put_key).delete(platform::revoke_key),
        )
        .route("/platform/v1/exchanges", get(platform::list_exchanges))
        .route(
            "/platform/v1/exchanges/{requestId}/cancel",
            post(platform::cancel),
        )
        .route("/platform/v1/audit", get(audit::list))
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn_with_state(node.clone(), origin::refuse_foreign))
        .layer(from_fn(proxied::refuse_unproxied));

    let health = Router::new()
        .route("/livez", get(health::live))
        .route("/readyz", get(health::ready))
        .method_not_allowed_fallback(method_not_allowed);

    protocol
        .merge(plain)
        .merge(health)
        .fallback(async || Refusal::from(Error::NoSuchRoute))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(node.clone(), reply::refuse_in_json))
        .layer(from_fn(unread::take_unread))
        .layer(from_fn_with_state(node.clone(), origin::share))
        .layer(from_fn_with_state(node.clone(), reply::identify))
        .with_state(node)
}

async fn method_not_allowed() -> Refusal {
    Refusal::from(Error::MethodNotAllowed)
}

/// A panic is refused like any fault of ours; caught inside the framing, so that it gets its frame.
fn panicked(_: Box<dyn std::any::Any + Send>) -> Response {
    tracing::error!("a handler panicked");
    Refusal::from(Error::Internal).into_response()
}
