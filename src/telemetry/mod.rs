//! Logs, metrics and traces for operators. Each node has its own metrics and tracer, since several
//! can run in one process; only the log is global. No label, span or log line holds an id that a
//! caller chose, a secret or a payload.

pub mod export;
pub mod instrument;
mod logs;
pub mod metrics;
mod process;
mod provider;
pub mod trace;

pub use self::logs::{start, start_in};
pub use self::metrics::Metrics;
pub use self::trace::SpanTracer;
