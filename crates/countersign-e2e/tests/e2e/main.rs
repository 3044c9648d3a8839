//! End-to-end cryptography: known answers, and that nothing altered, swapped, repeated or invented
//! is ever accepted.

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

mod bundles;
mod client_vectors;
mod control;
mod decisions;
mod devices;
mod endorsement;
mod grants;
mod hints;
mod introduction;
mod invitation;
mod judging;
mod log;
mod operators;
mod outcome;
mod outcome_set;
mod pairing;
mod people;
mod properties;
mod receipt;
mod receipt_cases;
mod refused;
mod refused_lists;
mod repository;
mod rfc9180;
mod rule;
mod rule_cases;
mod sealing;
mod several;
mod stored_request;
mod team;
mod team_call;
mod team_cases;
mod team_consents;
mod team_receipt_cases;
mod team_receipts;
mod team_rules;
mod team_scene;
mod texts;
mod vectors;
mod vectors_sealed;
mod vote_cases;
mod votes;
