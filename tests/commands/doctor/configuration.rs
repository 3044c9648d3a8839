//! The agent's own files: a hook that is not complete, and what switches it off.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::{Diagnosis, diagnose};
use crate::commands::install::{AGENTS, Home, command_of};

/// Changes the hook for a call, as somebody might by hand.
fn tampered(agent: &str, path: &str, change: impl FnOnce(&mut Value)) -> Diagnosis {
    let home = Home::new();
    home.run(&["install", agent, "--yes"]);
    let mut settings: Value = serde_json::from_str(&home.read(path)).unwrap();
    change(&mut settings);
    home.write(path, &settings.to_string());
    diagnose(&home, &[agent], &[])
}

fn hook_in<'v>(agent: &str, settings: &'v mut Value) -> &'v mut Value {
    let hooks = &mut settings["hooks"];
    match agent {
        "claude" | "codex" => &mut hooks["PreToolUse"][0]["hooks"][0],
        "gemini" => &mut hooks["BeforeTool"][0]["hooks"][0],
        _ => &mut hooks["preToolUse"][0],
    }
}

#[test]
fn a_hook_that_is_not_complete_is_found_out() {
    for (agent, path) in AGENTS.into_iter().filter(|(agent, _)| *agent != "opencode") {
        let check = format!("{agent} hook");
        let timeout = if agent == "copilot" {
            "timeoutSec"
        } else {
            "timeout"
        };
        for wrong in [
            json!(0),
            json!(30),
            json!(540),
            json!(-1),
            json!(1e18),
            json!("600"),
            json!(null),
        ] {
            let diagnosis = tampered(agent, path, |settings| {
                hook_in(agent, settings)[timeout] = wrong;
            });
            assert_eq!(diagnosis.code, 1);
            diagnosis.expect(&check, "failed", timeout);
        }
        // As older versions installed it.
        let old = if agent == "gemini" { 600_000 } else { 600 };
        let diagnosis = tampered(agent, path, |settings| {
            hook_in(agent, settings)[timeout] = old.into();
        });
        diagnosis.expect(&check, "failed", "suspended");
        let command = if agent == "copilot" {
            "bash"
        } else {
            "command"
        };
        for (text, part) in [
            (format!("/usr/bin/countersign hook {agent}"), "no fallback"),
            (
                format!("'/nowhere/countersign' hook {agent} || exit 2"),
                "/nowhere/countersign",
            ),
            (
                format!("countersign hook {agent} || exit 2"),
                "not an absolute path",
            ),
        ] {
            // Claude has a switch of its own.
            if agent == "claude" && part == "no fallback" {
                continue;
            }
            let diagnosis = tampered(agent, path, |settings| {
                hook_in(agent, settings)[command] = text.into();
            });
            diagnosis.expect(&check, "failed", part);
        }
        let diagnosis = tampered(agent, path, |settings| {
            let hook = hook_in(agent, settings);
            hook[command] = command_of(hook)
                .replace(&format!("hook {agent}"), "hook nothing")
                .into();
        });
        diagnosis.expect(&check, "failed", "not installed");
        if let Some(member) = [("claude", "onFailure"), ("cursor", "failClosed")]
            .into_iter()
            .find(|(name, _)| *name == agent)
        {
            let diagnosis = tampered(agent, path, |settings| {
                hook_in(agent, settings)[member.1] = Value::Null;
            });
            diagnosis.expect(&check, "failed", member.1);
        }
        if matches!(agent, "claude" | "codex" | "gemini") {
            let event = if agent == "gemini" {
                "BeforeTool"
            } else {
                "PreToolUse"
            };
            let diagnosis = tampered(agent, path, |settings| {
                settings["hooks"][event][0]["matcher"] = "Bash".into();
            });
            diagnosis.expect(&check, "failed", "only for the tools \"Bash\"");
        }
    }
}

#[test]
fn a_hook_that_codex_does_not_trust_is_found_out() {
    let home = Home::new();
    home.run(&["install", "codex", "--yes"]);
    let trusted = home.read(".codex/config.toml");
    diagnose(&home, &["codex"], &[]).expect("codex hook", "ok", "complete");
    for (text, part) in [
        (String::new(), "does not trust it"),
        (trusted.replace("sha256:", "sha256:0"), "does not trust it"),
        (
            trusted.replacen("trusted_hash", "enabled = false\ntrusted_hash", 1),
            "disables it",
        ),
        ("[hooks".to_owned(), "config.toml, line 1"),
    ] {
        home.write(".codex/config.toml", &text);
        diagnose(&home, &["codex"], &[]).expect("codex hook", "failed", part);
    }
    // A user who removes a hook before ours moves ours to another place, which is not trusted.
    home.write(".codex/config.toml", &trusted);
    let mut settings: Value = serde_json::from_str(&home.read(".codex/hooks.json")).unwrap();
    let ours = settings["hooks"]["PreToolUse"][0].clone();
    settings["hooks"]["PreToolUse"] = json!([{ "hooks": [] }, ours]);
    home.write(".codex/hooks.json", &settings.to_string());
    diagnose(&home, &["codex"], &[]).expect("codex hook", "failed", "does not trust it");
    home.run(&["install", "codex", "--yes"]);
    diagnose(&home, &["codex"], &[]).expect("codex hook", "ok", "complete");
}

