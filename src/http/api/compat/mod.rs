//! Compatibility with the published client libraries of an older dialect, for credentials that were
//! created with the profile `compat`; see docs/compatibility.md. It translates, and holds no rule:
//! the use cases are those of every other caller. Handlers and layers outside of this folder ask
//! for the profile and then call into it.

pub mod caller;
pub mod credential;
pub mod pairing;
pub mod reading;
pub mod refusal;
pub mod routes;
