//! Changes to files that belong to other programs. Pure: text in, text out. Whatever is not changed stays byte for byte,
//! comments and order included, and what `remove` takes out is what `append` put in.

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
