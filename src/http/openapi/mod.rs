//! The documents about the API: `/openapi.json` and `/asyncapi.json` for programs, `/docs` and `/` for people. Made anew each
//! hour, since the examples hold times that a node has to accept.

mod document;
mod operations;
mod page;
mod template;

use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use axum::body::{Body, Bytes};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use time::Duration;

use self::document::Documents;
use self::page::Page;
use super::auth::AdmittedAddress;
use super::error::HttpRefusal;
use super::reply::AppState;
use crate::gateway::error::Error;
use crate::protocol::timestamp::Timestamp;

/// How long a client may keep a document, in seconds.
const KEEP: HeaderValue = HeaderValue::from_static("public, max-age=300");

/// The documents of one hour.
pub struct Made {
    hour: Timestamp,
    routes: Arc<Routes>,
    openapi: Bytes,
    asyncapi: Bytes,
    /// Rendered when it is first asked for.
    docs: OnceLock<Page>,
}

/// The method and path of each route.
type Routes = Vec<(&'static str, &'static str)>;

/// The documents that a node made last.
#[derive(Clone)]
pub struct Cache {
    routes: Arc<Routes>,
    /// Locked while they are made, some milliseconds each hour; never across an await.
    made: Arc<Mutex<Option<Arc<Made>>>>,
}

impl Cache {
    pub fn new(routes: Routes) -> Self {
        Self {
            routes: Arc::new(routes),
            made: Arc::default(),
        }
    }

    fn current(&self, node: &AppState) -> Arc<Made> {
        let now = node.context.clock.now().inner();
        let into_the_hour = Duration::seconds(now.unix_timestamp().rem_euclid(3_600));
        let hour = (now - into_the_hour).replace_nanosecond(0).unwrap_or(now);
        let hour = Timestamp::from(hour);
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = made.as_ref().filter(|made| made.hour == hour) {
            return made.clone();
        }
        let documents = Documents::new(&node.context.config, &node.context.names, hour);
        let new = Arc::new(Made {
            hour,
            routes: self.routes.clone(),
            docs: OnceLock::new(),
            openapi: documents.openapi.to_string().into(),
            asyncapi: documents.asyncapi.to_string().into(),
        });
        *made = Some(new.clone());
        new
    }
}

/// The documents, for a caller within the rate of its address: they need no credential.
pub struct Current(Arc<Made>);

impl FromRequestParts<AppState> for Current {
    type Rejection = HttpRefusal;

    async fn from_request_parts(parts: &mut Parts, node: &AppState) -> Result<Self, HttpRefusal> {
        AdmittedAddress::from_request_parts(parts, node).await?;
        let cache = parts.extensions.get::<Cache>().ok_or(Error::Internal)?;
        Ok(Self(cache.current(node)))
    }
}

fn respond(media_type: &'static str, document: Bytes) -> Response {
    let mut response = Response::new(Body::from(document));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(header::CACHE_CONTROL, KEEP);
    let no_sniff = HeaderValue::from_static("nosniff");
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, no_sniff);
    response
}

fn respond_page(page: &Page) -> Response {
    let mut response = respond("text/html; charset=utf-8", page.html.clone());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, page.policy.clone());
    let no_referrer = HeaderValue::from_static("no-referrer");
    headers.insert(header::REFERRER_POLICY, no_referrer);
    response
}

/// `GET /openapi.json`.
pub async fn openapi(Current(made): Current) -> Response {
    respond("application/json", made.openapi.clone())
}

/// `GET /asyncapi.json`.
pub async fn asyncapi(Current(made): Current) -> Response {
    respond("application/json", made.asyncapi.clone())
}

/// `GET /docs`.
pub async fn docs(Current(made): Current) -> Response {
    let page = made
        .docs
        .get_or_init(|| Page::docs(&made.openapi, &made.asyncapi, &made.routes));
    respond_page(page)
}

/// What `/` is where the approvers' page is not served.
pub fn landing() -> Response {
    static LANDING: LazyLock<Page> = LazyLock::new(Page::landing);
    respond_page(&LANDING)
}
