//! Health, for load balancers and orchestrators. No credential, no body, nothing internal.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

use super::reply::plain;
use crate::gateway::Health;
use crate::gateway::Readiness;

/// `GET /livez`: the process runs.
pub async fn live() -> Response {
    plain(StatusCode::OK, &json!({ "status": "live" }))
}

/// `GET /readyz`: the node should be sent requests.
pub async fn ready(State(health): State<Arc<Health>>) -> Response {
    let (status, word) = match health.readiness().await {
        Readiness::Ready => (StatusCode::OK, "ready"),
        Readiness::Degraded => (
            StatusCode::OK,
            "degraded: notifications do not arrive, polling",
        ),
        Readiness::Draining => (StatusCode::SERVICE_UNAVAILABLE, "draining"),
        Readiness::DatabaseAway => (
            StatusCode::SERVICE_UNAVAILABLE,
            "the database does not answer",
        ),
        Readiness::ReadOnly => (
            StatusCode::SERVICE_UNAVAILABLE,
            "the database takes no writes",
        ),
        Readiness::SchemaBehind => (
            StatusCode::SERVICE_UNAVAILABLE,
            "migrations are missing: run countersign migrate",
        ),
        Readiness::SchemaAhead => (
            StatusCode::SERVICE_UNAVAILABLE,
            "the schema is newer than this node",
        ),
    };
    plain(status, &json!({ "status": word }))
}
