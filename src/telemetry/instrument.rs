//! The instruments of the OpenTelemetry SDK as the table in `metrics` uses them: typed by their
//! labels, and bound to label values once, so that recording looks nothing up and allocates
//! nothing.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{self, BoundUpDownCounter, Meter};

#[derive(Debug)]
pub struct MetricDefinition {
    pub name: &'static str,
    /// As Prometheus names it.
    pub kind: &'static str,
    pub labels: &'static [&'static str],
    /// The upper bounds of a histogram's buckets.
    pub bounds: &'static [f64],
    pub help: &'static str,
}

impl MetricDefinition {
    fn unit(&self) -> &'static str {
        match self.name {
            name if name.ends_with("_seconds") => "s",
            name if name.ends_with("_bytes") => "By",
            _ => "1",
        }
    }

    fn attributes<const N: usize>(&self, values: [&'static str; N]) -> Vec<KeyValue> {
        let labels = self.labels.iter().zip(values);
        labels
            .map(|(name, value)| KeyValue::new(*name, value))
            .collect()
    }
}

/// An entry of the table: one series, or a family of them.
pub trait MetricKind {
    const KIND: &'static str;

    fn new(meter: &Meter, definition: &'static MetricDefinition) -> Self;
}

/// One series: an instrument bound to label values. It is exported from then on, at zero.
pub trait MetricSeries: Clone {
    const KIND: &'static str;
    type Instrument;

    fn instrument(meter: &Meter, definition: &MetricDefinition) -> Self::Instrument;

    fn bind(instrument: &Self::Instrument, attributes: &[KeyValue]) -> Self;
}

impl<S: MetricSeries> MetricKind for S {
    const KIND: &'static str = S::KIND;

    fn new(meter: &Meter, definition: &'static MetricDefinition) -> Self {
        let instrument = S::instrument(meter, definition);
        // Without attributes the SDK exports a series only once it was recorded, and a histogram
        // has no value that changes nothing. It gets an attribute with an empty value, which is no
        // label to Prometheus.
        match S::KIND {
            "histogram" => S::bind(&instrument, &[KeyValue::new("labels", "")]),
            _ => S::bind(&instrument, &[]),
        }
    }
}

macro_rules! series {
    ($series:ident($bound:ty), $kind:literal, $instrument:ty, $build:ident $(, $record:ident($zero:expr))?) => {
        #[derive(Clone)]
        pub struct $series($bound);

        impl MetricSeries for $series {
            const KIND: &'static str = $kind;
            type Instrument = $instrument;

            fn instrument(meter: &Meter, definition: &MetricDefinition) -> Self::Instrument {
                let builder = meter.$build(definition.name);
                let builder = builder.with_description(definition.help);
                builder.with_unit(definition.unit()).build()
            }

            fn bind(instrument: &Self::Instrument, attributes: &[KeyValue]) -> Self {
                let bound = instrument.bind(attributes);
                $(bound.$record($zero);)?
                Self(bound)
            }
        }
    };
}

series! { Counter(metrics::BoundCounter<u64>), "counter", metrics::Counter<u64>, u64_counter, add(0) }
series! { UpDownCounter(BoundUpDownCounter<f64>), "gauge", metrics::UpDownCounter<f64>, f64_up_down_counter, add(0.0) }
series! { Gauge(metrics::BoundGauge<f64>), "gauge", metrics::Gauge<f64>, f64_gauge, record(0.0) }
series! { Histogram(metrics::BoundHistogram<f64>), "histogram", metrics::Histogram<f64>, f64_histogram }

impl Counter {
    pub fn increment(&self) {
        self.add(1);
    }

    pub fn add(&self, count: u64) {
        self.0.add(count);
    }
}

impl UpDownCounter {
    pub fn add(&self, amount: f64) {
        self.0.add(amount);
    }
}

impl Gauge {
    pub fn set(&self, value: f64) {
        self.0.record(value);
    }

    pub fn set_count(&self, count: usize) {
        self.set(as_f64(count));
    }
}

impl Histogram {
    pub fn observe(&self, value: f64) {
        self.0.record(value);
    }

    pub fn took(&self, time: Duration) {
        self.observe(time.as_secs_f64());
    }
}

/// A metric with `N` labels whose values are words of this program, never anything a caller sent.
pub struct MetricFamily<S: MetricSeries, const N: usize> {
    definition: &'static MetricDefinition,
    instrument: S::Instrument,
    /// Locked for writing only when a series is new.
    series: RwLock<HashMap<[&'static str; N], S>>,
}

impl<S: MetricSeries, const N: usize> MetricFamily<S, N> {
    /// The series with these label values, to keep or to use at once.
    pub fn of(&self, values: [&'static str; N]) -> S {
        let known = self.series.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(series) = known.get(&values) {
            return series.clone();
        }
        drop(known);
        let mut all = self.series.write().unwrap_or_else(PoisonError::into_inner);
        let bind = || S::bind(&self.instrument, &self.definition.attributes(values));
        all.entry(values).or_insert_with(bind).clone()
    }
}

impl<S: MetricSeries, const N: usize> MetricKind for MetricFamily<S, N> {
    const KIND: &'static str = S::KIND;

    fn new(meter: &Meter, definition: &'static MetricDefinition) -> Self {
        Self {
            definition,
            instrument: S::instrument(meter, definition),
            series: RwLock::default(),
        }
    }
}

/// A gauge that is read when metrics are collected.
pub struct ObservedGauge<const N: usize> {
    definition: &'static MetricDefinition,
    meter: Meter,
}

impl<const N: usize> ObservedGauge<N> {
    /// Adds the series with these label values; it is left out while `read` returns nothing. The
    /// metrics keep `read`, so it must not own whatever owns them.
    pub fn observe(
        &self,
        values: [&'static str; N],
        read: impl Fn() -> Option<f64> + Send + Sync + 'static,
    ) {
        let attributes = self.definition.attributes(values);
        let builder = self.meter.f64_observable_gauge(self.definition.name);
        let builder = builder
            .with_description(self.definition.help)
            .with_unit(self.definition.unit());
        let _registered = builder
            .with_callback(move |observer| {
                if let Some(value) = read() {
                    observer.observe(value, &attributes);
                }
            })
            .build();
    }
}

impl<const N: usize> MetricKind for ObservedGauge<N> {
    const KIND: &'static str = "gauge";

    fn new(meter: &Meter, definition: &'static MetricDefinition) -> Self {
        Self {
            definition,
            meter: meter.clone(),
        }
    }
}

/// A count of things or bytes, as gauges have it.
#[expect(
    clippy::cast_precision_loss,
    reason = "a gauge may be off by one in 2^53"
)]
pub fn as_f64(count: usize) -> f64 {
    count as f64
}
