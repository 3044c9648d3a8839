//! Prompts to agents, and the sessions that agents report.

pub(in crate::gateway) mod prompt;
pub(in crate::gateway) mod session;
