//! What operators see: logs, metrics, traces. A node has metrics of its own, so that several live in one process; nothing
//! here is global but the logs. No label, span or line ever holds an id of a caller's choosing, a secret or a payload.

pub mod export;
pub mod instrument;
mod logs;
pub mod metrics;
mod otlp;
mod process;
pub mod prometheus;
pub mod routes;
pub mod trace;

pub use self::logs::start;
pub use self::metrics::Metrics;
pub use self::trace::Tracer;
