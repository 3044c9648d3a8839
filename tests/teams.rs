//! Teams at the gateway: chains of states, joining, and the pairings that follow from them.

mod joining;
mod pairing;
mod races;
pub mod scene;
mod states;
