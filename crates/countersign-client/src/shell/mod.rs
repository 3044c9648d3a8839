//! Reads shell commands: pure, and careful, because a prefix of words that a person permitted must
//! never cover a command that does something else.

mod options;
mod parts;
mod pattern;
mod words;
pub mod wrappers;

pub use self::options::chooses_something;
pub use self::parts::{CommandPart, FileRedirection, command_parts};
pub use self::pattern::{PatternProblem, fits, may_be_free, pattern_problem};
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

/// Of these, the words that a model writes anew each time.
const COMMENTS: &[&str] = &["description", "timeout"];

/// Members of an edit's input that only explain it.
const EDIT_REMARKS: &[&str] = &["description", "explanation", "instruction", "instructions"];

/// The options of a command without comments; `None` if nothing is left.
pub(crate) fn without_comments(options: &Map<String, Value>) -> Option<Map<String, Value>> {
    let mut options = options.clone();
    options.retain(|name, _| !COMMENTS.contains(&name.as_str()));
    (!options.is_empty()).then_some(options)
}

/// Whether an edit comes with more than itself and its explanation.
pub(crate) fn has_edit_options(rest: &Map<String, Value>) -> bool {
    let is_remark = |name: &String| EDIT_REMARKS.contains(&name.as_str());
    !rest.keys().all(is_remark)
}

/// Whether a command comes with more than itself, such as a switch that turns a sandbox off. `rest`
/// is the tool's input without the command.
pub fn has_options(rest: &Map<String, Value>) -> bool {
    rest.keys().any(|name| !REMARKS.contains(&name.as_str()))
}
