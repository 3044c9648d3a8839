//! Counters, gauges and histograms made of atomics: recording takes no lock that anyone holds for long and allocates
//! nothing once a series exists. What they are called stands in `metrics`, how they are printed in `prometheus`.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

#[derive(Debug, PartialEq)]
pub struct Definition {
    pub name: &'static str,
    pub help: &'static str,
    pub labels: &'static [&'static str],
    /// The upper bounds of its buckets, for a histogram.
    pub bounds: &'static [f64],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows.
    Counter,
    Gauge,
    Histogram,
}

pub struct Reading {
    pub definition: &'static Definition,
    pub kind: Kind,
    pub series: Vec<Series>,
}

pub struct Series {
    /// The values of its labels, in the order of their names.
    pub labels: Vec<String>,
    pub value: Value,
}

pub enum Value {
    Count(u64),
    Level(f64),
    /// A histogram: how many values fell into each bucket (one more than there are bounds), and their sum.
    Spread(Vec<u64>, f64),
}

/// Anything that can stand in the table of metrics.
pub trait Instrument {
    const KIND: Kind;

    fn new(definition: &'static Definition) -> Self;

    fn read(&self) -> Vec<Series>;
}

/// A series without labels.
fn bare(value: Value) -> Vec<Series> {
    vec![Series {
        labels: Vec::new(),
        value,
    }]
}

/// Something that only grows.
#[derive(Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn increment(&self) {
        self.add(1);
    }

    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }
}

impl Instrument for Counter {
    const KIND: Kind = Kind::Counter;

    fn new(_: &'static Definition) -> Self {
        Self::default()
    }

    fn read(&self) -> Vec<Series> {
        bare(Value::Count(self.0.load(Ordering::Relaxed)))
    }
}

/// A number with a fraction, in an atomic's bits.
#[derive(Default)]
struct Real(AtomicU64);

impl Real {
    fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }

    fn add(&self, amount: f64) {
        let mut bits = self.0.load(Ordering::Relaxed);
        loop {
            let sum = (f64::from_bits(bits) + amount).to_bits();
            match self
                .0
                .compare_exchange_weak(bits, sum, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => bits = now,
            }
        }
    }
}

#[derive(Default)]
pub struct Gauge(Real);

impl Gauge {
    pub fn set(&self, value: f64) {
        self.0.0.store(value.to_bits(), Ordering::Relaxed);
    }

    pub fn set_count(&self, count: usize) {
        self.set(u32::try_from(count).map_or(f64::INFINITY, f64::from));
    }

    pub fn add(&self, amount: f64) {
        self.0.add(amount);
    }
}

impl Instrument for Gauge {
    const KIND: Kind = Kind::Gauge;

    fn new(_: &'static Definition) -> Self {
        Self::default()
    }

    fn read(&self) -> Vec<Series> {
        bare(Value::Level(self.0.get()))
    }
}

pub struct Histogram {
    bounds: &'static [f64],
    /// One more than there are bounds: the last is for what is beyond them.
    counts: Box<[AtomicU64]>,
    sum: Real,
}

impl Histogram {
    pub fn observe(&self, value: f64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        if let Some(count) = self.counts.get(bucket) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.sum.add(value);
    }

    /// Notes a time, in seconds.
    pub fn took(&self, time: Duration) {
        self.observe(time.as_secs_f64());
    }

    #[must_use]
    pub fn value(&self) -> Value {
        let counts = self.counts.iter();
        let counts = counts.map(|count| count.load(Ordering::Relaxed)).collect();
        Value::Spread(counts, self.sum.get())
    }
}

impl Instrument for Histogram {
    const KIND: Kind = Kind::Histogram;

    fn new(definition: &'static Definition) -> Self {
        Self {
            bounds: definition.bounds,
            counts: std::iter::repeat_with(AtomicU64::default)
                .take(definition.bounds.len() + 1)
                .collect(),
            sum: Real::default(),
        }
    }

    fn read(&self) -> Vec<Series> {
        bare(self.value())
    }
}

/// A metric with `N` labels whose values are words of this program: never anything a caller sent.
pub struct Family<M, const N: usize> {
    definition: &'static Definition,
    /// Locked for writing only when a series is new.
    series: RwLock<HashMap<[&'static str; N], Arc<M>>>,
}

impl<M: Instrument, const N: usize> Family<M, N> {
    /// The series with these label values, to keep or to use at once.
    pub fn of(&self, labels: [&'static str; N]) -> Arc<M> {
        let known = self.series.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(series) = known.get(&labels) {
            return Arc::clone(series);
        }
        drop(known);
        let mut all = self.series.write().unwrap_or_else(PoisonError::into_inner);
        let series = all
            .entry(labels)
            .or_insert_with(|| Arc::new(M::new(self.definition)));
        Arc::clone(series)
    }
}

impl<M: Instrument, const N: usize> Instrument for Family<M, N> {
    const KIND: Kind = M::KIND;

    fn new(definition: &'static Definition) -> Self {
        Self {
            definition,
            series: RwLock::default(),
        }
    }

    fn read(&self) -> Vec<Series> {
        let all = self.series.read().unwrap_or_else(PoisonError::into_inner);
        let mut sorted: Vec<_> = all.iter().collect();
        sorted.sort_by_key(|(labels, _)| **labels);
        let read = sorted.into_iter().flat_map(|(labels, series)| {
            series.read().into_iter().map(|one| Series {
                labels: labels.iter().map(|label| (*label).to_owned()).collect(),
                ..one
            })
        });
        read.collect()
    }
}
