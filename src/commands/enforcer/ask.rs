//! `ask`: sends a file or standard input to an approver, and prints the signed decision.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use countersign::agent::receipt_folder;
use countersign::client::enforcer::{
    AcceptedApproval, AcceptedSet, ApprovalDenial, ApprovalRequest, Enforcer, RuleDemand,
};
use countersign::client::profile::ProfileFile;
use countersign::client::{DecisionRecord, visible};
use countersign::clock::Clock;
use countersign::e2e::ArtifactHints;
use serde_json::{Value, json};
use tokio::time::interval;

use super::ask_set::{SetDemand, await_set};
use super::content::{ContentKind, ContentOptions, MAX_CONTENT_BYTES, RequestContent};
use super::interruption::{AskInterruption, say_receipt_problem, say_trouble};
use super::rule_options::{RuleOptions, demands};
use crate::commands::approver::payload_headline;
use crate::commands::client_options::ClientOptions;
use crate::commands::complete;
use crate::commands::exit_action::{DENIED, ExitAction, NO_DECISION, UNAVAILABLE};
use crate::commands::guard::cause;
use crate::commands::output::{print_json, save};
use crate::commands::signals::signals;
use crate::commands::terminal::{TerminalScreen, minutes, parse_duration};
use crate::commands::waiting::{self, WaitingFile, WaitingRequest};

pub const EXAMPLES: &str = "\
Examples:
  git diff | countersign ask --type patch
  countersign ask --type plan PLAN.md
  countersign ask --approvals 2 --save receipt.json PLAN.md
  countersign ask --action approve:staging:'To staging' --action approve:production:'To production' --action reject:no:'Not today' release.json";

#[derive(Args)]
pub struct AskArgs {
    #[command(flatten)]
    options: ClientOptions,
    /// What the content is; by default a patch for .patch and .diff files, otherwise a plan.
    #[arg(long = "type", value_enum)]
    kind: Option<ContentKind>,
    /// How long to wait for a decision.
    #[arg(long, default_value = "10m", value_parser = parse_duration)]
    timeout: Duration,
    /// Ask only this approver.
    #[arg(long, value_name = "ID", add = complete::approvers())]
    approver: Option<String>,
    #[command(flatten)]
    rule: RuleOptions,
    /// A choice to offer the approver, as approve:ID:CAPTION or reject:ID:CAPTION; up to five.
    #[arg(long = "action", value_name = "CHOICE", value_parser = parse_action)]
    actions: Vec<Value>,
    /// Save the request and the decision to a file for `verify`.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Decide here what agents of this machine wait for, with the key of your own device: the same
    /// as `waiting --decide`.
    #[arg(long, conflicts_with_all = ["kind", "approver", "RuleOptions", "actions", "save", "file"])]
    local: bool,
    /// A text, or a JSON object that is shown as it is; standard input by default.
    file: Option<PathBuf>,
}

fn parse_action(text: &str) -> Result<Value, String> {
    let mut parts = text.splitn(3, ':');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(decision @ ("approve" | "reject")), Some(id), Some(caption))
            if !id.is_empty() && !caption.is_empty() =>
        {
            Ok(json!({ "decision": decision, "id": id, "caption": caption }))
        }
        _ => Err("expected approve:ID:CAPTION or reject:ID:CAPTION".to_owned()),
    }
}

