//! The policies that ship, as agents meet them: a session of twenty steps, and commands that were
//! approved before.

use countersign::agent::Agent;
use countersign::protocol::decision::Verdict;
use serde_json::{Value, json};

use super::process::{HookScene, Ran, end, start};
use crate::client::people::choice;
use crate::support::process::countersign;

impl HookScene {
    /// A command of the user in the project.
    async fn run(&self, arguments: &[&str]) -> Ran {
        let mut command = countersign();
        command
            .env("XDG_CONFIG_HOME", self.world.directory.path())
            .env("HOME", self.world.directory.path().join("home"))
            .env("COUNTERSIGN_PROFILE", "bot")
            .current_dir(self.project())
            .args(arguments)
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        end(command.spawn().unwrap()).await
    }

    async fn approve_call(&self, input: &str) {
        let child = self.start_hook(Agent::Claude, &[], input);
        self.decide(&choice(Verdict::Approve)).await;
        let ran = end(child).await;
        assert_eq!(ran.code, 0, "{}", ran.err);
    }

    async fn passes(&self, input: &str) {
        let ran = self.hook(Agent::Claude, &[], input).await;
        let answer = (ran.code, ran.out.trim(), ran.err.as_str());
        assert_eq!(answer, (0, "", ""), "{input}");
        self.nobody_was_asked().await;
    }
}

