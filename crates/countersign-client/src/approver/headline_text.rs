//! Words of a request as they stand in a sentence: short, on one line, nothing hidden.

use serde_json::{Map, Value};

use crate::visible;

pub(super) const MAX_CHARS: usize = 120;

pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.split('\n').map(str::trim);
    lines.filter(|line| !line.is_empty())
}

/// The first line, and a sign if there is more.
fn line(text: &str) -> String {
    let mut lines = lines(text);
    let first = lines.next().unwrap_or_default();
    let bare = first.trim_start_matches('#');
    let is_heading = bare.len() < first.len() && bare.starts_with(' ');
    let first = if is_heading {
        bare.trim_start_matches(' ')
    } else {
        first
    };
    let shown = cut(first, MAX_CHARS);
    if lines.next().is_some() && !shown.ends_with('…') {
        format!("{shown} …")
    } else {
        shown
    }
}

/// The first of these members that is a text, or a number. Nothing in it is hidden.
pub(super) fn first_text(members: &Map<String, Value>, names: &[&str]) -> Option<String> {
    let mut found = names.iter().filter_map(|name| match members.get(*name)? {
        Value::String(text) if !text.trim().is_empty() => Some(visible(&line(text))),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    });
    found.next()
}

/// Between more backticks than it has in a row.
pub(super) fn fenced(command: &str) -> String {
    let runs = command.split(|c| c != '`').map(str::len);
    let fence = "`".repeat(runs.max().unwrap_or_default() + 1);
    format!("{fence}{command}{fence}")
}