pub async fn run(args: AskArgs) -> anyhow::Result<ExitAction> {
    if args.local {
        return waiting::decide(&args.options).await;
    }
    let mut screen = TerminalScreen::new(args.options.json);
    if let Some(file) = &args.save {
        anyhow::ensure!(!file.exists(), "{} already exists", file.display());
    }
    let mut request = request(&args)?;
    let file = args.options.file()?;
    let rules = demands(&mut request, args.rule.demand(), &file, None).await;
    let rules = rules.map_err(anyhow::Error::msg)?;
    let mut enforcer = Enforcer::open(&file, &Clock::system())?;
    enforcer.keep_receipts(receipt_folder(&file).map_err(anyhow::Error::msg)?);
    if let Some(terms) = enforcer.terms_of(&rules)? {
        let demand = SetDemand {
            terms,
            park: RuleDemand::park_time(&rules),
            wants_receipt: args.save.is_some(),
        };
        let result = await_set(&mut enforcer, request, demand, &mut screen).await?;
        result.save(args.save.as_deref(), &mut screen);
        return match result.decided {
            Ok(accepted) => {
                print_set(&accepted)?;
                Ok(ExitAction::DONE)
            }
            Err(interruption) => not_approved(interruption, &mut screen),
        };
    }
    let notice = waiting_file(&file, "countersign ask", &request);
    match await_decision(&mut enforcer, request, &mut screen, notice).await? {
        Ok((accepted, record)) => {
            if let Some(file) = &args.save {
                save(file, &record.to_text()?)?;
            }
            let decision: Value = serde_json::from_str(&accepted.decision)?;
            let approval = accepted.approval;
            print_json(&json!({
                "outcome": "approved",
                "requestId": decision["requestId"],
                "approverId": approval.approver,
                "deviceId": approval.device.to_string(),
                "actionId": approval.hints.action_id,
                "reason": approval.hints.reason,
                "decision": decision,
            }))?;
            Ok(ExitAction::DONE)
        }
        Err(interruption) => not_approved(interruption, &mut screen),
    }
}

/// Prints the approvals of several people.
fn print_set(accepted: &AcceptedSet) -> anyhow::Result<()> {
    let approvals = accepted.approvals.iter().map(|approval| {
        json!({
            "approverId": approval.approver,
            "deviceId": approval.device.to_string(),
            "reason": approval.hints.reason,
        })
    });
    print_json(&json!({
        "outcome": "approved",
        "actionId": accepted.choice.action_id,
        "approvals": approvals.collect::<Value>(),
    }))
}

/// Says why there is no approval, and ends with the status for that.
fn not_approved(
    interruption: AskInterruption,
    screen: &mut TerminalScreen,
) -> anyhow::Result<ExitAction> {
    let denial = match interruption {
        AskInterruption::BySignal(code) => return Ok(ExitAction::code(code)),
        AskInterruption::ByDenial(denial) => denial,
    };
    screen.say(&format!("countersign: denied: {denial}"));
    let hints = match &denial {
        ApprovalDenial::Rejected(rejection) => &rejection.hints,
        _ => &ArtifactHints::default(),
    };
    print_json(&json!({
        "outcome": "denied",
        "cause": cause(&denial),
        "message": denial.to_string(),
        "actionId": hints.action_id,
        "reason": hints.reason,
    }))?;
    Ok(ExitAction::code(match denial {
        ApprovalDenial::Parked { .. } => NO_DECISION,
        denial if denial.is_timeout() => NO_DECISION,
        ApprovalDenial::Unavailable(_) => UNAVAILABLE,
        _ => DENIED,
    }))
}

fn request(args: &AskArgs) -> anyhow::Result<ApprovalRequest> {
    let name =
        (args.file.as_deref()).map_or("standard input".into(), |file| file.display().to_string());
    let mut text = String::new();
    let input: &mut dyn std::io::Read = match &args.file {
        Some(file) => &mut std::fs::File::open(file).with_context(|| name.clone())?,
        None => &mut std::io::stdin(),
    };
    (input
        .take(MAX_CONTENT_BYTES as u64 + 1)
        .read_to_string(&mut text))
    .with_context(|| name.clone())?;
    anyhow::ensure!(
        text.len() <= MAX_CONTENT_BYTES,
        "{name}: larger than 4 MiB, which no gateway accepts"
    );
    let extension = args.file.as_deref().and_then(Path::extension);
    let is_patch = extension.is_some_and(|it| it == "patch" || it == "diff");
    let content = match serde_json::from_str(&text) {
        Ok(payload) => RequestContent::Object(payload),
        Err(_) => RequestContent::Text {
            text,
            title: None,
            directory: None,
        },
    };
    let wanted = ContentOptions {
        kind: args.kind.unwrap_or(if is_patch {
            ContentKind::Patch
        } else {
            ContentKind::Plan
        }),
        content,
        actions: args.actions.clone(),
        approver: args.approver.clone(),
        timeout: args.timeout,
        submit_timeout: args.timeout,
    };
    wanted.request()
}

