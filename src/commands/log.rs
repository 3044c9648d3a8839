//! The gateway's log of decisions and outcomes: `log check` for its clients, and `log restart` for its
//! operator.

use std::time::Duration;

use clap::{Args, Subcommand};
use countersign::client::approver::{Approver, InboxRequest};
use countersign::client::enforcer::Enforcer;
use countersign::client::log::{LogCheck, LogReport, LogScope, LogState};
use countersign::client::profile::ProfileFile;
use countersign::client::visible;
use countersign::clock::Clock;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::client_options::ClientOptions;
use super::exit_action::{ExitAction, FAILURE};
use super::findings::{FindingReport, FindingStatus};
use super::output::{print_json, print_line, remark};

pub const CHECK_TIMEOUT: Duration = Duration::from_secs(60);
/// After a decision or at the start of a session, where nobody asked for the check.
const BRIEF_CHECK_TIMEOUT: Duration = Duration::from_secs(2);

pub const EXAMPLES: &str = "\
Examples:
  countersign log check             has the gateway changed or deleted anything that this profile has seen?
  countersign log check --accept    once its operator has explained a restart or a new key
The exit status is 0 if nothing contradicts what was seen before, otherwise 1.";

#[derive(Args)]
pub struct LogArgs {
    #[command(subcommand)]
    pub command: LogCommand,
}

#[derive(Subcommand)]
pub enum LogCommand {
    /// Check that the log only grew, and that it has this profile's decisions and outcomes unchanged.
    #[command(after_help = EXAMPLES)]
    Check {
        #[command(flatten)]
        options: ClientOptions,
        /// Trust the log as it is now: its key and its entries. What was seen before is kept as evidence.
        #[arg(long)]
        accept: bool,
    },
    /// Operator: begin a new epoch of the log, after a loss of data or with a new key.
    ///
    /// Its first entry is the last checkpoint of the epoch before. Clients report the restart.
    Restart {
        /// The tenant's id. Otherwise every tenant.
        #[arg(long)]
        tenant: Option<String>,
    },
}

/// `log check`, for each role of the profile.
pub async fn check(options: &ClientOptions, accept: bool) -> anyhow::Result<ExitAction> {
    let file = options.file()?;
    let profile = file.load()?;
    let roles = [
        ("enforcer", profile.enforcer.map(|it| it.gateway)),
        ("approver", profile.approver.map(|it| it.gateway)),
    ];
    let mut reports = Vec::new();
    for (role, gateway) in roles {
        let Some(gateway) = gateway else {
            continue;
        };
        let check = LogCheck {
            client: &gateway.client()?,
            tenant: &gateway.tenant()?,
            file: &file,
            now: Clock::system().now(),
            deadline: Instant::now() + CHECK_TIMEOUT,
        };
        if accept {
            check.accept().await?;
        }
        reports.push((role, check.run(LogScope::All).await?));
    }
    let has_failed = reports
        .iter()
        .any(|(_, report)| !report.problems.is_empty());
    if options.json {
        let shown = reports
            .iter()
            .map(|(role, report)| report_json(role, report));
        print_json(&shown.collect::<Value>())?;
    } else {
        for (role, report) in &reports {
            print_line(&format!("{role}: {}", sentence(report)))?;
            if let Some((key, _)) = &report.key {
                print_line(&format!("  key {}", visible(key)))?;
            }
            for problem in &report.problems {
                print_line(&format!("  FAILED: {}", visible(problem)))?;
            }
            if !report.problems.is_empty() {
                print_line(&format!("  evidence: {}", report.memory.display()))?;
            }
        }
    }
    Ok(if has_failed {
        ExitAction::code(FAILURE)
    } else {
        ExitAction::DONE
    })
}

fn sentence(report: &LogReport) -> String {
    match report.state {
        LogState::Missing => "the gateway shows no log".to_owned(),
        LogState::Failed => "the log contradicts what was seen before".to_owned(),
        LogState::Read { size, epoch } => {
            let (proven, open) = (report.proven, report.open);
            let first = match &report.key {
                Some((_, true)) => "; its key is trusted from now on",
                _ => "",
            };
            format!(
                "{size} entries in epoch {epoch}, {proven} of this profile proven, {open} not yet expected{first}"
            )
        }
    }
}

fn report_json(role: &str, report: &LogReport) -> Value {
    let (size, epoch) = match report.state {
        LogState::Read { size, epoch } => (Some(size), Some(epoch)),
        LogState::Missing | LogState::Failed => (None, None),
    };
    json!({
        "role": role, "size": size, "epoch": epoch, "proven": report.proven, "open": report.open,
        "key": report.key.as_ref().map(|(key, _)| key), "problems": report.problems,
    })
}

/// A finding of `doctor`.
pub async fn add_finding(enforcer: &Enforcer, report: &mut FindingReport) {
    const CHECK: &str = "log";
    match enforcer
        .log_check(Instant::now() + CHECK_TIMEOUT)
        .run(LogScope::New)
        .await
    {
        Err(error) => report.warn(
            CHECK,
            error.to_string(),
            "check it later: countersign log check",
        ),
        Ok(found) if found.state == LogState::Missing && found.problems.is_empty() => {}
        Ok(found) if found.problems.is_empty() => {
            let key = found.key.as_ref().map(|(key, _)| format!("; key {key}"));
            report.ok(
                CHECK,
                format!("{}{}", sentence(&found), key.unwrap_or_default()),
            );
        }
        Ok(found) => {
            let remedy = "ask the gateway's operator; both notes are kept: countersign log check";
            report.add(
                CHECK,
                FindingStatus::Failed,
                found.problems.join("; "),
                Some(remedy.into()),
            );
        }
    }
}

/// Says what contradicts earlier states of the log. A gateway that does not answer is no news here.
pub async fn remark_problems(approver: &Approver, item: &InboxRequest) {
    let check = approver.log_check(Instant::now() + BRIEF_CHECK_TIMEOUT);
    for problem in problems(&check).await {
        remark(&problem);
    }
    if let Ok(opened) = &item.content
        && let Ok(Some(problem)) = check.compare(opened.artifact()).await
    {
        remark(&told(&problem));
    }
}

/// The same for the start of a session.
pub async fn session_problems(file: &ProfileFile) -> Option<String> {
    let enforcer = Enforcer::open(file, &Clock::system()).ok()?;
    let check = enforcer.log_check(Instant::now() + BRIEF_CHECK_TIMEOUT);
    let found = problems(&check).await;
    (!found.is_empty()).then(|| found.join("\n"))
}

async fn problems(check: &LogCheck<'_>) -> Vec<String> {
    let report = check.run(LogScope::New).await;
    let problems = report.map(|report| report.problems).unwrap_or_default();
    problems.iter().map(|problem| told(problem)).collect()
}

fn told(problem: &str) -> String {
    let problem = visible(problem);
    format!("the gateway's log: {problem}; see: countersign log check")
}
