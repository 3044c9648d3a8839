//! `countersign install` as a process, in a home of its own: what it writes, what it leaves alone,
//! and when it refuses.

mod guard;
mod home;
mod places;
mod refused;
mod restored;
mod trust;

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

pub use self::home::Home;

/// Every agent with the file of the user's that its hook is in.
pub const AGENTS: [(&str, &str); 6] = [
    ("claude", ".claude/settings.json"),
    ("codex", ".codex/hooks.json"),
    ("copilot", ".copilot/hooks/countersign.json"),
    ("gemini", ".gemini/settings.json"),
    ("opencode", ".config/opencode/plugin/countersign.js"),
    ("cursor", ".cursor/hooks.json"),
];

/// The hook for a call in an agent's settings.
pub fn call_hook<'v>(agent: &str, settings: &'v Value) -> &'v Value {
    let hooks = &settings["hooks"];
    match agent {
        "claude" | "codex" => &hooks["PreToolUse"][0]["hooks"][0],
        "gemini" => &hooks["BeforeTool"][0]["hooks"][0],
        _ => &hooks["preToolUse"][0],
    }
}

pub fn command_of(hook: &Value) -> &str {
    let command = hook["command"].as_str().or_else(|| hook["bash"].as_str());
    command.unwrap()
}

#[test]
fn every_agent_gets_a_complete_hook_once_and_loses_it_again() {
    for (agent, path) in AGENTS {
        let home = Home::new();
        let ran = home.run(&["install", agent, "--yes"]);
        assert_eq!(ran.code, 0, "{agent}: {}", ran.err);
        assert!(
            ran.out
                .contains(&format!("create {}", home.path(path).display())),
            "{}",
            ran.out
        );
        assert!(
            ran.err.contains("temporary or build directory"),
            "{}",
            ran.err
        );
        let text = home.read(path);
        assert!(
            text.contains(env!("CARGO_BIN_EXE_countersign")),
            "{agent}: {text}"
        );
        let before = home.snapshot();
        let again = home.run(&["install", agent, "--yes"]);
        assert_eq!((again.code, again.out.as_str()), (0, ""), "{agent}");
        assert!(
            again.err.contains("already installed; nothing to change"),
            "{}",
            again.err
        );
        assert_eq!(home.snapshot(), before, "{agent}");
        let removed = home.run(&["install", agent, "--remove", "--yes"]);
        assert_eq!(removed.code, 0, "{agent}: {}", removed.err);
        assert_eq!(home.files(), Vec::<String>::new(), "{agent}");
        let again = home.run(&["install", agent, "--remove", "--yes"]);
        assert_eq!(again.code, 0, "{agent}");
        assert!(
            again.err.contains("is not installed; nothing to change"),
            "{}",
            again.err
        );
    }
}

#[test]
fn what_is_written_is_what_each_agent_needs() {
    for (agent, path) in AGENTS.into_iter().filter(|(agent, _)| *agent != "opencode") {
        let home = Home::new();
        home.run(&["install", agent, "--yes"]);
        let settings: Value = serde_json::from_str(&home.read(path)).unwrap();
        let hook = call_hook(agent, &settings);
        let command = command_of(hook);
        for part in [
            " hook ",
            agent,
            "--timeout 9m",
            "timeout",
            "-k 1 570",
            "exit 2",
        ] {
            assert!(command.contains(part), "{agent}: {command}");
        }
        let (timeout, others): (_, &[&str]) = match agent {
            "claude" => {
                assert_eq!(hook["onFailure"], "block");
                assert_eq!(settings["hooks"]["PreToolUse"][0]["matcher"], "*");
                (
                    &hook["timeout"],
                    &["SessionStart", "SessionEnd", "UserPromptSubmit"],
                )
            }
            "codex" => {
                assert_eq!(settings["hooks"]["PreToolUse"][0]["matcher"], "*");
                assert_eq!(settings["hooks"]["SessionEnd"][0]["hooks"][0]["timeout"], 3);
                (
                    &hook["timeout"],
                    &["SessionStart", "SessionEnd", "UserPromptSubmit", "Stop"],
                )
            }
            "gemini" => {
                assert_eq!(settings["hooks"]["BeforeTool"][0]["matcher"], ".*");
                assert_eq!(hook["name"], "countersign");
                assert_eq!(hook["timeout"], 86_400_000);
                (&json!(86_400), &["SessionStart", "SessionEnd"])
            }
            "copilot" => {
                assert_eq!(settings["version"], 1);
                (&hook["timeoutSec"], &["sessionStart", "sessionEnd"])
            }
            _ => {
                assert_eq!(settings["version"], 1);
                assert_eq!(hook["failClosed"], true);
                (&hook["timeout"], &["sessionStart", "sessionEnd"])
            }
        };
        assert_eq!(*timeout, 86_400, "{agent}");
        let events = settings["hooks"].as_object().unwrap();
        assert_eq!(events.len(), others.len() + 1, "{agent}");
        for event in others {
            let text = events[*event].to_string();
            assert!(
                text.contains("hook ") && !text.contains("exit 2"),
                "{agent} {event}: {text}"
            );
        }
    }
}

