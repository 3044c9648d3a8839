//! The table in `coverage.md` is whole and true: every row of the specification is there, and every
//! test it names exists.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const TABLE: &str = include_str!("coverage.md");

/// How many rows each section of the specification has.
const ROWS: [(&str, usize); 21] = [
    ("2.1", 12),
    ("2.2", 12),
    ("2.3", 7),
    ("2.4", 9),
    ("2.5", 6),
    ("2.6", 11),
    ("2.7", 5),
    ("2.8", 4),
    ("2.9", 6),
    ("2.10", 6),
    ("3", 5),
    ("4.1", 16),
    ("4.2", 3),
    ("4.3", 5),
    ("4.4", 2),
    ("4.5", 6),
    ("4.6", 3),
    ("5", 7),
    ("6", 14),
    ("7", 15),
    ("8", 8),
];

/// The table's rows, by section.
fn rows() -> BTreeMap<String, Vec<(&'static str, &'static str)>> {
    let mut rows: BTreeMap<String, Vec<_>> = BTreeMap::new();
    let mut section = String::new();
    for line in TABLE.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            heading.split(' ').next().unwrap().clone_into(&mut section);
        } else if let Some(row) = line.strip_prefix("| ") {
            let (row, tests) = row.split_once(" | ").unwrap();
            if row != "row" {
                let tests = tests.strip_suffix(" |").unwrap();
                rows.entry(section.clone()).or_default().push((row, tests));
            }
        }
    }
    rows
}

/// The package and its crates.
fn directories() -> impl Iterator<Item = PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = std::fs::read_dir(root.join("crates")).unwrap();
    let crates = crates.map(|entry| entry.unwrap().path());
    std::iter::once(root.to_owned()).chain(crates)
}

/// Whether a test of this path is in the sources.
fn exists(test: &str) -> bool {
    let (module, name) = test.rsplit_once("::").unwrap();
    let module = module.replace("::", "/");
    let found = directories().find_map(|directory| {
        let module = directory.join("tests").join(&module);
        let file = std::fs::read_to_string(module.with_extension("rs"));
        file.or_else(|_| std::fs::read_to_string(module.join("mod.rs")))
            .ok()
    });
    let Some(source) = found else {
        return false;
    };
    let marks = [format!("]\nasync fn {name}("), format!("]\nfn {name}(")];
    marks.iter().any(|mark| {
        source
            .find(mark.as_str())
            .is_some_and(|at| source[..=at].rsplit('\n').next().unwrap().contains("test"))
    })
}

#[test]
fn every_row_of_the_specification_has_its_tests() {
    let rows = rows();
    let counted: BTreeMap<_, _> = rows
        .iter()
        .map(|(at, rows)| (at.as_str(), rows.len()))
        .collect();
    assert_eq!(counted, ROWS.into());
    for (section, rows) in &rows {
        for (row, tests) in rows {
            let named: Vec<_> = tests.split('`').skip(1).step_by(2).collect();
            assert!(!named.is_empty(), "{section} {row} is shown by nothing");
            for test in named {
                assert!(exists(test), "{section} {row}: there is no test {test}");
            }
        }
    }
}

/// The manifests build no test binaries of the libraries.
#[test]
fn no_test_is_where_it_would_not_run() {
    let mut directories: Vec<_> = directories()
        .map(|directory| directory.join("src"))
        .collect();
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let has_test = text.contains("#[cfg(test)]") || text.contains("#[test]");
                assert!(!has_test, "{}", path.display());
            }
        }
    }
}
