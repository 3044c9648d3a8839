//! A project as `policy init` finds it: its own commands to build and to test, its build output,
//! and the files that say what these commands do.

use std::fs;
use std::path::{Path, PathBuf};

use countersign_protocol::canonical::Sha256Hex;
use serde_json::Value;

use super::project_rules::{BOUND_FILES, FileDigests, UNREADABLE, bound_files};
use crate::plain_file::{bytes, open};

const MAX_FILE_BYTES: u64 = 4 << 20;
/// More members of a workspace are not looked at, and the commands of cargo are asked.
const MAX_MEMBERS: usize = 500;

/// A file that tells a project of some kind, and its commands.
const COMMANDS: &[(&str, &[&str])] = &[
    (
        "Cargo.toml",
        &[
            "cargo build [--release] [--workspace] [--locked] [--quiet] [-q]",
            "cargo build --all-targets [--release] [--workspace] [--locked] [--quiet] [-q]",
            "cargo check [--release] [--workspace] [--locked] [--quiet] [-q]",
            "cargo check --all-targets [--release] [--workspace] [--locked] [--quiet] [-q]",
            "cargo clippy [--workspace] [--locked] [--quiet] [-q]",
            "cargo clippy --all-targets [--workspace] [--locked] [--quiet] [-q]",
            "cargo fmt [--all] [--check]",
            "cargo test [--release] [--workspace] [--lib] [--bins] [--locked] [--no-fail-fast] [--quiet] [-q] …",
            "cargo test --all-targets [--release] [--workspace] [--locked] [--quiet] [-q]",
        ],
    ),
    ("go.mod", &["go build …", "go test [-v] …", "go vet …"]),
    ("pyproject.toml", &["pytest [-q] [-v] [-vv] …"]),
    ("pytest.ini", &["pytest [-q] [-v] [-vv] …"]),
    ("pom.xml", &["mvn compile", "mvn test", "mvn verify"]),
    (
        "gradlew",
        &["./gradlew build", "./gradlew check", "./gradlew test"],
    ),
];

/// Scripts and targets that build or test, as projects call them.
const TASKS: &str = "
    build check compile fmt format lint test tests typecheck type-check types unit
";

/// A script with one of these in it does more than build and test.
const FAR_TASKS: [&str; 10] = [
    "curl", "deploy", "docker", "install", "publish", "push", "release", "rsync", "ssh", "wget",
];

/// Directories of build output, if the project has git ignore them.
const OUTPUT: &str = "build coverage dist out target";

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FoundProject {
    pub root: PathBuf,
    /// Each as an entry of a policy.
    pub commands: Vec<String>,
    pub output: Vec<String>,
    pub files: FileDigests,
}

impl FoundProject {
    /// `root` is the project's directory, links followed.
    pub fn look_at(root: &Path) -> Self {
        let mut commands = Vec::new();
        for (file, listed) in COMMANDS {
            if read(&root.join(file)).is_some() {
                commands.extend(listed.iter().map(|command| (*command).to_owned()));
            }
        }
        commands.extend(scripts(root));
        commands.extend(targets(
            root,
            "make",
            &["GNUmakefile", "makefile", "Makefile"],
        ));
        commands.extend(targets(
            root,
            "just",
            &["justfile", "Justfile", ".justfile"],
        ));
        commands.dedup();
        let files = bound_digests(root);
        // Of these nobody could say later whether they still do the same.
        let is_unreadable = |file: &str| files.get(file).is_some_and(|it| it == UNREADABLE);
        let program = |command: &str| command.split(' ').next().unwrap_or_default().to_owned();
        commands.retain(|command| !bound_files(&program(command)).any(is_unreadable));
        Self {
            root: root.to_owned(),
            commands,
            output: output(root),
            files,
        }
    }
}

/// The digests of the files that say what commands do, as they are. Of `package.json`, only the
/// scripts count: a new dependency changes no script.
pub fn bound_digests(root: &Path) -> FileDigests {
    let mut digests = FileDigests::new();
    for (name, _) in BOUND_FILES {
        let unreadable = || UNREADABLE.to_owned();
        let digest = match (*name, open(&root.join(name))) {
            (_, Ok(None)) => continue,
            (_, Err(_)) => unreadable(),
            (name, Ok(Some(file))) => match bytes(file, MAX_FILE_BYTES) {
                Err(_) => unreadable(),
                Ok(content) => digest(root, name, &content).unwrap_or_else(unreadable),
            },
        };
        digests.insert((*name).to_owned(), digest);
    }
    digests
}

fn digest(root: &Path, name: &str, content: &[u8]) -> Option<String> {
    let counted = match name {
        "package.json" => {
            let package: Value = serde_json::from_slice(content).ok()?;
            serde_json::to_vec(&package["scripts"]).ok()?
        }
        "Cargo.toml" => with_members(root, content)?,
        _ => content.to_vec(),
    };
    Some(Sha256Hex::of(&counted).to_string())
}

