//! The question, the approver's view of it, and the agent's answer.

use countersign::agent::Agent;
use countersign::client::enforcer::Enforcer;
use countersign::e2e::{DecisionScope, GrantMatch};
use countersign::protocol::decision::Verdict;
use countersign::protocol::prompt::PromptStatus;
use serde_json::{Value, json};
use std::os::fd::OwnedFd;
use std::time::Duration;

use super::process::{HookScene, artifact, end, start};
use crate::client::grants::{permits, prefix};
use crate::client::people::{PATIENCE, because, choice};
use crate::support::{crowd, until};

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_command_is_allowed_and_was_shown_as_it_will_run() {
    let scene = HookScene::start().await;
    let line = "set -e\nfor f in *; do rm \"$f\"; done && echo $(date)";
    let child = scene.start_hook(Agent::Claude, &[], &scene.bash(line));
    let artifact = scene.decide(&because(Verdict::Approve, "Fine.")).await;
    assert_eq!(artifact["artifactType"], "command.review");
    let payload = json!({
        "kind": "command", "command": line, "directory": scene.project(), "agent": "claude", "tool": "Bash",
    });
    assert_eq!(artifact["payload"], payload);
    let enforcer = Enforcer::open(&scene.world.file("bot"), &scene.world.cluster.clock).unwrap();
    let session = enforcer.session("claude", "s-1").unwrap();
    assert_eq!(artifact["sessionId"], json!(session));
    let ran = end(child).await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let own = &ran.json()["hookSpecificOutput"];
    assert_eq!(own["permissionDecision"], "allow");
    assert_eq!(own["permissionDecisionReason"], "approved by alice: Fine.");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_agent_is_told_the_signed_reason_in_its_own_form() {
    let scene = HookScene::start().await;
    let cwd = scene.project();
    for (agent, input) in [
        (Agent::Claude, scene.bash("make")),
        (Agent::Codex, scene.bash("make")),
        (
            Agent::Gemini,
            json!({
                "session_id": "s", "cwd": cwd, "hook_event_name": "BeforeTool",
                "tool_name": "run_shell_command", "tool_input": { "command": "make" },
            })
            .to_string(),
        ),
        (
            Agent::Copilot,
            json!({ "sessionId": "s", "cwd": cwd, "toolName": "bash", "toolArgs": { "command": "make" } })
                .to_string(),
        ),
        (
            Agent::Opencode,
            json!({
                "event": "tool.execute.before", "sessionID": "s", "callID": "c", "tool": "bash",
                "args": { "command": "make" }, "directory": cwd,
            })
            .to_string(),
        ),
        (
            Agent::Cursor,
            json!({
                "hook_event_name": "beforeShellExecution", "conversation_id": "s", "command": "make",
                "workspace_roots": [cwd],
            })
            .to_string(),
        ),
    ] {
        let child = scene.start_hook(agent, &[], &input);
        let artifact = scene.decide(&because(Verdict::Reject, "Not on a Friday.")).await;
        assert_eq!(artifact["payload"]["command"], "make", "{agent}");
        end(child).await.is_denied(agent, "alice rejected it: Not on a Friday.");
        let child = scene.start_hook(agent, &[], &input);
        scene.decide(&choice(Verdict::Approve)).await;
        let ran = end(child).await;
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{agent}");
        assert_eq!(ran.out.is_empty(), agent == Agent::Codex, "{agent}");
        assert!(!ran.out.contains("deny"), "{agent}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changes_after_it_was_shown_denies_the_edit() {
    let scene = HookScene::start().await;
    let file = scene.write("src/a.txt", "one\ntwo\n");
    let edit = scene.claude(
        "Edit",
        &json!({ "file_path": file, "old_string": "two", "new_string": "2" }),
    );
    // Unchanged it is allowed.
    let child = scene.start_hook(Agent::Claude, &[], &edit);
    let artifact = scene.decide(&choice(Verdict::Approve)).await;
    let patch = "--- a/src/a.txt\n+++ b/src/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n";
    assert_eq!(artifact["payload"]["patch"], patch);
    assert_eq!(artifact["artifactType"], "patch.review");
    assert_eq!(end(child).await.code, 0);
    for change in ["one\ntwo\nthree\n", "two\none\n"] {
        std::fs::write(&file, "one\ntwo\n").unwrap();
        let child = scene.start_hook(Agent::Claude, &[], &edit);
        let item = scene.item().await;
        std::fs::write(&file, change).unwrap();
        scene
            .alice
            .decide(&item, &choice(Verdict::Approve))
            .await
            .unwrap();
        end(child)
            .await
            .is_denied(Agent::Claude, "changed after the approver saw the edit");
    }
    // A link that leads elsewhere now, with the same content there.
    std::fs::write(&file, "one\ntwo\n").unwrap();
    let child = scene.start_hook(Agent::Claude, &[], &edit);
    let item = scene.item().await;
    let other = scene.write("src/b.txt", "one\ntwo\n");
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(&other, &file).unwrap();
    scene
        .alice
        .decide(&item, &choice(Verdict::Approve))
        .await
        .unwrap();
    end(child)
        .await
        .is_denied(Agent::Claude, "changed after the approver saw the edit");
    // A file that was to be created is there now.
    let new = scene.project().join("new.txt");
    let write = scene.claude("Write", &json!({ "file_path": new, "content": "x\n" }));
    let child = scene.start_hook(Agent::Claude, &[], &write);
    let item = scene.item().await;
    scene.write("new.txt", "y\n");
    scene
        .alice
        .decide(&item, &choice(Verdict::Approve))
        .await
        .unwrap();
    end(child)
        .await
        .is_denied(Agent::Claude, "changed after the approver saw the edit");
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_that_cannot_be_shown_are_denied_and_nobody_is_asked() {
    let scene = HookScene::start().await;
    let file = scene.write("a.txt", "one\n");
    let fifo = scene.project().join("pipe");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let nowhere = scene.project().join("nowhere");
    std::os::unix::fs::symlink(scene.own("policy.toml"), &nowhere).unwrap();
    for (tool, input, expected) in [
        (
            "Edit",
            json!({ "file_path": file, "old_string": "x", "new_string": "y" }),
            "does not contain it",
        ),
        (
            "Write",
            json!({ "file_path": fifo, "content": "y" }),
            "not a file",
        ),
        (
            "Write",
            json!({ "file_path": scene.project(), "content": "y" }),
            "not a file",
        ),
        (
            "Write",
            json!({ "file_path": nowhere, "content": "y" }),
            "leads nowhere",
        ),
        (
            "Write",
            json!({ "file_path": "a", "content": "x".repeat(2_000_000) }),
            "at most 1500000",
        ),
        (
            "Read",
            json!({ "file_path": scene.own("bot.toml") }),
            "agents may not touch",
        ),
        (
            "Bash",
            json!({ "command": format!("cat {}", scene.own("bot.toml").display()) }),
            "agents may not touch",
        ),
    ] {
        let ran = scene
            .hook(Agent::Claude, &[], &scene.claude(tool, &input))
            .await;
        ran.is_denied(Agent::Claude, expected);
    }
    scene.nobody_was_asked().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_frees_and_a_project_makes_it_stricter() {
    let scene = HookScene::start().await;
    scene.policy("[allow]\ntools = ['read']\ncommands = ['git …']\n");
    let free = |ran: &super::process::Ran| {
        (ran.code, ran.out.clone(), ran.err.clone()) == (0, String::new(), String::new())
    };
    for input in [
        scene.bash("git push"),
        scene.claude("Read", &json!({ "file_path": "a" })),
    ] {
        let ran = scene.hook(Agent::Claude, &[], &input).await;
        assert!(free(&ran), "{} {}", ran.out, ran.err);
    }
    // Unless everything is to be asked.
    for input in [
        scene.bash("git push"),
        scene.claude("Read", &json!({ "file_path": "a" })),
    ] {
        let child = scene.start_hook(Agent::Claude, &["--every-call"], &input);
        scene.decide(&choice(Verdict::Reject)).await;
        end(child)
            .await
            .is_denied(Agent::Claude, "alice rejected it");
    }
    scene.write(".countersign.toml", "[ask]\ncommands = ['git push']\n");
    assert!(free(
        &scene
            .hook(Agent::Claude, &[], &scene.bash("git status"))
            .await
    ));
    let child = scene.start_hook(Agent::Claude, &[], &scene.bash("git push"));
    scene.decide(&choice(Verdict::Reject)).await;
    end(child)
        .await
        .is_denied(Agent::Claude, "alice rejected it");
    // Below the root, both files count.
    scene.write("sub/.countersign.toml", "[ask]\ncommands = ['git log']\n");
    let below = |command: &str| {
        let mut input: Value = serde_json::from_str(&scene.bash(command)).unwrap();
        input["cwd"] = json!(scene.project().join("sub"));
        input.to_string()
    };
    assert!(free(
        &scene.hook(Agent::Claude, &[], &below("git status")).await
    ));
    for command in ["git log", "git push"] {
        let child = scene.start_hook(Agent::Claude, &[], &below(command));
        scene.decide(&choice(Verdict::Reject)).await;
        end(child)
            .await
            .is_denied(Agent::Claude, "alice rejected it");
    }
    // A project cannot permit anything, and what it gets wrong makes everything asked.
    scene.write(".countersign.toml", "[allow]\ncommands = ['rm']\n");
    for command in ["git status", "rm x"] {
        let child = scene.start_hook(Agent::Claude, &[], &scene.bash(command));
        scene.decide(&choice(Verdict::Approve)).await;
        let ran = end(child).await;
        assert_eq!(ran.code, 0);
        assert!(
            ran.err
                .contains(".countersign.toml: line 1: unknown field `allow`"),
            "{}",
            ran.err
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_cannot_be_used_denies_everything() {
    use std::os::unix::fs::PermissionsExt as _;
    let scene = HookScene::start().await;
    let policy = scene.own("policy.toml");
    let read = scene.claude("Read", &json!({ "file_path": "a" }));
    scene.policy("[allow]\ntool = ['read']\n");
    let ran = scene.hook(Agent::Claude, &[], &read).await;
    ran.is_denied(Agent::Claude, "policy.toml: line 2: unknown field `tool`");
    scene.policy("");
    std::fs::set_permissions(&policy, std::fs::Permissions::from_mode(0o622)).unwrap();
    let ran = scene.hook(Agent::Claude, &[], &read).await;
    ran.is_denied(Agent::Claude, "others can write it");
    std::fs::remove_file(&policy).unwrap();
    std::fs::create_dir(&policy).unwrap();
    let ran = scene.hook(Agent::Claude, &[], &read).await;
    ran.is_denied(Agent::Claude, "policy.toml: it is not a file");
    scene.nobody_was_asked().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_hundred_at_once_each_get_their_own_answer() {
    let scene = HookScene::start().await;
    let _crowd = crowd(100).await;
    let children: Vec<_> = (0..100)
        .map(|number| scene.start_hook(Agent::Claude, &[], &scene.bash(&format!("echo {number}"))))
        .collect();
    until("all wait", PATIENCE * 4, async || {
        scene.inbox().await.len() == 100
    })
    .await;
    // The last one first: nobody waits for another's answer.
    let mut items = scene.inbox().await;
    items.reverse();
    for item in &items {
        let command = artifact(item)["payload"]["command"]
            .as_str()
            .unwrap()
            .to_owned();
        let number: usize = command.strip_prefix("echo ").unwrap().parse().unwrap();
        let verdict = if number.is_multiple_of(2) {
            Verdict::Approve
        } else {
            Verdict::Reject
        };
        let decided = because(verdict, &format!("number {number}"));
        scene.alice.decide(item, &decided).await.unwrap();
    }
    for (number, child) in children.into_iter().enumerate() {
        let ran = end(child).await;
        if number.is_multiple_of(2) {
            assert_eq!(ran.code, 0, "{}", ran.err);
            assert!(
                ran.out.contains(&format!("number {number}\"")),
                "{number}: {}",
                ran.out
            );
        } else {
            ran.is_denied(Agent::Claude, &format!("number {number}"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_granted_is_not_asked_again_and_nothing_else_is_covered() {
    let scene = HookScene::start().await;
    let commit = scene.bash("git commit -m one");
    let child = scene.start_hook(Agent::Claude, &[], &commit);
    scene
        .decide(&permits(DecisionScope::Session, prefix(&["git", "commit"])))
        .await;
    assert_eq!(end(child).await.code, 0);
    let ran = scene
        .hook(Agent::Claude, &[], &scene.bash("git commit -m two"))
        .await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("approved by alice, until "), "{}", ran.out);
    let mut other: Value = serde_json::from_str(&commit).unwrap();
    other["session_id"] = "s-2".into();
    let secret = format!(
        "git commit -F {}",
        scene.world.directory.path().join("home/.ssh/x").display()
    );
    for (agent, input) in [
        (Agent::Claude, scene.bash("git push")),
        (Agent::Claude, scene.bash("git commit -m one && git push")),
        (Agent::Claude, scene.bash("git commit -m \"$(git push)\"")),
        (Agent::Claude, scene.bash("git commit\ngit push")),
        (Agent::Claude, scene.bash("bash -c 'git commit'")),
        (Agent::Claude, scene.bash("git comm\u{456}t")),
        (Agent::Claude, scene.bash(&secret)),
        // More than the command.
        (
            Agent::Claude,
            scene.claude(
                "Bash",
                &json!({ "command": "git commit -m one", "dangerouslyDisableSandbox": true }),
            ),
        ),
        // Another session, another agent.
        (Agent::Claude, other.to_string()),
        (Agent::Codex, commit.clone()),
    ] {
        let child = scene.start_hook(agent, &[], &input);
        scene.decide(&choice(Verdict::Reject)).await;
        end(child).await.is_denied(agent, "alice rejected it");
    }
    // The session ends, and with it what was granted for it.
    let ended = json!({ "session_id": "s-1", "cwd": scene.project(), "hook_event_name": "SessionEnd", "reason": "exit" });
    assert_eq!(
        scene
            .hook(Agent::Claude, &[], &ended.to_string())
            .await
            .code,
        0
    );
    let child = scene.start_hook(Agent::Claude, &[], &commit);
    scene.decide(&choice(Verdict::Reject)).await;
    end(child)
        .await
        .is_denied(Agent::Claude, "alice rejected it");
    // The same edit, as long as the file is the same.
    let file = scene.write("a.txt", "one\n");
    let write = scene.claude("Write", &json!({ "file_path": file, "content": "two\n" }));
    let child = scene.start_hook(Agent::Claude, &[], &write);
    scene
        .decide(&permits(DecisionScope::Timebox, GrantMatch::Same))
        .await;
    assert_eq!(end(child).await.code, 0);
    assert_eq!(scene.hook(Agent::Claude, &[], &write).await.code, 0);
    scene.write("a.txt", "changed\n");
    let child = scene.start_hook(Agent::Claude, &[], &write);
    scene.decide(&choice(Verdict::Reject)).await;
    end(child)
        .await
        .is_denied(Agent::Claude, "alice rejected it");
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_reported_while_the_agent_works_waits_and_ends() {
    let scene = HookScene::start().await;
    let enforcer = Enforcer::open(&scene.world.file("bot"), &scene.world.cluster.clock).unwrap();
    let session = enforcer.session("claude", "s-1").unwrap();
    let admin = scene.world.cluster.admin().await;
    let path = format!("/v1/session/{}", session.as_str());
    let state = async || {
        let answer = admin.get(&path).await;
        answer.json()["state"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let event = |name: &str| {
        json!({ "session_id": "s-1", "cwd": scene.project(), "hook_event_name": name }).to_string()
    };
    for (name, expected) in [("SessionStart", "idle"), ("UserPromptSubmit", "planning")] {
        let ran = scene.hook(Agent::Claude, &[], &event(name)).await;
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""));
        assert_eq!(state().await, expected);
    }
    let child = scene.start_hook(Agent::Claude, &[], &scene.bash("make"));
    let item = scene.item().await;
    until("it waits", PATIENCE, async || {
        state().await == "waiting_approval"
    })
    .await;
    scene
        .alice
        .decide(&item, &choice(Verdict::Approve))
        .await
        .unwrap();
    assert_eq!(end(child).await.code, 0);
    assert_eq!(state().await, "executing");
    let ran = scene.hook(Agent::Claude, &[], &event("SessionEnd")).await;
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""));
    let answer = admin.get(&path).await;
    assert!(answer.json()["endedAt"].is_string(), "{}", answer.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn prompts_reach_claude_and_codex_and_are_rejected_for_others() {
    let scene = HookScene::start().await;
    for agent in [Agent::Claude, Agent::Codex] {
        for is_approved in [true, false] {
            scene
                .alice
                .prompt("bot", None, "Use staging.")
                .await
                .unwrap();
            let child = scene.start_hook(agent, &[], &scene.bash("make"));
            let verdict = if is_approved {
                Verdict::Approve
            } else {
                Verdict::Reject
            };
            scene.decide(&choice(verdict)).await;
            let ran = end(child).await;
            let told = &ran.json()["hookSpecificOutput"];
            let member = if is_approved {
                "additionalContext"
            } else {
                "permissionDecisionReason"
            };
            let text = told[member].as_str().unwrap_or_default();
            assert!(
                text.contains("A message from alice") && text.contains("Use staging."),
                "{told}"
            );
            let decision = match (agent, is_approved) {
                (_, false) => "deny".into(),
                (Agent::Claude, true) => "allow".into(),
                _ => Value::Null,
            };
            assert_eq!(told["permissionDecision"], decision);
        }
    }
    scene
        .alice
        .prompt("bot", None, "At the start.")
        .await
        .unwrap();
    let start =
        json!({ "session_id": "s-1", "cwd": scene.project(), "hook_event_name": "SessionStart" });
    let ran = scene.hook(Agent::Claude, &[], &start.to_string()).await;
    assert!(ran.out.contains("At the start."), "{}", ran.out);
    let sent = scene.alice.prompt("bot", None, "Lost.").await.unwrap();
    let prompt =
        json!({ "session_id": "s-1", "cwd": scene.project(), "hook_event_name": "BeforeAgent" });
    let ran = scene.hook(Agent::Gemini, &[], &prompt.to_string()).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, ""));
    let now = scene
        .alice
        .prompt_taken(&sent.request_id, Duration::ZERO)
        .await
        .unwrap();
    assert_eq!(now.status, PromptStatus::Rejected);
    assert_eq!(
        now.reason.as_deref(),
        Some("Gemini CLI cannot receive prompts")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_of_codex_that_ends_takes_its_requests_back_and_no_others() {
    let scene = HookScene::start().await;
    let event = |name: &str, turn: &str| {
        json!({
            "session_id": "s-1", "turn_id": turn, "cwd": scene.project(), "hook_event_name": name,
            "tool_name": "Bash", "tool_input": { "command": format!("make {turn}") },
        })
        .to_string()
    };
    let ended = scene.start_hook(Agent::Codex, &[], &event("PreToolUse", "1"));
    let item = scene.item().await;
    let stop = scene
        .hook(Agent::Codex, &[], &event("Stop", "another"))
        .await;
    assert_eq!(
        (stop.code, stop.out.as_str(), stop.err.as_str()),
        (0, "", "")
    );
    let goes_on = scene.start_hook(Agent::Codex, &[], &event("PreToolUse", "2"));
    until("both wait", PATIENCE, async || {
        scene.inbox().await.len() == 2
    })
    .await;
    let stop = scene.hook(Agent::Codex, &[], &event("Stop", "1")).await;
    assert_eq!(
        (stop.code, stop.out.as_str(), stop.err.as_str()),
        (0, "", "")
    );
    end(ended)
        .await
        .is_denied(Agent::Codex, "the request was withdrawn");
    let refused = scene.alice.decide(&item, &choice(Verdict::Approve)).await;
    assert!(refused.is_err(), "{refused:?}");
    let artifact = scene.decide(&choice(Verdict::Approve)).await;
    assert_eq!(artifact["payload"]["command"], "make 2");
    assert_eq!(end(goes_on).await.code, 0);
    // A turn can go on after its end, if another hook of the agent wants it to.
    let later = scene.start_hook(Agent::Codex, &[], &event("PreToolUse", "1"));
    scene.decide(&choice(Verdict::Approve)).await;
    assert_eq!(end(later).await.code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_whose_agent_is_gone_takes_its_request_back() {
    let scene = HookScene::start().await;
    // Some agents give their hooks pipes, others pairs of sockets.
    let (reader, writer) = std::io::pipe().unwrap();
    let (peer, socket) = std::os::unix::net::UnixStream::pair().unwrap();
    for (listens, output) in [
        (OwnedFd::from(reader), OwnedFd::from(writer)),
        (OwnedFd::from(peer), OwnedFd::from(socket)),
    ] {
        let mut command = scene.command(Agent::Claude, &[]);
        command.stdout(output);
        let child = start(&mut command, &scene.bash("make"));
        drop(command);
        scene.item().await;
        drop(listens);
        until("the request is withdrawn", PATIENCE, async || {
            scene.inbox().await.is_empty()
        })
        .await;
        assert_eq!(end(child).await.code, 2);
    }
}