#[test]
fn switches_that_turn_hooks_off_are_found_wherever_they_are() {
    for (agent, path, text) in [
        (
            "claude",
            "project/.claude/settings.json",
            "{\"disableAllHooks\": true}",
        ),
        (
            "claude",
            "project/.claude/settings.local.json",
            "{/* */\"disableAllHooks\": true}",
        ),
        (
            "claude",
            "system/etc/claude-code/managed-settings.json",
            "{\"allowManagedHooksOnly\": true}",
        ),
        (
            "codex",
            "project/.codex/config.toml",
            "[features]\nhooks = false\n",
        ),
        (
            "codex",
            "system/etc/codex/requirements.toml",
            "allow_managed_hooks_only = true\n",
        ),
        (
            "copilot",
            ".copilot/config.json",
            "{\"disableAllHooks\": true}",
        ),
        (
            "copilot",
            "project/.github/copilot/settings.json",
            "{\"disableAllHooks\": true}",
        ),
        (
            "copilot",
            "project/.github/hooks/off.json",
            "{\"version\": 1, \"disableAllHooks\": true}",
        ),
        (
            "gemini",
            "project/.gemini/settings.json",
            "{\"hooksConfig\": {\"enabled\": false}}",
        ),
        (
            "gemini",
            "project/.gemini/settings.json",
            "{\"hooksConfig\": {\"disabled\": [\"countersign\"]}}",
        ),
    ] {
        let home = Home::new();
        home.run(&["install", agent, "--yes"]);
        home.write(path, text);
        let diagnosis = diagnose(&home, &[agent], &[]);
        let check = format!("{agent} switches");
        diagnosis.expect(&check, "failed", home.path(path).to_str().unwrap());
        assert_eq!(diagnosis.code, 1);
    }
    let home = Home::new();
    home.run(&["install", "opencode", "--yes"]);
    let diagnosis = diagnose(&home, &["opencode"], &[("OPENCODE_PURE", "1")]);
    diagnosis.expect("opencode switches", "failed", "OPENCODE_PURE");
}

#[test]
fn a_managed_hook_withstands_a_project() {
    for (agent, path, text) in [
        (
            "claude",
            "project/.claude/settings.json",
            "{\"disableAllHooks\": true}",
        ),
        (
            "codex",
            "project/.codex/config.toml",
            "[features]\nhooks = false\n",
        ),
        (
            "copilot",
            "project/.github/copilot/settings.json",
            "{\"disableAllHooks\": true}",
        ),
        (
            "gemini",
            "project/.gemini/settings.json",
            "{\"hooksConfig\": {\"enabled\": false}}",
        ),
    ] {
        let home = Home::new();
        let system = home.path("system");
        let ran = home.run(&[
            "install",
            agent,
            "--managed",
            "--yes",
            "--system-root",
            system.to_str().unwrap(),
        ]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        home.write(path, text);
        let diagnosis = diagnose(&home, &[agent], &[]);
        diagnosis.expect(&format!("{agent} hook"), "ok", "system/etc/");
        diagnosis.expect(&format!("{agent} switches"), "ok", "");
        diagnosis.expect(&format!("{agent} canary"), "ok", "");
        assert!(
            !diagnosis.of(&format!("{agent} holes"))[0]
                .1
                .contains("unless they are managed")
        );
    }
}

#[test]
fn settings_that_make_no_sense_are_named() {
    for (agent, path) in AGENTS.into_iter().filter(|(agent, _)| *agent != "opencode") {
        let home = Home::new();
        home.write(path, "{\n  \"hooks\": {,}\n}\n");
        // Also if nobody asks for this agent.
        let diagnosis = diagnose(&home, &[], &[]);
        let check = format!("{agent} settings");
        diagnosis.expect(&check, "failed", home.path(path).to_str().unwrap());
        diagnosis.expect(&check, "failed", "line 2");
        assert_eq!(diagnosis.code, 1);
    }
    let home = Home::new();
    home.write(
        ".codex/hooks.json",
        "{\"hooks\": {} /* Codex reads no comments */}",
    );
    diagnose(&home, &["codex"], &[]).expect("codex settings", "failed", "hooks.json");
}

#[test]
fn a_plugin_that_was_changed_is_found_out() {
    let home = Home::new();
    let path = ".config/opencode/plugin/countersign.js";
    home.run(&["install", "opencode", "--yes"]);
    let text = home.read(path);
    home.write(path, &text.replace("reject(", "resolve("));
    diagnose(&home, &["opencode"], &[]).expect("opencode hook", "failed", "was changed");
    home.write(
        path,
        &text.replace(env!("CARGO_BIN_EXE_countersign"), "/nowhere/countersign"),
    );
    let diagnosis = diagnose(&home, &["opencode"], &[]);
    diagnosis.expect("opencode hook", "failed", "/nowhere/countersign");
    diagnosis.expect("opencode canary", "failed", "is not denied");
}

#[test]
fn a_policy_that_is_broken_exposed_or_wide_is_found_out() {
    let home = Home::new();
    home.run(&["install", "claude", "--yes"]);
    let policy = ".config/countersign/policy.toml";
    diagnose(&home, &["claude"], &[]).expect("policy", "ok", "valid in");
    for (text, status, part) in [
        ("[allow]\ntool = []", "failed", "unknown field `tool`"),
        (
            "[allow]\ncommands = ['npm exec …']",
            "failed",
            "runs another command",
        ),
        (
            "[allow]\ntools = ['read', 'command']",
            "warning",
            "allow.tools has command",
        ),
        ("[allow]\ncommands = ['cargo test …']", "ok", "valid in"),
    ] {
        home.write(policy, text);
        diagnose(&home, &["claude"], &[]).expect("policy", status, part);
    }
    let exposed = std::fs::Permissions::from_mode(0o666);
    std::fs::set_permissions(home.path(policy), exposed).unwrap();
    diagnose(&home, &["claude"], &[]).expect("policy", "failed", "others can write it");
}
