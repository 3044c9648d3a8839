//! `countersign doctor` as a process: what it finds, what it says to do, and that no gateway or
//! file makes it fail.

mod configuration;
mod gateways;

use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use super::install::{AGENTS, Home, call_hook, command_of};

/// A program of an agent that says this version.
fn agent_program(home: &Home, agent: &str, body: &str) {
    let path = format!("bin/{agent}");
    home.write(&path, &format!("#!/bin/sh\n{body}\n"));
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(home.path(&path), mode).unwrap();
}

pub struct Diagnosis {
    pub code: i32,
    report: Value,
}

impl Diagnosis {
    /// The findings of one check, each as its status and everything that is said.
    pub fn of(&self, check: &str) -> Vec<(String, String)> {
        let findings = self.report["findings"].as_array().unwrap().iter();
        let findings = findings.filter(|finding| finding["check"] == check);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        findings
            .map(|finding| {
                let said = format!(
                    "{} → {}",
                    text(&finding["message"]),
                    text(&finding["remedy"])
                );
                (text(&finding["status"]), said)
            })
            .collect()
    }

    #[track_caller]
    pub fn expect(&self, check: &str, status: &str, part: &str) {
        let found = self.of(check);
        let fits = |(is, said): &(String, String)| is == status && said.contains(part);
        assert!(
            found.iter().any(fits),
            "{check}: {status}, {part}: {found:?}"
        );
    }
}

pub fn diagnose(home: &Home, arguments: &[&str], variables: &[(&str, &str)]) -> Diagnosis {
    let system = home.path("system");
    let mut command = home.command(&[
        "doctor",
        "--json",
        "--system-root",
        system.to_str().unwrap(),
    ]);
    let path = format!("{}:/usr/bin:/bin", home.path("bin").display());
    command
        .env("PATH", path)
        .args(arguments)
        .envs(variables.iter().copied());
    let output = command.output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(!err.contains("panicked"), "{err}");
    Diagnosis {
        code: output.status.code().unwrap(),
        report: serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{err}")),
    }
}

#[test]
fn an_agent_whose_hook_is_not_installed_is_found_out() {
    for (agent, _) in AGENTS {
        let home = Home::new();
        let diagnosis = diagnose(&home, &[agent], &[]);
        assert_eq!(diagnosis.code, 1);
        diagnosis.expect(
            &format!("{agent} hook"),
            "failed",
            &format!("countersign install {agent}"),
        );
        diagnosis.expect(
            &format!("{agent} program"),
            "warning",
            "not in the search path",
        );
        assert!(diagnosis.of(&format!("{agent} canary")).is_empty());
    }
}

#[test]
fn the_canary_is_denied_by_the_hook_of_every_agent() {
    for (agent, _) in AGENTS {
        let home = Home::new();
        home.run(&["install", agent, "--yes", "--profile", "some-other"]);
        let diagnosis = diagnose(&home, &[agent], &[]);
        diagnosis.expect(&format!("{agent} hook"), "ok", "complete");
        diagnosis.expect(&format!("{agent} switches"), "ok", "");
        diagnosis.expect(&format!("{agent} canary"), "ok", "is denied");
        diagnosis.expect(
            &format!("{agent} holes"),
            "warning",
            &format!("docs/agents/{agent}.md"),
        );
        assert_eq!(
            home.files().len(),
            if agent == "codex" { 2 } else { 1 },
            "nothing is left behind"
        );
    }
}

#[test]
fn a_hook_that_does_not_deny_is_found_out() {
    let denial =
        r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny"}}"#;
    for (body, status, part) in [
        (
            format!("echo '{denial}'; echo no >&2; exit 2"),
            "ok",
            "is denied",
        ),
        ("exit 0".to_owned(), "failed", "exit status: 0"),
        (
            "echo '{}'; echo no >&2; exit 2".to_owned(),
            "failed",
            "not a denial",
        ),
        (
            format!("echo log; echo '{denial}'; echo no >&2; exit 2"),
            "failed",
            "not one JSON document",
        ),
        (format!("echo '{denial}'; exit 2"), "failed", "no reason"),
        (
            "printf 'a\\033[2Jb'; echo no >&2; exit 2".to_owned(),
            "failed",
            r"a\u{1b}[2Jb",
        ),
        // The guard turns each of these into a denial, though not into one in JSON.
        ("exit 1".to_owned(), "failed", "not one JSON document"),
        (
            "kill -KILL $$".to_owned(),
            "failed",
            "not one JSON document",
        ),
    ] {
        let home = Home::new();
        home.run(&["install", "claude", "--yes"]);
        agent_program(&home, "countersign", &body);
        let own = env!("CARGO_BIN_EXE_countersign");
        let other = home.path("bin/countersign");
        let text = home
            .read(".claude/settings.json")
            .replace(own, other.to_str().unwrap());
        home.write(".claude/settings.json", &text);
        let diagnosis = diagnose(&home, &["claude"], &[]);
        diagnosis.expect("claude hook", "ok", "complete");
        diagnosis.expect("claude canary", status, part);
    }
}

#[test]
fn the_version_of_an_agent_is_compared_with_the_one_that_was_measured() {
    for (body, status, part) in [
        (
            "echo '2.1.325 (Claude Code)'",
            "ok",
            "2.1.325, a tested version",
        ),
        ("echo 2.0.1", "warning", "tested with 2.1.325"),
        ("printf '9.9.9\\033[2J'", "warning", "is 9.9.9; "),
        ("echo nothing", "warning", "unknown version"),
        ("exit 1", "warning", "unknown version"),
        ("cat; yes | head -c 100000", "warning", "unknown version"),
    ] {
        let home = Home::new();
        agent_program(&home, "claude", body);
        let diagnosis = diagnose(&home, &[], &[]);
        diagnosis.expect("claude program", status, part);
        assert!(
            diagnosis.of("codex program").is_empty(),
            "only what is here"
        );
    }
}

#[test]
fn the_same_hook_twice_asks_twice_and_that_is_said() {
    let home = Home::new();
    home.run(&["install", "claude", "--yes"]);
    home.run(&["install", "claude", "--yes", "--project"]);
    let diagnosis = diagnose(&home, &["claude"], &[]);
    diagnosis.expect("claude hook", "warning", "2 places");
    assert_eq!(diagnosis.of("claude canary").len(), 1);
    let settings: Value = serde_json::from_str(&home.read(".claude/settings.json")).unwrap();
    assert!(command_of(call_hook("claude", &settings)).contains("hook claude"));
}

#[test]
fn people_get_a_table() {
    let home = Home::new();
    home.run(&["install", "claude", "--yes"]);
    let ran = home.run(&["doctor", "claude"]);
    assert_eq!(ran.code, 1);
    for part in [
        "profile ",
        "failed ",
        "claude canary ",
        "ok ",
        "→ ",
        "checks failed\n",
    ] {
        assert!(ran.out.contains(part), "{part}: {}", ran.out);
    }
    assert_eq!(home.run(&["doctor", "emacs"]).code, 2);
}
