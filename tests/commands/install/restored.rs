//! Removing the hook leaves the file as it was, byte for byte.

use super::{AGENTS, Home};

/// Files as people have them: others' hooks, comments, and layouts that no program would choose.
const SETTINGS: &[&str] = &[
    "{}",
    "{}\n",
    "{\n}\n",
    "{ }",
    "{\"model\":\"x\"}",
    "{\n  \"model\": \"x\"\n}\n",
    "{\n\t\"model\": \"x\",\n\t\"hooks\": {}\n}",
    "{\r\n    \"model\": \"x\"\r\n}\r\n",
    "{\n  \"hooks\": {\n  }\n}\n",
    "{\n  \"hooks\": {\"PreToolUse\": [], \"preToolUse\": [], \"BeforeTool\": []}\n}\n",
    "{\n  \"hooks\": {\n    \"PreToolUse\": [\n      {\n        \"matcher\": \"Bash\",\n        \"hooks\": [\n          { \"type\": \"command\", \"command\": \"mine\" }\n        ]\n      }\n    ]\n  },\n  \"last\": null\n}\n",
    "{\"hooks\":{\"preToolUse\":[{\"type\":\"command\",\"bash\":\"mine\"}],\"SessionEnd\":[{\"hooks\":[]}]}}",
    "{\n  \"version\": 1,\n  \"allowManagedHooksOnly\": false,\n  \"hooks\": {\n    \"sessionEnd\": [{ \"command\": \"mine\" }]\n  }\n}\n",
    "\u{feff}{\n  \"model\": \"x\"\n}\n",
];

/// Not for Codex, which reads no comments.
const WITH_COMMENTS: &[&str] = &[
    "// my settings\n{\n  // the model\n  \"model\": \"x\", // fast\n  /* hooks */ \"hooks\": { // mine\n    \"Stop\": [], // none\n  },\n}\n",
    "{\n  \"model\": \"x\" // no comma\n  // end\n}\n// after\n",
    "{\n  \"hooks\": {\n    \"BeforeTool\": [\n      1, // one\n      // two\n    ], /* three */\n    // four\n  }\n}\n",
    "{ /* nothing yet */ }\n",
];

#[test]
fn taking_it_out_restores_every_file_byte_for_byte() {
    for (agent, path) in AGENTS.into_iter().filter(|(agent, _)| *agent != "opencode") {
        let comments = if agent == "codex" { &[] } else { WITH_COMMENTS };
        for before in SETTINGS.iter().chain(comments) {
            let home = Home::new();
            home.write(path, before);
            let ran = home.run(&["install", agent, "--yes"]);
            // A mark at the beginning is not JSON for Codex.
            if agent == "codex" && before.starts_with('\u{feff}') {
                assert_eq!(ran.code, 65, "{}", ran.err);
                continue;
            }
            assert_eq!(ran.code, 0, "{agent} {before:?}: {}", ran.err);
            let installed = home.read(path);
            assert!(installed.contains("570"), "{agent} {before:?}");
            let again = home.run(&["install", agent, "--yes"]);
            assert!(
                again.err.contains("nothing to change"),
                "{agent} {before:?}: {}",
                again.err
            );
            let ran = home.run(&["install", agent, "--remove", "--yes"]);
            assert_eq!(ran.code, 0, "{agent} {before:?}: {}", ran.err);
            let version_added =
                matches!(agent, "copilot" | "cursor") && !before.contains("version");
            let none = ["\"hooks\": {}", "\"hooks\": {\n  }"];
            let has_hooks =
                before.contains("\"hooks\"") && !none.iter().any(|none| before.contains(none));
            if version_added && has_hooks {
                // The hooks that stay need it too.
                assert!(
                    home.read(path).contains("\"version\": 1"),
                    "{agent} {before:?}"
                );
                continue;
            }
            assert_eq!(home.read(path), *before, "{agent}, by way of\n{installed}");
        }
    }
}

#[test]
fn managed_settings_are_restored_too() {
    for (agent, path) in [
        ("claude", "system/etc/claude-code/managed-settings.json"),
        ("gemini", "system/etc/gemini-cli/settings.json"),
    ] {
        for before in [
            "{}\n",
            "{\n  \"model\": \"x\" // fast\n}\n",
            "{\"model\":\"x\"}",
        ] {
            let home = Home::new();
            home.write(path, before);
            let system = home.path("system");
            let system = system.to_str().unwrap();
            let install = [
                "install",
                agent,
                "--managed",
                "--system-root",
                system,
                "--yes",
            ];
            assert_eq!(home.run(&install).code, 0);
            assert!(home.read(path).contains("countersign"));
            let ran = home.run(&[&install[..], &["--remove"]].concat());
            assert_eq!(ran.code, 0, "{}", ran.err);
            assert_eq!(home.read(path), before, "{agent}");
        }
    }
}

#[test]
fn requirements_keep_what_others_wrote() {
    let before = "# ours\nallowed_approval_policies = [\"on-request\"] # strict\n\n[features]\nother = true\n\n\
                  [[hooks.PreToolUse]]\nmatcher = \"Bash\"\n[[hooks.PreToolUse.hooks]]\ntype = \"command\"\ncommand = \"mine\"\n";
    let home = Home::new();
    let path = "system/etc/codex/requirements.toml";
    home.write(path, before);
    let system = home.path("system");
    let system = system.to_str().unwrap();
    let install = [
        "install",
        "codex",
        "--managed",
        "--system-root",
        system,
        "--yes",
    ];
    let ran = home.run(&install);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let text = home.read(path);
    let requirements: toml::Value = toml::from_str(&text).unwrap();
    let hooks = requirements["hooks"]["PreToolUse"].as_array().unwrap();
    assert_eq!(hooks.len(), 2);
    assert_eq!(hooks[0]["hooks"][0]["command"].as_str(), Some("mine"));
    assert_eq!(requirements["features"]["other"].as_bool(), Some(true));
    assert!(
        text.contains("# ours") && text.contains("# strict"),
        "{text}"
    );
    let ran = home.run(&[&install[..], &["--remove"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    let after: toml::Value = toml::from_str(&home.read(path)).unwrap();
    // Others' hooks are managed too, so the switches stay.
    assert_eq!(after["allow_managed_hooks_only"].as_bool(), Some(true));
    assert_eq!(after["hooks"]["PreToolUse"].as_array().unwrap().len(), 1);
    home.write(path, "[features\n");
    let ran = home.run(&install);
    assert_eq!(ran.code, 65, "{}", ran.err);
    assert_eq!(home.read(path), "[features\n");
}
