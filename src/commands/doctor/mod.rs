//! `countersign doctor`: whether agents really ask here. It looks at everything between an agent
//! and an approver, changes nothing in the agents' files, and ends with a canary: a call that must
//! be denied.

mod agent;
mod canary;
mod gateway;
mod guard;
mod policy;
mod profile;

use std::path::PathBuf;

use clap::Args;
use countersign::agent::{Agent, own_policy};
use countersign::client::visible;

pub use self::agent::is_here;
use super::client_options::ClientOptions;
use super::complete;
use super::exit_action::{ExitAction, FAILURE};
use super::findings::{FindingReport, FindingStatus};
use super::guard::GuardAddress;
use super::install::install_places;
use super::output::{print_json, print_line};
use super::terminal::{Colour, output_has_colour, paint};

pub const EXAMPLES: &str = "\
Examples:
  countersign doctor               everything on this machine
  countersign doctor claude        one agent
  countersign doctor --json        for programs
The exit status is 0 if nothing failed, otherwise 1. Warnings don't count.";

#[derive(Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    options: ClientOptions,
    /// Only this agent. Otherwise every agent on this machine.
    #[arg(add = complete::agents())]
    agent: Option<Agent>,
    /// The guard that the hooks use.
    #[arg(long, value_name = "USER:SOCKET")]
    guard: Option<GuardAddress>,
    /// Where the files of the system are.
    #[arg(long, value_name = "DIR", hide = true)]
    system_root: Option<PathBuf>,
}

pub async fn run(args: DoctorArgs) -> anyhow::Result<ExitAction> {
    let mut report = FindingReport::default();
    let places = install_places(args.system_root.as_deref())?;
    let file = args.options.file()?;
    let own_policy = if let Some(address) = &args.guard {
        guard::check(address, &file, &mut report).await
    } else {
        if profile::check(&file, &mut report) {
            gateway::check(&file, &mut report).await;
        }
        own_policy(&file)
    };
    profile::approvers(&file, &mut report);
    policy::check(&file, own_policy, &mut report);
    let agents: Vec<_> = match args.agent {
        Some(agent) => vec![agent],
        None => (Agent::ALL.into_iter())
            .filter(|agent| is_here(*agent, &places))
            .collect(),
    };
    if agents.is_empty() {
        let known = Agent::ALL.map(Agent::as_str).join(", ");
        report.warn(
            "agents",
            "no agent was found on this machine",
            format!("name one: countersign doctor AGENT, with AGENT one of {known}"),
        );
    }
    for agent in agents {
        agent::check(agent, &places, args.guard.as_ref(), &mut report).await;
    }
    if args.options.json {
        print_json(&report.json())?;
    } else {
        print_table(&report)?;
    }
    Ok(if report.failed() == 0 {
        ExitAction::DONE
    } else {
        ExitAction::code(FAILURE)
    })
}

/// One row for each check: its name, the result, the finding, and what to do.
fn print_table(report: &FindingReport) -> anyhow::Result<()> {
    let colour = output_has_colour();
    let widths = report.findings().iter();
    let widths = widths.map(|finding| finding.check.chars().count());
    let width = widths.max().unwrap_or_default();
    for finding in report.findings() {
        let status = format!("{:<7}", finding.status.as_str());
        let status = match finding.status {
            FindingStatus::Ok => paint(colour, Colour::Green, &status),
            FindingStatus::Warning => paint(colour, Colour::Yellow, &status),
            FindingStatus::Failed => paint(colour, Colour::Red, &status),
        };
        // It may repeat what a gateway or a file says.
        let message = visible(&finding.message);
        print_line(&format!("{:<width$}  {status}  {message}", finding.check))?;
        if let Some(remedy) = &finding.remedy {
            print_line(&format!("{:<width$}           → {}", "", visible(remedy)))?;
        }
    }
    let failed = report.failed();
    print_line(&match failed {
        0 => "nothing failed".to_owned(),
        _ => format!("{failed} of {} checks failed", report.count()),
    })
}
