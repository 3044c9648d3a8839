//! `countersign policy` in a home of its own: what it writes, what it keeps, and what it says.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::first_minutes::end;
use super::install::Home;
use crate::support::process::countersign;

const POLICY: &str = ".config/countersign/policy.toml";

fn home() -> Home {
    let home = Home::new();
    home.write("project/Cargo.toml", "[package]\nname = 'x'\n");
    home.write("project/.gitignore", "target\n");
    home
}

fn tried(home: &Home, arguments: &[&str]) -> Value {
    let ran = home.run(&[&["policy", "try", "--json"], arguments].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    serde_json::from_str(&ran.out).unwrap()
}

/// The command in a terminal, with what is typed there.
fn in_terminal(home: &Home, directory: &str, arguments: &str, typed: &str) -> (i32, String) {
    let program = countersign();
    let mut command = Command::new("script");
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let program = Path::new(program.get_program()).display();
    let line = format!("{program} {arguments}");
    let mut child = command
        .env("HOME", home.path(""))
        .env("XDG_CONFIG_HOME", home.path(".config"))
        .env("NO_COLOR", "1")
        .current_dir(home.path(directory))
        .args([
            "--quiet",
            "--flush",
            "--return",
            "--command",
            &line,
            "/dev/null",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("util-linux");
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, typed.as_bytes()).unwrap();
    // Left open: the end of the input would end the terminal.
    std::mem::forget(input);
    end(child)
}

#[test]
fn each_policy_is_shown_then_written_for_its_user_alone() {
    for kind in ["project", "careful", "read-only"] {
        let home = home();
        let ran = home.run(&["policy", "init", kind, "--yes"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let path = home.path(POLICY);
        assert!(
            ran.out.contains(&format!("create {}", path.display())),
            "{}",
            ran.out
        );
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let text = home.read(POLICY);
        for line in text.lines() {
            assert!(ran.out.contains(line), "{line}");
        }
        assert_eq!(text.contains("cargo test"), kind == "project", "{text}");
        let again = home.run(&["policy", "init", kind, "--yes"]);
        assert!(again.err.contains("already"), "{}", again.err);
        let shown = home.run(&["policy"]);
        assert_eq!(shown.out.trim(), text.trim());
    }
}

#[test]
fn a_person_chooses_in_a_terminal_and_agrees() {
    let home = home();
    let (code, text) = in_terminal(&home, "project", "policy init", "everything\n\nyes\n");
    assert_eq!(code, 0, "{text}");
    for part in [
        "project",
        "careful",
        "read-only",
        "expected project, careful or read-only",
        "Write this policy?",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(home.read(POLICY).contains("edit.project"));
    let before = home.read(POLICY);
    let (code, text) = in_terminal(&home, "project", "policy init read-only", "no\n");
    assert_eq!(code, 1, "{text}");
    assert_eq!(home.read(POLICY), before);
}

#[test]
fn nothing_is_written_when_nobody_can_agree_or_the_file_is_not_safe() {
    let home = home();
    for (arguments, part) in [
        (&["policy", "init"][..], "project, careful or read-only"),
        (
            &["policy", "init", "everything"],
            "project, careful or read-only",
        ),
        (&["policy", "init", "careful"], "no terminal"),
    ] {
        // A session of its own has no terminal.
        let ran = home.run(arguments);
        assert_ne!(ran.code, 0, "{arguments:?}");
        assert!(ran.err.contains(part), "{}", ran.err);
        assert!(!home.path(POLICY).exists());
    }
    for (text, mode, part) in [
        ("[allow]\ncommands = [\"ls; rm\"]\n", 0o600, "plain words"),
        ("nonsense", 0o600, "cannot be read"),
        ("", 0o622, "others can write it"),
    ] {
        home.write(POLICY, text);
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(home.path(POLICY), permissions).unwrap();
        let ran = home.run(&["policy", "init", "project", "--yes"]);
        assert_ne!(ran.code, 0, "{text}");
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
        assert_eq!(home.read(POLICY), text);
    }
}

#[test]
fn outside_of_a_repository_no_project_is_named() {
    let home = home();
    home.write("elsewhere/Makefile", "test:\n");
    let mut command = home.command(&["policy", "init", "project", "--yes"]);
    let output = command
        .current_dir(home.path("elsewhere"))
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("run it again in each project"), "{said}");
    assert!(!home.read(POLICY).contains("[project"));
}

#[test]
fn trying_says_part_by_part_what_would_happen() {
    let home = home();
    home.run(&["policy", "init", "project", "--yes"]);
    for (arguments, outcome) in [
        (&["cargo test 2>&1 | tail -5"][..], "notAsked"),
        (&["--", "cargo", "test", "a_name"], "notAsked"),
        (&["--", "grep", "two words", "src"], "notAsked"),
        (&["git", "push"], "asked"),
        (&["ls && git push"], "asked"),
        (&["cat", "it's"], "asked"),
        (&["--edit", "src/a.rs"], "notAsked"),
        (&["--edit", "/etc/hosts"], "asked"),
        (&["--edit", ".git/config"], "alwaysAsked"),
        (&["--read", "src/a.rs"], "notAsked"),
        (&["--read", "../.ssh/id"], "alwaysAsked"),
        (&["--read", "../.config/countersign/default.toml"], "denied"),
    ] {
        assert_eq!(tried(&home, arguments)["outcome"], outcome, "{arguments:?}");
    }
    let parts = &tried(&home, &["ls && git push"])["parts"];
    let expected = json!([
        { "part": "ls", "passes": true, "reason": "it only reads" },
        { "part": "git push", "passes": false, "reason": "no rule of the policy allows it" },
    ]);
    assert_eq!(*parts, expected);
    let ran = home.run(&["policy", "try", "ls && git push"]);
    assert_eq!(
        ran.out,
        "needs approval\n  passes  ls: it only reads\n  asks    git push: no rule of the policy allows it\n"
    );
    home.write("project/Cargo.toml", "[package]\nname = 'y'\n");
    let changed = tried(&home, &["cargo test"]);
    let reason = changed["parts"][0]["reason"].as_str().unwrap();
    assert!(reason.starts_with("Cargo.toml has changed"), "{reason}");
    home.write(POLICY, "[allow]\ncomands = []");
    let broken = home.run(&["policy", "try", "ls"]);
    assert_ne!(broken.code, 0);
    assert!(
        broken.err.contains("unknown field `comands`"),
        "{}",
        broken.err
    );
    assert_ne!(home.run(&["policy", "try"]).code, 0);
    assert_ne!(home.run(&["policy", "try", "--edit", "a", "ls"]).code, 0);
}

#[test]
fn an_installation_offers_a_policy_once() {
    let home = home();
    let ran = home.run(&["install", "claude", "--yes"]);
    assert!(ran.err.contains("countersign policy init"), "{}", ran.err);
    assert!(!home.path(POLICY).exists());
    let (code, text) = in_terminal(&home, "project", "install codex", "yes\n\n");
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("How often should agents ask?"), "{text}");
    assert!(home.read(POLICY).contains("cargo test"));
    let (code, text) = in_terminal(&home, "project", "install gemini", "yes\n");
    assert_eq!(code, 0, "{text}");
    assert!(!text.contains("How often"), "{text}");
    let before = home.read(POLICY);
    home.run(&["install", "gemini", "--remove", "--yes"]);
    assert_eq!(home.read(POLICY), before);
    let ran = home.run(&["install", "copilot", "--yes", "--policy", "read-only"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(home.read(POLICY).contains("changes = \"deny\""));
}
