//! A node's own meter provider, and what reads it: the Prometheus exporter for `/metrics`, a manual
//! reader for OTLP. Several nodes live in one process, so nothing is registered globally.

use std::sync::{Arc, Weak};
use std::time::Duration;

use opentelemetry::metrics::{Meter, MeterProvider as _};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::data::ResourceMetrics;
use opentelemetry_sdk::metrics::reader::MetricReader;
use opentelemetry_sdk::metrics::{
    Aggregation, Instrument, InstrumentKind, ManualReader, Pipeline, SdkMeterProvider, Stream,
    Temporality,
};
use prometheus::proto::MetricFamily;
use prometheus::{Registry, TextEncoder};

use super::instrument::MetricDefinition;
use crate::config;

/// Most series of one metric: several times what its labels allow for.
const MAX_SERIES: usize = 200;
/// The same for the one metric by route: 48 routes, 7 methods, 5 classes of status.
const MAX_REQUEST_SERIES: usize = 2_000;

pub struct TelemetryProvider {
    provider: SdkMeterProvider,
    registry: Registry,
    otlp: Arc<ManualReader>,
}

impl TelemetryProvider {
    /// A provider for a node's metrics. It records nothing unless it is scraped or exports.
    pub fn new(
        config: &config::Telemetry,
        node: &str,
        definitions: &'static [MetricDefinition],
    ) -> Self {
        let (registry, otlp) = (Registry::new(), Arc::new(ManualReader::default()));
        let mut builder = SdkMeterProvider::builder()
            .with_resource(resource(config, node))
            .with_view(|instrument: &Instrument| stream(definitions, instrument));
        if !config.metrics_listen.is_empty() {
            // The names already have their units and suffixes.
            let exporter = opentelemetry_prometheus::exporter()
                .with_registry(registry.clone())
                .without_units()
                .without_counter_suffixes()
                .without_target_info()
                .scope_info_enabled(false)
                .build();
            match exporter {
                Ok(exporter) => builder = builder.with_reader(exporter),
                Err(error) => tracing::error!(%error, "there will be no metrics to read"),
            }
        }
        if config.exports() {
            builder = builder.with_reader(SharedReader(Arc::clone(&otlp)));
        }
        Self {
            provider: builder.build(),
            registry,
            otlp,
        }
    }

    pub fn meter(&self) -> Meter {
        self.provider.meter_with_scope(scope())
    }

    /// The metrics in Prometheus' text format, version 0.0.4.
    pub fn print(&self) -> Result<String, prometheus::Error> {
        let mut families = self.registry.gather();
        for metric in families.iter_mut().flat_map(MetricFamily::mut_metric) {
            let mut labels = metric.take_label();
            // Histograms without labels have one with an empty value, see `instrument::Metric`.
            labels.retain(|label| !label.value().is_empty());
            metric.set_label(labels);
        }
        TextEncoder::new().encode_to_string(&families)
    }

    pub fn collect(&self) -> ResourceMetrics {
        let mut metrics = ResourceMetrics::default();
        // It fails only after a shutdown, which is when the provider is dropped.
        let _collected = self.otlp.collect(&mut metrics);
        metrics
    }
}

pub fn scope() -> InstrumentationScope {
    InstrumentationScope::builder(env!("CARGO_PKG_NAME"))
        .with_version(env!("CARGO_PKG_VERSION"))
        .build()
}

/// The source that metrics and spans name.
pub fn resource(config: &config::Telemetry, node: &str) -> Resource {
    Resource::builder_empty()
        .with_attributes([
            KeyValue::new("service.name", config.service_name.clone()),
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.instance.id", node.to_owned()),
        ])
        .build()
}

/// The view of every instrument: its buckets, and how many series it may have.
fn stream(definitions: &[MetricDefinition], instrument: &Instrument) -> Option<Stream> {
    let known = |definition: &&MetricDefinition| definition.name == instrument.name();
    let definition = definitions.iter().find(known)?;
    let limit = match definition.labels {
        ["method", "route", "status"] => MAX_REQUEST_SERIES,
        _ => MAX_SERIES,
    };
    let mut stream = Stream::builder().with_cardinality_limit(limit);
    if !definition.bounds.is_empty() {
        stream = stream.with_aggregation(Aggregation::ExplicitBucketHistogram {
            boundaries: definition.bounds.to_vec(),
            // An empty histogram has neither, and would show the largest numbers there are.
            record_min_max: false,
        });
    }
    stream.build().ok()
}

/// The provider owns its readers; this one is also ours.
#[derive(Debug)]
struct SharedReader(Arc<ManualReader>);

impl MetricReader for SharedReader {
    fn register_pipeline(&self, pipeline: Weak<Pipeline>) {
        self.0.register_pipeline(pipeline);
    }

    fn collect(&self, metrics: &mut ResourceMetrics) -> OTelSdkResult {
        self.0.collect(metrics)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn temporality(&self, kind: InstrumentKind) -> Temporality {
        self.0.temporality(kind)
    }
}
