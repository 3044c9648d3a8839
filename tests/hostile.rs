//! The matrix of a hostile gateway: whatever it alters, swaps, repeats, reorders or invents, and
//! whatever it writes into its database, an enforcer does nothing that no pinned device approved,
//! and says why.

mod answers;
mod attempts;
mod comparing;
mod database;
mod decisions;
mod forged;
mod introductions;
mod inviting;
mod lists;
pub mod meddler;
mod pairing;
mod requests;
pub mod scene;
pub use scene::device_of;
mod second;
