//! Gives each request an id, a log line, a span and metrics. Queries, headers and bodies are never
//! recorded: they may hold secrets.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use opentelemetry::KeyValue;

use super::reply::AppState;
use super::request_scope::RequestScope;
use crate::gateway::GatewayContext;
use crate::http::server::metered::ConnectionMeter;
use crate::outbound::{TRACEPARENT, TRACESTATE};
use crate::protocol::error::ErrorDescription;
use crate::protocol::trace::TraceContext;
use crate::telemetry::instrument::as_f64;
use crate::telemetry::metrics::{UNMATCHED, method_label};
use crate::telemetry::trace::{self, TraceSpan};

/// The trace context in a request's headers. Two parents count as none.
fn traced_by(headers: &HeaderMap) -> Option<TraceContext> {
    let mut parents = headers.get_all(&TRACEPARENT).iter();
    let parent = parents.next().filter(|_| parents.next().is_none())?;
    let states = headers.get_all(&TRACESTATE).iter();
    let states: Vec<_> = states.filter_map(|state| state.to_str().ok()).collect();
    TraceContext::parse(parent.to_str().ok()?, Some(&states.join(",")))
}

pub async fn identify(State(node): State<AppState>, mut request: Request, next: Next) -> Response {
    let id = node.context.clock.operation_id().to_string();
    let connection = request.extensions().get::<Arc<ConnectionMeter>>().cloned();
    let scope = RequestScope::new(id, connection);
    request.extensions_mut().insert(scope.clone());
    let method = method_label(request.method().as_str());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or(UNMATCHED, MatchedPath::as_str);
    let started = std::time::Instant::now();
    let tracer = &node.context.tracer;
    // Health checks would fill the traces.
    let traced = !matches!(route, "/livez" | "/readyz");
    let span = traced.then(|| tracer.begin(traced_by(request.headers())));
    let span = span.flatten();
    let mut response = trace::within(span.clone(), next.run(request)).await;
    let (status, took) = (response.status().as_u16(), started.elapsed());
    if let Some(span) = &span {
        let name = || format!("{method} {route}");
        let attributes = || {
            vec![
                KeyValue::new("http.request.method", method),
                KeyValue::new("http.route", route.to_owned()),
                KeyValue::new("http.response.status_code", i64::from(status)),
            ]
        };
        tracer.end(span, name, attributes, status >= 500);
    }
    let requests = &node.context.metrics.requests;
    requests.took(method, route, status, took);
    let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let context = span.as_ref().map(TraceSpan::context);
    tracing::debug!(
        request = scope.id(),
        method,
        route,
        status,
        ms,
        trace_id = context.as_ref().map(TraceContext::trace_text),
        span_id = context.as_ref().map(TraceContext::span_text),
        "served"
    );
    if let Ok(value) = HeaderValue::from_str(scope.id()) {
        response.headers_mut().insert("x-request-id", value);
    }
    response
}

impl AppState {
    pub fn note_refusal(&self, refusal: &ErrorDescription) {
        let metrics = &self.context.metrics;
        metrics.refusals.of([refusal.code.as_str()]).increment();
        if let Some(throttled) = &refusal.throttled {
            metrics.throttled.of([throttled.policy]).increment();
        }
    }

    /// Registers the gauges of the memory for bodies.
    pub fn observe(&self) {
        let GatewayContext {
            metrics, config, ..
        } = &*self.context;
        let memory = Arc::clone(&self.memory);
        let used = move || Some(as_f64(memory.used()));
        metrics.body_memory.observe([], used);
        let limit = as_f64(config.limits.body_memory_bytes);
        metrics.body_memory_limit.observe([], move || Some(limit));
    }
}
