//! `/metrics` as a strict reader of Prometheus' text format sees it: whatever breaks the format
//! fails the test.

use std::collections::{BTreeMap, BTreeSet};

use countersign::telemetry::Metrics;

/// One scrape's metrics.
#[derive(Debug, Default)]
pub struct Scrape {
    /// Each metric's type.
    pub types: BTreeMap<String, String>,
    /// Each metric's help.
    pub helps: BTreeMap<String, String>,
    /// Each sample: its name, its labels, its value.
    pub samples: Vec<Sample>,
}

/// One line.
#[derive(Debug, Clone)]
pub struct Sample {
    /// The name, suffix included.
    pub name: String,
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// The value.
    pub value: f64,
}

/// Reads a node's metrics.
pub async fn scrape(url: &str) -> Scrape {
    let response = super::get(url).await.expect("an answer");
    assert_eq!(response.status(), 200);
    let content_type = response.headers()["content-type"].to_str().unwrap();
    assert_eq!(content_type, "text/plain; version=0.0.4; charset=utf-8");
    parse(&response.text().await.expect("text"))
}

/// Reads the metrics of no node.
pub fn read(metrics: &Metrics) -> Scrape {
    parse(&metrics.print().expect("metrics"))
}

/// A value that counts something.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is a count"
)]
pub fn whole(value: f64) -> u64 {
    assert!(value >= 0.0 && value.fract() == 0.0, "{value} is no count");
    value as u64
}

fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Reads the format.
pub fn parse(text: &str) -> Scrape {
    assert!(text.ends_with('\n'), "the last line ends");
    let mut scrape = Scrape::default();
    let mut seen = BTreeSet::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# HELP ") {
            let (name, help) = comment.split_once(' ').expect("a help");
            assert!(is_name(name) && !help.is_empty(), "{line}");
            let twice = scrape.helps.insert(name.to_owned(), help.to_owned());
            assert!(twice.is_none(), "{name} has two helps");
            name.clone_into(&mut current);
        } else if let Some(comment) = line.strip_prefix("# TYPE ") {
            let (name, kind) = comment.split_once(' ').expect("a type");
            assert_eq!(name, current, "HELP and TYPE stand together");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            scrape.types.insert(name.to_owned(), kind.to_owned());
        } else {
            assert!(!line.starts_with('#'), "{line}");
            let sample = sample(line);
            let kind = scrape.types.get(&current).expect("a type before samples");
            let suffix = sample.name.strip_prefix(&current);
            let suffix = suffix.unwrap_or_else(|| panic!("{line} stands under {current}"));
            match kind.as_str() {
                "histogram" => assert!(["_bucket", "_sum", "_count"].contains(&suffix), "{line}"),
                _ => assert_eq!(suffix, "", "{line}"),
            }
            assert_eq!(kind == "counter", current.ends_with("_total"), "{current}");
            assert_eq!(
                sample.labels.contains_key("le"),
                suffix == "_bucket",
                "{line}"
            );
            assert!(
                seen.insert((sample.name.clone(), sample.labels.clone())),
                "twice: {line}"
            );
            scrape.samples.push(sample);
        }
    }
    scrape.check_histograms();
    scrape
}

fn sample(line: &str) -> Sample {
    let (series, value) = line.rsplit_once(' ').expect("a value");
    let value = match value {
        "+Inf" => f64::INFINITY,
        number => number.parse().unwrap_or_else(|_| panic!("{line}")),
    };
    let Some((name, rest)) = series.split_once('{') else {
        assert!(is_name(series), "{line}");
        return Sample {
            name: series.to_owned(),
            labels: BTreeMap::new(),
            value,
        };
    };
    assert!(is_name(name), "{line}");
    let mut rest = rest.strip_suffix('}').expect("closed labels");
    let mut labels = BTreeMap::new();
    while !rest.is_empty() {
        let (label, after) = rest.split_once("=\"").expect("a label");
        assert!(is_name(label), "{line}");
        let (mut text, mut chars) = (String::new(), after.char_indices());
        let end = loop {
            match chars.next().unwrap_or_else(|| panic!("{line}")) {
                (at, '"') => break at,
                (_, '\\') => match chars.next().expect("an escape").1 {
                    'n' => text.push('\n'),
                    other @ ('"' | '\\') => text.push(other),
                    other => panic!("\\{other} in {line}"),
                },
                (_, other) => text.push(other),
            }
        };
        assert!(labels.insert(label.to_owned(), text).is_none(), "{line}");
        rest = &after[end + 1..];
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
    Sample {
        name: name.to_owned(),
        labels,
        value,
    }
}

impl Scrape {
    /// Buckets grow, end at infinity, and agree with the count.
    fn check_histograms(&self) {
        let mut series: BTreeMap<_, Vec<(f64, f64)>> = BTreeMap::new();
        for sample in &self.samples {
            let Some(name) = sample.name.strip_suffix("_bucket") else {
                continue;
            };
            let mut labels = sample.labels.clone();
            let bound = labels.remove("le").expect("a bound");
            let bound = match bound.as_str() {
                "+Inf" => f64::INFINITY,
                number => number.parse().expect("a bound"),
            };
            let buckets = series.entry((name.to_owned(), labels)).or_default();
            buckets.push((bound, sample.value));
        }
        for ((name, labels), buckets) in series {
            let grows = |pair: &[(f64, f64)]| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1;
            assert!(
                buckets.windows(2).all(grows),
                "{name} {labels:?}: {buckets:?}"
            );
            let (bound, count) = *buckets.last().unwrap();
            assert!(bound.is_infinite(), "{name} {labels:?}");
            let labels: Vec<_> = labels
                .iter()
                .map(|(k, v)| (k.as_str(), v.as_str()))
                .collect();
            assert!((self.value(&format!("{name}_count"), &labels) - count).abs() < 0.5);
            self.value(&format!("{name}_sum"), &labels);
        }
    }

    /// The value of exactly one sample.
    #[track_caller]
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.find(name, labels)
            .unwrap_or_else(|| panic!("no {name} {labels:?}"))
    }

    /// The same, or zero if the metric does not exist yet.
    pub fn count(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.find(name, labels).unwrap_or_default()
    }

    fn find(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let labels: BTreeMap<_, _> = labels
            .iter()
            .map(|(label, value)| ((*label).to_owned(), (*value).to_owned()))
            .collect();
        let mut found = self
            .samples
            .iter()
            .filter(|sample| sample.name == name && sample.labels == labels);
        found.next().map(|sample| sample.value)
    }
}
