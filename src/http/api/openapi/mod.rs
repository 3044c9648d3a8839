//! The documents about the API, for programs and for people. The JSON is made anew each hour, since
//! the examples hold times that a node has to accept.

mod document;
mod response;
mod template;

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::Response;
use time::Duration;

use self::document::RenderedDocuments;
use self::response::{DOCS, LANDING, respond, respond_page};
use super::auth::AdmittedAddress;
use super::error::HttpRefusal;
use super::reply::AppState;
use crate::gateway::error::Error;
use crate::protocol::timestamp::Timestamp;

/// The documents that a node made last. The lock is never held across an await.
#[derive(Clone, Default)]
pub struct DocumentCache(Arc<Mutex<Option<Arc<RenderedDocuments>>>>);

impl DocumentCache {
    fn current(&self, node: &AppState) -> Arc<RenderedDocuments> {
        let now = node.context.clock.now().inner();
        let into_the_hour = Duration::seconds(now.unix_timestamp().rem_euclid(3_600));
        let hour = (now - into_the_hour).replace_nanosecond(0).unwrap_or(now);
        let hour = Timestamp::from(hour);
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = made.as_ref().filter(|made| made.hour == hour) {
            return made.clone();
        }
        let new = RenderedDocuments::new(&node.context.config, &node.context.names, hour);
        made.insert(Arc::new(new)).clone()
    }
}

/// The documents, for a caller within the rate of its address: they need no credential.
pub struct CurrentDocuments(Arc<RenderedDocuments>);

impl FromRequestParts<AppState> for CurrentDocuments {
    type Rejection = HttpRefusal;

    async fn from_request_parts(parts: &mut Parts, node: &AppState) -> Result<Self, HttpRefusal> {
        AdmittedAddress::from_request_parts(parts, node).await?;
        let cache = parts
            .extensions
            .get::<DocumentCache>()
            .ok_or(Error::Internal)?;
        Ok(Self(cache.current(node)))
    }
}

/// `GET /openapi.json`.
pub async fn openapi(CurrentDocuments(made): CurrentDocuments) -> Response {
    respond("application/json", made.openapi.clone())
}

/// `GET /asyncapi.json`.
pub async fn asyncapi(CurrentDocuments(made): CurrentDocuments) -> Response {
    respond("application/json", made.asyncapi.clone())
}

/// `GET /docs`.
pub async fn docs(_: AdmittedAddress) -> Response {
    respond_page(DOCS)
}

/// `GET /` where the approvers' page is not served.
pub fn landing() -> Response {
    respond_page(LANDING)
}
