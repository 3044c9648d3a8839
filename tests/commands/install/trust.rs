//! Codex runs only hooks that its `config.toml` trusts.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{Home, call_hook, command_of};

/// As Codex 0.166.0 computes it.
fn hash(event: &str, matcher: Option<&str>, command: &str, timeout: u64) -> String {
    let matcher = matcher
        .map(|text| format!(",\"matcher\":\"{text}\""))
        .unwrap_or_default();
    let command = Value::from(command);
    let text = format!(
        "{{\"event_name\":\"{event}\",\"hooks\":[{{\"async\":false,\"command\":{command},\"timeout\":{timeout},\"type\":\"command\"}}]{matcher}}}"
    );
    let digest = Sha256::digest(text.as_bytes());
    let digits: Vec<_> = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}

#[test]
fn the_hash_is_the_one_that_codex_computes() {
    // Measured with the program itself.
    let measured = "f2dd05359fd43a4b8ed5ec4853a7fa9a70c3efb4fd758d60c8bd51ca077bf8fe";
    assert_eq!(hash("pre_tool_use", Some("*"), "a b", 600), measured);
    let measured = "790a3cfc793f2b0cbf91121dfabbc31f16d9d26835eca037b68802223e2d78e5";
    assert_eq!(hash("session_start", None, "a b", 60), measured);
}

fn state(home: &Home) -> toml::Table {
    let config: toml::Table = toml::from_str(&home.read(".codex/config.toml")).unwrap();
    config["hooks"]["state"].as_table().unwrap().clone()
}

#[test]
fn every_hook_is_trusted_where_it_is() {
    let home = Home::new();
    home.write(
        ".codex/hooks.json",
        "{\"hooks\":{\"PreToolUse\":[{\"matcher\":\"Bash\",\"hooks\":[{\"type\":\"command\",\"command\":\"mine\"}]}]}}",
    );
    assert_eq!(home.run(&["install", "codex", "--yes"]).code, 0);
    let settings: Value = serde_json::from_str(&home.read(".codex/hooks.json")).unwrap();
    let state = state(&home);
    assert_eq!(state.len(), 5);
    let file = home.path(".codex/hooks.json");
    for (event, index, matcher, timeout) in [
        ("PreToolUse", 1, Some("*"), 86_400),
        ("SessionStart", 0, None, 10),
        ("SessionEnd", 0, None, 3),
        ("UserPromptSubmit", 0, None, 10),
        ("Stop", 0, None, 10),
    ] {
        let name = match event {
            "PreToolUse" => "pre_tool_use",
            "SessionStart" => "session_start",
            "SessionEnd" => "session_end",
            "Stop" => "stop",
            _ => "user_prompt_submit",
        };
        let command = command_of(&settings["hooks"][event][index]["hooks"][0]);
        let key = format!("{}:{name}:{index}:0", file.display());
        let expected = format!("sha256:{}", hash(name, matcher, command, timeout));
        assert_eq!(
            state[&key]["trusted_hash"].as_str(),
            Some(expected.as_str()),
            "{event}"
        );
    }
}

#[test]
fn trust_follows_a_change_and_goes_with_the_hook() {
    for before in [
        None,
        Some("model = \"x\" # fast\n"),
        Some("model = \"x\""),
        Some("\r\nmodel = \"x\"\r\n\r\n"),
        Some("[hooks.state.\"/other:stop:0:0\"]\ntrusted_hash = \"sha256:00\"\n"),
        Some("[hooks]\n[hooks.state]\n\n[projects.\"/p\"]\ntrust_level = \"trusted\"\n"),
    ] {
        let home = Home::new();
        if let Some(before) = before {
            home.write(".codex/config.toml", before);
        }
        assert_eq!(home.run(&["install", "codex", "--yes"]).code, 0);
        let old = state(&home);
        assert_eq!(
            home.run(&["install", "codex", "--yes", "--every-call"])
                .code,
            0
        );
        let new = state(&home);
        assert_eq!(old.len(), new.len(), "{before:?}");
        assert_ne!(old, new, "{before:?}");
        let again = home.run(&["install", "codex", "--yes", "--every-call"]);
        assert!(again.err.contains("nothing to change"), "{}", again.err);
        let ran = home.run(&["install", "codex", "--remove", "--yes"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        match before {
            Some(before) => assert_eq!(home.read(".codex/config.toml"), before),
            None => assert_eq!(home.files(), Vec::<String>::new()),
        }
    }
}

#[test]
fn trust_that_codex_wrote_itself_is_kept_up_to_date() {
    let home = Home::new();
    assert_eq!(home.run(&["install", "codex", "--yes"]).code, 0);
    let key = format!(
        "{}:pre_tool_use:0:0",
        home.path(".codex/hooks.json").display()
    );
    let own = format!(
        "[hooks.state]\n\"{key}\" = {{ enabled = true, trusted_hash = \"sha256:old\" }} # mine\n"
    );
    home.write(".codex/config.toml", &own);
    assert_eq!(home.run(&["install", "codex", "--yes"]).code, 0);
    let settings: Value = serde_json::from_str(&home.read(".codex/hooks.json")).unwrap();
    let command = command_of(call_hook("codex", &settings));
    let expected = format!(
        "sha256:{}",
        hash("pre_tool_use", Some("*"), command, 86_400)
    );
    assert_eq!(
        state(&home)[&key]["trusted_hash"].as_str(),
        Some(expected.as_str())
    );
    assert_eq!(state(&home)[&key]["enabled"].as_bool(), Some(true));
    assert!(home.read(".codex/config.toml").contains("# mine"));
}

#[test]
fn trust_in_the_hooks_of_others_moves_with_them() {
    let home = Home::new();
    assert_eq!(home.run(&["install", "codex", "--yes"]).code, 0);
    let mut settings: Value = serde_json::from_str(&home.read(".codex/hooks.json")).unwrap();
    let mine = serde_json::json!({ "matcher": "Bash", "hooks": [{ "type": "command", "command": "mine" }] });
    settings["hooks"]["PreToolUse"]
        .as_array_mut()
        .unwrap()
        .push(mine.clone());
    home.write(".codex/hooks.json", &settings.to_string());
    let file = home.path(".codex/hooks.json");
    let entry = |index: u8| {
        format!(
            "[hooks.state.\"{}:pre_tool_use:{index}:0\"]\ntrusted_hash = \"sha256:mine\"\n",
            file.display()
        )
    };
    let config = home.read(".codex/config.toml");
    home.write(".codex/config.toml", &format!("{config}\n{}", entry(1)));
    assert_eq!(home.run(&["install", "codex", "--remove", "--yes"]).code, 0);
    let settings: Value = serde_json::from_str(&home.read(".codex/hooks.json")).unwrap();
    assert_eq!(
        settings,
        serde_json::json!({ "hooks": { "PreToolUse": [mine] } })
    );
    assert_eq!(home.read(".codex/config.toml").trim(), entry(0).trim());
}
