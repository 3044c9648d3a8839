//! `guard`: an enforcer of another user, that hooks, `run` and `mcp` ask through. Here it is the
//! same user, whose files are elsewhere.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use countersign::client::approver::{Approver, InboxRequest};
use countersign::client::profile::ProfileFile;
use countersign::protocol::decision::Verdict;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::client::people::{ClientScene, PATIENCE, because, choice, pair};
use crate::support::process::{Process, countersign};
use crate::support::until;

/// `bot` belongs to the guard; the agent works with a home of its own.
struct GuardScene {
    world: ClientScene,
    alice: Approver,
    guard: Process,
}

pub fn own_name() -> String {
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::current()).unwrap();
    user.unwrap().name
}

impl GuardScene {
    async fn start() -> Self {
        let world = ClientScene::start().await;
        let mut enforcer = world.enforcer("bot").await;
        let mut alice = world.approver("alice", "laptop").await;
        pair(&mut enforcer, &mut alice).await;
        let guard = start_guard(&world, &own_name());
        let scene = Self {
            world,
            alice,
            guard,
        };
        std::fs::create_dir_all(scene.project().join(".git")).unwrap();
        std::fs::create_dir_all(scene.agent_home()).unwrap();
        scene
    }

    fn project(&self) -> PathBuf {
        self.world.directory.path().join("project")
    }

    fn agent_home(&self) -> PathBuf {
        self.world.directory.path().join("agent")
    }

    fn address(&self) -> String {
        format!("{}:{}", own_name(), socket(&self.world).display())
    }

    /// A command of the agent's user, with nothing of the guard's.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = countersign();
        command
            .env("XDG_CONFIG_HOME", self.agent_home())
            .env("HOME", self.agent_home())
            .current_dir(self.project())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn hook(&self, input: &Value) -> Child {
        let address = self.address();
        let mut child = self
            .command(&["hook", "claude", "--guard", &address])
            .spawn()
            .unwrap();
        let text = input.to_string();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        child
    }

    fn bash(&self, command: &str) -> Value {
        json!({
            "session_id": "s-1", "cwd": self.project(), "hook_event_name": "PreToolUse",
            "tool_name": "Bash", "tool_input": { "command": command },
        })
    }

    async fn item(&self) -> InboxRequest {
        until("one request waits", PATIENCE, async || {
            self.alice.find("").await.unwrap().len() == 1
        })
        .await;
        self.alice.find("").await.unwrap().remove(0)
    }

    async fn decide(&self, verdict: Verdict) {
        let item = self.item().await;
        let choice = because(verdict, "Because.");
        self.alice.decide(&item, &choice).await.unwrap();
    }
}

pub fn socket(world: &ClientScene) -> PathBuf {
    world.directory.path().join("socket")
}

async fn connected(world: &ClientScene) -> tokio::net::UnixStream {
    let stream = tokio::net::UnixStream::connect(socket(world)).await;
    stream.unwrap()
}

fn ask_line(members: &Value) -> String {
    let call = json!({ "ask": {
        "artifactType": "command.review", "repository": "r", "payload": { "kind": "command", "command": "ls" },
        "members": members, "mayBeGranted": false, "mayKeep": false, "timeoutMs": 600_000, "submitTimeoutMs": 60_000,
    } });
    format!("{call}\n")
}

