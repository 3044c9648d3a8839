//! The state of every route, and the framing of answers and refusals.

use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::task::TaskTracker;

use super::compat;
use super::error::{HttpRefusal, add_headers};
use super::parsing::ParseBudget;
use super::request_scope::RequestScope;
use crate::gateway::error::Error;
use crate::gateway::{Gateway, ListPage};
use crate::http::server::charged_body::ChargedBody;
use crate::http::server::memory::{FREE_BYTES, MemoryBudget, MemoryCharge};
use crate::protocol::envelope::OutgoingEnvelope;
use crate::protocol::error::ErrorDescription;
use crate::protocol::id::RequestId;
use crate::protocol::timestamp::Timestamp;
use crate::telemetry::trace;

/// The state of handlers and layers. One pointer, as each layer of each request clones it.
#[derive(Clone)]
pub struct AppState(Arc<SharedState>);

/// The gateway, and what the transport adds to it.
pub struct SharedState {
    pub gateway: Arc<Gateway>,
    /// Work that must end before the node does.
    pub tasks: TaskTracker,
    /// Memory for bodies, answers and pages in flight.
    pub memory: Arc<MemoryBudget>,
    pub(super) parsing: ParseBudget,
}

impl AppState {
    pub fn new(gateway: Arc<Gateway>, tasks: TaskTracker) -> Self {
        let memory = MemoryBudget::new(&gateway.context.config.limits, &gateway.context.metrics);
        Self(Arc::new(SharedState {
            gateway,
            tasks,
            memory: Arc::new(memory),
            parsing: ParseBudget::new(),
        }))
    }
}

impl Deref for SharedState {
    type Target = Gateway;

    fn deref(&self) -> &Gateway {
        &self.gateway
    }
}

impl Deref for AppState {
    type Target = SharedState;

    fn deref(&self) -> &SharedState {
        &self.0
    }
}

impl AppState {
    /// Runs a use case to its end, even if the client hangs up meanwhile.
    pub async fn finish<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let work = trace::within(trace::current(), work);
        match self.tasks.spawn(work).await {
            Ok(outcome) => outcome,
            Err(error) => {
                tracing::error!(%error, "a call panicked");
                Err(Error::Internal)
            }
        }
    }

    /// An envelope from the gateway about an exchange.
    pub fn envelope<B>(
        &self,
        msg_type: &'static str,
        request: &RequestId,
        expires_at: Option<Timestamp>,
        body: B,
    ) -> OutgoingEnvelope<B> {
        self.envelope_about(msg_type, request.as_str().to_owned(), expires_at, body)
    }

    /// An envelope from the gateway about something named `about`.
    pub fn envelope_about<B>(
        &self,
        msg_type: &'static str,
        about: String,
        expires_at: Option<Timestamp>,
        body: B,
    ) -> OutgoingEnvelope<B> {
        let context = &self.context;
        OutgoingEnvelope::new(
            msg_type,
            context.clock.message_id(),
            about,
            context.clock.now(),
            &context.config.server.gateway_id,
            body,
        )
        .expiring(expires_at)
    }

    pub fn respond<B: Serialize>(
        &self,
        status: StatusCode,
        envelope: &OutgoingEnvelope<B>,
    ) -> Response {
        match serde_json::to_vec(envelope) {
            Ok(text) => typed(status, &self.context.names.media_type, text.into()),
            Err(_) => HttpRefusal::from(Error::Internal).into_response(),
        }
    }

    /// Charges an answer to its caller until it is written, so that clients that do not read cannot
    /// use up the memory. Refuses it if the caller may have no more.
    fn charged(&self, asked: &RequestFacts, response: Response) -> Response {
        let Some(scope) = &asked.scope else {
            return response;
        };
        let length = length(&response);
        // HTTP/1 writes one answer at a time, and an answer to an unknown caller is small.
        let free = if asked.multiplexed { 0 } else { FREE_BYTES };
        if length <= free
            || scope.account().is_none()
            || response.extensions().get::<ChargedMark>().is_some()
        {
            return response;
        }
        let mut charge = scope.charge(&self.memory);
        // A small answer is only counted: what it confirms has been done.
        if length <= FREE_BYTES {
            charge.set(length);
        } else if !charge.try_grow(length) {
            return HttpRefusal::from(Error::Unavailable).into_response();
        }
        held(charge, response)
    }

    /// Memory for an answer of at most so many bytes, before anything is read for it. A caller over
    /// its share waits briefly, then gets 503.
    pub async fn reserve(&self, scope: &RequestScope, bytes: usize) -> Result<MemoryCharge, Error> {
        let mut charge = scope.charge(&self.memory);
        if charge.grow(self.memory.to_build(bytes)).await {
            Ok(charge)
        } else {
            Err(Error::Unavailable)
        }
    }
}

fn length(response: &Response) -> usize {
    let length = response.body().size_hint().exact().unwrap_or(0);
    usize::try_from(length).unwrap_or(usize::MAX)
}

/// An answer that was reserved for, and takes what it has turned out to need.
pub fn reserved(mut charge: MemoryCharge, response: Response) -> Response {
    charge.set(length(&response));
    held(charge, response)
}

