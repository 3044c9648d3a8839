//! Extracts the paths that a tool call refers to. `None` if unsure, so that a person is asked.

use std::path::Path;

use countersign_client::shell::command_parts;
use countersign_protocol::text::is_invisible;
use serde_json::{Map, Value};

use crate::event::{ToolAction, ToolCall};
use crate::members::has_word;

/// Members of a tool's input that hold a path, in any agent.
const PATH_MEMBERS: &str = "
    absolute_path cwd dir dir_path directory filePath file_path file_paths notebook_path path
    paths relative_workspace_path root target_directories target_directory target_file workdir
    working_directory
";

/// With more names a call is not free.
pub(super) const MAX_NAMES: usize = 512;

/// No system opens a longer path. An agent that takes `..` out of it makes it shorter.
const MAX_PATH_BYTES: usize = 4_095;

fn is_file_url(text: &str) -> bool {
    let scheme = text.get(..5);
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"))
}

/// Why it cannot be said which file is meant.
pub(super) fn doubt_about(path: &str) -> Option<&'static str> {
    if path.len() > MAX_PATH_BYTES {
        Some("it is too long")
    } else if path.contains(is_invisible) {
        Some("it has invisible characters")
    } else if path.trim() != path {
        Some("it has white space at its ends")
    } else if path.starts_with('~') && path != "~" && !path.starts_with("~/") {
        Some("it begins with ~")
    } else if is_file_url(path) && (!path.starts_with("file:///") || path.contains('%')) {
        Some("it is a URL")
    } else {
        None
    }
}

impl ToolCall {
    /// Everything in it that names a file, as it is written; the directory that it works in too.
    /// `None` if there is too much, or one of them could mean anything.
    pub fn named_paths(&self) -> Option<Vec<String>> {
        let mut names = ToolNames {
            call: self,
            found: Vec::new(),
            has_path: false,
            climbs: false,
            is_doubtful: false,
        };
        match &self.action {
            ToolAction::Command {
                command, directory, ..
            } => {
                names.path(directory.as_deref().unwrap_or("."));
                let parts = command_parts(command).unwrap_or_default();
                let files = parts.iter().flat_map(|part| &part.redirections);
                names.found.extend(files.map(|it| it.file.clone()));
                for word in parts.iter().flat_map(|part| part.words.iter().skip(1)) {
                    names.found.push(word.clone());
                    // `--file=PATH`, `-fPATH`
                    let value = word.split_once('=').map(|(_, value)| value.to_owned());
                    names.found.extend(value);
                    if word.starts_with('-') {
                        let from = |at: usize| word[at..].to_owned();
                        names.found.extend(word.find('/').map(from));
                        names.found.extend(word.find("..").map(from));
                        names.found.extend(word.get(2..).map(str::to_owned));
                    }
                }
                if let Some(directory) = directory {
                    let below = |word: &String| Path::new(directory).join(word);
                    let below: Vec<_> = names.found.iter().map(below).collect();
                    let below = below.iter().map(|path| path.to_string_lossy().into_owned());
                    names.found.extend(below);
                }
                names.in_object(&self.rest);
            }
            action if action.class() == "edit" => {
                let files = self.changed_files().ok()?;
                names.found.extend(files.into_iter().map(str::to_owned));
                names.in_object(&self.rest);
            }
            // Its words are only shown.
            ToolAction::Question { .. } => {}
            _ => names.in_object(&self.input),
        }
        if self.action == ToolAction::Read && !names.has_path {
            names.found.push(".".to_owned());
        }
        let mut found = names.found;
        found.retain(|name| !name.is_empty());
        found.sort_unstable();
        found.dedup();
        let is_doubtful = names.is_doubtful || (names.has_path && names.climbs);
        (!is_doubtful && found.len() <= MAX_NAMES).then_some(found)
    }
}

struct ToolNames<'a> {
    call: &'a ToolCall,
    found: Vec<String>,
    has_path: bool,
    /// Whether a pattern goes to a parent directory; of which one, a path beside it says.
    climbs: bool,
    is_doubtful: bool,
}

impl ToolNames<'_> {
    fn in_object(&mut self, object: &Map<String, Value>) {
        for (name, value) in object {
            let is_glob = match name.as_str() {
                "exclude" | "glob" | "glob_pattern" | "include" => true,
                "pattern" => self.call.tool.to_lowercase().contains("glob"),
                _ => false,
            };
            let has_braces = |text: &str| is_glob && may_begin_elsewhere(text);
            self.is_doubtful |= match value {
                Value::String(text) => has_braces(text),
                Value::Array(list) => list.iter().filter_map(Value::as_str).any(has_braces),
                _ => false,
            };
            self.in_value(value, has_word(PATH_MEMBERS, name));
        }
    }

    fn in_value(&mut self, value: &Value, is_path: bool) {
        match value {
            Value::String(text) if is_path => {
                self.has_path = true;
                self.path(text);
            }
            Value::String(text) => self.other(text),
            Value::Array(list) => (list.iter()).for_each(|value| self.in_value(value, is_path)),
            Value::Object(object) => self.in_object(object),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn path(&mut self, text: &str) {
        self.is_doubtful |= doubt_about(text).is_some();
        // An empty one is the agent's own directory.
        self.text(if text.is_empty() { "." } else { text }, true);
    }

    /// A pattern, or a path under a name that is not known.
    fn other(&mut self, text: &str) {
        // Elsewhere it is more likely something that people read.
        let is_read = self.call.action == ToolAction::Read;
        let trimmed = text.trim_matches(|c: char| c.is_whitespace() || is_invisible(c));
        self.climbs |= is_read && trimmed.split('/').any(|part| part == "..");
        let is_like_one = trimmed.starts_with(['/', '~'])
            || is_file_url(trimmed)
            || trimmed.starts_with("./")
            || trimmed.contains("..");
        if is_like_one && text.len() <= MAX_PATH_BYTES {
            self.text(text, is_read);
            self.text(trimmed, is_read);
        } else {
            self.is_doubtful |= is_like_one && is_read;
        }
    }

    /// As it is, and the directory before the first part that is a pattern, if it is one.
    fn text(&mut self, text: &str, is_path: bool) {
        self.found.push(text.to_owned());
        let Some(pattern) = text.find(['*', '?', '[', '{']) else {
            return;
        };
        self.is_doubtful |= is_path && text[pattern..].contains("..");
        let before = match text[..pattern].rfind('/') {
            Some(0) => "/",
            Some(end) => &text[..end],
            None => ".",
        };
        self.found.push(before.to_owned());
    }
}

/// Whether one of the alternatives in braces begins at the root, or makes `..` with what is beside
/// it.
fn may_begin_elsewhere(text: &str) -> bool {
    let has = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
    has(&["{/", "{~", "{,", "{.,", ".{."])
        || (has(&["{"]) && has(&[",/", ",~", ",,", ",}", ",.}", ",.,", "/.,", "/.}"]))
        || (has(&[".{"]) && has(&[",."]))
}
