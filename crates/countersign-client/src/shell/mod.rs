//! Reads shell commands: pure, and careful, because a prefix of words that a person permitted must
//! never cover a command that does something else.

mod options;
mod words;
pub mod wrappers;

pub use self::options::{chooses_something, has_options};
pub use self::words::{plain_words, shell_words};
