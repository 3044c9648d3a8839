//! The routes that only the dialect has.

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

use super::caller::CompatEnforcer;
use crate::http::api::auth::{AdmittedAddress, As};
use crate::http::api::body::{self, BodyKind};
use crate::http::api::error::HttpResult;
use crate::http::api::reply::{AppState, plain};
use crate::http::api::request_scope::RequestScope;
use crate::protocol::id::EnforcerId;
use crate::protocol::json::JsonNode;
use crate::protocol::pairing::MAX_LABEL_CHARS;
use crate::protocol::reader::{MemberReader, ReadResult};

/// `GET /echo`. A node has no time zone of its own.
pub async fn echo(State(node): State<AppState>, _: AdmittedAddress) -> Response {
    let now = node.context.clock.now();
    let answer = json!({ "utc": now, "local": now, "timezone": "UTC", "offsetMinutes": 0 });
    plain(StatusCode::OK, &answer)
}

/// `GET /v1/integrations/discovery`.
pub async fn discovery(State(node): State<AppState>, _: AdmittedAddress) -> Response {
    let mut answer = json!({ "auth": { "patSupported": true } });
    let oidc = &node.context.config.page.oidc;
    if oidc.is_enabled() {
        answer["idp"] = json!({ "baseUrl": oidc.issuer, "clientId": oidc.client_id });
    }
    plain(StatusCode::OK, &answer)
}

/// `GET /v1/consent/status`. An administrator has consented by making the credential.
pub async fn consent(_: As<CompatEnforcer>) -> Response {
    plain(StatusCode::OK, &json!({ "status": "Allowed" }))
}

/// `GET /v1/policy/dnd/effective`. Always empty: nobody signs such a policy.
pub async fn policies(_: As<CompatEnforcer>, Extension(http): Extension<RequestScope>) -> Response {
    let answer = json!({ "msgType": "dnd.policy.effective", "requestId": http.id(), "body": [] });
    plain(StatusCode::OK, &answer)
}

/// The labels are read and ignored: people are shown the one that was agreed on at pairing.
fn read_heartbeat(document: &JsonNode<'_>) -> ReadResult<EnforcerId> {
    let mut reader = MemberReader::new(document, "")?;
    let enforcer = reader.id("enforcerId")?;
    reader.optional_label("workspaceName", MAX_LABEL_CHARS)?;
    reader.optional_label("enforcerLabel", MAX_LABEL_CHARS)?;
    reader.finish()?;
    Ok(enforcer)
}

/// `POST /v1/presence/heartbeat`. It counts as a call.
pub async fn heartbeat(
    As(node, CompatEnforcer(caller)): As<CompatEnforcer>,
    request: Request,
) -> HttpResult {
    let named = body::read_as(&node, request, BodyKind::Other, read_heartbeat).await?;
    let enforcer = caller.acting(Some(named), "/enforcerId")?;
    node.presence.seen(&caller.origin.tenant, &enforcer);
    Ok(plain(StatusCode::OK, &json!({})))
}
