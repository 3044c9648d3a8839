//! Edits: a file as it will be, and the difference to the file as it is.

use serde_json::Value;
use similar::TextDiff;
use std::time::Duration;

use crate::agent::Agent;
use crate::event::{CellChange, MatchCount, TextReplacement};

/// Finding the smallest difference may take long; then a larger one, just as true, is shown.
const DIFF_TIMEOUT: Duration = Duration::from_millis(300);

/// The largest file after an edit, and the largest sum of texts that the edits of one call search.
const MAX_TEXT_BYTES: u64 = 32 << 20;
const MAX_SEARCHED_BYTES: usize = 1 << 30;

/// Applies replacements one after the other, as the agent will.
pub fn replaced(
    agent: Agent,
    path: &str,
    base: Option<&[u8]>,
    edits: &[TextReplacement],
) -> Result<String, String> {
    let text = match base {
        None => "",
        Some(bytes) => std::str::from_utf8(bytes)
            .map_err(|_| format!("{path} is not UTF-8 text, so the edit cannot be shown"))?,
    };
    // Agents see files with ends of lines as on Unix, and write them back as they were.
    let has_crlf = text.contains("\r\n");
    let mut text = if has_crlf {
        text.replace("\r\n", "\n")
    } else {
        text.to_owned()
    };
    let mut searched = 0;
    for (index, edit) in edits.iter().enumerate() {
        searched += text.len();
        if searched > MAX_SEARCHED_BYTES {
            return Err(format!(
                "too many edits of {path} at once; make smaller changes; nobody was asked"
            ));
        }
        let mut old = edit.old.replace("\r\n", "\n");
        if old.is_empty() {
            if index > 0 || !text.trim().is_empty() {
                return Err(format!(
                    "the text to replace is empty, but {path} is not; nobody was asked"
                ));
            }
            text.clone_from(&edit.new);
            continue;
        }
        let count = text.matches(&old).count() as u64;
        let wrong = match (count, edit.occurrences) {
            (0, _) if base.is_none() => Some("which does not exist".to_owned()),
            (0, _) => Some("which does not contain it".to_owned()),
            (1, MatchCount::One) | (_, MatchCount::All) => None,
            (_, MatchCount::One) => Some(format!("which contains it {count} times")),
            (count, MatchCount::Exactly(expected)) if count == expected => None,
            (count, MatchCount::Exactly(expected)) => Some(format!(
                "which contains it {count} times instead of {expected}"
            )),
        };
        if let Some(wrong) = wrong {
            return Err(format!(
                "the edit replaces text in {path}, {wrong}; read the file again; nobody was asked"
            ));
        }
        if (text.len() as u64).saturating_add(count.saturating_mul(edit.new.len() as u64))
            > MAX_TEXT_BYTES
        {
            return Err(format!(
                "{path} would be too large to show; make smaller changes; nobody was asked"
            ));
        }
        // Claude Code does so.
        if agent.definition().deletes_line_ends && edit.new.is_empty() && !old.ends_with('\n') {
            let line = format!("{old}\n");
            if text.contains(&line) {
                old = line;
            }
        }
        text = text.replace(&old, &edit.new);
    }
    Ok(if has_crlf {
        text.replace("\r\n", "\n").replace('\n', "\r\n")
    } else {
        text
    })
}

/// The source of a notebook's cell before and after.
pub fn cell_sources(
    path: &str,
    base: Option<&[u8]>,
    cell: Option<&str>,
    change: CellChange,
    source: &str,
) -> Result<(String, String), String> {
    let Some(base) = base else {
        return Err(format!("{path} does not exist; nobody was asked"));
    };
    let notebook: Value = serde_json::from_slice(base)
        .map_err(|error| format!("{path} is not a notebook: {error}; nobody was asked"))?;
    let cells = notebook["cells"].as_array();
    let cells = cells.ok_or_else(|| format!("{path} has no cells; nobody was asked"))?;
    let named = |id: &str| {
        let number = id.strip_prefix("cell-").and_then(|it| it.parse().ok());
        let by_id = cells.iter().find(|cell| cell["id"] == id);
        by_id.or_else(|| number.and_then(|number: usize| cells.get(number)))
    };
    let missing = |id: &str| format!("{path} has no cell {id:?}; nobody was asked");
    let found = cell.map(|id| named(id).ok_or_else(|| missing(id)));
    let found = found.transpose()?;
    match (change, found) {
        // It goes behind the cell that is named.
        (CellChange::Insert, _) => Ok((String::new(), source.to_owned())),
        (CellChange::Replace, Some(cell)) => Ok((source_of(cell), source.to_owned())),
        (CellChange::Delete, Some(cell)) => Ok((source_of(cell), String::new())),
        (CellChange::Replace | CellChange::Delete, None) => Err(format!(
            "the call does not say which cell of {path} it means; nobody was asked"
        )),
    }
}

fn source_of(cell: &Value) -> String {
    match &cell["source"] {
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        Value::String(text) => text.clone(),
        _ => String::new(),
    }
}

/// A unified diff. `None` is a file that does not exist.
pub fn diff(name: &str, old: Option<&[u8]>, new: Option<&str>) -> String {
    let (from, to) = (
        old.map_or("/dev/null".to_owned(), |_| format!("a/{name}")),
        new.map_or("/dev/null".to_owned(), |_| format!("b/{name}")),
    );
    let (text, is_binary) = match old.map(std::str::from_utf8) {
        None => ("", false),
        Some(Ok(text)) if !text.contains('\0') => (text, false),
        Some(_) => ("", true),
    };
    let mut shown = String::new();
    if is_binary {
        let bytes = old.map_or(0, <[u8]>::len);
        shown = format!("Binary file {name} ({bytes} bytes) is replaced\n");
    }
    let diff =
        (TextDiff::configure().timeout(DIFF_TIMEOUT)).diff_lines(text, new.unwrap_or_default());
    shown + &diff.unified_diff().header(&from, &to).to_string()
}
