//! Sends metrics and spans to an OTLP collector, beside everything else: no request waits for it. A
//! collector that does not answer costs a warning now and then, and the spans that could not be
//! sent.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderMap, Request, Response, Uri};
use hyper::body::Bytes;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{
    ExporterBuildError, MetricExporter, Protocol, RetryPolicy, SpanExporter, WithExportConfig,
    WithHttpConfig,
};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::Temporality;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter as _;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::metrics::Metrics;
use super::provider;
use crate::config::{self, ConfigError};
use crate::jitter::jitter;
use crate::outbound::OutboundClient;

const SPANS_PER_REQUEST: usize = 512;
const EXPORT_GRACE: Duration = Duration::from_secs(1);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// How long exporting may go on once the node stops: less than all background work is given.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);
const WARN_INTERVAL: Duration = Duration::from_secs(60);

#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Certificates(#[from] std::io::Error),
    #[error(transparent)]
    Exporter(#[from] ExporterBuildError),
}

/// The HTTP client of the SDK's exporters. Its headers are the configured ones; `OTEL_` variables
/// add none.
#[derive(Debug)]
struct ExportClient {
    outbound: OutboundClient,
    headers: HeaderMap,
    /// When the log last said that the collector cannot be reached.
    warned: Mutex<Option<Instant>>,
}

#[async_trait]
impl HttpClient for ExportClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (head, message) = request.into_parts();
        let deadline = Instant::now() + REQUEST_TIMEOUT;
        let sent = self
            .outbound
            .post_protobuf(&head.uri, &self.headers, message, deadline);
        let sent = sent.await.inspect_err(|error| self.warn(error))?;
        Ok(Response::new(sent))
    }
}

impl ExportClient {
    /// Logs why the collector did not take a request. The SDK's error does not say.
    fn warn(&self, problem: &dyn fmt::Display) {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.is_none_or(|at| at.elapsed() > WARN_INTERVAL) {
            *warned = Some(Instant::now());
            tracing::warn!(%problem, "the collector does not take metrics or spans");
        }
    }
}

pub struct TelemetryExporter {
    spans: SpanExporter,
    metrics: MetricExporter,
    every: Duration,
    measures: Arc<Metrics>,
}

impl TelemetryExporter {
    pub fn new(
        config: &config::Telemetry,
        node: &str,
        measures: &Arc<Metrics>,
    ) -> Result<Option<Self>, ExportError> {
        let Some((traces, metrics)) = config.otlp_urls()? else {
            return Ok(None);
        };
        let outbound = OutboundClient::new(traces.scheme_str() == Some("https"))?;
        let collector = Arc::new(ExportClient {
            outbound,
            headers: config.otlp_header_map()?,
            warned: Mutex::default(),
        });
        let spans = SpanExporter::builder().with_http();
        let mut spans = over_http(spans, &traces, &collector).build()?;
        spans.set_resource(&provider::resource(config, node));
        let builder = MetricExporter::builder().with_http();
        let builder = builder.with_temporality(Temporality::Cumulative);
        Ok(Some(Self {
            spans,
            metrics: over_http(builder, &metrics, &collector).build()?,
            every: Duration::from_secs(config.export_seconds),
            measures: Arc::clone(measures),
        }))
    }

    /// Exports until `end`, and then once more what is left. `observed` is what the gauges read; it
    /// is kept for as long.
    pub fn start(
        self,
        spans: mpsc::Receiver<SpanData>,
        observed: impl Send + 'static,
        tasks: &TaskTracker,
        end: &CancellationToken,
    ) {
        let exporter = Arc::new(self);
        tasks.spawn(Arc::clone(&exporter).export_metrics(observed, end.clone()));
        tasks.spawn(exporter.export_spans(spans, end.clone()));
    }

    async fn export_metrics(self: Arc<Self>, observed: impl Send, end: CancellationToken) {
        let pause = || sleep(jitter(self.every));
        while end.run_until_cancelled(pause()).await.is_some() {
            let metrics = self.measures.collect();
            // A slow collector does not delay the stop.
            let _stopping = end.run_until_cancelled(self.send_metrics(&metrics)).await;
        }
        let last = self.measures.collect();
        // Background work ends when this is dropped.
        drop(observed);
        let _late = timeout(STOP_TIMEOUT, self.send_metrics(&last)).await;
    }

    async fn export_spans(
        self: Arc<Self>,
        mut spans: mpsc::Receiver<SpanData>,
        end: CancellationToken,
    ) {
        let export = async {
            let mut batch = Vec::new();
            loop {
                let received = spans.recv_many(&mut batch, SPANS_PER_REQUEST);
                if matches!(end.run_until_cancelled(received).await, None | Some(0)) {
                    break;
                }
                let _stopping = end.run_until_cancelled(sleep(EXPORT_GRACE)).await;
                take_more(&mut spans, &mut batch);
                let _counted = self.send_spans(std::mem::take(&mut batch)).await;
            }
            loop {
                take_more(&mut spans, &mut batch);
                if batch.is_empty() || self.send_spans(std::mem::take(&mut batch)).await.is_err() {
                    return;
                }
            }
        };
        let overdue = async {
            end.cancelled().await;
            sleep(STOP_TIMEOUT).await;
        };
        tokio::select! {
            () = export => {}
            () = overdue => {}
        }
    }

    async fn send_metrics(&self, metrics: &ResourceMetrics) {
        let sent = self.metrics.export(metrics).await;
        self.count("metrics", &sent);
    }

    async fn send_spans(&self, spans: Vec<SpanData>) -> OTelSdkResult {
        let count = u64::try_from(spans.len()).unwrap_or(u64::MAX);
        let sent = self.spans.export(spans).await;
        self.count("traces", &sent);
        if sent.is_err() {
            self.measures.spans_dropped.add(count);
        }
        sent
    }

    fn count(&self, signal: &'static str, sent: &OTelSdkResult) {
        let outcome = if sent.is_ok() { "ok" } else { "failed" };
        self.measures.exports.of([signal, outcome]).increment();
    }
}

/// Without retries: the SDK would block the thread between them, and metrics are cumulative.
fn over_http<B: WithExportConfig + WithHttpConfig>(
    builder: B,
    url: &Uri,
    collector: &Arc<ExportClient>,
) -> B {
    builder
        .with_endpoint(url.to_string())
        .with_protocol(Protocol::HttpBinary)
        .with_timeout(REQUEST_TIMEOUT)
        .with_shared_http_client(Arc::clone(collector) as Arc<dyn HttpClient>)
        .with_retry_policy(RetryPolicy::disabled())
}

fn take_more(spans: &mut mpsc::Receiver<SpanData>, batch: &mut Vec<SpanData>) {
    while batch.len() < SPANS_PER_REQUEST
        && let Ok(span) = spans.try_recv()
    {
        batch.push(span);
    }
}
