//! The HTTP transport: it parses requests, calls the gateway and prints responses. All routes are
//! listed here; rules about exchanges are in `gateway`.

pub mod api;
pub mod server;

use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Router};
use tower_http::catch_panic::CatchPanicLayer;

use self::api::error::{HttpRefusal, TransportError};
use self::api::reply::AppState;
use self::api::{
    audit, certificate, compat, device, device_invitation, exchange, generic, health, inbox,
    introduction, invitation, log, notification, openapi, origin, page, page_settings, pairing,
    platform, presence, prompt, reply, request_log, session, sse, status, team, token, whoami, ws,
};
use self::server::drain_body;
use crate::gateway::error::Error;

/// A router, and the method and path of each of its routes.
type RouteTable = (Router<AppState>, Vec<(&'static str, &'static str)>);

macro_rules! routes {
    ($($method:ident $path:literal => $handler:path;)+) => {(
        Router::new()$(.route($path, axum::routing::$method($handler)))+,
        vec![$((stringify!($method), $path)),+],
    )};
}

/// The protocol's routes, which answer with Envelopes.
fn protocol() -> RouteTable {
    routes! {
        post "/v1/artifacts" => exchange::submit;
        post "/v1/decisions" => exchange::decide;
        post "/v1/acks" => exchange::acknowledge;
        get "/v1/approvers/{approverId}/inbox" => inbox::active;
        get "/v1/approvers/{approverId}/inbox/expired" => inbox::expired;
        delete "/v1/approvers/{approverId}/inbox/{requestId}" => inbox::remove;
        get "/v1/exchanges/{requestId}" => exchange::status;
        get "/v1/exchanges/{requestId}/outcome" => exchange::outcome;
        post "/v1/exchanges/{requestId}/withdraw" => exchange::withdraw;
        put "/v1/exchanges/{requestId}/ciphertext" => exchange::reseal;
        post "/v1/exchanges/{requestId}/refresh" => exchange::refresh;
        post "/v1/requests/{requestId}/refresh" => exchange::refresh;
    }
}

/// The protocol's routes that last as long as the client stays.
fn streams() -> RouteTable {
    routes! {
        get "/v1/exchanges/{requestId}/wait" => exchange::wait;
        get "/v1/sse/approvers/{approverId}" => sse::approver;
        get "/v1/sse/enforcers/{enforcerId}" => sse::enforcer;
        get "/v1/ws" => ws::connect;
    }
}

/// The routes that answer with plain JSON.
fn plain() -> RouteTable {
    routes! {
        post "/v1/artifact" => generic::submit;
        post "/v1/decision" => generic::decide;
        post "/v1/prompt" => prompt::post;
        get "/v1/prompt/{requestId}" => prompt::get;
        get "/v1/enforcers/{enforcerId}/prompts" => prompt::pending;
        post "/v1/session/event" => session::report;
        get "/v1/session/{sessionId}" => session::read;
        post "/v1/pairing/initiate" => pairing::initiate;
        get "/v1/pairing/resolve/{code}" => pairing::resolve;
        get "/v1/pairing/status/{nonce}" => pairing::status;
        get "/v1/pairing/{nonce}/status" => pairing::status;
        post "/v1/pairing/complete" => pairing::complete;
        post "/v1/pairing/revoke" => pairing::revoke;
        get "/v1/pairings" => pairing::list;
        post "/v1/approvers/{approverId}/devices" => device::add;
        get "/v1/approvers/{approverId}/devices" => device::list;
        delete "/v1/approvers/{approverId}/devices" => device::reset;
        delete "/v1/approvers/{approverId}/devices/{deviceId}" => device::revoke;
        post "/v1/approvers/{approverId}/invitations" => device_invitation::create;
        get "/v1/approvers/{approverId}/invitations/{invitationId}" => device_invitation::read;
        put "/v1/approvers/{approverId}/invitations/{invitationId}" => device_invitation::answer;
        delete "/v1/approvers/{approverId}/invitations/{invitationId}" => device_invitation::end;
        post "/v1/approvers/{approverId}/introductions" => introduction::introduce;
        get "/v1/approvers/{approverId}/introductions" => introduction::list;
        get "/v1/approvers/{approverId}/teams" => team::list;
        post "/v1/teams" => team::create;
        post "/v1/teams/{teamId}/states" => team::publish;
        get "/v1/teams/{teamId}/states" => team::states;
        post "/v1/teams/{teamId}/invitations" => team::invite;
        post "/v1/teams/{teamId}/consents" => team::consent;
        get "/v1/teams/{teamId}/consents" => team::consents;
        post "/v1/teams/{teamId}/introductions" => team::introduce;
        get "/v1/teams/{teamId}/introductions" => team::introductions;
        get "/v1/approvers/{approverId}/notifications" => notification::list;
        post "/v1/approvers/{approverId}/notifications" => notification::add;
        delete "/v1/approvers/{approverId}/notifications/{notificationId}" => notification::remove;
        post "/v1/approvers/{approverId}/notifications/{notificationId}/test" => notification::test;
        get "/v1/log/checkpoint" => log::checkpoint;
        get "/v1/log/tile/{level}/{tile}" => log::tile;
        get "/v1/log/tile/{level}/{tile}/{part}" => log::later_tile;
        get "/v1/log/tile/{level}/{tile}/{part}/{width}" => log::later_tile;
        get "/v1/log/proof" => log::proof;
        get "/v1/log/consistency" => log::consistency;
        get "/v1/presence/enforcers" => presence::list;
        get "/v1/presence/enforcers/{enforcerDeviceId}" => presence::one;
        post "/platform/v1/tenants" => platform::create_tenant;
        get "/platform/v1/tenants" => platform::list_tenants;
        delete "/platform/v1/tenants/{tenantId}" => platform::disable_tenant;
        post "/platform/v1/credentials" => platform::create_credential;
        get "/platform/v1/credentials" => platform::list_credentials;
        delete "/platform/v1/credentials/{credentialId}" => platform::revoke_credential;
        post "/platform/v1/credentials/{credentialId}/code" => certificate::issue_code;
        post "/platform/v1/certificates" => certificate::bind;
        post "/platform/v1/invitations" => invitation::create;
        get "/platform/v1/invitations" => invitation::list;
        delete "/platform/v1/invitations/{invitationId}" => invitation::withdraw;
        post "/v1/join" => invitation::join;
        post "/platform/v1/token-revocations" => token::revoke;
        get "/platform/v1/token-revocations" => token::list;
        get "/platform/v1/approvers/{approverId}/keys" => platform::list_keys;
        put "/platform/v1/approvers/{approverId}/keys/{signerKeyId}" => platform::put_key;
        delete "/platform/v1/approvers/{approverId}/keys/{signerKeyId}" => platform::revoke_key;
        get "/platform/v1/exchanges" => platform::list_exchanges;
        post "/platform/v1/exchanges/{requestId}/cancel" => platform::cancel;
        get "/platform/v1/audit" => audit::list;
        get "/v1/whoami" => whoami::read;
        get "/v1/page" => page_settings::read;
        get "/v1/status" => status::status;
        get "/" => page::index;
        get "/sw.js" => page::fixed;
        get "/reload.js" => page::fixed;
        get "/manifest.webmanifest" => page::fixed;
        get "/icon.svg" => page::fixed;
        get "/icons/{file}" => page::fixed;
        get "/page/{version}/{file}" => page::versioned;
        get "/page/{version}/{directory}/{file}" => page::versioned;
        get "/docs" => openapi::docs;
        get "/openapi.json" => openapi::openapi;
        get "/asyncapi.json" => openapi::asyncapi;
    }
}

