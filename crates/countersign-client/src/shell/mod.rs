//! Reads shell commands: pure, and careful, because a prefix of words that a person permitted must
//! never cover a command that does something else.

mod options;
mod words;
pub mod wrappers;

pub use self::options::chooses_something;
pub use self::words::{plain_words, shell_words};

use serde_json::{Map, Value};

/// Members of a command's input that change nothing about what it does.
const REMARKS: &[&str] = &[
    "description",
    "is_background",
    "mode",
    "run_in_background",
    "timeout",
];

/// Whether a command comes with more than itself, such as a switch that turns a sandbox off. `rest`
/// is the tool's input without the command.
pub fn has_options(rest: &Map<String, Value>) -> bool {
    rest.keys().any(|name| !REMARKS.contains(&name.as_str()))
}
