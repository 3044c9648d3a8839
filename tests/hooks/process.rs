//! The hook as agents run it: a process with an input and an answer.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use countersign::agent::Agent;
use countersign::client::approver::{Approver, ApproverChoice, InboxRequest};
use serde_json::{Value, json};

use crate::client::people::{ClientScene, PATIENCE, pair};
use crate::support::process::countersign;
use crate::support::{Cluster, until};

pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|_| panic!("JSON: {:?} {}", self.out, self.err))
    }

    /// Denied in every way that agents look at, for a reason that has `expected` in it.
    #[track_caller]
    pub fn is_denied(&self, agent: Agent, expected: &str) {
        assert_eq!(self.code, 2, "{} {}", self.out, self.err);
        assert!(self.err.contains(expected), "{expected:?} in {}", self.err);
        let answer = self.json();
        let (verdict, reason) = match agent {
            Agent::Claude | Agent::Codex => {
                let own = &answer["hookSpecificOutput"];
                (&own["permissionDecision"], &own["permissionDecisionReason"])
            }
            Agent::Copilot => (
                &answer["permissionDecision"],
                &answer["permissionDecisionReason"],
            ),
            Agent::Gemini | Agent::Opencode => (&answer["decision"], &answer["reason"]),
            Agent::Cursor => (&answer["permission"], &answer["agent_message"]),
        };
        assert_eq!(verdict, "deny", "{answer}");
        assert!(
            reason.as_str().unwrap().contains(expected),
            "{expected:?} in {answer}"
        );
    }
}

/// `bot` is paired with the laptop of alice, and works in a repository.
pub struct HookScene {
    pub world: ClientScene,
    pub alice: Approver,
}

impl HookScene {
    pub async fn start() -> Self {
        let world = ClientScene::with(Cluster::start(1).await);
        let mut enforcer = world.enforcer("bot").await;
        let mut alice = world.approver("alice", "laptop").await;
        pair(&mut enforcer, &mut alice).await;
        let scene = Self { world, alice };
        std::fs::create_dir_all(scene.project().join(".git")).unwrap();
        std::fs::create_dir_all(scene.home()).unwrap();
        scene
    }

    pub fn project(&self) -> PathBuf {
        self.world.directory.path().join("project")
    }

    fn home(&self) -> PathBuf {
        self.world.directory.path().join("home")
    }

    /// Countersign's own file of this name.
    pub fn own(&self, name: &str) -> PathBuf {
        self.world.directory.path().join("countersign").join(name)
    }

    pub fn policy(&self, text: &str) {
        let path = self.own("policy.toml");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    pub fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.project().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub fn command(&self, agent: Agent, arguments: &[&str]) -> Command {
        let mut command = countersign();
        command
            .env("XDG_CONFIG_HOME", self.world.directory.path())
            .env("HOME", self.home())
            .env("COUNTERSIGN_PROFILE", "bot")
            .args(["hook", agent.as_str()])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// A call of Claude Code.
    pub fn claude(&self, tool: &str, input: &Value) -> String {
        json!({
            "session_id": "s-1", "cwd": self.project(), "hook_event_name": "PreToolUse",
            "tool_name": tool, "tool_input": input,
        })
        .to_string()
    }

    pub fn bash(&self, command: &str) -> String {
        self.claude("Bash", &json!({ "command": command }))
    }

    pub fn start_hook(&self, agent: Agent, arguments: &[&str], input: &str) -> Child {
        start(&mut self.command(agent, arguments), input)
    }

    /// For what nobody is asked about.
    pub async fn hook(&self, agent: Agent, arguments: &[&str], input: &str) -> Ran {
        end(self.start_hook(agent, arguments, input)).await
    }

    /// Everything that waits.
    pub async fn inbox(&self) -> Vec<InboxRequest> {
        let mut items = Vec::new();
        self.alice.inbox(|item| items.push(item)).await.unwrap();
        items
    }

    pub async fn item(&self) -> InboxRequest {
        until("one request waits", PATIENCE, async || {
            self.alice.find("").await.unwrap().len() == 1
        })
        .await;
        self.alice.find("").await.unwrap().remove(0)
    }

    /// Decides the only request, once it is there. Returns it as the approver saw it.
    pub async fn decide(&self, choice: &ApproverChoice) -> Value {
        let item = self.item().await;
        self.alice.decide(&item, choice).await.unwrap();
        artifact(&item)
    }

    pub async fn nobody_was_asked(&self) {
        assert!(self.alice.find("").await.unwrap().is_empty());
    }
}

pub fn artifact(item: &InboxRequest) -> Value {
    let opened = item.content.as_ref().unwrap();
    serde_json::from_str(opened.artifact().text()).unwrap()
}

pub fn start(command: &mut Command, input: &str) -> Child {
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // It may stop reading before the end.
    std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    child
}

/// Waits for its end, without blocking the cluster that runs in this process.
pub async fn end(child: Child) -> Ran {
    let ended = tokio::task::spawn_blocking(|| child.wait_with_output().unwrap());
    let output = tokio::time::timeout(PATIENCE * 2, ended).await.unwrap();
    let output = output.unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}