/// The one of them that lasts as long as the client stays.
fn plain_waits() -> RouteTable {
    routes! {
        post "/v1/waits" => exchange::wait_for_any;
    }
}

/// The routes of an older dialect, which answer with plain JSON.
fn compat() -> RouteTable {
    routes! {
        get "/echo" => compat::routes::echo;
        get "/v1/integrations/discovery" => compat::routes::discovery;
        get "/v1/consent/status" => compat::routes::consent;
        get "/v1/policy/dnd/effective" => compat::routes::policies;
        post "/v1/presence/heartbeat" => compat::routes::heartbeat;
        post "/v1/pairing/pre-generate" => compat::pairing::offer;
        post "/v1/pairing/claim" => compat::pairing::claim;
    }
}

fn health() -> RouteTable {
    routes! {
        get "/livez" => health::live;
        get "/readyz" => health::ready;
    }
}

/// The method and path of every route. `openapi.yaml` describes each, and no other.
pub fn routes() -> Vec<(&'static str, &'static str)> {
    [
        protocol().1,
        streams().1,
        plain().1,
        plain_waits().1,
        compat().1,
        health().1,
    ]
    .concat()
}

pub fn router(node: AppState) -> Router {
    let run_to_end = from_fn_with_state(node.clone(), reply::run_to_end);
    let refuse_early = from_fn_with_state(node.clone(), health::refuse_early);
    let protocol = protocol()
        .0
        .layer(run_to_end.clone())
        .merge(streams().0)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(node.clone(), origin::refuse_foreign))
        .layer(from_fn(health::refuse_health_only))
        .layer(refuse_early.clone())
        .layer(from_fn_with_state(node.clone(), reply::refuse_in_envelopes));
    let plain = plain()
        .0
        .merge(compat().0)
        .layer(run_to_end.clone())
        .merge(plain_waits().0)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn_with_state(node.clone(), origin::refuse_foreign))
        .layer(from_fn(health::refuse_health_only))
        .layer(refuse_early);
    let health = health()
        .0
        .layer(run_to_end)
        .method_not_allowed_fallback(method_not_allowed);

    protocol
        .merge(plain)
        .merge(health)
        .fallback(async || HttpRefusal::from(TransportError::NoSuchRoute))
        .layer(Extension(openapi::DocumentCache::default()))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(node.clone(), reply::refuse_in_json))
        .layer(from_fn(drain_body::drain_unread))
        .layer(from_fn_with_state(node.clone(), origin::share))
        .layer(from_fn_with_state(node.clone(), request_log::identify))
        .with_state(node)
}

async fn method_not_allowed() -> HttpRefusal {
    HttpRefusal::from(TransportError::MethodNotAllowed)
}

/// A panic is refused like any fault of ours; caught inside the framing, so that it gets its frame.
fn panicked(_: Box<dyn std::any::Any + Send>) -> Response {
    tracing::error!("a handler panicked");
    HttpRefusal::from(Error::Internal).into_response()
}
