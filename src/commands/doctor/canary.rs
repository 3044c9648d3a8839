//! The canary: the very command that the agent runs, with a call that nobody can approve. It must be denied in a way that stops
//! the agent.

use std::process::{Output, Stdio};
use std::time::Duration;

use countersign::agent::Agent;
use countersign::client::visible;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::commands::findings::FindingReport;
use crate::commands::install::place::InstallPlaces;
use crate::commands::install::shell::guard_of;

const CANARY_TIMEOUT: Duration = Duration::from_secs(30);
/// No profile can be here, whatever its name: so no gateway is reached and nobody is asked.
const NOWHERE: &str = "/dev/null/countersign-doctor";
/// More than any answer.
const SHOWN: usize = 200;

pub async fn check(
    agent: Agent,
    command: &str,
    places: &InstallPlaces,
    report: &mut FindingReport,
) {
    let name = format!("{agent} canary");
    let remedy = format!("run: countersign install {agent}; then doctor again");
    let Some(command) = without_guard(command) else {
        return report.fail(name, "its guard cannot be told from the command", remedy);
    };
    match tokio::time::timeout(CANARY_TIMEOUT, run(agent, &command, places)).await {
        Err(_) => report.fail(
            name,
            "the hook did not answer a call that it must deny",
            remedy,
        ),
        Ok(Err(error)) => report.fail(name, format!("the hook cannot be run: {error}"), remedy),
        Ok(Ok(output)) => match fault(agent, &output) {
            None => report.ok(name, "a call that nobody can approve is denied"),
            Some(fault) => report.fail(
                name,
                format!("a call that nobody can approve is not denied: {fault}"),
                remedy,
            ),
        },
    }
}

/// The command with a guard that cannot be, since a real one would ask a person. `None` if that is not certain.
fn without_guard(command: &str) -> Option<String> {
    let Some(guard) = guard_of(command) else {
        return (!command.contains("--guard")).then(|| command.to_owned());
    };
    Some(command.replace(&guard, &format!("root:{NOWHERE}")))
}

/// Kills the hook with all that it started, if nobody waits any more.
struct ProcessGroup(Option<Pid>);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _gone = killpg(group, Signal::SIGKILL);
        }
    }
}

async fn run(agent: Agent, command: &str, places: &InstallPlaces) -> std::io::Result<Output> {
    let mut child = Command::new("/bin/sh")
        .arg("-c")
        .arg(command)
        .env("XDG_CONFIG_HOME", NOWHERE)
        .env("COUNTERSIGN_PROFILE", "doctor-canary")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    let mut group = ProcessGroup(id.map(Pid::from_raw));
    let input = call(agent, &places.directory.to_string_lossy()).to_string();
    if let Some(mut stdin) = child.stdin.take() {
        // A hook that does not read is judged by its answer.
        let _closed = stdin.write_all(input.as_bytes()).await;
    }
    let output = child.wait_with_output().await?;
    group.0 = None;
    Ok(output)
}

/// What keeps the answer from being a denial that every version of the agent understands.
fn fault(agent: Agent, output: &Output) -> Option<String> {
    let shown = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        visible(&text.chars().take(SHOWN).collect::<String>())
    };
    if output.status.code() != Some(2) {
        return Some(format!(
            "{}, expected exit status 2; {}",
            output.status,
            shown(&output.stderr)
        ));
    }
    let answer: Value = match serde_json::from_slice(&output.stdout) {
        Ok(answer) => answer,
        Err(_) => {
            return Some(format!(
                "standard output is not one JSON document: {}",
                shown(&output.stdout)
            ));
        }
    };
    let verdict = match agent {
        Agent::Claude | Agent::Codex => &answer["hookSpecificOutput"]["permissionDecision"],
        Agent::Copilot => &answer["permissionDecision"],
        Agent::Gemini | Agent::Opencode => &answer["decision"],
        Agent::Cursor => &answer["permission"],
    };
    if verdict != "deny" {
        return Some(format!(
            "standard output is no denial: {}",
            shown(&output.stdout)
        ));
    }
    let silent = output.stderr.iter().all(u8::is_ascii_whitespace);
    silent.then(|| "standard error has no reason, which some agents need".to_owned())
}

/// A recorded call of a shell, as each agent gives it to its hook.
fn call(agent: Agent, directory: &str) -> Value {
    let command = "touch countersign-doctor-canary";
    match agent {
        Agent::Claude => json!({
            "session_id": "doctor", "transcript_path": "/dev/null", "cwd": directory, "permission_mode": "default",
            "hook_event_name": "PreToolUse", "tool_name": "Bash",
            "tool_input": {"command": command, "description": "Canary"}, "tool_use_id": "doctor",
        }),
        Agent::Codex => json!({
            "session_id": "doctor", "turn_id": "doctor", "transcript_path": null, "cwd": directory,
            "hook_event_name": "PreToolUse", "model": "doctor", "permission_mode": "default",
            "tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "doctor",
        }),
        Agent::Gemini => json!({
            "session_id": "doctor", "transcript_path": "", "cwd": directory, "hook_event_name": "BeforeTool",
            "timestamp": "2026-01-01T00:00:00.000Z", "tool_name": "run_shell_command",
            "tool_input": {"command": command},
        }),
        Agent::Copilot => json!({
            "sessionId": "doctor", "timestamp": 1_767_225_600_000_u64, "cwd": directory, "toolName": "bash",
            "toolArgs": {"command": command, "description": "Canary"},
        }),
        Agent::Opencode => json!({
            "event": "tool.execute.before", "sessionID": "doctor", "callID": "doctor", "tool": "bash",
            "args": {"command": command, "description": "Canary"}, "directory": directory,
        }),
        Agent::Cursor => json!({
            "conversation_id": "doctor", "generation_id": "doctor", "model": "doctor",
            "hook_event_name": "preToolUse", "cursor_version": "doctor", "workspace_roots": [directory],
            "tool_name": "Shell", "tool_input": {"command": command}, "tool_use_id": "doctor", "cwd": directory,
        }),
    }
}
