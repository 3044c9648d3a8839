//! Logs, on standard error. A line reads alone and filters by field; no secret, token or payload ever gets here.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use crate::config::{Log, LogFormat};

/// Starts logging, once per process; a second call changes nothing.
pub fn start(config: &Log) {
    let filter = EnvFilter::try_new(&config.filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    let _already_started = match config.format {
        LogFormat::Json => subscriber.json().flatten_event(true).try_init(),
        LogFormat::Pretty => subscriber.try_init(),
    };
}
