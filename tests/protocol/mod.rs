//! The protocol without a node: pure functions against known answers and properties.

mod characters;
mod json;
