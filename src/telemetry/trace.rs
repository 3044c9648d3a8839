//! Spans, and the trace context that is propagated whether or not anything is recorded. A span is
//! queued for the exporter when it ends; if the queue is full it is dropped and counted. Spans are
//! our own: those of the SDK cannot get a parent later on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use opentelemetry::KeyValue;
use opentelemetry::trace::{Link, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use time::OffsetDateTime;
use tokio::sync::mpsc;

use super::metrics::Metrics;
use super::provider;
use crate::clock::Clock;
use crate::protocol::timestamp::Timestamp;
use crate::protocol::trace::TraceContext;

/// Spans that wait to be exported; further ones are dropped.
const QUEUE: usize = 4_096;

tokio::task_local! {
    static CURRENT: Option<TraceSpan>;
}

struct SpanRecorder {
    queue: mpsc::Sender<SpanData>,
    /// The share of traces begun here that is recorded, from 0 to 2^63.
    share: u64,
}

pub struct SpanTracer {
    recorder: Option<SpanRecorder>,
    clock: Clock,
    metrics: Arc<Metrics>,
}

/// A span in progress, or only a context to propagate.
#[derive(Clone)]
pub struct TraceSpan(Arc<Mutex<SpanState>>);

struct SpanState {
    context: TraceContext,
    parent: Option<[u8; 8]>,
    links: Vec<TraceContext>,
    /// Whether the span is ours to record. Otherwise it is the caller's, and its context is
    /// propagated.
    own: bool,
    began: Timestamp,
}

impl TraceSpan {
    fn state(&self) -> MutexGuard<'_, SpanState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn context(&self) -> TraceContext {
        self.state().context.clone()
    }

    /// Relates the span to the trace of what it handles: a root span joins that trace, another one
    /// links to it.
    fn adopt(&self, context: &TraceContext) {
        let mut state = self.state();
        if !state.own || state.context.trace_id == context.trace_id {
            return;
        }
        if state.parent.is_some() {
            state.links.push(context.clone());
            return;
        }
        state.parent = Some(context.span_id);
        state.context = TraceContext {
            span_id: state.context.span_id,
            ..context.clone()
        };
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the share is between 0 and 1, and need not be exact"
)]
fn in_bits(share: f64) -> u64 {
    (share.clamp(0.0, 1.0) * (1_u64 << 63) as f64) as u64
}

/// Random bytes; without a source of randomness zeros, which are no valid id.
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let _unavailable = getrandom::fill(&mut bytes);
    bytes
}

/// A new span of the same trace.
fn child(context: &TraceContext) -> TraceContext {
    TraceContext {
        span_id: random(),
        ..context.clone()
    }
}

/// The last 63 bits of a trace's id decide whether it is recorded: they are random in every kind of
/// id.
fn chance(trace_id: [u8; 16]) -> u64 {
    let last = u128::from_be_bytes(trace_id) & u128::from(u64::MAX >> 1);
    u64::try_from(last).unwrap_or_default()
}

fn span_context(context: &TraceContext) -> SpanContext {
    let flags = TraceFlags::default().with_sampled(context.sampled);
    let state = context.state.as_deref().map(str::parse);
    SpanContext::new(
        TraceId::from_bytes(context.trace_id),
        SpanId::from_bytes(context.span_id),
        flags,
        true,
        state.and_then(Result::ok).unwrap_or_default(),
    )
}

impl SpanTracer {
    pub fn silent(clock: &Clock, metrics: &Arc<Metrics>) -> Self {
        Self {
            recorder: None,
            clock: clock.clone(),
            metrics: Arc::clone(metrics),
        }
    }

    /// A tracer that records a share of the traces that begin here, and all that callers record;
    /// and its finished spans.
    pub fn recording(
        clock: &Clock,
        metrics: &Arc<Metrics>,
        share: f64,
    ) -> (Self, mpsc::Receiver<SpanData>) {
        let (queue, spans) = mpsc::channel(QUEUE);
        let share = in_bits(share);
        let tracer = Self {
            recorder: Some(SpanRecorder { queue, share }),
            ..Self::silent(clock, metrics)
        };
        (tracer, spans)
    }

    pub fn records(&self) -> bool {
        self.recorder.is_some()
    }

