//! The tests that drive nodes, commands and browsers: one file per behaviour, one binary, one
//! private PostgreSQL, a database for each test.

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
mod access;
mod api;
mod attack;
mod audit;
mod batcher;
mod batches;
mod browser;
mod bytes;
mod client;
mod collisions;
mod commands;
mod compat;
mod configuration;
mod conflicts;
mod cors;
mod decision;
mod deployment;
mod devices;
mod documents;
mod encryption;
mod faults;
mod generic;
mod history;
mod hooks;
mod hostile;
mod hot_updates;
mod idempotency;
mod inbox;
mod invitations;
mod life;
mod limits;
mod locks;
mod log;
mod lost;
mod migration;
mod model;
mod notifications;
mod page;
mod pairing;
mod platform;
mod pool;
mod presence;
mod prompt;
mod push;
mod races;
mod refresh;
mod retention;
mod row_security;
mod secrets;
mod serving;
mod session;
mod sign_in;
mod strict_json;
mod stuck;
mod submission;
mod teams;
mod telemetry;
mod tls;
mod tokens;
mod topology;
mod waking;
