//! The API, described from the code that serves it: `/openapi.json` for programs, `/docs` for people. Made anew each hour,
//! since the examples hold times that a node has to take.

pub mod about;
mod bodies;
mod content;
mod document;
mod messages;
mod operation;
mod page;
pub mod routes;
mod rules;
mod schema;
mod tag;

use std::sync::{Arc, Mutex, PoisonError};

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use time::Duration;

use self::routes::{Frame, Listed};
use super::auth::admit_address;
use super::error::Refusal;
use super::peer::PeerInfo;
use super::reply::Node;
use crate::config::Config;
use crate::protocol::error::Names;
use crate::protocol::timestamp::Timestamp;

/// How long the exchanges of examples last, unless they may not last that long.
const EXAMPLE_SECONDS: u64 = 24 * 3_600;
/// How long a client may keep a document, in seconds.
const KEEP: HeaderValue = HeaderValue::from_static("public, max-age=300");

/// What a description depends on.
pub struct Context<'c> {
    /// The node's configuration.
    pub config: &'c Config,
    /// The names that follow from the protocol's.
    pub names: &'c Names,
    /// The hour in which the description is made.
    hour: Timestamp,
}

impl Context<'_> {
    /// A time that is past, for examples.
    fn earlier(&self) -> String {
        self.hour.to_string()
    }

    /// A time to come, for examples.
    fn later(&self) -> String {
        let longest = self.config.artifacts.max_lifetime_seconds;
        let seconds = i64::try_from(longest.min(EXAMPLE_SECONDS)).unwrap_or_default();
        Timestamp::from(self.hour.inner() + Duration::seconds(seconds)).to_string()
    }

    /// The media type of a frame.
    fn media(&self, frame: Frame) -> &str {
        match frame {
            Frame::Envelope => &self.names.media_type,
            Frame::Plain => "application/json",
        }
    }
}

/// Both documents of one hour.
#[derive(Clone)]
struct Made {
    hour: Timestamp,
    api: Bytes,
    page: Bytes,
    /// What the page may do in a browser.
    policy: HeaderValue,
}

/// The documents of a node.
pub struct Documents {
    table: Vec<Listed>,
    /// Held while they are made, a few milliseconds each hour; never across an await.
    made: Mutex<Option<Made>>,
}

impl Documents {
    /// The documents about these calls.
    pub fn new(table: Vec<Listed>) -> Arc<Self> {
        Arc::new(Self {
            table,
            made: Mutex::default(),
        })
    }

    fn made(&self, node: &Node) -> Made {
        let now = node.gateway.clock.now().inner();
        let into_the_hour = Duration::seconds(now.unix_timestamp().rem_euclid(3_600));
        let hour = (now - into_the_hour).replace_nanosecond(0).unwrap_or(now);
        let hour = Timestamp::from(hour);
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        match &*made {
            Some(made) if made.hour == hour => made.clone(),
            _ => {
                let context = Context {
                    config: &node.gateway.config,
                    names: &node.gateway.names,
                    hour,
                };
                let (page, policy) = page::page(&context, &self.table);
                let new = Made {
                    hour,
                    api: document::document(&context, &self.table).to_string().into(),
                    page: page.into(),
                    policy,
                };
                *made = Some(new.clone());
                new
            }
        }
    }
}

/// A document as an answer.
fn respond(media_type: &'static str, document: Bytes) -> Response {
    let mut response = Response::new(Body::from(document));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(header::CACHE_CONTROL, KEEP);
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    response
}

/// Counts a call for a document by its address, as it needs no credential.
fn admit(node: &Node, peer: Option<Extension<PeerInfo>>) -> Result<(), Refusal> {
    if let Some(Extension(peer)) = peer {
        admit_address(node, peer)?;
    }
    Ok(())
}

/// `GET /openapi.json`.
pub async fn openapi(
    State(node): State<Node>,
    Extension(documents): Extension<Arc<Documents>>,
    peer: Option<Extension<PeerInfo>>,
) -> Result<Response, Refusal> {
    admit(&node, peer)?;
    Ok(respond("application/json", documents.made(&node).api))
}

/// `GET /docs`.
pub async fn docs(
    State(node): State<Node>,
    Extension(documents): Extension<Arc<Documents>>,
    peer: Option<Extension<PeerInfo>>,
) -> Result<Response, Refusal> {
    admit(&node, peer)?;
    let made = documents.made(&node);
    let mut response = respond("text/html; charset=utf-8", made.page);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, made.policy);
    headers.insert(
        header::REFERRER_POLICY,
        HeaderValue::from_static("no-referrer"),
    );
    Ok(response)
}
