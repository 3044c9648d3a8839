//! When nothing is written, and what is said then.

use serde_json::Value;

use super::{AGENTS, Home};
use crate::support::process::countersign;

#[test]
fn nothing_is_written_unless_somebody_agrees() {
    for (agent, _) in AGENTS {
        let home = Home::new();
        let ran = home.run(&["install", agent]);
        assert_eq!(ran.code, 64, "{}", ran.err);
        assert!(
            ran.err.contains("--yes") && ran.out.contains('+'),
            "{}",
            ran.err
        );
        let ran = home.run(&["install", agent, "--dry-run"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(
            ran.out.contains("create ") && ran.out.contains("countersign"),
            "{}",
            ran.out
        );
        assert_eq!(home.files(), Vec::<String>::new(), "{agent}");
    }
}

#[test]
fn a_file_that_makes_no_sense_is_refused_by_name_and_line() {
    for (agent, path) in AGENTS {
        let broken: &[(&str, &str)] = match agent {
            "opencode" => &[(
                "export const Mine = async () => ({})\n",
                "not Countersign's plugin",
            )],
            _ => &[
                ("{\n  \"hooks\": {\n    oops\n  }\n}\n", "line 3"),
                ("{\n  \"hooks\": []\n}\n", "line 2"),
                ("[]\n", "line 1"),
                ("{\n<<<<<<< HEAD\n}\n", "line 2"),
            ],
        };
        for (text, expected) in broken {
            let home = Home::new();
            home.write(path, text);
            for arguments in [
                ["install", agent, "--yes"].as_slice(),
                &["install", agent, "--remove", "--yes"],
            ] {
                let ran = home.run(arguments);
                // Nothing of ours is in a file with a list for hooks.
                if arguments.len() == 4 && ran.code == 0 {
                    assert!(ran.err.contains("is not installed"), "{}", ran.err);
                    continue;
                }
                assert_eq!(ran.code, 65, "{agent} {text}: {}", ran.err);
                let named = home.path(path).to_str().unwrap().to_owned();
                assert!(
                    ran.err.contains(&named) && ran.err.contains(expected),
                    "{}",
                    ran.err
                );
                assert_eq!(home.read(path), *text);
                assert_eq!(home.files(), [path.to_owned()], "{agent}");
            }
        }
        let home = Home::new();
        std::fs::create_dir_all(home.path(path).parent().unwrap()).unwrap();
        std::fs::write(home.path(path), b"{\n\xff}").unwrap();
        let ran = home.run(&["install", agent, "--yes"]);
        assert_eq!(ran.code, 65, "{}", ran.err);
        assert!(
            ran.err.contains("line 2: it is not UTF-8 text"),
            "{}",
            ran.err
        );
    }
}

#[test]
fn a_damaged_file_of_trust_stops_both_changes() {
    let home = Home::new();
    home.write(".codex/config.toml", "model = \"x\"\n[features\n");
    let ran = home.run(&["install", "codex", "--yes"]);
    assert_eq!(ran.code, 65, "{}", ran.err);
    assert!(ran.err.contains("config.toml, line 2"), "{}", ran.err);
    assert_eq!(home.files(), [".codex/config.toml"]);
}

#[test]
fn comments_that_codex_cannot_read_are_refused() {
    let home = Home::new();
    home.write(".codex/hooks.json", "{\n  // mine\n  \"hooks\": {}\n}\n");
    let ran = home.run(&["install", "codex", "--yes"]);
    assert_eq!(ran.code, 65, "{}", ran.err);
    assert!(ran.err.contains("Codex ignores all of it"), "{}", ran.err);
    assert_eq!(home.files(), [".codex/hooks.json"]);
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    for (agent, path) in AGENTS {
        let home = Home::new();
        let first = path.split('/').next().unwrap();
        home.write(first, "a file where a directory should be");
        let ran = home.run(&["install", agent, "--yes"]);
        assert!(matches!(ran.code, 1 | 65), "{agent}: {}", ran.err);
        assert!(
            ran.err.contains(home.path(first).to_str().unwrap()),
            "{agent}: {}",
            ran.err
        );
        assert_eq!(home.files(), [first.to_owned()], "{agent}");
    }
}

#[test]
fn several_at_once_leave_one_entry() {
    for (agent, path) in AGENTS {
        let home = Home::new();
        home.write(".claude/settings.json", "{\n  \"mine\": 1\n}\n");
        let start = || home.command(&["install", agent, "--yes"]).spawn().unwrap();
        let children: Vec<_> = (0..8).map(|_| start()).collect();
        let codes = children
            .into_iter()
            .map(|child| child.wait_with_output().unwrap());
        let codes: Vec<_> = codes
            .map(|output| (output.status.code(), output.stderr))
            .collect();
        for (code, err) in &codes {
            let err = String::from_utf8_lossy(err);
            // The second one is told so.
            let late = *code == Some(1) && err.contains("was changed in the meantime");
            assert!(*code == Some(0) || late, "{agent}: {err}");
        }
        assert!(codes.iter().any(|(code, _)| *code == Some(0)), "{agent}");
        home.run(&["install", agent, "--yes"]);
        let text = home.read(path);
        if agent != "opencode" {
            let settings: Value = serde_json::from_str(&text).unwrap();
            for (event, list) in settings["hooks"].as_object().unwrap() {
                assert_eq!(list.as_array().unwrap().len(), 1, "{agent} {event}");
            }
        }
        assert!(
            home.files()
                .iter()
                .all(|file| !file.contains("countersign-")),
            "no part is left"
        );
    }
}

#[test]
fn agents_and_options_that_make_no_sense_are_refused() {
    for arguments in [
        &["install"][..],
        &["install", "emacs"],
        &["install", "claude", "--user", "--project"],
        &["install", "claude", "--remove", "--every-call"],
    ] {
        let output = countersign().args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
    let output = countersign().args(["install", "emacs"]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("claude, codex, copilot, gemini, opencode, cursor"),
        "{text}"
    );
}
