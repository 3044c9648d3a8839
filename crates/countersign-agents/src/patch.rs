//! Patches in the format of `apply_patch`, as far as needed to know which files they touch.

use std::collections::BTreeSet;

use countersign_protocol::text::is_invisible;

/// The operation of a patch on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PatchOperation {
    Add,
    Update,
    Delete,
    /// Another file is moved here.
    MoveTo,
}

const HEADINGS: [(&str, PatchOperation); 4] = [
    ("*** Add File:", PatchOperation::Add),
    ("*** Update File:", PatchOperation::Update),
    ("*** Delete File:", PatchOperation::Delete),
    ("*** Move to:", PatchOperation::MoveTo),
];

/// The files that a patch names. Lines of context that look like a heading count too: one file too
/// many does no harm. Agents differ in what they take off the ends of a path, so nothing is but the
/// space before it.
pub fn touched(text: &str) -> BTreeSet<(PatchOperation, &str)> {
    let mut found = BTreeSet::new();
    for line in text.lines() {
        let line = line.trim_start_matches(|c: char| c.is_whitespace() || is_invisible(c));
        for (heading, touch) in HEADINGS {
            if let Some(path) = line.strip_prefix(heading) {
                found.insert((touch, path.strip_prefix(' ').unwrap_or(path)));
            }
        }
    }
    found
}