pub fn start_guard(world: &ClientScene, user: &str) -> Process {
    let guard = Process::start(
        countersign()
            .env("XDG_CONFIG_HOME", world.directory.path())
            .env("COUNTERSIGN_PROFILE", "bot")
            .args(["guard", "--user", user, "--socket"])
            .arg(socket(world)),
    );
    let began = std::time::Instant::now();
    while std::os::unix::net::UnixStream::connect(socket(world)).is_err() {
        assert!(began.elapsed() < PATIENCE, "the guard listens");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    guard
}

async fn end(child: Child) -> (i32, String, String) {
    let ended = tokio::task::spawn_blocking(|| child.wait_with_output().unwrap());
    let output = tokio::time::timeout(PATIENCE * 2, ended)
        .await
        .unwrap()
        .unwrap();
    (
        output.status.code().unwrap_or(-1),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_and_run_ask_through_a_guard() {
    let scene = GuardScene::start().await;
    let child = scene.hook(&scene.bash("make"));
    scene.decide(Verdict::Approve).await;
    let (code, out, err) = end(child).await;
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("approved by alice: Because."), "{out}");
    let child = scene.hook(&scene.bash("make"));
    scene.decide(Verdict::Reject).await;
    let (code, out, _) = end(child).await;
    assert_eq!(code, 2);
    assert!(out.contains("alice rejected it: Because."), "{out}");

    let address = scene.address();
    let run = ["run", "--guard", &address, "--", "echo", "hello"];
    let child = scene.command(&run).spawn().unwrap();
    scene.decide(Verdict::Approve).await;
    let (code, out, err) = end(child).await;
    assert_eq!((code, out.as_str()), (0, "hello\n"), "{err}");
    assert!(err.contains("approved by alice"), "{err}");
    let child = scene.command(&run).spawn().unwrap();
    scene.decide(Verdict::Reject).await;
    let (code, out, err) = end(child).await;
    assert_eq!((code, out.as_str()), (77, ""), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_edits_its_own_files_changes_nothing() {
    let scene = GuardScene::start().await;
    // A profile that names another gateway, and a policy that allows everything.
    let own = scene.agent_home().join("countersign");
    std::fs::create_dir_all(&own).unwrap();
    let profile = std::fs::read_to_string(scene.world.file("bot").path()).unwrap();
    let liar = profile.replace("http://127.0.0.1", "http://127.0.0.2");
    for (name, text) in [
        ("default.toml", liar.as_str()),
        ("policy.toml", "[allow]\ntools = [\"all\"]\n"),
    ] {
        std::fs::write(own.join(name), text).unwrap();
        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(own.join(name), mode).unwrap();
    }
    assert!(ProfileFile::at(own.join("default.toml")).load().is_ok());
    let child = scene.hook(&scene.bash("make"));
    scene.decide(Verdict::Reject).await;
    assert_eq!(end(child).await.0, 2);
    // The guard's own policy counts.
    let policy = scene.world.directory.path().join("countersign/policy.toml");
    std::fs::write(&policy, "[allow]\ncommands = [\"make\"]\n").unwrap();
    std::fs::set_permissions(&policy, std::fs::Permissions::from_mode(0o600)).unwrap();
    let (code, out, err) = end(scene.hook(&scene.bash("make"))).await;
    assert_eq!((code, out.as_str()), (0, ""), "{err}");
    std::fs::write(&policy, "nonsense").unwrap();
    let (code, _, err) = end(scene.hook(&scene.bash("make"))).await;
    assert_eq!(code, 2, "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_ends_or_a_guard_that_ends_takes_the_request_back() {
    let mut scene = GuardScene::start().await;
    let mut child = scene.hook(&scene.bash("make"));
    scene.item().await;
    child.kill().unwrap();
    child.wait().unwrap();
    let none = async || scene.alice.find("").await.unwrap().is_empty();
    until("the request is withdrawn", PATIENCE, none).await;

    let child = scene.hook(&scene.bash("make"));
    scene.item().await;
    scene.guard.kill();
    let (code, out, _) = end(child).await;
    assert_eq!(code, 2);
    assert!(out.contains("the guard closed the connection"), "{out}");
    let (code, out, _) = end(scene.hook(&scene.bash("make"))).await;
    assert_eq!(code, 2);
    assert!(out.contains("cannot be reached"), "{out}");
    // A socket that was left behind is replaced.
    scene.guard = start_guard(&scene.world, &own_name());
    let request = scene.item().await;
    let reject = choice(Verdict::Reject);
    scene.alice.decide(&request, &reject).await.unwrap();
    let child = scene.hook(&scene.bash("make"));
    scene.decide(Verdict::Approve).await;
    assert_eq!(end(child).await.0, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guard_of_another_user_is_not_believed() {
    let scene = GuardScene::start().await;
    let other = if own_name() == "root" {
        "nobody"
    } else {
        "root"
    };
    for (address, expected) in [
        (
            format!("{other}:{}", socket(&scene.world).display()),
            "does not run as",
        ),
        (
            format!("no-such-user:{}", socket(&scene.world).display()),
            "there is no user",
        ),
        (
            format!("{}:/nowhere/socket", own_name()),
            "cannot be reached",
        ),
    ] {
        let mut child = scene
            .command(&["hook", "claude", "--guard", &address])
            .spawn()
            .unwrap();
        let text = scene.bash("make").to_string();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        let (code, out, err) = end(child).await;
        assert_eq!(code, 2, "{address}");
        assert!(out.contains(expected), "{address}: {out} {err}");
        let run = ["run", "--guard", &address, "--", "echo", "hello"];
        let (code, out, err) = end(scene.command(&run).spawn().unwrap()).await;
        assert_eq!((code, out.as_str()), (77, ""), "{err}");
        assert!(err.contains(expected), "{address}: {err}");
    }
    for nonsense in ["/socket", "user:socket", ":/socket"] {
        let child = scene.command(&["run", "--guard", nonsense, "--", "true"]);
        assert_eq!(end({ child }.spawn().unwrap()).await.0, 2, "{nonsense}");
    }
    assert!(scene.alice.find("").await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_not_ask_is_not_heard() {
    let world = ClientScene::start().await;
    let mut enforcer = world.enforcer("bot").await;
    let mut alice = world.approver("alice", "laptop").await;
    pair(&mut enforcer, &mut alice).await;
    let other = if own_name() == "root" {
        "nobody"
    } else {
        "root"
    };
    let _guard = start_guard(&world, other);
    let mut stream = connected(&world).await;
    let _refused = stream.write_all(b"\"policy\"\n").await;
    let mut answer = String::new();
    let _reset = stream.read_to_string(&mut answer).await;
    assert_eq!(answer, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_is_answered_as_such_and_doctor_proves_a_guard() {
    let scene = GuardScene::start().await;
    for nonsense in ["nonsense\n", "{}\n", "\"become\"\n", "{\"ask\":{}}\n"] {
        let mut stream = connected(&scene.world).await;
        stream.write_all(nonsense.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.contains("\"failed\""), "{nonsense}: {answer}");
    }
    let address = scene.address();
    let doctor = ["doctor", "claude", "--json", "--guard", &address];
    let (_, out, _) = end(scene.command(&doctor).spawn().unwrap()).await;
    assert!(out.contains("answers"), "{out}");
    assert!(out.contains("it runs as this user"), "{out}");
    let install = ["install", "claude", "--yes", "--guard", &address];
    let (code, _, err) = end(scene.command(&install).spawn().unwrap()).await;
    assert_eq!(code, 0, "{err}");
    let settings = scene.agent_home().join(".claude/settings.json");
    let settings = std::fs::read_to_string(settings).unwrap();
    assert!(out.contains("the hook is not installed"), "{out}");
    assert!(
        settings.contains(&format!("--guard '{address}'")),
        "{settings}"
    );
    // The canary asks nobody.
    let (_, out, _) = end(scene.command(&doctor).spawn().unwrap()).await;
    assert!(
        out.contains("a call that nobody can approve is denied"),
        "{out}"
    );
    assert!(out.contains("the hook asks through"), "{out}");
    let (_, out, _) = end(scene
        .command(&["doctor", "claude", "--json"])
        .spawn()
        .unwrap())
    .await;
    assert!(out.contains("which was not checked"), "{out}");
    assert!(scene.alice.find("").await.unwrap().is_empty());
}

/// One hook serves every user of a machine, each of whom has a guard.
#[tokio::test(flavor = "multi_thread")]
async fn an_address_names_the_guard_of_the_user_who_asks() {
    let scene = GuardScene::start().await;
    let places = scene.world.directory.path().join("places");
    std::fs::create_dir(&places).unwrap();
    std::os::unix::fs::symlink(socket(&scene.world), places.join(own_name())).unwrap();
    let address = format!("{}:{}/{{user}}", own_name(), places.display());
    let arguments = ["run", "--guard", &address, "--", "echo", "ran"];
    let asking = scene.command(&arguments).spawn().unwrap();
    scene.decide(Verdict::Approve).await;
    let (code, out, err) = end(asking).await;
    assert_eq!((code, out.as_str()), (0, "ran\n"), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_comes_unasked_ends_the_question() {
    let scene = GuardScene::start().await;
    let mut stream = connected(&scene.world).await;
    let line = ask_line(&json!({}));
    stream.write_all(line.as_bytes()).await.unwrap();
    scene.item().await;
    stream.write_all(b"{\"change\":null}\n").await.unwrap();
    let mut answer = String::new();
    let answered = stream.read_to_string(&mut answer);
    let answered = tokio::time::timeout(PATIENCE, answered).await;
    answered.expect("an answer in time").unwrap();
    assert!(answer.contains("the request was withdrawn"), "{answer}");
    assert!(scene.alice.find("").await.unwrap().is_empty());
}

/// People would sign that others are asked too, and one approval would suffice.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_cannot_write_a_rule_into_its_request() {
    let scene = GuardScene::start().await;
    let mut stream = connected(&scene.world).await;
    let rule = json!({
        "v": 1, "enforcerId": "bot", "set": "AAAAAAAAAAAAAAAAAAAAAA", "seat": "alice",
        "asks": [{ "approvals": 2, "from": ["alice", "bob"] }], "rejections": 1, "comment": "none",
    });
    let line = ask_line(&json!({ "extensions": { "countersign.rule": rule } }));
    stream.write_all(line.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let answered = tokio::time::timeout(PATIENCE, stream.read_to_string(&mut answer));
    answered.await.expect("an answer in time").unwrap();
    assert!(answer.contains("\"cause\":\"refused\""), "{answer}");
    assert!(scene.alice.find("").await.unwrap().is_empty());
}
