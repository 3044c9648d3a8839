//! Commands of one project that its user lets pass. Each counts only as long as the files that say
//! what it does are those that the user had before them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

use super::command_rule::CommandRule;

/// Files that define commands or what they fetch, and the programs whose commands they define.
pub(super) const BOUND_FILES: &[(&str, &str)] = &[
    ("Cargo.toml", "cargo"),
    ("GNUmakefile", "make"),
    ("makefile", "make"),
    ("Makefile", "make"),
    ("build.gradle", "gradle gradlew"),
    ("build.gradle.kts", "gradle gradlew"),
    ("settings.gradle", "gradle gradlew"),
    ("settings.gradle.kts", "gradle gradlew"),
    ("go.mod", "go"),
    ("go.work", "go"),
    ("justfile", "just"),
    ("Justfile", "just"),
    (".justfile", "just"),
    ("package.json", "bun npm pnpm yarn"),
    ("pom.xml", "mvn mvnw"),
];

/// The digest of a file that exists and cannot be read, or not completely. It is never the same.
pub(super) const UNREADABLE: &str = "unreadable";

/// SHA-256 by the name of the file; a file that does not exist is left out.
pub type FileDigests = BTreeMap<String, String>;

#[derive(Deserialize, Default, Clone)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ProjectTable {
    pub commands: Vec<String>,
    pub output: Vec<String>,
    pub files: FileDigests,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProjectRules {
    pub commands: Vec<CommandRule>,
    /// Directories of build output: what is in them may be removed.
    pub output: Vec<PathBuf>,
    recorded: FileDigests,
    current: FileDigests,
}

impl ProjectRules {
    pub fn parse(table: &ProjectTable, project: &str) -> Result<Self, String> {
        let place = PathBuf::from(project);
        if !place.is_absolute() {
            return Err(format!("project: {project:?} must begin with /"));
        }
        let is_known = |name: &&String| BOUND_FILES.iter().any(|(file, _)| file == name);
        if let Some(name) = table.files.keys().find(|name| !is_known(name)) {
            return Err(format!(
                "project: {name:?} is not a file that defines commands"
            ));
        }
        let below = |name: &String| {
            let is_plain = !name.is_empty() && !name.contains('/') && !name.starts_with('.');
            let wrong = || format!("output: {name:?} must be the name of a directory");
            is_plain.then(|| place.join(name)).ok_or_else(wrong)
        };
        let commands = table.commands.iter().map(|text| CommandRule::parse(text));
        Ok(Self {
            commands: commands.collect::<Result<_, _>>()?,
            output: table.output.iter().map(below).collect::<Result<_, _>>()?,
            recorded: table.files.clone(),
            current: FileDigests::new(),
        })
    }

    pub fn compare_with(&mut self, current: FileDigests) {
        self.current = current;
    }

    /// The file that was made, changed or removed since the commands of this program were allowed.
    pub fn changed_file(&self, program: &str) -> Option<&'static str> {
        let mut bound = bound_files(program);
        bound.find(|file| {
            let (then, now) = (self.recorded.get(*file), self.current.get(*file));
            then != now || now.is_some_and(|digest| digest == UNREADABLE)
        })
    }
}

/// The files that say what the commands of a program do.
pub(super) fn bound_files(program: &str) -> impl Iterator<Item = &'static str> {
    let name = program.rsplit('/').next().unwrap_or(program).to_owned();
    let of_program = BOUND_FILES.iter().filter(move |(_, programs)| {
        let mut programs = programs.split_ascii_whitespace();
        programs.any(|program| program == name)
    });
    of_program.map(|(file, _)| *file)
}

/// Whether a file of this name says what commands do, wherever it is.
pub(super) fn is_bound_file(name: &str) -> bool {
    BOUND_FILES
        .iter()
        .any(|(file, _)| file.eq_ignore_ascii_case(name))
}
