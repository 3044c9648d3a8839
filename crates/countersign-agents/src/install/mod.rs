//! Our hook in the settings of agents: what is written there, and what is found there.

pub mod file;
pub mod hooks;
pub mod inspect;
pub mod places;
pub mod shell;
