//! Logs, on standard error. A line reads alone and filters by field; no secret, token or payload ever gets here.

use std::io::IsTerminal as _;

use tracing::{Level, Metadata};
use tracing_subscriber::filter::{FilterExt as _, filter_fn};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, fmt, registry};

use crate::config::{Log, LogFormat};

/// Whether an event may be logged at all. Libraries print headers, frames and statements at their finer levels, and with
/// them whatever our clients keep secret; no filter brings those out.
fn is_safe(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("countersign") || *metadata.level() <= Level::INFO
}

/// Starts logging, once per process; a second call changes nothing.
pub fn start(config: &Log) {
    let filter = EnvFilter::try_new(&config.filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let filter = filter.and(filter_fn(is_safe));
    let layer = fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    let _already_started = match config.format {
        LogFormat::Json => registry()
            .with(layer.json().flatten_event(true).with_filter(filter))
            .try_init(),
        LogFormat::Pretty => registry().with(layer.with_filter(filter)).try_init(),
    };
}
