//! On any failure, the agent is told no: by the exit status, on standard output, and on standard
//! error.

use std::fs::File;
use std::process::Stdio;
use std::time::{Duration, Instant};

use countersign::agent::{Agent, HookOutput, MAX_INPUT_BYTES, guarded};
use countersign::client::profile::{Profile, ProfileError};
use countersign::protocol::decision::Verdict;
use serde_json::json;

use super::process::{HookScene, end, start};
use crate::client::people::{PATIENCE, answers, choice, refusing};
use crate::client::tamper::Tamper;
use crate::support::process::{Signal, countersign, signal};
use crate::support::until;

impl HookScene {
    fn through(&self, url: &str) {
        let file = self.world.file("bot");
        file.update(|profile: &mut Profile| {
            profile.enforcer.as_mut().unwrap().gateway.urls = vec![url.to_owned()];
            Ok::<_, ProfileError>(())
        })
        .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_decision_in_time_the_answer_is_no() {
    let scene = HookScene::start().await;
    let begun = Instant::now();
    for agent in [Agent::Claude, Agent::Codex] {
        let ran = scene
            .hook(agent, &["--timeout", "2s"], &scene.bash("make"))
            .await;
        ran.is_denied(agent, "decision");
    }
    assert!(begun.elapsed() >= Duration::from_secs(4));
    scene.nobody_was_asked().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_gateway_the_answer_is_no() {
    let scene = HookScene::start().await;
    let (_socket, url) = refusing();
    scene.through(&url);
    let ran = scene
        .hook(Agent::Claude, &["--timeout", "3s"], &scene.bash("make"))
        .await;
    ran.is_denied(Agent::Claude, "cannot be reached");
    // A call that needs no approval needs no gateway.
    let read = scene.claude("Read", &json!({ "file_path": "a" }));
    let ran = scene.hook(Agent::Claude, &[], &read).await;
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""));
    // Nor do events that only report.
    let event = json!({ "session_id": "s", "cwd": "/", "hook_event_name": "SessionStart" });
    let ran = scene.hook(Agent::Claude, &[], &event.to_string()).await;
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_from_the_gateway_is_no_permission() {
    let scene = HookScene::start().await;
    for text in [
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nallow",
        "HTTP/1.1 202 Accepted\r\ncontent-length: 2\r\n\r\n{}",
        "HTTP/1.1 202 Accepted\r\ncontent-type: application/json\r\ncontent-length: 20\r\n\r\n{\"decision\":\"approve",
        "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
        "not HTTP at all\r\n\r\n",
        "HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n",
    ] {
        scene.through(&answers(text.to_owned()).await);
        let ran = scene
            .hook(Agent::Claude, &["--timeout", "2s"], &scene.bash("make"))
            .await;
        ran.is_denied(Agent::Claude, "");
        assert!(
            ran.err.contains("gateway") || ran.err.contains("decision"),
            "{text}: {}",
            ran.err
        );
    }
    // A decision that was changed on its way.
    let liar = Tamper::start(&scene.world.cluster.urls()[0], |path, answer| {
        if path.contains("/wait") && answer["body"]["decision"] == "reject" {
            answer["body"]["decision"] = "approve".into();
        }
    })
    .await;
    scene.through(&liar.url);
    let child = scene.start_hook(Agent::Claude, &[], &scene.bash("make"));
    scene.decide(&choice(Verdict::Reject)).await;
    end(child).await.is_denied(Agent::Claude, "not trusted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_that_is_missing_damaged_or_exposed_denies() {
    use std::os::unix::fs::PermissionsExt as _;
    let scene = HookScene::start().await;
    for agent in Agent::ALL {
        let input = match agent {
            Agent::Claude | Agent::Codex => scene.bash("make"),
            Agent::Gemini => json!({
                "cwd": "/", "hook_event_name": "BeforeTool", "tool_name": "run_shell_command",
                "tool_input": { "command": "make" },
            })
            .to_string(),
            Agent::Copilot => {
                json!({ "cwd": "/", "toolName": "bash", "toolArgs": { "command": "make" } }).to_string()
            }
            Agent::Opencode => json!({
                "event": "tool.execute.before", "tool": "bash", "args": { "command": "make" }, "directory": "/",
            })
            .to_string(),
            Agent::Cursor => {
                json!({ "hook_event_name": "beforeShellExecution", "cwd": "/", "command": "make" }).to_string()
            }
        };
        let ran = scene.hook(agent, &["--profile", "none"], &input).await;
        ran.is_denied(agent, "none.toml");
    }
    let ran = scene
        .hook(Agent::Claude, &["--profile", "../x"], &scene.bash("make"))
        .await;
    ran.is_denied(Agent::Claude, "a profile's name");
    let mut homeless = scene.command(Agent::Claude, &[]);
    homeless.env_remove("XDG_CONFIG_HOME").env_remove("HOME");
    let ran = end(start(&mut homeless, &scene.bash("make"))).await;
    ran.is_denied(Agent::Claude, "no place for a profile");
    let file = scene.world.file("bot");
    std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o644)).unwrap();
    let ran = scene.hook(Agent::Claude, &[], &scene.bash("make")).await;
    ran.is_denied(Agent::Claude, "can be read by others");
    std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(file.path(), "[enforcer]\nid = 7").unwrap();
    let ran = scene.hook(Agent::Claude, &[], &scene.bash("make")).await;
    ran.is_denied(Agent::Claude, "damaged");
    // Events that only report stop nobody.
    let event = json!({ "session_id": "s", "cwd": "/", "hook_event_name": "UserPromptSubmit" });
    let ran = scene.hook(Agent::Claude, &[], &event.to_string()).await;
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_deny_and_withdraw_the_request() {
    let scene = HookScene::start().await;
    for sent in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let child = scene.start_hook(Agent::Claude, &[], &scene.bash("make"));
        scene.item().await;
        signal(child.id(), sent);
        let ran = end(child).await;
        ran.is_denied(
            Agent::Claude,
            "interrupted before anyone decided; the request was withdrawn",
        );
        scene.nobody_was_asked().await;
    }
    // Also while it still reads.
    let mut child = scene.command(Agent::Gemini, &[]).spawn().unwrap();
    let _open = child.stdin.take();
    let status = format!("/proc/{}/status", child.id());
    until("it listens for signals", PATIENCE, async || {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = u64::from_str_radix(caught.unwrap_or_default().trim(), 16).unwrap_or_default();
        caught & (1 << 14) != 0
    })
    .await;
    signal(child.id(), Signal::SIGTERM);
    end(child).await.is_denied(Agent::Gemini, "interrupted");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_cannot_be_written_is_no_permission() {
    let scene = HookScene::start().await;
    // An approval, to a disk that is full.
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let mut command = scene.command(Agent::Claude, &[]);
    command.stdout(full());
    let child = start(&mut command, &scene.bash("make"));
    scene.decide(&choice(Verdict::Approve)).await;
    let ran = end(child).await;
    assert_eq!(ran.code, 2, "{}", ran.err);
    let expected = "the answer cannot be written";
    assert!(ran.err.contains(expected), "{}", ran.err);
    // To nobody: there is no approval to wait for.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = scene.command(Agent::Claude, &[]);
    command.stdout(writer);
    let ran = end(start(&mut command, &scene.bash("make"))).await;
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains(expected), "{}", ran.err);
    // A denial, with nowhere to say why: the exit status still does.
    let mut command = scene.command(Agent::Claude, &["--profile", "none"]);
    command.stdout(full()).stderr(full());
    assert_eq!(end(start(&mut command, &scene.bash("make"))).await.code, 2);
    // Closed from the start.
    let hook = scene.command(Agent::Claude, &[]);
    let program = hook.get_program().to_str().unwrap();
    let line = format!("exec {program} hook claude --profile none >&- 2>&-");
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", &line]).stdin(Stdio::piped());
    let known = hook
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    shell.envs(known);
    assert_eq!(end(start(&mut shell, &scene.bash("make"))).await.code, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn input_that_is_not_understood_is_denied() {
    let scene = HookScene::start().await;
    let whole = scene.bash("make");
    for agent in Agent::ALL {
        for (input, expected) in [
            ("", "does not understand"),
            ("{", "does not understand"),
            ("null", "does not understand"),
            (&whole[..whole.len() / 2], "does not understand"),
            (
                "{\"event\":\"?\",\"hook_event_name\":\"?\",\"hookName\":\"?\"}",
                "update countersign",
            ),
        ] {
            scene
                .hook(agent, &[], input)
                .await
                .is_denied(agent, expected);
        }
    }
    let large = " ".repeat(MAX_INPUT_BYTES + 1);
    scene
        .hook(Agent::Claude, &[], &large)
        .await
        .is_denied(Agent::Claude, "larger than 8 MiB");
    let relative = json!({
        "cwd": "here", "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": { "command": "x" },
    });
    let ran = scene.hook(Agent::Claude, &[], &relative.to_string()).await;
    ran.is_denied(Agent::Claude, "which directory it works in");
    let closed = end(scene
        .command(Agent::Claude, &[])
        .stdin(Stdio::null())
        .spawn()
        .unwrap())
    .await;
    closed.is_denied(Agent::Claude, "does not understand");
    scene.nobody_was_asked().await;
}

#[test]
fn arguments_that_make_no_sense_end_with_the_status_that_denies() {
    for arguments in [
        &["hook"][..],
        &["hook", "clod"],
        &["hook", "claude", "--timeout", "soon"],
        &["hook", "claude", "--no-such-option"],
        &["hook", "claude", "codex"],
        &["hoook", "claude"],
    ] {
        let output = countersign().args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[tokio::test]
async fn a_panic_denies() {
    for agent in Agent::ALL {
        let output: HookOutput = guarded(agent, async { panic!("inside") }).await;
        assert_eq!(output.status, 2);
        assert!(output.stdout.contains("deny"), "{}", output.stdout);
        assert!(
            output.stderr.contains("please report it"),
            "{}",
            output.stderr
        );
    }
}
