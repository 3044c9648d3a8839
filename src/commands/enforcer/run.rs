//! `run`: asks, and becomes the command if a person has approved it.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use countersign::agent::receipt_folder;
use countersign::client::enforcer::{
    ApprovalDenial, ApprovalRequest, Enforcer, GrantSubject, RuleDemand,
};
use countersign::client::visible;
use countersign::clock::Clock;
use serde_json::{Map, json};
use tokio::time::{Instant, timeout_at};

use super::ask::{await_decision, waiting_file};
use super::ask_set::{SetDemand, await_set};
use super::content::repository_name;
use super::interruption::{AskInterruption, say_trouble};
use super::pair::{OfferArgs, pair_on};
use super::program::find_program;
use super::rule_options::{RuleOptions, demands};
use crate::commands::approver::payload_headline;
use crate::commands::client_options::ClientOptions;
use crate::commands::complete;
use crate::commands::exit_action::{DENIED, ExitAction};
use crate::commands::grant_text::describe;
use crate::commands::guard::{AskCall, AskOutcome, GuardAddress, cause};
use crate::commands::signals::signals;
use crate::commands::terminal::{Colour, TerminalScreen, confirm, parse_duration};
use crate::commands::waiting::WaitingFile;

pub const EXAMPLES: &str = "\
Examples:
  countersign run -- echo hello
  countersign run --timeout 1h -- terraform apply
  countersign run --approver alice -- sh -c 'rm -rf build && make'
  countersign run --approvals 2 --from alice,bob,carol --save receipt.json -- make release
  countersign run --always-ask -- git push      even if a grant allows it";

const GRANT_TIMEOUT: Duration = Duration::from_secs(15);