    /// The span of a call that came with this context, or none if there is nothing to record or
    /// propagate.
    pub fn begin(&self, caller: Option<TraceContext>) -> Option<TraceSpan> {
        let (context, parent) = match (&self.recorder, caller) {
            (None, caller) => (caller?, None),
            (Some(_), Some(caller)) => (child(&caller), Some(caller.span_id)),
            (Some(recorder), None) => {
                let trace_id = random();
                let context = TraceContext {
                    trace_id,
                    span_id: random(),
                    sampled: chance(trace_id) < recorder.share,
                    state: None,
                };
                (context, None)
            }
        };
        Some(TraceSpan(Arc::new(Mutex::new(SpanState {
            context,
            parent,
            links: Vec::new(),
            own: self.records(),
            began: self.clock.now(),
        }))))
    }

    pub fn end(
        &self,
        span: &TraceSpan,
        name: impl FnOnce() -> String,
        attributes: impl FnOnce() -> Vec<KeyValue>,
        failed: bool,
    ) {
        let state = span.state();
        if !state.own || !state.context.sampled {
            return;
        }
        let began = state.began.inner();
        let mut data = self.ended(
            name(),
            SpanKind::Server,
            &state.context,
            state.parent,
            began,
        );
        data.attributes = attributes();
        let links = state.links.iter().map(span_context);
        data.links.links = links.map(Link::with_context).collect();
        if failed {
            data.status = Status::error("");
        }
        self.queue(data);
    }

    /// Records that a message was sent, as part of the trace it belongs to.
    pub fn sent(
        &self,
        of: &TraceContext,
        msg_type: &'static str,
        transport: &'static str,
        began: OffsetDateTime,
    ) {
        if self.recorder.is_none() || !of.sampled {
            return;
        }
        let name = format!("send {msg_type}");
        let mut data = self.ended(
            name,
            SpanKind::Producer,
            &child(of),
            Some(of.span_id),
            began,
        );
        data.attributes = vec![KeyValue::new("countersign.transport", transport)];
        self.queue(data);
    }

    fn ended(
        &self,
        name: String,
        kind: SpanKind,
        context: &TraceContext,
        parent: Option<[u8; 8]>,
        began: OffsetDateTime,
    ) -> SpanData {
        let ended = self.clock.now().inner();
        SpanData {
            span_context: span_context(context),
            parent_span_id: parent.map_or(SpanId::INVALID, SpanId::from_bytes),
            parent_span_is_remote: parent.is_some(),
            span_kind: kind,
            name: name.into(),
            // The clock may have been set back, and a message has the database's time.
            start_time: began.min(ended).into(),
            end_time: ended.into(),
            attributes: Vec::new(),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: Status::Unset,
            instrumentation_scope: provider::scope(),
        }
    }

    fn queue(&self, span: SpanData) {
        if let Some(recorder) = &self.recorder
            && recorder.queue.try_send(span).is_err()
        {
            self.metrics.spans_dropped.increment();
        }
    }
}

/// Runs `work` for the call of this span. Not an async function: its future would hold `work`
/// twice.
pub fn within<F: Future>(span: Option<TraceSpan>, work: F) -> impl Future<Output = F::Output> {
    CURRENT.scope(span, work)
}

pub fn current() -> Option<TraceSpan> {
    CURRENT.try_with(Clone::clone).ok().flatten()
}

/// The context of the call that this task handles, to propagate.
pub fn context() -> Option<TraceContext> {
    current().map(|span| span.context())
}

/// The `trace` to store with what a call submits: its own context, or else the call's.
pub fn carry(trace: Option<String>) -> Option<String> {
    let Some(span) = current() else {
        return trace;
    };
    if let Some(own) = trace.as_deref().and_then(TraceContext::of_trace) {
        span.adopt(&own);
        return trace;
    }
    Some(span.context().carried_by(trace))
}

/// Relates the call that this task handles to the trace of what it is about.
pub fn adopt(context: Option<&TraceContext>) {
    if let (Some(span), Some(context)) = (current(), context) {
        span.adopt(context);
    }
}

/// The same, with the `trace` of an Envelope.
pub fn adopt_from(trace: Option<&str>) {
    adopt(trace.and_then(TraceContext::of_trace).as_ref());
}
