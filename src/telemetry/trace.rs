//! Spans, and the trace context that travels with a call whether or not anything is recorded. A span is handed to the
//! exporter when it ends; what the exporter cannot take is dropped and counted, and nobody waits for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use time::OffsetDateTime;
use tokio::sync::mpsc;

use super::Metrics;
use crate::clock::Clock;
use crate::protocol::timestamp::Timestamp;
use crate::protocol::trace::TraceContext;

/// Spans that wait to be exported; past this they are dropped.
const QUEUE: usize = 4_096;

tokio::task_local! {
    /// The span of the call that this task works on.
    static CURRENT: Option<Span>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Server,
    Producer,
}

#[derive(Debug)]
pub struct Ended {
    /// What it is called: a route or a message type, never anything a caller chose.
    pub name: String,
    pub role: Role,
    pub context: TraceContext,
    pub parent: Option<[u8; 8]>,
    /// Spans of other traces that it has to do with.
    pub links: Vec<TraceContext>,
    /// When it began.
    pub began: OffsetDateTime,
    /// When it ended.
    pub ended: OffsetDateTime,
    pub attributes: Vec<(&'static str, Attribute)>,
    pub failed: bool,
}

#[derive(Debug, Clone)]
pub enum Attribute {
    /// A word of this program, or a route.
    Text(String),
    Number(i64),
}

struct Recorder {
    queue: mpsc::Sender<Ended>,
    /// How much of what nobody else began is recorded, from 0 to 2^63.
    share: u64,
}

pub struct Tracer {
    recorder: Option<Recorder>,
    clock: Clock,
    metrics: Arc<Metrics>,
}

/// A span under way, or only a context to be carried on.
#[derive(Clone)]
pub struct Span(Arc<Mutex<SpanState>>);

struct SpanState {
    context: TraceContext,
    parent: Option<[u8; 8]>,
    links: Vec<TraceContext>,
    /// Whether it is a span of ours; else it is the caller's, and only carried on.
    own: bool,
    began: Timestamp,
}

impl Span {
    fn state(&self) -> MutexGuard<'_, SpanState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[must_use]
    pub fn context(&self) -> TraceContext {
        self.state().context.clone()
    }

    /// Learns what it is about: a span that nobody caused becomes part of that trace, another one points to it.
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

/// A share of 0 to 1 in 63 bits.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a share is between 0 and 1, and need not be exact"
)]
fn in_bits(share: f64) -> u64 {
    (share.clamp(0.0, 1.0) * (1_u64 << 63) as f64) as u64
}

/// Random bytes; zeros, which no id may be, where there are none to be had.
fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let _unavailable = getrandom::fill(&mut bytes);
    bytes
}

/// The last 63 bits of a trace's id, which are random in every kind of id: they decide whether it is recorded.
fn chance(trace_id: [u8; 16]) -> u64 {
    let last = u128::from_be_bytes(trace_id) & u128::from(u64::MAX >> 1);
    u64::try_from(last).unwrap_or_default()
}

impl Tracer {
    /// One that records nothing and carries contexts on.
    #[must_use]
    pub fn silent(clock: &Clock, metrics: &Arc<Metrics>) -> Self {
        Self {
            recorder: None,
            clock: clock.clone(),
            metrics: Arc::clone(metrics),
        }
    }

    /// One that records a share of what begins here, and whatever callers record; and where its spans come out.
    #[must_use]
    pub fn recording(
        clock: &Clock,
        metrics: &Arc<Metrics>,
        share: f64,
    ) -> (Self, mpsc::Receiver<Ended>) {
        let (queue, spans) = mpsc::channel(QUEUE);
        let share = in_bits(share);
        let tracer = Self {
            recorder: Some(Recorder { queue, share }),
            ..Self::silent(clock, metrics)
        };
        (tracer, spans)
    }

    #[must_use]
    pub fn records(&self) -> bool {
        self.recorder.is_some()
    }

    /// The span of a call that came with this context, or none where there is nothing to record or carry on.
    #[must_use]
    pub fn begin(&self, caller: Option<TraceContext>) -> Option<Span> {
        let state = match (&self.recorder, caller) {
            (None, None) => return None,
            (None, Some(context)) => SpanState {
                context,
                parent: None,
                links: Vec::new(),
                own: false,
                began: self.clock.now(),
            },
            (Some(recorder), caller) => {
                let parent = caller.as_ref().map(|caller| caller.span_id);
                let context = caller.unwrap_or_else(|| {
                    let trace_id: [u8; 16] = random();
                    let sampled = chance(trace_id) < recorder.share;
                    TraceContext {
                        trace_id,
                        span_id: [0; 8],
                        sampled,
                        state: None,
                    }
                });
                SpanState {
                    context: TraceContext {
                        span_id: random(),
                        ..context
                    },
                    parent,
                    links: Vec::new(),
                    own: true,
                    began: self.clock.now(),
                }
            }
        };
        Some(Span(Arc::new(Mutex::new(state))))
    }

    pub fn end(
        &self,
        span: &Span,
        name: impl FnOnce() -> String,
        attributes: impl FnOnce() -> Vec<(&'static str, Attribute)>,
        failed: bool,
    ) {
        let state = span.state();
        if !state.own || !state.context.sampled {
            return;
        }
        self.record(Ended {
            name: name(),
            role: Role::Server,
            context: state.context.clone(),
            parent: state.parent,
            links: state.links.clone(),
            began: state.began.inner(),
            ended: self.clock.now().inner(),
            attributes: attributes(),
            failed,
        });
    }

    /// Records a message that was sent as part of the trace it belongs to.
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
        let ended = self.clock.now().inner();
        self.record(Ended {
            name: format!("send {msg_type}"),
            role: Role::Producer,
            context: TraceContext {
                span_id: random(),
                ..of.clone()
            },
            parent: Some(of.span_id),
            links: Vec::new(),
            began: began.min(ended),
            ended,
            attributes: vec![("countersign.transport", Attribute::Text(transport.into()))],
            failed: false,
        });
    }

    fn record(&self, span: Ended) {
        if let Some(recorder) = &self.recorder
            && recorder.queue.try_send(span).is_err()
        {
            self.metrics.spans_dropped.increment();
        }
    }
}

/// Does `work` for the call of this span. No async function: that would hold the work twice.
pub fn within<F: Future>(span: Option<Span>, work: F) -> impl Future<Output = F::Output> {
    CURRENT.scope(span, work)
}

#[must_use]
pub fn current() -> Option<Span> {
    CURRENT.try_with(Clone::clone).ok().flatten()
}

/// The context of the call that this task works on, to be carried on.
#[must_use]
pub fn context() -> Option<TraceContext> {
    current().map(|span| span.context())
}

/// A `trace` to be kept with what a call submits: its own context, or else the call's.
#[must_use]
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

/// Learns what the call that this task works on is about.
pub fn adopt(context: Option<&TraceContext>) {
    if let (Some(span), Some(context)) = (current(), context) {
        span.adopt(context);
    }
}

/// The same, from the `trace` of an Envelope.
pub fn adopt_from(trace: Option<&str>) {
    if let (Some(span), Some(trace)) = (current(), trace)
        && let Some(context) = TraceContext::of_trace(trace)
    {
        span.adopt(&context);
    }
}
