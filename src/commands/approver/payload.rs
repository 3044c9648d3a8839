//! The content of a request for a person's eyes: by kind, complete, with what could mislead made
//! visible.

use std::fmt::Write as _;

use countersign::client::{has_invisible, visible, visible_lines};
use countersign::e2e::PlainArtifact;
use serde_json::{Map, Value, json};

use super::artifact::members_of;
use super::questions::render_questions;
use crate::commands::terminal::{Colour, paint};

/// Longer ones may hide their end beyond the edge of a window.
const LONG_LINE: usize = 500;

/// The words of a command, if that is what the payload has.
pub fn words(payload: &Value) -> Option<Vec<&str>> {
    let words = payload["argv"].as_array()?.iter().map(Value::as_str);
    words
        .collect::<Option<Vec<_>>>()
        .filter(|words| !words.is_empty())
}

pub fn render_payload(mut payload: Map<String, Value>, colour: bool) -> String {
    let kind = payload
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let kind = kind.to_owned();
    let argv = words(&json!({ "argv": payload.get("argv") })).map(|words| shell_line(&words));
    let is_text = payload.contains_key("command");
    let is_in_background = kind == "command" && payload.get("background") == Some(&true.into());
    if is_in_background {
        payload.remove("background");
    }
    let files = payload.get("files").and_then(file_lines);
    let files = files.filter(|_| kind == "patch");
    if files.is_some() {
        payload.remove("files");
    }
    let mut take = |name: &str| match payload.get(name) {
        Some(Value::String(_)) => match payload.remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        },
        _ => None,
    };
    let mut text = String::new();
    if matches!(
        kind.as_str(),
        "command" | "patch" | "plan" | "tool" | "question"
    ) {
        let members = [("title", "title"), ("agent", "agent"), ("directory", "in")];
        for (member, word) in members {
            if let Some(value) = take(member) {
                let _never = writeln!(text, "{word} {}", visible(&value));
            }
        }
        if kind != "tool"
            && let Some(tool) = take("tool")
        {
            let _never = writeln!(text, "tool {}", visible(&tool));
        }
    }
    match kind.as_str() {
        "command" => {
            if let Some(program) = take("program") {
                let _never = writeln!(text, "program {}", visible(&program));
            }
            let in_background = is_in_background.then_some("in the background\n");
            text.push_str(in_background.unwrap_or_default());
            let line = match (argv, is_text) {
                (Some(line), false) => {
                    payload.remove("argv");
                    Some(line)
                }
                (None, true) => take("command").map(|command| visible_lines(&command)),
                // Two commands, or none: both are shown with the rest.
                (Some(_), true) | (None, false) => None,
            };
            if let Some(line) = line {
                payload.remove("kind");
                let _never = writeln!(text, "\n{}", paint_lines(colour, Colour::Bold, &line));
            }
        }
        "patch" => {
            text.push_str(&files.unwrap_or_default());
            if let Some(patch) = take("patch") {
                payload.remove("kind");
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(&patch_lines(&patch, colour));
            }
        }
        "plan" => {
            if let Some(plan) = take("text") {
                payload.remove("kind");
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(visible_lines(&plan).trim_end());
                text.push('\n');
            }
        }
        "question" => {
            text.push_str(&render_questions(&mut payload, colour).unwrap_or_default());
        }
        "tool" => {
            if let Some(tool) = take("tool") {
                payload.remove("kind");
                let _never = writeln!(
                    text,
                    "tool {}\n",
                    paint(colour, Colour::Bold, &visible(&tool))
                );
            }
            if let Some(input) = payload.remove("input") {
                text.push_str(&formatted(&input));
            }
        }
        _ => {}
    }
    if !payload.is_empty() {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&formatted(&Value::Object(payload)));
    }
    text
}

pub fn formatted(value: &Value) -> String {
    format!("{}\n", visible_lines(&format!("{value:#}")))
}

/// Each line by itself, so that colours end where it ends.
fn paint_lines(enabled: bool, colour: Colour, text: &str) -> String {
    let lines = text.lines().map(|line| paint(enabled, colour, line));
    lines.collect::<Vec<_>>().join("\n")
}

