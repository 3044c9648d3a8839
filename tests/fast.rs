//! The tests of pure code, which need neither PostgreSQL nor a browser: `make test-fast`.

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

mod agents;
mod api_documents;
mod characters;
mod corpus;
mod coverage;
mod edit;
mod headlines;
mod structure;
