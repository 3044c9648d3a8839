//! `countersign` alone: what to do next, depending on what is set up.

use std::io::IsTerminal as _;
use std::path::Path;
use std::time::Duration;

use clap::Command;
use countersign::agent::{Agent, BLOCK};
use countersign::client::approver::Approver;
use countersign::client::enforcer::Enforcer;
use countersign::client::profile::{ApproverProfile, EnforcerProfile, ProfileError, ProfileFile};
use countersign::client::{ClientError, visible, visible_lines};
use countersign::clock::Clock;
use tokio::time::timeout;

use super::complete::{profile_names, usual_profile};
use super::doctor::is_here;
use super::exit_action::ExitAction;
use super::install::install_places;
use super::output::{print_line, remark};

const GATEWAY_TIMEOUT: Duration = Duration::from_secs(5);

/// Findings, and commands with what they do.
#[derive(Default)]
struct NextSteps {
    findings: Vec<String>,
    commands: Vec<(String, &'static str)>,
}

impl NextSteps {
    fn say(&mut self, finding: impl Into<String>) {
        self.findings.push(finding.into());
    }

    fn offer(&mut self, command: impl Into<String>, effect: &'static str) {
        self.commands.push((command.into(), effect));
    }
}

/// Without a terminal it is a usage error, as it may be an agent's hook that lost its arguments:
/// agents take 0 for permission.
pub async fn run(mut command: Command) -> anyhow::Result<ExitAction> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        remark(&command.render_help().to_string());
        return Ok(ExitAction::code(BLOCK));
    }
    let mut steps = NextSteps::default();
    match usual_profile(None) {
        Ok(file) => look(&file, &mut steps).await,
        Err(error) => steps.say(error.to_string()),
    }
    for finding in &steps.findings {
        print_line(&visible_lines(finding))?;
    }
    print_line("")?;
    steps.offer("countersign --help", "all commands");
    let widths = steps.commands.iter().map(|(command, _)| command.len());
    let width = widths.max().unwrap_or_default();
    for (command, effect) in &steps.commands {
        print_line(&format!("  {command:<width$}   {effect}"))?;
    }
    Ok(ExitAction::DONE)
}

async fn look(file: &ProfileFile, steps: &mut NextSteps) {
    let profile = match file.load() {
        Ok(profile) => profile,
        Err(ProfileError::Missing(path)) => return begin(&path, steps),
        Err(error) => return steps.say(error.to_string()),
    };
    if let Some(approver) = &profile.approver {
        look_at_approver(file, approver, steps).await;
    }
    if let Some(enforcer) = &profile.enforcer {
        let own = Enforcer::open(file, &Clock::system());
        let asks_teams = own.is_ok_and(|enforcer| enforcer.asks_teams_only());
        look_at_enforcer(enforcer, asks_teams, steps);
    }
}

fn begin(path: &Path, steps: &mut NextSteps) {
    let others = profile_names().unwrap_or_default();
    if others.is_empty() {
        steps.say("Countersign isn't set up for this user yet.");
    } else {
        let path = path.display();
        let others = others.join(", ");
        steps.say(format!("There is no profile {path}. Others: {others}"));
        steps.offer("export COUNTERSIGN_PROFILE=NAME", "use another profile");
    }
    steps.offer(
        "countersign join 'LINK'",
        "use the invitation link that you got",
    );
    if cfg!(feature = "dev") {
        steps.offer("countersign dev", "try everything on this machine");
    }
    if cfg!(feature = "gateway") {
        steps.offer("countersign serve", "run a gateway");
    }
}

async fn look_at_approver(file: &ProfileFile, profile: &ApproverProfile, steps: &mut NextSteps) {
    let (id, name) = (visible(&profile.id), visible(&profile.name));
    steps.say(format!("You approve as {id}, on this device ({name})."));
    if profile.sealed_keys().is_some() {
        return steps.offer(
            "countersign inbox",
            "see what is waiting (asks for your passphrase)",
        );
    }
    let counted = timeout(GATEWAY_TIMEOUT, count_requests(file)).await;
    match counted {
        Ok(Ok(None)) => {
            steps.say("This device isn't approved yet.");
            return steps.offer(
                "countersign join",
                "continue: approve it from a device you already use",
            );
        }
        Ok(Ok(Some(0))) => {
            steps.say("You're all caught up.");
            steps.offer("countersign inbox --watch", "watch for new requests");
        }
        Ok(Ok(Some(1))) => {
            steps.say("1 request is waiting for you.");
            steps.offer("countersign show", "read it");
            steps.offer("countersign approve", "read it and approve it");
        }
        Ok(Ok(Some(count))) => {
            steps.say(format!("{count} requests are waiting for you."));
            steps.offer("countersign inbox", "list them");
        }
        Ok(Err(error)) => steps.say(format!("The inbox can't be read: {error}")),
        Err(_) => steps.say("The inbox can't be read: the gateway did not answer in time"),
    }
    if profile.enforcers.is_empty() {
        steps.say("No agent's machine is paired with this device yet.");
        steps.offer(
            "countersign pair 'LINK'",
            "answer the link that `countersign pair` prints there",
        );
    }
}

/// The requests that wait, or none if this device may not decide them.
async fn count_requests(file: &ProfileFile) -> Result<Option<usize>, ClientError> {
    let approver = Approver::open(file, &Clock::system())?;
    let own = approver.device_id();
    match approver.devices().await?.find(own) {
        None => return Ok(None),
        Some(device) if !device.standing.is_in_force() => return Err(ClientError::DeviceRevoked),
        Some(_) => {}
    }
    let mut count = 0;
    approver.inbox(|_| count += 1).await?;
    Ok(Some(count))
}

fn look_at_enforcer(profile: &EnforcerProfile, asks_teams: bool, steps: &mut NextSteps) {
    let id = visible(&profile.id);
    if profile.approvers.is_empty() && !asks_teams {
        steps.say(format!(
            "This machine asks as {id}. It isn't paired, so nobody can approve anything."
        ));
        return steps.offer("countersign pair", "pair it with an approver");
    }
    let approvers = profile.approvers.iter().map(|record| visible(&record.id));
    let approvers = approvers.collect::<Vec<_>>().join(", ");
    let approvers = if asks_teams {
        "the members of a team"
    } else {
        &approvers
    };
    steps.say(format!(
        "This machine asks {approvers} for approval, as {id}."
    ));
    let (asking, idle) = agents();
    if asking.is_empty() {
        steps.say("No agent on this machine asks before it acts.");
    } else {
        steps.say(format!(
            "These agents ask before they act: {}.",
            titles(&asking)
        ));
        steps.offer("countersign doctor", "check that they really do");
    }
    match idle.as_slice() {
        [] if asking.is_empty() => {
            steps.offer(
                "countersign install AGENT",
                "make an agent ask before it acts",
            );
        }
        idle => {
            for agent in idle {
                let command = format!("countersign install {agent}");
                steps.offer(command, "make this agent ask before it acts");
            }
        }
    }
    steps.offer("countersign run -- COMMAND", "ask, then run a command");
}

fn titles(agents: &[Agent]) -> String {
    let titles = agents.iter().map(|agent| agent.title());
    titles.collect::<Vec<_>>().join(", ")
}

/// Agents on this machine with our hook, and those without it.
fn agents() -> (Vec<Agent>, Vec<Agent>) {
    let Ok(places) = install_places(None) else {
        return (Vec::new(), Vec::new());
    };
    let here = Agent::ALL.into_iter().filter(|it| is_here(*it, &places));
    here.partition(|it| {
        let configuration = it.definition().configuration(&places);
        !configuration.installed.is_empty()
    })
}
