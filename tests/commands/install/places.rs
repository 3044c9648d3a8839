//! Where files are: behind links, in a project, in the system, and where an agent's variables say.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use serde_json::Value;

use super::{AGENTS, Home};

#[test]
fn links_stay_links_and_modes_stay() {
    for (agent, path) in AGENTS.into_iter().filter(|(agent, _)| *agent != "opencode") {
        let home = Home::new();
        home.write("dotfiles/settings", "{\n  \"mine\": true\n}\n");
        let target = home.path("dotfiles/settings");
        std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::fs::create_dir_all(home.path(path).parent().unwrap()).unwrap();
        symlink(
            "../".repeat(path.matches('/').count()) + "dotfiles/settings",
            home.path(path),
        )
        .unwrap();
        let ran = home.run(&["install", agent, "--yes"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(home.path(path).is_symlink(), "{agent}");
        let text = home.read("dotfiles/settings");
        assert!(
            text.contains("countersign") && text.contains("\"mine\": true"),
            "{text}"
        );
        assert_eq!(target.metadata().unwrap().mode() & 0o7777, 0o640);
        home.run(&["install", agent, "--remove", "--yes"]);
        assert_eq!(home.read("dotfiles/settings"), "{\n  \"mine\": true\n}\n");
        assert!(home.path(path).is_symlink(), "{agent}");
    }
    // A link to nowhere is where the file will be; one to itself is an error.
    let home = Home::new();
    std::fs::create_dir_all(home.path(".claude")).unwrap();
    symlink("../later.json", home.path(".claude/settings.json")).unwrap();
    assert_eq!(home.run(&["install", "claude", "--yes"]).code, 0);
    assert!(home.read("later.json").contains("countersign"));
    std::fs::create_dir_all(home.path(".cursor")).unwrap();
    symlink("hooks.json", home.path(".cursor/hooks.json")).unwrap();
    let ran = home.run(&["install", "cursor", "--yes"]);
    assert!(
        ran.code != 0 && ran.err.contains("hooks.json"),
        "{}",
        ran.err
    );
}

#[test]
fn the_variables_of_each_agent_are_honoured() {
    for (agent, variable, path) in [
        ("claude", "CLAUDE_CONFIG_DIR", "settings.json"),
        ("codex", "CODEX_HOME", "hooks.json"),
        ("copilot", "COPILOT_HOME", "hooks/countersign.json"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        (
            "opencode",
            "XDG_CONFIG_HOME",
            "opencode/plugin/countersign.js",
        ),
    ] {
        let home = Home::new();
        std::fs::create_dir(home.path("elsewhere")).unwrap();
        let mut command = home.command(&["install", agent, "--yes"]);
        let output = command
            .env(variable, home.path("elsewhere"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{agent}");
        assert!(
            home.path(&format!("elsewhere/{path}")).exists(),
            "{agent}: {:?}",
            home.files()
        );
        assert!(
            home.files()
                .iter()
                .all(|file| file.starts_with("elsewhere/")),
            "{:?}",
            home.files()
        );
    }
}

#[test]
fn a_project_has_files_of_its_own() {
    for (agent, path) in [
        ("claude", "project/.claude/settings.json"),
        ("codex", "project/.codex/hooks.json"),
        ("copilot", "project/.github/hooks/countersign.json"),
        ("gemini", "project/.gemini/settings.json"),
        ("opencode", "project/.opencode/plugin/countersign.js"),
        ("cursor", "project/.cursor/hooks.json"),
    ] {
        let home = Home::new();
        let ran = home.run(&["install", agent, "--project", "--yes"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(
            ran.err.contains("a project's files are shared"),
            "{}",
            ran.err
        );
        let mut expected = vec![path.to_owned()];
        if agent == "codex" {
            expected.insert(0, ".codex/config.toml".to_owned());
        }
        assert_eq!(home.files(), expected, "{agent}");
    }
}

#[test]
fn managed_files_are_for_everybody_and_pin_the_switches() {
    for (agent, path) in [
        ("claude", "system/etc/claude-code/managed-settings.json"),
        ("codex", "system/etc/codex/requirements.toml"),
        (
            "copilot",
            "system/etc/github-copilot/policy.d/countersign.json",
        ),
        ("gemini", "system/etc/gemini-cli/settings.json"),
        ("cursor", "system/etc/cursor/hooks.json"),
    ] {
        let home = Home::new();
        let arguments = ["install", agent, "--managed", "--yes", "--system-root"];
        let system = home.path("system");
        let run = |more: &[&str]| {
            let arguments: Vec<_> = arguments
                .iter()
                .chain([&system.to_str().unwrap()])
                .chain(more)
                .copied()
                .collect();
            home.run(&arguments)
        };
        let ran = run(&[]);
        assert_eq!(ran.code, 0, "{agent}: {}", ran.err);
        assert_eq!(home.files(), [path.to_owned()], "{agent}");
        assert_eq!(home.path(path).metadata().unwrap().mode() & 0o777, 0o644);
        assert_eq!(
            home.path(path).parent().unwrap().metadata().unwrap().mode() & 0o777,
            0o755
        );
        let text = home.read(path);
        match agent {
            "claude" => assert!(text.contains("\"allowManagedHooksOnly\": true")),
            "gemini" => assert!(text.contains("\"hooksConfig\": {\n    \"enabled\": true")),
            "codex" => {
                let requirements: Value = toml::from_str(&text).unwrap();
                assert_eq!(requirements["allow_managed_hooks_only"], true);
                assert_eq!(requirements["features"]["hooks"], true);
                assert!(requirements["hooks"]["managed_dir"].is_string());
                assert_eq!(
                    requirements["hooks"]["PreToolUse"][0]["hooks"][0]["timeout"],
                    86_400
                );
            }
            _ => {}
        }
        let again = run(&[]);
        assert!(
            again.err.contains("nothing to change"),
            "{agent}: {}",
            again.err
        );
        let ran = run(&["--remove"]);
        assert_eq!(ran.code, 0, "{agent}: {}", ran.err);
        assert_eq!(home.files(), Vec::<String>::new(), "{agent}");
    }
    let home = Home::new();
    let ran = home.run(&["install", "opencode", "--managed", "--yes"]);
    assert_eq!(ran.code, 64, "{}", ran.err);
    assert!(ran.err.contains("OPENCODE_PURE"), "{}", ran.err);
}
