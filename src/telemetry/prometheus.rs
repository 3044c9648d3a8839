//! Metrics as Prometheus reads them: its text format, version 0.0.4.

use std::fmt::{self, Write as _};

use super::instrument::{Kind, Reading, Series, Value};

pub const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

#[must_use]
pub fn print(readings: &[Reading]) -> String {
    let mut text = String::with_capacity(64 << 10);
    for reading in readings {
        // Writing to a string does not fail.
        let _infallible = metric(&mut text, reading);
    }
    text
}

fn metric(text: &mut String, reading: &Reading) -> fmt::Result {
    let definition = reading.definition;
    let kind = match reading.kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram => "histogram",
    };
    let name = definition.name;
    writeln!(text, "# HELP {name} {}", definition.help)?;
    writeln!(text, "# TYPE {name} {kind}")?;
    for series in &reading.series {
        let labels = Labels(definition.labels, series, None);
        match &series.value {
            Value::Count(count) => writeln!(text, "{name}{labels} {count}")?,
            Value::Level(level) => writeln!(text, "{name}{labels} {}", number(*level))?,
            Value::Spread(counts, sum) => {
                let mut total = 0;
                let bounds = definition.bounds.iter().copied().chain([f64::INFINITY]);
                for (bound, count) in bounds.zip(counts) {
                    total += count;
                    let labels = Labels(definition.labels, series, Some(bound));
                    writeln!(text, "{name}_bucket{labels} {total}")?;
                }
                writeln!(text, "{name}_sum{labels} {}", number(*sum))?;
                writeln!(text, "{name}_count{labels} {total}")?;
            }
        }
    }
    Ok(())
}

/// The labels of a series, and the bound of a bucket of it.
struct Labels<'a>(&'a [&'static str], &'a Series, Option<f64>);

impl fmt::Display for Labels<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(names, series, bound) = self;
        let mut before = '{';
        for (name, value) in names.iter().zip(&series.labels) {
            write!(f, "{before}{name}=\"{}\"", escaped(value))?;
            before = ',';
        }
        if let Some(bound) = bound {
            write!(f, "{before}le=\"{}\"", number(*bound))?;
            before = ',';
        }
        if before == ',' {
            f.write_char('}')?;
        }
        Ok(())
    }
}

fn number(value: f64) -> String {
    if value == f64::INFINITY {
        return "+Inf".into();
    }
    value.to_string()
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', r"\\")
        .replace('"', "\\\"")
        .replace('\n', r"\n")
}