/// Shows a request to other terminals while it waits.
pub(super) fn waiting_file(file: &ProfileFile, by: &str, request: &ApprovalRequest) -> WaitingFile {
    let sentence = payload_headline(&request.artifact_type, &request.payload);
    WaitingFile::of_profile(file, by, sentence)
}

/// Asks and waits, with one line of progress, and says where the request can be decided. A signal
/// withdraws it.
pub(super) async fn await_decision(
    enforcer: &mut Enforcer,
    request: ApprovalRequest,
    screen: &mut TerminalScreen,
    mut notice: WaitingFile,
) -> anyhow::Result<Result<(AcceptedApproval, DecisionRecord), AskInterruption>> {
    let stopped = signals()?;
    tokio::pin!(stopped);
    let trouble = enforcer.client().trouble();
    let preparing = say_trouble(screen, trouble.clone(), enforcer.prepare(request));
    let prepared = tokio::select! {
        prepared = preparing => prepared,
        code = &mut stopped => return Ok(Err(AskInterruption::BySignal(code))),
    };
    let mut pending = match prepared {
        Ok(pending) => pending,
        Err(denial) => return Ok(Err(AskInterruption::ByDenial(denial))),
    };
    let asked: Vec<_> = pending.asked().map(|id| visible(id.as_str())).collect();
    let (approvers, devices) = (asked.clone(), pending.device_count());
    let (asked, until) = (
        asked.join(", "),
        tokio::time::Instant::now() + pending.time_left(),
    );
    let id = pending.request_id().to_string();
    let outcome = {
        let is_submitted = std::cell::Cell::new(false);
        let deciding = pending.decision(|| is_submitted.set(true));
        tokio::pin!(deciding);
        let (mut said, mut is_shown) = (false, false);
        let mut second = interval(Duration::from_secs(1));
        loop {
            tokio::select! {
                outcome = &mut deciding => break outcome.map_err(AskInterruption::ByDenial),
                code = &mut stopped => break Err(AskInterruption::BySignal(code)),
                _ = second.tick() => {}
            }
            let trouble = trouble.borrow().clone();
            if !said
                && let Some(trouble) = &trouble
                && !screen.is_terminal()
            {
                screen.remark(&format!("countersign: {trouble}; trying again"));
            }
            if is_submitted.get() && !std::mem::replace(&mut is_shown, true) {
                let left = until.saturating_duration_since(tokio::time::Instant::now());
                let shown = notice.show(&id, &approvers, left.as_secs());
                if screen.is_terminal() {
                    screen.remark(&place(&shown, devices));
                }
            }
            said = trouble.is_some();
            let trouble = trouble.map_or(String::new(), |trouble| format!(" ({trouble})"));
            let note = if is_submitted.get() {
                "waiting for"
            } else {
                "asking"
            };
            let left = minutes(until.saturating_duration_since(tokio::time::Instant::now()));
            screen.progress(&format!(
                "countersign: {note} {asked}, {left} left{trouble}"
            ));
        }
    };
    drop(notice);
    screen.clear();
    if let Err(AskInterruption::BySignal(_)) = outcome {
        match pending.withdraw("interrupted").await {
            Ok(()) => screen.say("countersign: withdrawn"),
            Err(error) => screen.say(&format!(
                "countersign: the request could not be withdrawn: {error}"
            )),
        }
    }
    let decided = match outcome {
        Ok(accepted) => {
            let record = pending.record(&accepted)?;
            Ok((accepted, record))
        }
        Err(interrupted) => Err(interrupted),
    };
    say_receipt_problem(enforcer, screen);
    Ok(decided)
}

/// Where a request can be decided, in one line.
fn place(request: &WaitingRequest, devices: usize) -> String {
    let devices = match devices {
        1 => "1 device".to_owned(),
        count => format!("{count} devices"),
    };
    let who = request.approvers.join(", ");
    let link = request.link().unwrap_or_default();
    format!(
        "countersign: {who} can decide on {devices}, for instance at {}",
        visible(&link)
    )
}
