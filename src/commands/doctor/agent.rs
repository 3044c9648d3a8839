//! One agent: its program, its configuration, and the canary.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use countersign::agent::Agent;
use countersign::agent::install::inspect::AgentConfiguration;
use countersign::agent::install::places::{InstallPlaces, InstallScope};
use countersign::agent::install::shell::guard_of;
use countersign::client::visible;
use tokio::process::Command;

use super::canary;
use crate::commands::findings::FindingReport;
use crate::commands::guard::GuardAddress;

const VERSION_TIMEOUT: Duration = Duration::from_secs(30);

/// Whether there is anything of it on this machine.
pub fn is_here(agent: Agent, places: &InstallPlaces) -> bool {
    let configuration = agent.definition().configuration(places);
    program(agent).is_some()
        || !configuration.installed.is_empty()
        || !configuration.malformed.is_empty()
}

pub async fn check(
    agent: Agent,
    places: &InstallPlaces,
    guard: Option<&GuardAddress>,
    report: &mut FindingReport,
) {
    version(agent, report).await;
    let configuration = agent.definition().configuration(places);
    for problem in &configuration.malformed {
        report.fail(
            format!("{agent} settings"),
            format!("{problem}; the agent ignores this file and its hooks"),
            "correct the file",
        );
    }
    installed(agent, &configuration, report);
    for found in &configuration.installed {
        check_guard(agent, &found.command, guard, report);
    }
    let off = (agent.definition().switches)(places, &configuration);
    for switch in &off {
        report.fail(
            format!("{agent} switches"),
            format!("hooks are disabled: {switch}"),
            "remove it, or make the hook mandatory with install --managed if the agent supports that",
        );
    }
    if off.is_empty() && !configuration.installed.is_empty() {
        report.ok(format!("{agent} switches"), "nothing here disables hooks");
    }
    let mut tried = Vec::new();
    for found in &configuration.installed {
        // The same command in several files is one canary.
        if !tried.contains(&&found.command) {
            tried.push(&found.command);
            canary::check(agent, &found.command, places, report).await;
        }
    }
    let holes = (agent.definition()).open_holes(configuration.is_managed());
    report.warn(
        format!("{agent} holes"),
        format!("known gaps: {}", holes.join("; ")),
        format!("see docs/agents/{agent}.md"),
    );
}

/// Whether a hook asks through the guard that is checked, or through none.
fn check_guard(
    agent: Agent,
    command: &str,
    guard: Option<&GuardAddress>,
    report: &mut FindingReport,
) {
    let check = format!("{agent} guard");
    match (guard_of(command), guard.map(ToString::to_string)) {
        (None, None) => {}
        (Some(used), Some(given)) if used == given => {
            report.ok(check, format!("the hook asks through {used}"));
        }
        (Some(used), None) => report.warn(
            check,
            format!("the hook asks through {used}, which was not checked"),
            format!("run: countersign doctor {agent} --guard {used}"),
        ),
        (used, Some(given)) => report.fail(
            check,
            match used {
                Some(used) => format!("the hook asks through {used} instead"),
                None => "the hook does not use a guard".to_owned(),
            },
            format!("run: countersign install {agent} --guard {given}, with the same scope"),
        ),
    }
}

fn installed(agent: Agent, configuration: &AgentConfiguration, report: &mut FindingReport) {
    let check = format!("{agent} hook");
    let remedy = format!("run: countersign install {agent}");
    if configuration.installed.is_empty() {
        return report.fail(
            check,
            "the hook is not installed, so nothing needs approval",
            remedy,
        );
    }
    let is_alone = agent.definition().runs_managed_alone && configuration.is_managed();
    let places = configuration.installed.len();
    if places > 1 && !is_alone {
        report.warn(
            check.clone(),
            format!(
                "installed in {places} places, so you're asked {places} times about every call"
            ),
            "remove all but one: countersign install --remove, with --user, --project or --managed",
        );
    }
    for found in &configuration.installed {
        let path = found.path.display();
        if found.problems.is_empty() {
            report.ok(check.clone(), format!("{path}: complete"));
        } else {
            let message = format!("{path}: {}", found.problems.join("; "));
            let option = match found.scope {
                InstallScope::User => "",
                InstallScope::Project => " --project",
                InstallScope::Managed => " --managed",
            };
            report.fail(check.clone(), message, format!("{remedy}{option}"));
        }
    }
}

/// The agent's program in the search path.
fn program(agent: Agent) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let directories: Vec<_> = std::env::split_paths(&path).collect();
    let names = agent.definition().programs.iter();
    let mut candidates =
        names.flat_map(|name| directories.iter().map(move |place| place.join(name)));
    candidates.find(|path| path.is_file())
}

async fn version(agent: Agent, report: &mut FindingReport) {
    let check = format!("{agent} program");
    let Some(program) = program(agent) else {
        let message = format!("{} is not in the search path", agent.title());
        return report.warn(
            check,
            message,
            "nothing to do if you start it from elsewhere",
        );
    };
    let shown = program.display();
    // Nothing of its own output may reach ours.
    let mut command = Command::new(&program);
    command.arg("--version").kill_on_drop(true);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let output = match tokio::time::timeout(VERSION_TIMEOUT, command.output()).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => {
            let message = format!("{shown} cannot be run: {error}");
            return report.warn(check, message, "install it again");
        }
        Err(_) => {
            let message = format!("{shown} does not report its version");
            return report.warn(check, message, "try it by hand");
        }
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let version = version_in(&text);
    let shown_version = version.map_or_else(|| "an unknown version".to_owned(), visible);
    match agent.definition().measured {
        Some(measured) if version == Some(measured) => {
            let message = format!("{shown} {shown_version}, a tested version");
            report.ok(check, message);
        }
        Some(measured) => report.warn(
            check,
            format!("{shown} is {shown_version}; its hooks were tested with {measured}"),
            "the canary below still counts; try a denied call once by hand",
        ),
        None => report.warn(
            check,
            format!("{shown} is {shown_version}; its hooks were never tested"),
            "try a denied call once by hand",
        ),
    }
}

/// The first number of the form 1.2.3.
fn version_in(text: &str) -> Option<&str> {
    let mut words =
        text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+')));
    let version = words.find(|word| {
        word.starts_with(|c: char| c.is_ascii_digit()) && word.matches('.').count() >= 2
    });
    version.map(|word| word.trim_end_matches('.'))
}
