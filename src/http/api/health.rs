//! Health, for load balancers and orchestrators. No credential, no body, nothing internal.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use serde_json::json;

use super::error::{HttpRefusal, TransportError};
use super::reply::{AppState, plain};
use crate::gateway::Readiness;
use crate::gateway::error::Error;
use crate::http::server::proxied::HealthOnly;

/// `GET /livez`: the process runs.
pub async fn live() -> Response {
    plain(StatusCode::OK, &json!({ "status": "live" }))
}

/// `GET /readyz`: the node should be sent requests.
pub async fn ready(State(node): State<AppState>) -> Response {
    let readiness = node.health.readiness().await;
    let status = match readiness {
        Readiness::Ready | Readiness::Degraded => StatusCode::OK,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    let word = match readiness {
        Readiness::Ready => "ready",
        Readiness::Degraded => "degraded: notifications do not arrive, polling",
        Readiness::Starting => "starting",
        Readiness::Draining => "draining",
        Readiness::DatabaseAway => "the database does not answer",
        Readiness::ReadOnly => "the database takes no writes",
        Readiness::SchemaBehind => "migrations are missing: run countersign migrate",
        Readiness::SchemaAhead => "the schema is newer than this node",
    };
    plain(status, &json!({ "status": word }))
}

/// Refuses calls until the node has joined the others.
pub async fn refuse_early(State(node): State<AppState>, request: Request, next: Next) -> Response {
    if node.health.has_joined() {
        return next.run(request).await;
    }
    HttpRefusal::from(Error::Unavailable).into_response()
}

/// Refuses requests that may only ask for health.
pub async fn refuse_health_only(request: Request, next: Next) -> Response {
    match request.extensions().get::<HealthOnly>() {
        Some(HealthOnly::Unencrypted(expected)) => {
            HttpRefusal::from(TransportError::Unencrypted { expected }).into_response()
        }
        Some(HealthOnly::Full) => HttpRefusal::from(Error::Unavailable).into_response(),
        None => next.run(request).await,
    }
}
