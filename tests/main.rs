//! The tests: one file per behaviour, one binary, one private PostgreSQL, a database for each test.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]
#![allow(
    missing_docs,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "nobody calls a test"
)]

mod support;

mod aborts;
mod commands;
mod documents;
mod faults;
mod access;
mod bytes;
mod decision;
mod idempotency;
mod inbox;
mod life;
mod pool;
mod platform;
mod protocol;
mod waking;
mod refresh;
mod strict_json;
mod submission;
mod batcher;
mod batches;
mod history;
mod life;
mod locks;
mod lost;
mod protocol;
mod races;
mod twins;
