//! Results go to standard output, remarks to standard error.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::Context as _;
use countersign::protocol::text::is_invisible;
use serde::Serialize;

pub fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print_line(&plain_json(&serde_json::to_string_pretty(value)?))
}

/// Escapes every character of JSON that could control a terminal or hide text.
pub fn plain_json(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        if character != '\n' && is_invisible(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _never = write!(plain, "\\u{unit:04x}");
            }
        } else {
            plain.push(character);
        }
    }
    plain
}

/// A list for programs, or a line for each entry.
pub fn print_list<T: Serialize>(
    json: bool,
    list: &[T],
    line: impl Fn(&T) -> String,
) -> anyhow::Result<()> {
    if json {
        return print_json(&list);
    }
    list.iter().try_for_each(|entry| print_line(&line(entry)))
}

pub fn print_line(text: &str) -> anyhow::Result<()> {
    writeln!(io::stdout(), "{text}").context("standard output")
}

/// An explanation for people, which scripts that read the result do not get.
#[expect(clippy::print_stderr, reason = "standard output is for results")]
pub fn remark(text: &str) {
    eprintln!("{text}");
}

/// Writes a decision. Only its owner may read the file, which has the artifact unencrypted.
pub fn save(file: &Path, text: &str) -> anyhow::Result<()> {
    let writing = || {
        let mut options = std::fs::OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(file)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    writing().with_context(|| {
        format!(
            "the decision was accepted, but {} cannot be written",
            file.display()
        )
    })
}

/// `once`, `2 times`
pub fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}
