//! Changes to files that belong to other programs. Pure: text in, text out. Everything else in them
//! stays byte for byte, comments and order included, and `remove` takes out exactly what `append`
//! put in.

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

impl EditError {
    fn at(text: &str, position: usize, problem: String) -> Self {
        let before = text.as_bytes().iter().take(position);
        let line = before.filter(|byte| **byte == b'\n').count() + 1;
        Self { line, problem }
    }
}

/// A value that cannot be printed.
impl From<serde_json::Error> for EditError {
    fn from(error: serde_json::Error) -> Self {
        Self::at("", 0, error.to_string())
    }
}
