//! The log of decisions and outcomes: clients check that nothing was changed or removed. It is built
//! behind the exchanges, and nothing waits for it.

pub mod builder;
mod pass;
mod service;

pub use self::service::{LOG_NUMBER, LogService, ProvenEntry};
