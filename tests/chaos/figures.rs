//! Figures from samples: errors, and how long calls took.

use std::collections::BTreeMap;
use std::time::Duration;

use super::nodes::COUNT;
use super::record::{Outcome, Record, Sample};

/// The time that a failed call counts as: worse than any that was answered.
const FAILED: Duration = Duration::from_secs(10);
/// How long calls must be as in the calm phase to count as normal again.
const STEADY: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(250);
/// How much slower than in the calm phase is still normal.
pub const FACTOR: f64 = 3.0;

pub type Entrances = [bool; COUNT + 1];
pub const ALL: Entrances = [true; COUNT + 1];

/// The p99 of calls that began in a period, in milliseconds.
pub fn p99(record: &Record, from: Duration, to: Duration, through: Entrances) -> Option<f64> {
    let counts = |sample: &&Sample| {
        sample.timed
            && sample.begun >= from
            && sample.begun < to
            && through.get(sample.entrance).copied().unwrap_or_default()
    };
    let mut times: Vec<Duration> = ended_between(record, from, to + FAILED * 2)
        .iter()
        .filter(counts)
        .map(|sample| match sample.outcome {
            Outcome::Answered => sample.ended.saturating_sub(sample.begun),
            _ => FAILED,
        })
        .collect();
    times.sort_unstable();
    let at = (times.len() * 99 / 100).min(times.len().saturating_sub(1));
    times.get(at).map(|time| time.as_secs_f64() * 1_000.0)
}

/// Samples are noted as calls end, so those of a period lie together. No call lasts much longer
/// than `FAILED`.
fn ended_between(record: &Record, from: Duration, to: Duration) -> &[Sample] {
    let first = record.samples.partition_point(|sample| sample.ended < from);
    let end = record.samples.partition_point(|sample| sample.ended < to);
    record.samples.get(first..end).unwrap_or_default()
}

/// How long after `ended` calls were as in the calm phase again.
pub fn normal(record: &Record, ended: Duration, end: Duration, calm: f64) -> Option<Duration> {
    let mut from = ended;
    while from + STEADY <= end {
        let now = p99(record, from, from + STEADY, ALL);
        if now.is_some_and(|now| now <= calm * FACTOR) {
            return Some(from.saturating_sub(ended));
        }
        from += STEP;
    }
    None
}

/// The errors that clients saw in a period, by what they were.
pub fn errors(record: &Record, from: Duration, to: Duration) -> BTreeMap<String, usize> {
    let mut errors = BTreeMap::new();
    for sample in ended_between(record, from, to) {
        let name = match sample.outcome {
            Outcome::Answered => continue,
            Outcome::Status(status) => status.to_string(),
            Outcome::TimedOut => "timeout".to_owned(),
            Outcome::Broken => "broken".to_owned(),
        };
        *errors.entry(name).or_default() += 1;
    }
    errors
}
