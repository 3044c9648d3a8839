//! Sending metrics and spans to a collector, beside everything else: a collector that is away costs a warning now and then,
//! and what could not be sent.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, Uri};
use prost::Message;
use time::OffsetDateTime;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Metrics;
use super::instrument::Reading;
use super::otlp::Source;
use super::trace::Ended;
use crate::clock::Clock;
use crate::config;
use crate::config::ConfigError;
use crate::jitter::jitter;
use crate::outbound::Outbound;

/// Spans sent at once.
const PER_REQUEST: usize = 512;
const LINGER: Duration = Duration::from_secs(1);
/// How long a collector may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long it may take when the node is stopping: within what the end of the background is given.
const LAST_PATIENCE: Duration = Duration::from_secs(2);
/// How often the log tells that a collector does not take what it is sent.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);

/// Why there is no exporting.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The configuration is no good.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// There is nothing to tell the collector by.
    #[error(transparent)]
    Certificates(#[from] std::io::Error),
}

pub struct Exporter {
    outbound: Outbound,
    traces: Uri,
    metrics: Uri,
    headers: HeaderMap,
    source: Source,
    every: Duration,
    clock: Clock,
    /// When the node was started.
    start: OffsetDateTime,
    measures: Arc<Metrics>,
}

/// What metrics stand at, when asked.
pub type Observe = Box<dyn Fn() -> Vec<Reading> + Send>;

impl Exporter {
    /// An exporter to the configured collector, if there is one.
    pub fn new(
        config: &config::Telemetry,
        node: &str,
        clock: &Clock,
        measures: &Arc<Metrics>,
    ) -> Result<Option<Self>, ExportError> {
        let Some((traces, metrics)) = config.otlp_urls()? else {
            return Ok(None);
        };
        let outbound = Outbound::new(traces.scheme_str() == Some("https"))?;
        Ok(Some(Self {
            outbound,
            traces,
            metrics,
            headers: config.otlp_header_map()?,
            source: Source::new(&config.service_name, node),
            every: Duration::from_secs(config.export_seconds),
            start: clock.now().inner(),
            clock: clock.clone(),
            measures: Arc::clone(measures),
        }))
    }

    /// Exports until `end`, and then once more what is left.
    pub fn start(
        self,
        spans: mpsc::Receiver<Ended>,
        observe: Observe,
        tasks: &TaskTracker,
        end: &CancellationToken,
    ) {
        let exporter = Arc::new(self);
        tasks.spawn(Arc::clone(&exporter).export_metrics(observe, end.clone()));
        tasks.spawn(exporter.export_spans(spans, end.clone()));
    }

    async fn export_metrics(self: Arc<Self>, observe: Observe, end: CancellationToken) {
        let mut complaints = Complaints::default();
        let request = |readings: &[Reading]| {
            let now = self.clock.now().inner();
            self.source.metrics(readings, self.start, now)
        };
        while end
            .run_until_cancelled(sleep(jitter(self.every)))
            .await
            .is_some()
        {
            let request = request(&observe());
            let sent = self.send("metrics", &self.metrics, &request, PATIENCE);
            // A collector that is slow to answer does not hold up a stop.
            let sent = end.run_until_cancelled(sent).await;
            complaints.note(sent.unwrap_or(Ok(())));
        }
        let last = request(&observe());
        // What is observed must not be held by us any longer: the rest of the node ends with it.
        drop(observe);
        let sent = self.send("metrics", &self.metrics, &last, LAST_PATIENCE);
        complaints.note(sent.await);
    }

    async fn export_spans(
        self: Arc<Self>,
        mut spans: mpsc::Receiver<Ended>,
        end: CancellationToken,
    ) {
        let mut complaints = Complaints::default();
        loop {
            let mut batch = Vec::new();
            let received = spans.recv_many(&mut batch, PER_REQUEST);
            let ending = end.run_until_cancelled(received).await.is_none();
            if ending {
                break;
            }
            if batch.is_empty() {
                return;
            }
            let _ending = end.run_until_cancelled(sleep(LINGER)).await;
            take_more(&mut spans, &mut batch);
            let hurry = async {
                end.cancelled().await;
                sleep(LAST_PATIENCE).await;
            };
            let sent = tokio::select! {
                sent = self.send_spans(batch, PATIENCE) => sent,
                () = hurry => Err("no answer in time".into()),
            };
            complaints.note(sent);
        }
        let deadline = Instant::now() + LAST_PATIENCE;
        loop {
            let mut batch = Vec::new();
            take_more(&mut spans, &mut batch);
            let left = deadline.saturating_duration_since(Instant::now());
            if batch.is_empty() || left.is_zero() {
                return;
            }
            let sent = self.send_spans(batch, left).await;
            if sent.is_err() {
                return complaints.note(sent);
            }
        }
    }

    async fn send_spans(&self, spans: Vec<Ended>, time_limit: Duration) -> Result<(), String> {
        let count = u64::try_from(spans.len()).unwrap_or(u64::MAX);
        let request = self.source.spans(spans);
        let sent = self
            .send("traces", &self.traces, &request, time_limit)
            .await;
        if sent.is_err() {
            self.measures.spans_dropped.add(count);
        }
        sent
    }

    async fn send(
        &self,
        signal: &'static str,
        url: &Uri,
        request: &impl Message,
        time_limit: Duration,
    ) -> Result<(), String> {
        let deadline = Instant::now() + time_limit;
        let body = request.encode_to_vec();
        let sent = self
            .outbound
            .post_protobuf(url, &self.headers, body, deadline);
        let sent = sent.await.map(drop).map_err(|error| error.to_string());
        let outcome = if sent.is_ok() { "ok" } else { "failed" };
        self.measures.exports.of([signal, outcome]).increment();
        sent
    }
}

/// Takes what is waiting, up to a request's worth.
fn take_more(spans: &mut mpsc::Receiver<Ended>, batch: &mut Vec<Ended>) {
    while batch.len() < PER_REQUEST
        && let Ok(span) = spans.try_recv()
    {
        batch.push(span);
    }
}

/// When the log last told that something could not be sent.
#[derive(Default)]
struct Complaints(Option<Instant>);

impl Complaints {
    fn note(&mut self, sent: Result<(), String>) {
        let Err(problem) = sent else {
            return;
        };
        if self.0.is_none_or(|at| at.elapsed() > COMPLAIN_EVERY) {
            self.0 = Some(Instant::now());
            tracing::warn!(problem, "the collector does not take metrics or spans");
        }
    }
}