/// The manifest of a workspace and those of its members: each can name what cargo fetches and runs.
fn with_members(root: &Path, content: &[u8]) -> Option<Vec<u8>> {
    let manifest: toml::Table = toml::from_str(str::from_utf8(content).ok()?).ok()?;
    let workspace = manifest.get("workspace");
    let listed = workspace.and_then(|it| it.get("members")?.as_array());
    let mut members = Vec::new();
    for pattern in listed.into_iter().flatten() {
        let pattern = pattern.as_str()?;
        let Some(parent) = pattern.strip_suffix("/*") else {
            // Of any other pattern nobody knows what it means.
            (!pattern.contains(['*', '?', '['])).then(|| members.push(root.join(pattern)))?;
            continue;
        };
        let below = fs::read_dir(root.join(parent)).ok()?;
        members.extend(below.flatten().map(|entry| entry.path()));
    }
    if has_foreign_path(&manifest) {
        return None;
    }
    members.sort_unstable();
    (members.len() <= MAX_MEMBERS).then_some(())?;
    let mut counted = content.to_vec();
    for member in members {
        let manifest = member.join("Cargo.toml");
        let Some(content) = read(&manifest) else {
            continue;
        };
        counted.extend_from_slice(manifest.as_os_str().as_encoded_bytes());
        counted.push(0);
        counted.extend_from_slice(&content);
    }
    Some(counted)
}

/// Whether a manifest names a package by its path. Then what cargo fetches depends on a manifest
/// that is not counted, unless all of them are members of a workspace.
fn has_foreign_path(manifest: &toml::Table) -> bool {
    let is_workspace = manifest.contains_key("workspace");
    let tables = manifest
        .iter()
        .filter(|(name, _)| name.contains("dependencies") || *name == "target");
    !is_workspace && tables.map(|(_, table)| table).any(has_path)
}

fn has_path(value: &toml::Value) -> bool {
    match value {
        toml::Value::Table(table) => {
            table.get("path").is_some_and(toml::Value::is_str) || table.values().any(has_path)
        }
        _ => false,
    }
}

/// `None` also if it cannot be read.
fn read(path: &Path) -> Option<Vec<u8>> {
    bytes(open(path).ok()??, MAX_FILE_BYTES).ok()
}

fn is_task(name: &str) -> bool {
    let first = name.split(':').next().unwrap_or(name);
    let mut tasks = TASKS.split_ascii_whitespace();
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':');
    name.chars().all(plain) && tasks.any(|task| task == first)
}

fn scripts(root: &Path) -> Vec<String> {
    let package = read(&root.join("package.json"));
    let package = package.and_then(|text| serde_json::from_slice::<Value>(&text).ok());
    let scripts = package.and_then(|mut it| it.get_mut("scripts").map(Value::take));
    let Some(Value::Object(scripts)) = scripts else {
        return Vec::new();
    };
    let has = |name: &str| root.join(name).exists();
    let runner = if has("pnpm-lock.yaml") {
        "pnpm"
    } else if has("yarn.lock") {
        "yarn"
    } else if has("bun.lock") || has("bun.lockb") {
        "bun"
    } else {
        "npm"
    };
    let mut commands = Vec::new();
    for (name, script) in &scripts {
        // Its runner runs these before and after it, without being told.
        let parts = [format!("pre{name}"), name.clone(), format!("post{name}")];
        let parts = parts.iter().filter_map(|part| scripts.get(part)?.as_str());
        let is_far = |text: &str| FAR_TASKS.iter().any(|far| text.contains(far));
        if !is_task(name) || !script.is_string() || parts.into_iter().any(is_far) {
            continue;
        }
        commands.push(format!("{runner} run {name}"));
        if name == "test" && runner != "bun" {
            commands.push(format!("{runner} test"));
        }
    }
    commands
}

/// The first of `names` counts, as it does for the program.
fn targets(root: &Path, program: &str, names: &[&str]) -> Vec<String> {
    let text = names.iter().find_map(|name| read(&root.join(name)));
    let text = String::from_utf8(text.unwrap_or_default()).unwrap_or_default();
    let target = |line: &str| {
        let (name, rest) = line.split_once(':')?;
        let name = name.split(' ').next().unwrap_or(name);
        (is_task(name) && !name.contains(':') && !rest.starts_with('='))
            .then(|| format!("{program} {name}"))
    };
    let mut targets: Vec<_> = text.lines().filter_map(target).collect();
    targets.sort_unstable();
    targets.dedup();
    targets
}

fn output(root: &Path) -> Vec<String> {
    let ignored = read(&root.join(".gitignore")).unwrap_or_default();
    let ignored = String::from_utf8_lossy(&ignored).into_owned();
    let lines: Vec<_> = (ignored.lines())
        .map(|line| line.trim().trim_matches('/'))
        .collect();
    let names = OUTPUT.split_ascii_whitespace();
    names
        .filter(|name| lines.contains(name))
        .map(str::to_owned)
        .collect()
}
