//! Each request as an operator sees it: its id, its line in the log, its span, and the figures that it moves. Never a query, a
//! header or a body: they may hold secrets.

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;

use super::reply::{HttpRequestId, Node};
use crate::outbound::{TRACEPARENT, TRACESTATE};
use crate::protocol::error::Description;
use crate::protocol::trace::TraceContext;
use crate::telemetry::instrument::Reading;
use crate::telemetry::metrics::approximately;
use crate::telemetry::routes::method_label;
use crate::telemetry::trace::{self, Attribute, Span};

/// What paths that are no route are called in metrics and logs.
const UNMATCHED: &str = "unmatched";

/// The trace context that a request's headers say it comes from. Two parents are none.
fn traced_by(headers: &HeaderMap) -> Option<TraceContext> {
    let mut parents = headers.get_all(&TRACEPARENT).iter();
    let parent = parents.next().filter(|_| parents.next().is_none())?;
    let states = headers.get_all(&TRACESTATE).iter();
    let states: Vec<_> = states.filter_map(|state| state.to_str().ok()).collect();
    TraceContext::parse(parent.to_str().ok()?, Some(&states.join(",")))
}

/// Gives every request an id, and logs and measures how it ended.
pub async fn identify(State(node): State<Node>, mut request: Request, next: Next) -> Response {
    let id = node.gateway.clock.operation_id().to_string();
    request.extensions_mut().insert(HttpRequestId(id.clone()));
    let method = method_label(request.method().as_str());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or(UNMATCHED, MatchedPath::as_str);
    let started = std::time::Instant::now();
    let tracer = &node.gateway.tracer;
    // Whoever asks for our health asks all day.
    let traced = !matches!(route, "/livez" | "/readyz");
    let span = traced.then(|| tracer.begin(traced_by(request.headers())));
    let span = span.flatten();
    let mut response = trace::within(span.clone(), next.run(request)).await;
    let (status, took) = (response.status().as_u16(), started.elapsed());
    if let Some(span) = &span {
        let name = || format!("{method} {route}");
        let attributes = || {
            vec![
                ("http.request.method", Attribute::Text(method.to_owned())),
                ("http.route", Attribute::Text(route.to_owned())),
                (
                    "http.response.status_code",
                    Attribute::Number(status.into()),
                ),
            ]
        };
        tracer.end(span, name, attributes, status >= 500);
    }
    let requests = &node.gateway.metrics.requests;
    requests.took(method, route, status, took);
    let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let context = span.as_ref().map(Span::context);
    tracing::debug!(
        request = id,
        method,
        route,
        status,
        ms,
        trace_id = context.as_ref().map(TraceContext::trace_text),
        span_id = context.as_ref().map(TraceContext::span_text),
        "served"
    );
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert("x-request-id", value);
    }
    response
}

impl Node {
    pub fn note_refusal(&self, refusal: &Description) {
        let metrics = &self.gateway.metrics;
        metrics.refusals.of([refusal.code.as_str()]).increment();
        if let Some(throttled) = &refusal.throttled {
            metrics.throttled.of([throttled.policy]).increment();
        }
    }

    #[must_use]
    pub fn observed(&self) -> Vec<Reading> {
        self.gateway.observe();
        let (metrics, limits) = (&self.gateway.metrics, &self.gateway.config.limits);
        let bytes = |kib: usize| approximately((kib as u64) << 10);
        let most = limits.body_memory_bytes >> 10;
        let used = most.saturating_sub(self.memory.available_permits());
        metrics.body_memory.set(bytes(used));
        metrics.body_memory_limit.set(bytes(most));
        metrics.read()
    }
}