#[derive(Args)]
pub struct RunArgs {
    #[command(flatten)]
    options: ClientOptions,
    /// How long to wait for a decision before giving up.
    #[arg(long, default_value = "10m", value_parser = parse_duration)]
    timeout: Duration,
    /// Ask only this approver.
    #[arg(long, value_name = "ID", add = complete::approvers())]
    approver: Option<String>,
    #[command(flatten)]
    rule: RuleOptions,
    /// Save a receipt of the decisions under a rule to a file for `verify`.
    #[arg(long, value_name = "FILE", requires = "RuleOptions")]
    save: Option<PathBuf>,
    /// Ask even if a grant allows the command.
    #[arg(long)]
    always_ask: bool,
    /// Ask through this guard: its user and its socket.
    #[arg(long, env = "COUNTERSIGN_GUARD", value_name = "USER:SOCKET")]
    guard: Option<GuardAddress>,
    /// Show no progress.
    #[arg(long, short)]
    quiet: bool,
    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub async fn run(args: RunArgs) -> anyhow::Result<ExitAction> {
    let json = args.options.json;
    let mut screen = TerminalScreen::new(args.quiet || json);
    match Box::pin(approved(&args, &mut screen, json)).await {
        Ok(Ok(command)) => Ok(ExitAction::Become(Box::new(command))),
        Ok(Err(ending)) => Ok(ending),
        // After every error, the command does not run.
        Err(error) => Ok(denied(&mut screen, json, "error", &format!("{error:#}"))),
    }
}

async fn approved(
    args: &RunArgs,
    screen: &mut TerminalScreen,
    json: bool,
) -> anyhow::Result<Result<Command, ExitAction>> {
    let Some(argv) = words(&args.command) else {
        let problem = "an argument is not UTF-8, so an approver could not read it";
        return Ok(Err(denied(screen, json, "error", problem)));
    };
    let directory = std::env::current_dir()?;
    let program = match find_program(argv[0], &directory) {
        Ok(program) => program,
        Err(problem) => {
            screen.say(&format!(
                "countersign: {}: {}",
                visible(argv[0]),
                problem.message
            ));
            return Ok(Err(ExitAction::code(problem.code)));
        }
    };
    let content = json!({
        "kind": "command",
        "argv": argv,
        "program": text(&program)?,
        "directory": text(&directory)?,
    });
    let mut request = ApprovalRequest {
        artifact_type: "command.review".to_owned(),
        repository: repository_name(&directory),
        payload: content.as_object().cloned().unwrap_or_default(),
        members: Map::new(),
        approver: args.approver.clone(),
        timeout: args.timeout,
        submit_timeout: args.timeout,
    };
    let subject = GrantSubject::of(&request.payload, &request.repository);
    let subject = subject.context("the command cannot be described")?;
    if args.save.is_some() && args.guard.is_some() {
        let problem = "a guard gives no receipt; --save is not possible through it";
        return Ok(Err(denied(screen, json, "error", problem)));
    }
    let file = args.options.file()?;
    let rules = demands(&mut request, args.rule.demand(), &file, args.guard.as_ref());
    let rules = match rules.await {
        Ok(rules) => rules,
        Err(problem) => return Ok(Err(denied(screen, json, "unavailable", &problem))),
    };
    if let Some(guard) = &args.guard {
        let asked = ask_guard(guard, args, request, rules, screen).await?;
        return Ok(asked.map(|()| become_command(&program, &argv)));
    }
    let until = Instant::now() + args.timeout;
    let mut enforcer = Enforcer::open(&file, &Clock::system())?;
    enforcer.keep_receipts(receipt_folder(&file).map_err(anyhow::Error::msg)?);
    let can_pair = screen.is_terminal() && !json;
    if enforcer.approvers().is_empty()
        && !enforcer.asks_teams_only()
        && can_pair
        && let Err(ending) = pair_until(until, &mut enforcer, screen).await?
    {
        return Ok(Err(ending));
    }
    if let Some(terms) = enforcer.terms_of(&rules)? {
        request.timeout = until.saturating_duration_since(Instant::now());
        let demand = SetDemand {
            terms,
            park: RuleDemand::park_time(&rules),
            wants_receipt: args.save.is_some(),
        };
        let asked = ask_several(&mut enforcer, args, request, demand, screen).await?;
        return Ok(asked.map(|()| become_command(&program, &argv)));
    }
    if !args.always_ask && is_granted(&mut enforcer, args, &subject, screen).await {
        return Ok(Ok(become_command(&program, &argv)));
    }
    request.timeout = until.saturating_duration_since(Instant::now());
    let notice = || waiting_file(&file, "countersign run", &request);
    let mut decided = await_decision(&mut enforcer, request.clone(), screen, notice()).await?;
    if can_pair
        && let Err(AskInterruption::ByDenial(denial)) = &decided
        && denial.is_unpaired()
        && wants_pairing(until, denial).await
    {
        if let Err(ending) = pair_until(until, &mut enforcer, screen).await? {
            return Ok(Err(ending));
        }
        let notice = notice();
        request.timeout = until.saturating_duration_since(Instant::now());
        decided = await_decision(&mut enforcer, request, screen, notice).await?;
    }
    let accepted = match decided {
        Ok((accepted, _)) => accepted,
        Err(AskInterruption::BySignal(code)) => return Ok(Err(ExitAction::code(code))),
        Err(AskInterruption::ByDenial(denial)) => {
            return Ok(Err(denied(
                screen,
                json,
                cause(&denial),
                &denial.to_string(),
            )));
        }
    };
    let who = visible(accepted.approval.approver.as_str());
    say_approved(screen, json, "approved", &who, "");
    match enforcer.keep(&accepted) {
        Ok(None) => {}
        Ok(Some(grant)) => {
            enforcer.report_kept(&accepted, &grant).await;
            let what = describe(&grant, Some(&subject));
            screen.remark(&format!("countersign: saved as a grant: {what}"));
        }
        // This once it is approved; the next time somebody is asked.
        Err(error) => screen.remark(&format!("countersign: the grant was not saved: {error}")),
    }
    Ok(Ok(become_command(&program, &argv)))
}

/// Asks the person here whether to pair again. Without an answer in time it is no.
async fn wants_pairing(until: Instant, denial: &ApprovalDenial) -> bool {
    let question = format!("countersign: {denial}\nPair again now?");
    let asked = timeout_at(until, confirm(&question)).await;
    asked.is_ok_and(|answer| answer.unwrap_or(false))
}

/// Pairs with an approver. The inner error is how the command ends then.
async fn pair_until(
    until: Instant,
    enforcer: &mut Enforcer,
    screen: &mut TerminalScreen,
) -> anyhow::Result<Result<(), ExitAction>> {
    let offer = OfferArgs::default();
    let Ok(paired) = timeout_at(until, pair_on(enforcer, screen, &offer)).await else {
        let problem = "no approver was paired in time";
        return Ok(Err(denied(screen, false, "timeout", problem)));
    };
    Ok(paired?.map(drop).map_err(ExitAction::code))
}

/// Asks the people of a rule. No grant counts here, and none is kept. The inner error is how the
/// command ends then.
async fn ask_several(
    enforcer: &mut Enforcer,
    args: &RunArgs,
    request: ApprovalRequest,
    demand: SetDemand,
    screen: &mut TerminalScreen,
) -> anyhow::Result<Result<(), ExitAction>> {
    let json = args.options.json;
    if let Some(file) = &args.save {
        anyhow::ensure!(!file.exists(), "{} already exists", file.display());
    }
    let result = await_set(enforcer, request, demand, screen).await?;
    result.save(args.save.as_deref(), screen);
    match result.decided {
        Ok(accepted) => {
            let who = accepted
                .approvals
                .iter()
                .map(|it| visible(it.approver.as_str()));
            let who: Vec<_> = who.collect();
            if json {
                let outcome = json!({ "outcome": "approved", "approverIds": who });
                screen.say(&outcome.to_string());
            } else {
                say_approved(screen, json, "approved", &who.join(", "), "");
            }
            Ok(Ok(()))
        }
        Err(AskInterruption::BySignal(code)) => Ok(Err(ExitAction::code(code))),
        Err(AskInterruption::ByDenial(denial)) => {
            let (cause, message) = (cause(&denial), denial.to_string());
            Ok(Err(denied(screen, json, cause, &message)))
        }
    }
}

/// Asks through a guard. The inner error is how the command ends then.
async fn ask_guard(
    guard: &GuardAddress,
    args: &RunArgs,
    request: ApprovalRequest,
    rules: Vec<RuleDemand>,
    screen: &mut TerminalScreen,
) -> anyhow::Result<Result<(), ExitAction>> {
    let json = args.options.json;
    let is_listed = rules.is_empty();
    let call = AskCall {
        rules,
        may_be_granted: !args.always_ask,
        may_keep: true,
        ..AskCall::new(request)
    };
    let sentence = payload_headline(&call.artifact_type, &call.payload);
    let mut notice = WaitingFile::new(&args.options.file()?, "countersign run", sentence);
    let asked = |id: &str, approvers: &[String], seconds| {
        if is_listed {
            notice.show(id, approvers, seconds);
        }
        screen.progress(&format!("waiting for {} …", approvers.join(", ")));
    };
    let replied = tokio::select! {
        replied = guard.ask(call, asked, async || Ok(())) => replied,
        code = signals()? => return Ok(Err(ExitAction::code(code))),
    };
    drop(notice);
    screen.clear();
    let reply = match replied {
        Ok(reply) => reply,
        Err(problem) => {
            return Ok(Err(denied(screen, json, "unavailable", &problem)));
        }
    };
    if let Some(remark) = reply.remark {
        screen.say(&format!("countersign: {remark}"));
    }
    let who = reply.approver.unwrap_or_default();
    match reply.outcome {
        AskOutcome::Denied { cause, message } => Ok(Err(denied(screen, json, &cause, &message))),
        AskOutcome::Approved { until, kept } => {
            let word = if until.is_some() {
                "allowed"
            } else {
                "approved"
            };
            let until = until.map(|until| format!(", until {until}"));
            say_approved(screen, json, word, &who, &until.unwrap_or_default());
            if let Some(kept) = kept {
                screen.remark(&format!("countersign: saved as a grant: {kept}"));
            }
            Ok(Ok(()))
        }
    }
}

fn say_approved(screen: &mut TerminalScreen, json: bool, word: &str, who: &str, more: &str) {
    if json {
        screen.say(&json!({ "outcome": "approved", "approverId": who }).to_string());
    } else {
        let word = screen.paint(Colour::Green, word);
        screen.remark(&format!("countersign: {word} by {who}{more}"));
    }
}

/// Whether somebody has permitted it before; tells who.
async fn is_granted(
    enforcer: &mut Enforcer,
    args: &RunArgs,
    subject: &GrantSubject,
    screen: &mut TerminalScreen,
) -> bool {
    let deadline = Instant::now() + args.timeout.min(GRANT_TIMEOUT);
    let only = args.approver.as_deref();
    let trouble = enforcer.client().trouble();
    let looking = enforcer.granted_by(only, subject, None, deadline);
    let used = match say_trouble(screen, trouble, looking).await {
        Ok(Some(used)) => used,
        Ok(None) => return false,
        Err(error) => {
            screen.remark(&format!("countersign: grants are not used: {error}"));
            return false;
        }
    };
    let who = visible(used.approver.as_str());
    if args.options.json {
        let grant = json!({ "requestId": used.request_id, "until": used.grant.until });
        let outcome = json!({ "outcome": "approved", "approverId": who, "grant": grant });
        screen.say(&outcome.to_string());
    } else {
        let granted = screen.paint(Colour::Green, "allowed");
        let what = describe(&used.grant, Some(subject));
        screen.remark(&format!("countersign: {granted} by {who}: {what}"));
    }
    true
}

fn become_command(program: &Path, argv: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.arg0(argv[0]).args(&argv[1..]);
    command
}

/// Says why the command does not run.
fn denied(screen: &mut TerminalScreen, json: bool, cause: &str, message: &str) -> ExitAction {
    if json {
        let outcome = json!({ "outcome": "denied", "cause": cause, "message": message });
        screen.say(&outcome.to_string());
    } else {
        let denied = screen.paint(Colour::Red, "denied");
        screen.say(&format!("countersign: {denied}: {message}"));
    }
    ExitAction::code(DENIED)
}

fn words(command: &[OsString]) -> Option<Vec<&str>> {
    command.iter().map(|word| word.to_str()).collect()
}

fn text(path: &Path) -> anyhow::Result<&str> {
    (path.to_str()).ok_or_else(|| anyhow::anyhow!("{}: the path is not UTF-8", path.display()))
}
