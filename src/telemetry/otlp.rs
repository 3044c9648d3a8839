//! Metrics and spans as OTLP has them: protobuf messages, put together here and sent by `export`.

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum, metric, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{
    ResourceSpans, ScopeSpans, Span, Status, span, status,
};
use time::OffsetDateTime;

use super::instrument::{Definition, Kind, Reading, Series, Value};
use super::trace::{Attribute, Ended, Role};
use crate::protocol::trace::TraceContext;

pub struct Source {
    resource: Resource,
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, any_value::Value::StringValue(value.to_owned()))
}

fn attribute(key: &str, value: any_value::Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

/// Nanoseconds since 1970.
fn nanos(at: OffsetDateTime) -> u64 {
    u64::try_from(at.unix_timestamp_nanos()).unwrap_or_default()
}

fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: env!("CARGO_PKG_NAME").into(),
        version: env!("CARGO_PKG_VERSION").into(),
        ..InstrumentationScope::default()
    }
}

impl Source {
    #[must_use]
    pub fn new(service: &str, node: &str) -> Self {
        let attributes = vec![
            text("service.name", service),
            text("service.version", env!("CARGO_PKG_VERSION")),
            text("service.instance.id", node),
        ];
        Self {
            resource: Resource {
                attributes,
                ..Resource::default()
            },
        }
    }

    #[must_use]
    pub fn spans(&self, spans: Vec<Ended>) -> ExportTraceServiceRequest {
        let scoped = ScopeSpans {
            scope: Some(scope()),
            spans: spans.into_iter().map(span_of).collect(),
            ..ScopeSpans::default()
        };
        ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(self.resource.clone()),
                scope_spans: vec![scoped],
                ..ResourceSpans::default()
            }],
        }
    }

    /// A request that exports what metrics stand at now, having been at zero at the start.
    #[must_use]
    pub fn metrics(
        &self,
        readings: &[Reading],
        start: OffsetDateTime,
        now: OffsetDateTime,
    ) -> ExportMetricsServiceRequest {
        let times = (nanos(start), nanos(now));
        let metrics = readings.iter().map(|reading| metric_of(reading, times));
        let scoped = ScopeMetrics {
            scope: Some(scope()),
            metrics: metrics.collect(),
            ..ScopeMetrics::default()
        };
        ExportMetricsServiceRequest {
            resource_metrics: vec![ResourceMetrics {
                resource: Some(self.resource.clone()),
                scope_metrics: vec![scoped],
                ..ResourceMetrics::default()
            }],
        }
    }
}

fn span_of(span: Ended) -> Span {
    let kind = match span.role {
        Role::Server => span::SpanKind::Server,
        Role::Producer => span::SpanKind::Producer,
    };
    let code = if span.failed {
        status::StatusCode::Error
    } else {
        status::StatusCode::Unset
    };
    let attributes = span.attributes.into_iter().map(|(key, value)| match value {
        Attribute::Text(value) => text(key, &value),
        Attribute::Number(value) => attribute(key, any_value::Value::IntValue(value)),
    });
    Span {
        trace_id: span.context.trace_id.to_vec(),
        span_id: span.context.span_id.to_vec(),
        parent_span_id: span.parent.map(Vec::from).unwrap_or_default(),
        flags: u32::from(span.context.sampled),
        trace_state: span.context.state.unwrap_or_default(),
        name: span.name,
        kind: kind.into(),
        start_time_unix_nano: nanos(span.began),
        end_time_unix_nano: nanos(span.ended),
        attributes: attributes.collect(),
        links: span.links.into_iter().map(link_to).collect(),
        status: Some(Status {
            code: code.into(),
            ..Status::default()
        }),
        ..Span::default()
    }
}

fn link_to(context: TraceContext) -> span::Link {
    span::Link {
        trace_id: context.trace_id.to_vec(),
        span_id: context.span_id.to_vec(),
        trace_state: context.state.unwrap_or_default(),
        flags: u32::from(context.sampled),
        ..span::Link::default()
    }
}

fn metric_of(reading: &Reading, times: (u64, u64)) -> Metric {
    let definition = reading.definition;
    let temporality = AggregationTemporality::Cumulative.into();
    let data = match reading.kind {
        Kind::Counter => metric::Data::Sum(Sum {
            data_points: numbers(reading, times),
            aggregation_temporality: temporality,
            is_monotonic: true,
        }),
        Kind::Gauge => metric::Data::Gauge(Gauge {
            data_points: numbers(reading, times),
        }),
        Kind::Histogram => metric::Data::Histogram(Histogram {
            data_points: spreads(reading, times),
            aggregation_temporality: temporality,
        }),
    };
    let unit = [("_seconds", "s"), ("_bytes", "By")];
    let unit = unit.iter().find(|(end, _)| definition.name.ends_with(end));
    Metric {
        name: definition.name.into(),
        description: definition.help.into(),
        unit: unit.map_or("1", |(_, unit)| *unit).into(),
        data: Some(data),
        ..Metric::default()
    }
}

fn labels(definition: &Definition, series: &Series) -> Vec<KeyValue> {
    let pairs = definition.labels.iter().zip(&series.labels);
    pairs.map(|(name, value)| text(name, value)).collect()
}

fn numbers(reading: &Reading, (start, now): (u64, u64)) -> Vec<NumberDataPoint> {
    let points = reading.series.iter().filter_map(|series| {
        let value = match series.value {
            Value::Count(count) => number_data_point::Value::AsInt(i64::try_from(count).ok()?),
            Value::Level(level) => number_data_point::Value::AsDouble(level),
            Value::Spread(..) => return None,
        };
        Some(NumberDataPoint {
            attributes: labels(reading.definition, series),
            start_time_unix_nano: start,
            time_unix_nano: now,
            value: Some(value),
            ..NumberDataPoint::default()
        })
    });
    points.collect()
}

fn spreads(reading: &Reading, (start, now): (u64, u64)) -> Vec<HistogramDataPoint> {
    let points = reading.series.iter().filter_map(|series| {
        let Value::Spread(counts, sum) = &series.value else {
            return None;
        };
        Some(HistogramDataPoint {
            attributes: labels(reading.definition, series),
            start_time_unix_nano: start,
            time_unix_nano: now,
            count: counts.iter().sum(),
            sum: Some(*sum),
            bucket_counts: counts.clone(),
            explicit_bounds: reading.definition.bounds.to_vec(),
            ..HistogramDataPoint::default()
        })
    });
    points.collect()
}
