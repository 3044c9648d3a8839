//! The canary: the very command that the agent runs, with a call that nobody can approve. It must
//! be denied in a way that stops the agent.

use std::process::{Output, Stdio};
use std::time::Duration;

use countersign::agent::Agent;
use countersign::agent::install::places::InstallPlaces;
use countersign::agent::install::shell::guard_of;
use countersign::client::visible;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::commands::findings::FindingReport;

const CANARY_TIMEOUT: Duration = Duration::from_secs(30);
/// No profile of any name can be here: so no gateway is reached and nobody is asked.
const NOWHERE: &str = "/dev/null/countersign-doctor";
/// More than any answer.
const SHOWN: usize = 200;
const COMMAND: &str = "touch countersign-doctor-canary";

pub async fn check(
    agent: Agent,
    command: &str,
    places: &InstallPlaces,
    report: &mut FindingReport,
) {
    let name = format!("{agent} canary");
    let remedy = format!("run: countersign install {agent}, then doctor again");
    let Some(command) = without_guard(command) else {
        return report.fail(name, "its guard cannot be read from the command", remedy);
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

/// The command with a guard that cannot be, since a real one would ask a person. `None` if that is
/// not certain.
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
        .env_remove("COUNTERSIGN_PROFILES")
        .env("COUNTERSIGN_PROFILE", "doctor-canary")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    let mut group = ProcessGroup(id.map(Pid::from_raw));
    let directory = places.directory.to_string_lossy();
    let input = (agent.definition().canary)(COMMAND, &directory).to_string();
    if let Some(mut stdin) = child.stdin.take() {
        // A hook that does not read is judged by its answer.
        let _closed = stdin.write_all(input.as_bytes()).await;
    }
    let output = child.wait_with_output().await?;
    group.0 = None;
    Ok(output)
}

/// Why the answer is not a denial that every version of the agent understands.
fn fault(agent: Agent, output: &Output) -> Option<String> {
    let shown = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        visible(&text.chars().take(SHOWN).collect::<String>())
    };
    let (out, err) = (shown(&output.stdout), shown(&output.stderr));
    if output.status.code() != Some(2) {
        let status = output.status;
        return Some(format!("{status}, expected exit status 2; {err}"));
    }
    let Ok(answer) = serde_json::from_slice::<Value>(&output.stdout) else {
        return Some(format!("standard output is not one JSON document: {out}"));
    };
    let verdict = answer.pointer(agent.definition().verdict);
    if verdict.is_none_or(|verdict| verdict != "deny") {
        return Some(format!("standard output is not a denial: {out}"));
    }
    let is_silent = output.stderr.iter().all(u8::is_ascii_whitespace);
    is_silent.then(|| "standard error gives no reason, which some agents need".to_owned())
}