/// The files that a patch is about, with what it was made for. `None` if there is more to know of
/// them.
fn file_lines(files: &Value) -> Option<String> {
    let mut text = String::new();
    for file in files.as_array()? {
        let path = file["path"].as_str()?;
        let state = match &file["sha256"] {
            Value::Null => "new",
            Value::String(hash) => hash,
            _ => return None,
        };
        let _never = write!(text, "file {} ({})", visible(path), visible(state));
        let real = file.get("realPath");
        if let Some(real) = real {
            let _never = write!(text, ", a link to {}", visible(real.as_str()?));
        }
        if file.as_object()?.len() != 2 + usize::from(real.is_some())
            || file.get("sha256").is_none()
        {
            return None;
        }
        text.push('\n');
    }
    Some(text)
}

fn patch_lines(patch: &str, enabled: bool) -> String {
    let mut text = String::new();
    // Not `lines`: it would drop a carriage return, which is a change too.
    for line in patch.strip_suffix('\n').unwrap_or(patch).split('\n') {
        let shown = visible_lines(line);
        let shown = match line.chars().next() {
            Some('+') => paint(enabled, Colour::Green, &shown),
            Some('-') => paint(enabled, Colour::Red, &shown),
            Some('@') => paint(enabled, Colour::Dim, &shown),
            _ => shown,
        };
        text.push_str(&shown);
        text.push('\n');
    }
    text
}

/// Warns of things that a person could overlook.
pub fn warnings(artifact: &PlainArtifact) -> Vec<String> {
    let members = members_of(artifact);
    let mut found = Vec::new();
    let mut texts = Vec::new();
    collect(&members, &mut texts);
    if texts.iter().any(|text| has_invisible(text)) {
        found.push(
            "Careful: it has invisible or misleading characters, shown above as \\u{…} or in $'…'."
                .to_owned(),
        );
    }
    let longest = texts.iter().flat_map(|text| text.lines());
    let longest = longest
        .map(|line| line.chars().count())
        .max()
        .unwrap_or_default();
    if longest > LONG_LINE {
        found.push(format!("Careful: a line has {longest} characters."));
    }
    let payload = &members["payload"];
    let command = match words(payload) {
        Some(words) => words.concat(),
        None => (payload["command"].as_str().unwrap_or_default()).to_owned(),
    };
    let foreign = command
        .chars()
        .filter(|c| c.is_alphabetic() && !c.is_ascii());
    let mut foreign: Vec<_> = foreign.collect();
    foreign.sort_unstable();
    foreign.dedup();
    if !foreign.is_empty() {
        let shown = foreign
            .iter()
            .map(|c| format!("{c} (U+{:04X})", u32::from(*c)));
        found.push(format!(
            "Careful: the command has letters that may look like others: {}.",
            shown.collect::<Vec<_>>().join(", ")
        ));
    }
    found
}

fn collect<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(list) => list.iter().for_each(|value| collect(value, texts)),
        Value::Object(members) => {
            for (name, value) in members {
                texts.push(name);
                collect(value, texts);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Words as a shell needs them quoted.
pub fn shell_line(words: &[&str]) -> String {
    let words = words.iter().map(|word| shell_word(word));
    words.collect::<Vec<_>>().join(" ")
}

fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    let hidden = |c: char| visible(c.encode_utf8(&mut [0; 4])).chars().nth(1).is_some();
    if !word.chars().any(hidden) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let mut quoted = "$'".to_owned();
    for c in word.chars() {
        let _never = match c {
            '\\' | '\'' => write!(quoted, "\\{c}"),
            '\n' => write!(quoted, "\\n"),
            '\t' => write!(quoted, "\\t"),
            c if hidden(c) && c.is_ascii() => write!(quoted, "\\x{:02x}", u32::from(c)),
            c if hidden(c) => write!(quoted, "\\U{:08x}", u32::from(c)),
            c => write!(quoted, "{c}"),
        };
    }
    quoted.push('\'');
    quoted
}
