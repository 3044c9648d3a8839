//! `countersign mcp` as an agent runs it: a process, spoken to over pipes in plain JSON.

pub mod agent;
mod arguments;
mod asking;
mod ending;
mod lies;
mod messages;
