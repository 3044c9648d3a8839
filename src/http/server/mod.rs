//! Accepts connections and speaks HTTP/1 and HTTP/2. It knows no route, caller or exchange.
//! No peer can hold a connection, memory or a task beyond its limits, however it sends or reads.
//! A stopping node ends connections in order, without losing an answer.

pub(super) mod charged_body;
mod client_certificate;
mod connection;
pub mod connection_limit;
pub(super) mod drain_body;
mod h1_framing;
mod h2_framing;
mod h2_stall;
mod http_version;
pub mod listener_mode;
pub(super) mod memory;
pub(super) mod metered;
pub mod metrics;
pub mod peer;
pub mod proxied;
pub(super) mod relay;
mod self_or_ca;
pub mod serve;
pub mod tls;
mod watchdog;