/// The steps of Claude Code in the recorded sessions, with whether each is asked.
fn steps(project: &str) -> Vec<(bool, String, Value)> {
    let sessions = include_str!("../agents/sessions.txt");
    let (_, session) = sessions.split_once("## claude\n").unwrap();
    let (session, _) = session.split_once("\n\n").unwrap();
    let step = |line: &str| {
        let mut parts = line.replace("/srv/project", project);
        let input = parts.split_off(parts.find('{').unwrap());
        let (mark, tool) = parts.trim().split_once(' ').unwrap();
        let input = serde_json::from_str(&input).unwrap();
        (mark == "ask", tool.to_owned(), input)
    };
    session.lines().map(step).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_twenty_steps_asks_three_times() {
    let scene = HookScene::start().await;
    scene.write("Cargo.toml", "[package]\nname = 'x'\n");
    scene.write("src/parse.rs", "a b c\n");
    scene.write(".gitignore", "/target\n");
    let ran = scene.run(&["policy", "init", "project", "--yes"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.err.contains("code that the agent may have edited"),
        "{}",
        ran.err
    );
    let mut asked = 0;
    for (is_asked, tool, mut input) in steps(scene.project().to_str().unwrap()) {
        // The edits are not made here, so each begins with the same text.
        if input.get("old_string").is_some() {
            input["old_string"] = json!("a b c");
        }
        let call = scene.claude(&tool, &input);
        if is_asked {
            scene.approve_call(&call).await;
            asked += 1;
        } else {
            scene.passes(&call).await;
        }
    }
    assert_eq!(asked, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_that_were_approved_are_proposed_and_pass_once_they_are_added() {
    let scene = HookScene::start().await;
    scene.write("Makefile", "docs:\n");
    let nothing = scene.run(&["policy", "learn"]).await;
    assert_eq!((nothing.code, nothing.out.as_str()), (0, ""));
    scene.run(&["policy", "init", "careful", "--yes"]).await;
    for command in [
        "make docs",
        "git push",
        "make docs",
        "make docs && ls",
        "sh -c x",
        "make $A",
    ] {
        scene.approve_call(&scene.bash(command)).await;
    }
    // An option that changes how it runs is no part of the command.
    let outside = json!({ "command": "cargo doc", "dangerouslyDisableSandbox": true });
    scene.approve_call(&scene.claude("Bash", &outside)).await;
    let edit = json!({ "file_path": "a", "content": "x" });
    scene.approve_call(&scene.claude("Write", &edit)).await;
    let proposed = scene.run(&["policy", "learn", "--json"]).await.json();
    let expected = json!({ "proposals": [{ "commands": ["make docs"], "approved": 2 }] });
    assert_eq!(proposed, expected);
    // Nobody was asked, so nothing is added.
    let shown = scene.run(&["policy", "learn"]).await;
    assert_eq!(shown.code, 1, "{}", shown.err);
    assert_eq!(shown.out.trim(), "`make docs`, approved 2 times");
    assert!(shown.err.contains("--yes"), "{}", shown.err);
    scene.approve_call(&scene.bash("make docs")).await;
    let added = scene.run(&["policy", "learn", "--yes"]).await;
    assert_eq!(added.code, 0, "{}", added.err);
    for command in ["make docs", "make docs && ls"] {
        scene.passes(&scene.bash(command)).await;
    }
    assert_eq!(
        scene.run(&["policy", "learn", "--json"]).await.json(),
        json!({ "proposals": [] })
    );
    // Its meaning has changed.
    scene.write("Makefile", "docs:\n\trm -rf /\n");
    scene.approve_call(&scene.bash("make docs")).await;
    // The agent can neither read the list nor add to it.
    let own = scene.own("bot.approved.json");
    assert!(own.exists());
    let read = scene.claude("Read", &json!({ "file_path": own }));
    let denied = scene.hook(Agent::Claude, &[], &read).await;
    denied.is_denied(Agent::Claude, "Countersign's own files");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_only_reads_denies_changes_without_asking() {
    let scene = HookScene::start().await;
    scene.run(&["policy", "init", "read-only", "--yes"]).await;
    scene.passes(&scene.bash("git status | head -3")).await;
    let denied = scene.hook(Agent::Claude, &[], &scene.bash("make")).await;
    denied.is_denied(Agent::Claude, "read, not change");
    scene.nobody_was_asked().await;
}

/// A list that cannot be written loses a proposal, and no approval.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_list_of_approved_commands_stops_nothing() {
    let scene = HookScene::start().await;
    scene.approve_call(&scene.bash("make docs")).await;
    std::fs::write(scene.own("bot.approved.json"), "damaged").unwrap();
    scene.approve_call(&scene.bash("make docs")).await;
    let ran = scene.run(&["policy", "learn"]).await;
    assert_ne!(ran.code, 0);
    assert!(ran.err.contains("bot.approved.json"), "{}", ran.err);
}

/// Codex tells where a command would run. The model chooses that, and must not choose its project
/// with it.
#[tokio::test(flavor = "multi_thread")]
async fn codex_works_where_its_hook_runs_and_not_where_its_command_would() {
    let scene = HookScene::start().await;
    scene.run(&["policy", "init", "project", "--yes"]).await;
    let elsewhere = scene.world.directory.path().join("elsewhere");
    std::fs::create_dir_all(elsewhere.join(".git")).unwrap();
    std::fs::create_dir_all(scene.project().join("sub")).unwrap();
    let link = scene.world.directory.path().join("link");
    std::os::unix::fs::symlink(scene.project(), &link).unwrap();
    let begin = |directory: &std::path::Path| {
        let input = json!({
            "session_id": "s-1", "turn_id": "t", "cwd": directory, "hook_event_name": "PreToolUse",
            "tool_name": "Bash", "tool_input": { "command": "cat notes > copy" },
        });
        let mut command = scene.command(Agent::Codex, &[]);
        start(command.current_dir(scene.project()), &input.to_string())
    };
    for directory in [scene.project(), link] {
        let ran = end(begin(&directory)).await;
        assert_eq!((ran.code, ran.out.trim()), (0, ""), "{}", ran.err);
    }
    for directory in [elsewhere, scene.project().join("sub")] {
        let child = begin(&directory);
        let artifact = scene.decide(&choice(Verdict::Reject)).await;
        assert_eq!(artifact["payload"]["directory"], json!(directory));
        end(child).await.is_denied(Agent::Codex, "");
    }
}
