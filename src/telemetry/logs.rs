//! Logs, on standard error or in a file. Each line is complete on its own and can be filtered by field. No
//! secret, token or payload is logged.

use std::fs::File;
use std::io::IsTerminal as _;

use tracing::{Level, Metadata};
use tracing_subscriber::filter::{FilterExt as _, Targets, filter_fn};
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{fmt, registry};

use crate::config::{Log, LogFormat};

/// Whether an event may be logged at all. Below INFO, libraries log headers, frames and statements,
/// which can contain clients' secrets; no configured filter enables those.
fn is_safe(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with("countersign") || *metadata.level() <= Level::INFO
}

/// Starts logging, once per process; a second call changes nothing.
pub fn start(config: &Log) {
    let ansi = std::io::stderr().is_terminal();
    start_with(config, BoxMakeWriter::new(std::io::stderr), ansi);
}

/// The same, in a file.
pub fn start_in(config: &Log, file: File) {
    start_with(config, BoxMakeWriter::new(file), false);
}

fn start_with(config: &Log, writer: BoxMakeWriter, ansi: bool) {
    let usual = || Targets::new().with_default(Level::INFO);
    let filter: Targets = config.filter.parse().unwrap_or_else(|_| usual());
    let filter = filter.and(filter_fn(is_safe));
    let layer = fmt::layer()
        .with_writer(writer)
        .with_ansi(ansi)
        .with_target(false);
    let _already_started = match config.format {
        LogFormat::Json => registry()
            .with(layer.json().flatten_event(true).with_filter(filter))
            .try_init(),
        LogFormat::Pretty => registry().with(layer.with_filter(filter)).try_init(),
    };
}