fn held(charge: MemoryCharge, response: Response) -> Response {
    let mut response = response.map(|body| Body::new(ChargedBody::new(body, charge)));
    response.extensions_mut().insert(ChargedMark);
    response
}

/// Marks an answer that is charged already.
#[derive(Clone, Copy)]
struct ChargedMark;

/// Facts about a request that a layer keeps.
struct RequestFacts {
    scope: Option<RequestScope>,
    /// Whether its connection has other requests beside it.
    multiplexed: bool,
}

impl RequestFacts {
    fn by(request: &Request) -> Self {
        Self {
            scope: request.extensions().get::<RequestScope>().cloned(),
            multiplexed: request.version() == Version::HTTP_2,
        }
    }

    fn is_compat(&self) -> bool {
        let scope = self.scope.as_ref();
        scope.is_some_and(|scope| scope.profile().is_compat())
    }
}

/// Adds a warning to an answer.
pub fn warned(mut response: Response, warning: Option<&'static str>) -> Response {
    if let Some(warning) = warning {
        let value = HeaderValue::from_static(warning);
        response.headers_mut().insert("countersign-warning", value);
    }
    response
}

/// Marks an answer that an idempotency key gave.
pub fn replayed(mut response: Response, replayed: bool) -> Response {
    if replayed {
        let value = HeaderValue::from_static("true");
        response.headers_mut().insert("idempotency-replayed", value);
    }
    response
}

pub fn plain<T: Serialize>(status: StatusCode, value: &T) -> Response {
    match serde_json::to_vec(value) {
        Ok(text) => typed(status, "application/json", text.into()),
        Err(_) => HttpRefusal::from(Error::Internal).into_response(),
    }
}

/// A page of a list, in plain JSON.
pub fn paged<T: Serialize>(page: &ListPage<T>) -> Response {
    let answer = json!({ "items": page.items, "nextCursor": page.next });
    plain(StatusCode::OK, &answer)
}

/// The status of something that was asked for, and may have been there already.
pub fn created(is_new: bool) -> StatusCode {
    if is_new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    }
}

/// Adds those of the optional members that there are.
pub fn extended<const N: usize>(mut answer: Value, optional: [(&str, Option<Value>); N]) -> Value {
    for (name, value) in optional {
        if let Some(value) = value {
            answer[name] = value;
        }
    }
    answer
}

pub fn typed(status: StatusCode, media_type: &str, text: Bytes) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    if let Ok(value) = HeaderValue::from_str(media_type) {
        response.headers_mut().insert(header::CONTENT_TYPE, value);
    }
    let no_store = HeaderValue::from_static("no-store");
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, no_store);
    response
}

/// Runs each call to its end: a database call that is dropped halfway costs its connection.
pub async fn run_to_end(State(node): State<AppState>, request: Request, next: Next) -> Response {
    let call = next.run(request);
    let ended = node.finish(async move { Ok(call.await) }).await;
    ended.unwrap_or_else(|error| HttpRefusal::from(error).into_response())
}

pub async fn refuse_in_envelopes(
    State(node): State<AppState>,
    request: Request,
    next: Next,
) -> Response {
    let asked = RequestFacts::by(&request);
    let mut response = node.charged(&asked, next.run(request).await);
    let Some(refusal) = response.extensions_mut().remove::<HttpRefusal>() else {
        return response;
    };
    let (mut status, description) = (refusal.status(), &refusal.description);
    node.note_refusal(description);
    let mut body = description.body(&node.context.names, refusal.about.as_deref());
    if asked.is_compat() {
        status = compat::refusal::translate(description, status, &mut body["code"]);
    }
    let about = (refusal.about.clone())
        .or(asked.scope.map(|scope| scope.id().to_owned()))
        .unwrap_or_default();
    let envelope = node.envelope_about("error", about, None, body);
    let framing = node.respond(status, &envelope);
    framed(&node, description, &response, framing)
}

pub async fn refuse_in_json(
    State(node): State<AppState>,
    request: Request,
    next: Next,
) -> Response {
    let asked = RequestFacts::by(&request);
    let mut response = node.charged(&asked, next.run(request).await);
    let Some(refusal) = response.extensions_mut().remove::<HttpRefusal>() else {
        return response;
    };
    let refusal = refusal.framed();
    node.note_refusal(&refusal.description);
    let mut body = refusal.description.body(&node.context.names, None);
    let mut status = refusal.status();
    if asked.is_compat() {
        status = compat::refusal::translate(&refusal.description, status, &mut body["error"]);
    }
    let framing = plain(status, &body);
    framed(&node, &refusal.description, &response, framing)
}

/// The framed refusal, with the headers that the bare one already had, such as `Allow`.
fn framed(
    node: &AppState,
    refusal: &ErrorDescription,
    bare: &Response,
    mut framed: Response,
) -> Response {
    add_headers(refusal, &mut framed, node.context.config.auth.basic);
    for (name, value) in bare.headers() {
        if name != header::CONTENT_LENGTH && !framed.headers().contains_key(name) {
            framed.headers_mut().insert(name.clone(), value.clone());
        }
    }
    framed
}
