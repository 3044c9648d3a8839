//! A project as it is found on disk: its commands, its build output, and changes of either.

use std::fs;
use std::path::Path;

use countersign::agent::{FoundProject, HookPolicy, PolicyKind, bound_digests, with_preset};
use tempfile::TempDir;

use super::inputs::places;

fn project(files: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        write(directory.path(), name, text);
    }
    directory
}

fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn commands(files: &[(&str, &str)]) -> Vec<String> {
    FoundProject::look_at(project(files).path()).commands
}

#[test]
fn commands_are_those_that_build_and_test() {
    let package = r#"{ "scripts": {
        "test": "vitest", "lint": "eslint .", "test:unit": "vitest a", "dev": "vite", "deploy": "x",
        "build": "tsc", "prebuild": "curl x | sh", "format": "npm publish", "a; rm": "x", "check": 1 } }"#;
    let mut found = commands(&[("package.json", package)]);
    found.sort_unstable();
    let expected = [
        "npm run lint",
        "npm run test",
        "npm run test:unit",
        "npm test",
    ];
    assert_eq!(found, expected);
    let found = commands(&[("package.json", package), ("pnpm-lock.yaml", "")]);
    assert!(found.contains(&"pnpm run lint".to_owned()), "{found:?}");
    let makefile =
        "CHECK := x\nlint: a\n\techo\ntest build:\nbuild : b\ndeploy:\ncheck:= y\n.PHONY: fmt\n";
    let found = commands(&[("Makefile", makefile)]);
    assert_eq!(found, ["make build", "make lint", "make test"]);
    assert_eq!(
        commands(&[("justfile", "test arg:\n  x\nrun:\n")]),
        ["just test"]
    );
    assert!(
        commands(&[("Cargo.toml", "")])
            .iter()
            .any(|it| it.starts_with("cargo test "))
    );
    assert!(commands(&[("go.mod", "")]).contains(&"go vet …".to_owned()));
    assert!(commands(&[("package.json", "[1]")]).is_empty());
    assert!(commands(&[("package.json", "nonsense")]).is_empty());
    assert!(commands(&[]).is_empty());
}

#[test]
fn build_output_is_known_by_its_name_and_ignored_by_git() {
    let project = project(&[(".gitignore", "/target\ndist/\n# build\n*.log\nsrc\n")]);
    assert_eq!(
        FoundProject::look_at(project.path()).output,
        ["dist", "target"]
    );
}

#[test]
fn a_digest_changes_with_what_its_commands_do() {
    let files = [
        (
            "Cargo.toml",
            "[workspace]\nmembers = [\"crates/*\", \"tool\"]",
        ),
        ("crates/a/Cargo.toml", "[package]"),
        ("tool/Cargo.toml", "[package]"),
        (
            "package.json",
            r#"{ "scripts": { "test": "a" }, "version": "1" }"#,
        ),
        ("Makefile", "test:"),
    ];
    let project = project(&files);
    let root = project.path();
    let before = bound_digests(root);
    assert_eq!(
        before.keys().collect::<Vec<_>>(),
        ["Cargo.toml", "Makefile", "package.json"]
    );
    let changed = |name: &str| bound_digests(root).get(name) != before.get(name);
    write(
        root,
        "package.json",
        r#"{ "scripts": { "test": "a" }, "version": "2" }"#,
    );
    assert!(!changed("package.json"));
    write(root, "package.json", r#"{ "scripts": { "test": "b" } }"#);
    assert!(changed("package.json"));
    write(root, "crates/b/Cargo.toml", "[package]");
    assert!(changed("Cargo.toml"));
    fs::remove_dir_all(root.join("crates/b")).unwrap();
    assert!(!changed("Cargo.toml"));
    write(root, "tool/Cargo.toml", "[dependencies]\nevil = '1'");
    assert!(changed("Cargo.toml"));
    write(root, "makefile", "test:");
    assert!(changed("makefile") && !changed("Makefile"));
    // A package elsewhere can name what cargo fetches.
    write(root, "Cargo.toml", "[dependencies]\nx = { path = 'x' }");
    assert_eq!(bound_digests(root)["Cargo.toml"], "unreadable");
    write(
        root,
        "Cargo.toml",
        "[target.'cfg(unix)'.dev-dependencies.x]\npath = 'x'",
    );
    assert_eq!(bound_digests(root)["Cargo.toml"], "unreadable");
    // Whatever cannot be read is not what it was, and none of its commands is found.
    write(root, "Cargo.toml", "[workspace]\nmembers = [\"**/x\"]");
    assert_eq!(bound_digests(root)["Cargo.toml"], "unreadable");
    let found = FoundProject::look_at(root).commands;
    assert!(!found.iter().any(|it| it.starts_with("cargo")), "{found:?}");
    assert!(found.contains(&"make test".to_owned()), "{found:?}");
}

#[test]
fn every_command_that_is_found_is_a_rule() {
    let script = r#"{ "scripts": { "test": "a", "type-check": "b" } }"#;
    let names = [
        "Cargo.toml",
        "go.mod",
        "pyproject.toml",
        "pytest.ini",
        "pom.xml",
        "gradlew",
        "justfile",
    ];
    let mut files = names.map(|name| (name, "")).to_vec();
    files.extend([("package.json", script), ("Makefile", "test:\nlint:\n")]);
    let found = FoundProject::look_at(project(&files).path());
    assert!(found.commands.len() > 20, "{found:?}");
    let text = with_preset(None, PolicyKind::Project, Some(&found)).unwrap();
    HookPolicy::parse(&text, &places()).unwrap();
}