#[test]
fn options_of_the_hook_are_in_the_command() {
    for (agent, path) in AGENTS {
        let home = Home::new();
        let ran = home.run(&[
            "install",
            agent,
            "--yes",
            "--every-call",
            "--profile",
            "second-profile",
        ]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        let text = home.read(path);
        assert!(
            text.contains("--every-call") && text.contains("second-profile"),
            "{agent}: {text}"
        );
        let ran = home.run(&["install", agent, "--yes"]);
        assert!(ran.out.contains("change "), "{}", ran.out);
        let text = home.read(path);
        assert!(
            !text.contains("--every-call") && !text.contains("second-profile"),
            "{agent}: {text}"
        );
    }
    let home = Home::new();
    let ran = home.run(&["install", "claude", "--yes", "--profile", "../other"]);
    assert_eq!(ran.code, 78, "{}", ran.err);
    assert_eq!(home.files(), Vec::<String>::new());
}

/// Runs the command that an agent would run, with another program in the place of ours.
fn guarded(program: &str) -> (i32, String, String) {
    let home = Home::new();
    home.run(&["install", "codex", "--yes"]);
    let settings: Value = serde_json::from_str(&home.read(".codex/hooks.json")).unwrap();
    let command = command_of(call_hook("codex", &settings));
    let command = command.replace(env!("CARGO_BIN_EXE_countersign"), program);
    let output = Command::new("sh")
        .arg("-c")
        .arg(command)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap_or(-1),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn whatever_happens_to_the_hook_the_command_ends_with_a_denial() {
    let home = Home::new();
    let script = |name: &str, body: &str| {
        let path = home.path(name);
        std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let allowed = script(
        "allow it's",
        "test \"$*\" = 'hook codex --timeout 9m' && echo yes",
    );
    // As the installer quotes it.
    let (code, out, err) = guarded(&allowed.replace('\'', r"'\''"));
    assert_eq!((code, out.as_str(), err.as_str()), (0, "yes\n", ""));
    let (code, out, err) = guarded(&script("deny", "echo no; echo because >&2; exit 2"));
    assert_eq!((code, out.as_str(), err.as_str()), (2, "no\n", "because\n"));
    for broken in [
        script("one", "exit 1"),
        script("three", "exit 3"),
        script("killed", "kill -KILL $$"),
        script("terminated", "kill -TERM $$"),
        home.path("missing").to_str().unwrap().to_owned(),
    ] {
        let (code, _, err) = guarded(&broken);
        assert_eq!(code, 2, "{broken}");
        assert!(
            err.contains("the hook failed, so this call is denied"),
            "{broken}: {err}"
        );
    }
}

#[test]
fn programs_get_json() {
    let home = Home::new();
    let ran = home.run(&["install", "codex", "--json", "--dry-run"]);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (&report["agent"], &report["changed"]),
        (&json!("codex"), &json!(false))
    );
    assert_eq!(report["files"].as_array().unwrap().len(), 2);
    assert!(
        report["files"][1]["diff"]
            .as_str()
            .unwrap()
            .contains("+trusted_hash")
    );
    assert!(!report["warnings"].as_array().unwrap().is_empty());
    let ran = home.run(&["install", "codex", "--json", "--yes"]);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["changed"], true);
    assert_eq!(report["files"][0]["action"], "create");
    let ran = home.run(&["install", "codex", "--json", "--yes"]);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (&report["changed"], &report["files"]),
        (&json!(false), &json!([]))
    );
}

#[test]
fn entries_of_other_versions_are_brought_up_to_date_in_their_place() {
    let home = Home::new();
    let old = r#"{
  "hooks": {
    "PreToolUse": [
      { "matcher": "Bash", "hooks": [{ "type": "command", "command": "first" }] },
      { "matcher": "Bash", "hooks": [{ "type": "command", "command": "/old/countersign", "args": ["hook", "claude"] }] },
      { "matcher": "*", "hooks": [{ "type": "command", "command": "last" }, { "type": "command", "command": "countersign hook claude" }] }
    ],
    "Stop": [{ "hooks": [{ "type": "command", "command": "'/opt/it s/countersign' hook claude" }] }],
    "Notification": [{ "hooks": [{ "type": "command", "command": "countersign hook codex" }] }]
  }
}
"#;
    home.write(".claude/settings.json", old);
    let ran = home.run(&["install", "claude", "--yes"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let settings: Value = serde_json::from_str(&home.read(".claude/settings.json")).unwrap();
    let list = settings["hooks"]["PreToolUse"].as_array().unwrap();
    assert_eq!(list.len(), 3);
    assert_eq!(list[0]["hooks"][0]["command"], "first");
    assert_eq!(
        (&list[1]["matcher"], &list[1]["hooks"][0]["onFailure"]),
        (&json!("*"), &json!("block"))
    );
    assert_eq!(
        list[2]["hooks"],
        json!([{ "type": "command", "command": "last" }])
    );
    assert_eq!(settings["hooks"].get("Stop"), None);
    assert_eq!(
        settings["hooks"]["Notification"].as_array().unwrap().len(),
        1,
        "another agent's"
    );
}
