//! Version, algorithms and limits of this gateway, for anyone who asks.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};

use super::auth::AdmittedAddress;
use super::reply::{AppState, plain};
use crate::config::Config;
use crate::protocol::PROTOCOL_VERSION;
use crate::protocol::error::CodeNames;
use crate::protocol::routing::NAMING_MEMBERS;

/// `GET /v1/status`.
pub async fn status(State(node): State<AppState>, _: AdmittedAddress) -> Response {
    let mut authentication = node.authenticator.authentication_methods();
    if node.context.config.tls.takes_certificates() {
        authentication.push("mutualTls");
    }
    let context = &node.context;
    let (id, time) = (context.node.as_str(), context.clock.now().to_string());
    let answer = described(&context.config, &context.names, &authentication, id, &time);
    plain(StatusCode::OK, &answer)
}

/// The status of a node with this configuration.
pub fn described(
    config: &Config,
    names: &CodeNames,
    authentication: &[&str],
    node_id: &str,
    time: &str,
) -> Value {
    let limits = &config.limits;
    json!({
        "name": "countersign",
        "version": env!("CARGO_PKG_VERSION"),
        "protocol": config.protocol.name,
        "protocolVersion": PROTOCOL_VERSION,
        "mediaType": names.media_type,
        "algorithms": { "hash": ["SHA-256"], "signature": ["Ed25519"] },
        "transports": ["websocket", "sse", "poll"],
        "teams": true,
        "authentication": authentication,
        "routing": NAMING_MEMBERS,
        "decisions": { "verify": config.decisions.verify, "compact": config.decisions.compact },
        "limits": {
            "artifactBytes": limits.artifact_bytes,
            "promptBytes": limits.prompt_bytes,
            "snapshotBytes": limits.snapshot_bytes,
            "envelopeBytes": limits.envelope_bytes,
            "bodyBytes": limits.body_bytes,
            "pendingPerApprover": limits.pending_per_approver,
            "pendingPerEnforcer": limits.pending_per_enforcer(),
            "approversPerExchange": limits.approvers_per_exchange,
            "channelsPerIdentity": limits.channels_per_identity,
            "waitsPerIdentity": limits.waits_per_identity,
            "waitDefaultSeconds": limits.default_wait(),
            "waitMaxSeconds": limits.wait_max_seconds,
            "pageDefault": limits.default_page(),
            "pageMax": limits.page_max,
            "clockSkewSeconds": limits.clock_skew_seconds,
            "maxLifetimeSeconds": config.artifacts.max_lifetime_seconds,
            "openArtifacts": config.artifacts.open,
            "pairingRequired": config.pairing.required,
        },
        "nodeId": node_id,
        "time": time,
    })
}
