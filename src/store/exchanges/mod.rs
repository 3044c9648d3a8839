//! Exchanges: submission, decision, the end of an exchange, inboxes, idempotency keys.

pub mod decide;
pub mod end_exchange;
pub mod exchange;
pub mod idempotency;
pub mod inbox;
pub mod listing;
pub mod pending;
pub mod refresh;
pub mod reseal;
pub(in crate::store) mod submission;
pub mod submit;
