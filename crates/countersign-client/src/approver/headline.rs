//! A sentence that says what a request would do. Pure. The page has the same sentences;
//! `tests/vectors/headlines.json` holds both to it. It only summarizes: the request itself is shown
//! below it.

use serde_json::{Map, Value};

use super::changed_files::{ChangedFile, FileChange, changed_files, named_files};
use super::headline_text::{MAX_CHARS, cut, fenced, first_text, lines};
use super::tool_headline::{question_headline, tool_headline};
use crate::visible;

const MAX_COMMAND_CHARS: usize = 240;
/// Of a longer patch only the beginning is read, and the list of its files.
const MAX_PATCH_CHARS: usize = 256 * 1024;
const MAX_MEMBERS: usize = 5;

/// `shell_line` quotes the words of a command.
pub fn headline(
    artifact_type: &str,
    payload: &Map<String, Value>,
    shell_line: impl Fn(&[&str]) -> String,
) -> String {
    let known = match payload.get("kind").and_then(Value::as_str) {
        Some("command") => command_headline(payload, shell_line),
        Some("patch") => Some(patch_headline(payload)),
        Some("plan") => Some(plan_headline(artifact_type, payload)),
        Some("tool") => Some(tool_headline(payload)),
        Some("question") => question_headline(payload),
        _ => None,
    };
    known.unwrap_or_else(|| other_headline(artifact_type, payload))
}

/// The agent's own reason, if it gives one beside what it would do.
pub fn agent_reason(payload: &Map<String, Value>) -> Option<&str> {
    let given = payload.get("options").and_then(|it| it.get("description"));
    let reason = given.or_else(|| payload.get("description"))?.as_str()?;
    (!reason.trim().is_empty()).then_some(reason)
}

fn command_text(text: &str) -> String {
    let joined = lines(text).collect::<Vec<_>>().join(" ⏎ ");
    fenced(&visible(&cut(&joined, MAX_COMMAND_CHARS)))
}

fn command_headline(
    payload: &Map<String, Value>,
    shell_line: impl Fn(&[&str]) -> String,
) -> Option<String> {
    let words = payload.get("argv").and_then(Value::as_array);
    let words: Option<Vec<&str>> = words.and_then(|it| it.iter().map(Value::as_str).collect());
    let words = words.filter(|words| !words.is_empty());
    let words = words.map(|words| command_text(&shell_line(&words)));
    let command = payload.get("command");
    let text = command.and_then(Value::as_str).map(command_text);
    let command = match (words, text) {
        (Some(words), Some(text)) => {
            return Some(format!(
                "Run {text} or {words} (the request names two commands)"
            ));
        }
        (Some(words), None) if command.is_none() => words,
        (None, Some(text)) if !payload.contains_key("argv") => text,
        _ => return None,
    };
    let directory = payload.get("directory").and_then(Value::as_str);
    Some(match directory.filter(|it| !it.is_empty()) {
        Some(directory) => {
            let mut names = directory.split('/').rev();
            let place = names.find(|name| !name.is_empty()).unwrap_or(directory);
            format!("Run {command} in {}", visible(&cut(place, MAX_CHARS)))
        }
        None => format!("Run {command}"),
    })
}

fn patch_headline(payload: &Map<String, Value>) -> String {
    let patch = payload.get("patch").and_then(Value::as_str);
    let patch = patch.unwrap_or_default();
    let beginning = patch.char_indices().nth(MAX_PATCH_CHARS);
    let beginning = beginning.map_or(patch, |(end, _)| &patch[..end]);
    let is_whole = beginning.len() == patch.len();
    let (changed, named) = (changed_files(beginning), named_files(payload));
    let is_listed = !named.is_empty() && (changed.is_empty() || !is_whole);
    let found = if is_listed { named } else { changed };
    let Some(ChangedFile { change, path, from }) = found.first() else {
        return "Apply a patch".to_owned();
    };
    let shown = |path: &str| visible(&cut(path, MAX_CHARS));
    let path = shown(path);
    if !is_whole && !is_listed {
        return format!("Change {path} and maybe more files");
    }
    if let (1, FileChange::Rename) = (found.len(), change) {
        return format!("Rename {} to {path}", shown(from));
    }
    let is_alike = found.iter().all(|file| file.change == *change);
    let verb = match change {
        FileChange::Create if is_alike => "Create",
        FileChange::Edit if is_alike => "Edit",
        FileChange::Delete if is_alike => "Delete",
        _ => "Change",
    };
    match found.len() - 1 {
        0 => format!("{verb} {path}"),
        1 => format!("{verb} {path} and 1 more file"),
        more => format!("{verb} {path} and {more} more files"),
    }
}

fn plan_headline(artifact_type: &str, payload: &Map<String, Value>) -> String {
    let title = first_text(payload, &["title", "text"]);
    match (artifact_type, title) {
        ("task.review", Some(title)) => format!("Do this task: {title}"),
        ("task.review", None) => "Do a task".to_owned(),
        ("checkpoint.review", Some(title)) => format!("Continue from this checkpoint: {title}"),
        ("checkpoint.review", None) => "Continue from a checkpoint".to_owned(),
        (_, Some(title)) => format!("Follow this plan: {title}"),
        (_, None) => "Follow a plan".to_owned(),
    }
}

/// A payload of no known kind.
fn other_headline(artifact_type: &str, payload: &Map<String, Value>) -> String {
    let names = [
        "title",
        "name",
        "summary",
        "question",
        "text",
        "description",
    ];
    match (artifact_type, first_text(payload, &names)) {
        ("task.review" | "checkpoint.review", title) => {
            let title = title.map(|title| ("title".to_owned(), title.into()));
            plan_headline(artifact_type, &title.into_iter().collect())
        }
        (_, Some(title)) => format!("Review {title}"),
        (_, None) => {
            let mut names: Vec<&str> = payload.keys().map(String::as_str).collect();
            names.sort_unstable();
            let shown = names[..names.len().min(MAX_MEMBERS)].join(", ");
            let more = if names.len() > MAX_MEMBERS {
                " …"
            } else {
                ""
            };
            let members = if names.is_empty() {
                "{}".to_owned()
            } else {
                visible(&cut(&format!("{shown}{more}"), MAX_CHARS))
            };
            format!("Review {members}")
        }
    }
}
