//! The state of a session after its hook has ended, however it ended; and the repository that a
//! request names.

use std::time::Duration;

use countersign::agent::Agent;
use countersign::client::enforcer::Enforcer;
use countersign::protocol::decision::Verdict;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::process::{HookScene, end};
use crate::client::people::{PATIENCE, choice};
use crate::support::{Client, until};

struct SeenSession {
    admin: Client,
    path: String,
}

impl SeenSession {
    async fn of(scene: &HookScene, agent: &str, id: &str) -> Self {
        let clock = &scene.world.cluster.clock;
        let enforcer = Enforcer::open(&scene.world.file("bot"), clock).unwrap();
        let session = enforcer.session(agent, id).unwrap();
        Self {
            admin: scene.world.cluster.admin().await,
            path: format!("/v1/session/{}", session.as_str()),
        }
    }

    async fn state(&self) -> String {
        let answer = self.admin.get(&self.path).await;
        answer.json()["state"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    async fn becomes(&self, state: &str) {
        until(state, PATIENCE, async || self.state().await == state).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_does_not_wait_longer_than_its_hook() {
    let scene = HookScene::start().await;
    let session = SeenSession::of(&scene, "claude", "s-1").await;
    // Not decided in time.
    let ran = scene.start_hook(Agent::Claude, &["--timeout", "4s"], &scene.bash("make"));
    session.becomes("waiting_approval").await;
    end(ran).await.is_denied(Agent::Claude, "decision");
    assert_eq!(session.state().await, "executing");
    // Interrupted, and withdrawn.
    let child = scene.start_hook(Agent::Claude, &[], &scene.bash("make"));
    scene.item().await;
    session.becomes("waiting_approval").await;
    kill(
        Pid::from_raw(child.id().try_into().unwrap()),
        Signal::SIGTERM,
    )
    .unwrap();
    assert_eq!(end(child).await.code, 2);
    session.becomes("idle").await;
    // Rejected.
    let child = scene.start_hook(Agent::Claude, &[], &scene.bash("make"));
    session.becomes("waiting_approval").await;
    scene.decide(&choice(Verdict::Reject)).await;
    assert_eq!(end(child).await.code, 2);
    assert_eq!(session.state().await, "executing");
    // The turn has ended.
    let codex = SeenSession::of(&scene, "codex", "s-1").await;
    let stop = json!({
        "session_id": "s-1", "turn_id": "t", "cwd": scene.project(), "hook_event_name": "Stop",
    });
    let prompt = json!({
        "session_id": "s-1", "turn_id": "t", "cwd": scene.project(), "hook_event_name": "UserPromptSubmit",
    });
    for (event, state) in [(prompt, "planning"), (stop, "idle")] {
        let ran = scene.hook(Agent::Codex, &[], &event.to_string()).await;
        assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{}", ran.err);
        assert_eq!(codex.state().await, state);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_whose_hook_was_killed_waits_only_while_its_request_does() {
    let scene = HookScene::start().await;
    let session = SeenSession::of(&scene, "claude", "s-1").await;
    let child = scene.start_hook(Agent::Claude, &["--timeout", "5m"], &scene.bash("make"));
    scene.item().await;
    session.becomes("waiting_approval").await;
    let mut child = child;
    child.kill().unwrap();
    end(child).await;
    let cluster = &scene.world.cluster;
    cluster.pass(Duration::from_secs(120));
    assert_eq!(
        session.state().await,
        "waiting_approval",
        "its request is open"
    );
    cluster.pass(Duration::from_secs(200));
    assert_eq!(session.state().await, "idle", "its request has expired");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_repository_is_named_by_machine_and_root_for_every_agent() {
    let scene = HookScene::start().await;
    let inner = scene.project().join("crates/inner");
    std::fs::create_dir_all(&inner).unwrap();
    let host = nix::unistd::gethostname().unwrap().into_string().unwrap();
    let root = scene.project().canonicalize().unwrap();
    let expected = format!("{host}:{}", root.display());
    let dotted = format!("{}/.", inner.display());
    let event = |agent: Agent, cwd: &str| -> Value {
        match agent {
            Agent::Claude | Agent::Codex => json!({
                "session_id": "s", "cwd": cwd, "hook_event_name": "PreToolUse", "tool_name": "Bash",
                "tool_input": { "command": "make" },
            }),
            Agent::Gemini => json!({
                "session_id": "s", "cwd": cwd, "hook_event_name": "BeforeTool",
                "tool_name": "run_shell_command", "tool_input": { "command": "make", "dir_path": "." },
            }),
            Agent::Copilot => {
                json!({ "sessionId": "s", "cwd": cwd, "toolName": "bash", "toolArgs": { "command": "make" } })
            }
            Agent::Opencode => json!({
                "event": "tool.execute.before", "sessionID": "s", "callID": "c", "tool": "bash",
                "args": { "command": "make", "workdir": cwd }, "directory": cwd,
            }),
            Agent::Cursor => json!({
                "hook_event_name": "beforeShellExecution", "conversation_id": "s", "command": "make",
                "workspace_roots": [cwd],
            }),
        }
    };
    for agent in Agent::ALL {
        for cwd in [inner.to_str().unwrap(), &dotted] {
            let child = scene.start_hook(agent, &[], &event(agent, cwd).to_string());
            let item = scene.item().await;
            let repository = item
                .content
                .as_ref()
                .unwrap()
                .artifact()
                .repository()
                .to_owned();
            assert_eq!(repository, expected, "{agent} in {cwd}");
            scene
                .alice
                .decide(&item, &choice(Verdict::Reject))
                .await
                .unwrap();
            end(child).await;
        }
    }
    // A directory that is not there has no dot at its end either.
    let missing = json!({
        "session_id": "s", "cwd": root, "hook_event_name": "BeforeTool",
        "tool_name": "run_shell_command", "tool_input": { "command": "make", "dir_path": "gone/./x/.." },
    });
    let child = scene.start_hook(Agent::Gemini, &[], &missing.to_string());
    let item = scene.item().await;
    let repository = item.content.as_ref().unwrap().artifact().repository();
    assert_eq!(repository, expected);
    scene
        .alice
        .decide(&item, &choice(Verdict::Reject))
        .await
        .unwrap();
    end(child).await;
}
