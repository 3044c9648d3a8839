//! Prompts to agents.

pub mod prompt;
pub mod status;
