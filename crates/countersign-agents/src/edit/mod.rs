//! Changes to files that belong to other programs. Pure: text in, text out. Everything else in them stays byte for byte, comments and
//! order included, and `remove` takes out exactly what `append` put in.

pub mod json;
mod scan;
mod tree;

/// Why a file cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct EditError {
    pub line: usize,
    pub problem: String,
}

/// A value that cannot be printed.
impl From<serde_json::Error> for EditError {
    fn from(error: serde_json::Error) -> Self {
        Self {
            line: 1,
            problem: error.to_string(),
        }
    }
}
