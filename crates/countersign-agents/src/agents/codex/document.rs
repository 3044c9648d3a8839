//! The TOML files of Codex, which people edit by hand.

use std::path::Path;

use toml_edit::{DocumentMut, TomlError};

use crate::install::file::InstallRefusal;

pub fn malformed(path: &Path, text: &str, error: &TomlError) -> InstallRefusal {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map_or(1, |before| before.matches('\n').count() + 1);
    let (path, problem) = (path.display(), error.message());
    InstallRefusal::Malformed(format!(
        "{path}, line {line}: {problem}; nothing was changed"
    ))
}

/// `toml_edit` writes every line break as a bare one.
pub fn printed(document: &DocumentMut, original: &str) -> String {
    let text = document.to_string();
    let breaks = original.matches('\n').count();
    if breaks > 0 && original.matches("\r\n").count() == breaks {
        return text.replace("\r\n", "\n").replace('\n', "\r\n");
    }
    text
}
