//! The results of a check.

use std::path::PathBuf;

/// How much is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogScope {
    /// The newest checkpoint, and entries that were not proven yet.
    New,
    /// Every entry that is remembered.
    All,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogState {
    /// The gateway shows no log, and has never shown one to this client.
    Missing,
    /// It has this many entries, as far as it could be read.
    Read {
        size: u64,
        epoch: u32,
    },
    Failed,
}

#[derive(Debug, Clone)]
pub struct LogReport {
    pub state: LogState,
    /// The key, as C2SP tools take it, and whether this check was the first to see it.
    pub key: Option<(String, bool)>,
    /// How many entries of this client the log has.
    pub proven: usize,
    /// How many may still come.
    pub open: usize,
    /// Each of them should be told to a person.
    pub problems: Vec<String>,
    /// Where the contradicting notes are kept.
    pub memory: PathBuf,
}

impl LogReport {
    pub(super) fn new(memory: PathBuf) -> Self {
        Self {
            state: LogState::Missing,
            key: None,
            proven: 0,
            open: 0,
            problems: Vec::new(),
            memory,
        }
    }
}

/// A claim of the gateway that is false, and the notes that show it.
pub(super) struct Contradiction {
    pub problem: String,
    pub notes: Vec<String>,
}
