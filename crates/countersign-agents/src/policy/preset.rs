//! The policies that Countersign brings along, and changes to a policy's file. Comments and
//! everything else in the file stay as they are.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use toml_edit::{Array, DocumentMut, Item, Table, value};

use super::found::FoundProject;
use super::project_rules::{FileDigests, bound_files};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicyKind {
    Careful,
    Project,
    ReadOnly,
}

impl PolicyKind {
    pub const ALL: [Self; 3] = [Self::Project, Self::Careful, Self::ReadOnly];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Careful => "careful",
            Self::Project => "project",
            Self::ReadOnly => "read-only",
        }
    }

    /// What passes, and the rest.
    pub const fn summary(self) -> [&'static str; 2] {
        match self {
            Self::Project => [
                "reading and editing in the project; its own build and test commands; removal of build output",
                "asked: network, git push, installs, other removals, anything outside of the project",
            ],
            Self::Careful => ["reading in the project", "asked: every change"],
            Self::ReadOnly => [
                "reading in the project",
                "denied: every change; asked: reading elsewhere, web pages, plans",
            ],
        }
    }

    const fn tools(self) -> &'static [&'static str] {
        match self {
            Self::Project => &["read", "read.commands", "edit.project", "internal"],
            Self::Careful | Self::ReadOnly => &["read", "read.commands", "internal"],
        }
    }
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for PolicyKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut kinds = Self::ALL.into_iter();
        let found = kinds.find(|kind| kind.as_str() == text);
        found.ok_or_else(|| "expected project, careful or read-only".to_owned())
    }
}

/// The text of a policy of this kind. An earlier text keeps its `[ask]`, its paths, its commands,
/// and its other projects: only the tools and `changes` become those of the kind.
pub fn with_preset(
    text: Option<&str>,
    kind: PolicyKind,
    found: Option<&FoundProject>,
) -> Result<String, String> {
    let mut document = parse(text.unwrap_or_default())?;
    if kind == PolicyKind::ReadOnly {
        document["changes"] = value("deny");
    } else {
        document.remove("changes");
    }
    let tools: Array = kind.tools().iter().copied().collect();
    table(document.as_table_mut(), "allow")?.insert("tools", value(tools));
    if let Some(found) = found.filter(|_| kind == PolicyKind::Project) {
        let project = project_table(&mut document, &found.root)?;
        let list = |items: &[String]| value(lines(items));
        project.insert("commands", list(&found.commands));
        project.insert("output", list(&found.output));
        project.insert("files", Item::Table(digests(&found.files)));
    }
    Ok(match text {
        Some(_) => document.to_string(),
        None => format!(
            "# Written by `countersign policy init {kind}`. To see what it does: countersign policy try -- COMMAND\n\n{document}"
        ),
    })
}

/// The text with further commands of a project. `current` are the digests of the files that say
/// what they do. An error if one of these was changed since the last commands were allowed.
pub fn with_commands(
    text: Option<&str>,
    root: &Path,
    commands: &[String],
    current: &FileDigests,
) -> Result<String, String> {
    let mut document = parse(text.unwrap_or_default())?;
    let project = project_table(&mut document, root)?;
    let known = project.get("commands").and_then(Item::as_array);
    let known = known.into_iter().flatten().filter_map(|it| it.as_str());
    let mut all: Vec<String> = known.map(str::to_owned).collect();
    let programs: Vec<_> = all.iter().map(|it| first_word(it).to_owned()).collect();
    all.extend(commands.iter().cloned());
    project.insert("commands", value(lines(&all)));
    let files = table(project, "files")?;
    for command in commands {
        for file in bound_files(first_word(command)) {
            let recorded = files.get(file).and_then(Item::as_str);
            let was_known = programs.iter().any(|it| it == first_word(command));
            let now = current.get(file);
            if (recorded.is_some() || was_known) && recorded != now.map(String::as_str) {
                return Err(format!(
                    "{file} has changed since its commands were allowed; look at it, then run: countersign policy init project"
                ));
            }
            if let Some(now) = now {
                files.insert(file, value(now));
            }
        }
    }
    Ok(document.to_string())
}

fn first_word(command: &str) -> &str {
    command.split(' ').next().unwrap_or(command)
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    let parsed = text.parse::<DocumentMut>();
    parsed.map_err(|error| format!("the policy cannot be read: {}", error.message()))
}

fn table<'t>(parent: &'t mut Table, name: &str) -> Result<&'t mut Table, String> {
    let item = parent
        .entry(name)
        .or_insert_with(|| Item::Table(Table::new()));
    let wrong = || format!("{name} in the policy is not a table of its own");
    item.as_table_mut().ok_or_else(wrong)
}

fn project_table<'d>(document: &'d mut DocumentMut, root: &Path) -> Result<&'d mut Table, String> {
    let root = root
        .to_str()
        .ok_or("the path of the project is not UTF-8")?;
    let projects = table(document.as_table_mut(), "project")?;
    projects.set_implicit(true);
    table(projects, root)
}

fn digests(files: &FileDigests) -> Table {
    let mut table = Table::new();
    table
        .decor_mut()
        .set_prefix("\n# If one of these files changes, the commands above need approval again.\n");
    for (name, digest) in files {
        table.insert(name, value(digest));
    }
    table
}

/// One to a line.
fn lines(items: &[String]) -> Array {
    let mut array = Array::new();
    for item in items {
        array.push(item.as_str());
        if let Some(last) = array.iter_mut().last() {
            last.decor_mut().set_prefix("\n    ");
        }
    }
    if !items.is_empty() {
        array.set_trailing_comma(true);
        array.set_trailing("\n");
    }
    array
}
