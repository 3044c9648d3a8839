//! `approve` and `reject`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use countersign::client::approver::{
    AcceptedDecision, Approver, ApproverChoice, DeliveryConfirmation, InboxRequest,
};
use countersign::client::{ClientError, visible};
use countersign::e2e::{
    ArtifactHints, DecisionScope, DenialCause, GrantMatch, MAX_GRANT_LIFETIME, OutcomeEffect,
    WordPattern,
};
use countersign::protocol::decision::Verdict;
use serde_json::json;

use super::inbox::NOTHING_WAITING;
use super::input::{is_interactive, open, says_yes, select};
use super::questions::{ask_answers, asks_questions, read_answers};
use super::view::{headline, render, request_json};
use crate::commands::client_options::ClientOptions;
use crate::commands::complete;
use crate::commands::exit_action::{DENIED, ExitAction, FAILURE};
use crate::commands::grant_text::{describe_match, subject_of};
use crate::commands::log::remark_problems;
use crate::commands::output::{print_json, print_line, save};
use crate::commands::terminal::{Colour, TerminalScreen, output_has_colour, parse_duration};

pub const APPROVE_EXAMPLES: &str = "\
Examples:
  countersign approve                                        the only request that is waiting
  countersign approve 5e0c71f2
  countersign approve 5e0c71f2 --action staging
  countersign approve 5e0c71f2 --answer 2 --answer 'the blue one'
  countersign approve 5e0c71f2 --for 1h --grant prefix git commit
  countersign approve 5e0c71f2 --scope session --grant words git commit -m '*'
  countersign approve 5e0c71f2 --grant project               edits in the project, until the session ends
  countersign approve 5e0c71f2 --save decision.json          for: countersign verify decision.json";

pub const REJECT_EXAMPLES: &str = "\
Examples:
  countersign reject 5e0c71f2 --reason 'not on a Friday'
  countersign reject                                         the only request that is waiting";

const FORGED: &str = "the gateway shows a confirmation that doesn't belong to this decision; someone may be interfering, so tell the gateway's operator";

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ScopeName {
    /// This request only.
    Once,
    /// Until a time.
    Timebox,
    /// Until the agent's session ends, at most until a time.
    Session,
}

#[derive(Args)]
pub struct DecisionOptions {
    #[command(flatten)]
    options: ClientOptions,
    /// The request's id, or a unique end or beginning of it.
    #[arg(add = complete::requests())]
    id: Option<String>,
    /// Tell the agent why; encrypted to the agent's machine.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// One of the choices that the request offers.
    #[arg(long, value_name = "ID")]
    action: Option<String>,
    /// Save the request and the decision to a file for `verify`.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// How long to wait until the agent's machine confirms the decision.
    #[arg(long, default_value = "5s", value_parser = parse_duration)]
    wait: Duration,
}

#[derive(Args)]
pub struct ApproveArgs {
    #[command(flatten)]
    common: DecisionOptions,
    /// What the approval covers; with --for or --grant, timebox.
    #[arg(long, value_enum)]
    scope: Option<ScopeName>,
    /// How long an approval beyond this request lasts; at most 24h.
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    lasts: Option<Duration>,
    /// Allow more than this request: `same` (the same tool with the same input), `prefix` and the first words of a
    /// plain command, `words` and its words with * for any word and ... for further ones, or for
    /// the session `file` (edits of these files) or `project` (edits in the project). Put the id
    /// before it.
    #[arg(long, num_args = 1.., value_name = "WORDS")]
    grant: Vec<String>,
    /// The answer to a question of the request: the number or label of a choice, several with
    /// commas between them, or your own words. Once for each question.
    #[arg(long = "answer", value_name = "TEXT")]
    answers: Vec<String>,
}

fn usage(problem: &'static str) -> anyhow::Error {
    ClientError::Choice(problem).into()
}

fn read_grant(words: &[String]) -> anyhow::Result<Option<GrantMatch>> {
    let mut words = words.to_vec();
    if words.is_empty() {
        return Ok(None);
    }
    match (words.remove(0).as_str(), words.is_empty()) {
        ("same", true) => Ok(Some(GrantMatch::Same)),
        ("same", false) => Err(usage("--grant same takes no words; put the id before it")),
        ("prefix", false) => {
            let grant = GrantMatch::prefix(words);
            let grant = grant.ok_or_else(|| {
                usage("--grant prefix takes 1 to 64 words without control characters")
            })?;
            Ok(Some(grant))
        }
        ("words", false) => {
            let more = words.last().is_some_and(|word| word == "...");
            if more {
                words.pop();
            }
            let words = words
                .into_iter()
                .map(|word| Some(word).filter(|it| it != "*"));
            let pattern = WordPattern::new(words.collect(), more);
            let pattern = pattern.ok_or_else(|| {
                usage("--grant words takes 1 to 64 words without control characters, and the first is not *")
            })?;
            Ok(Some(GrantMatch::Words(pattern)))
        }
        ("file", true) => Ok(Some(GrantMatch::File)),
        ("project", true) => Ok(Some(GrantMatch::Project)),
        _ => Err(usage(
            "--grant takes `same`, `file`, `project`, or `prefix` or `words` and words",
        )),
    }
}

pub async fn approve(args: ApproveArgs) -> anyhow::Result<ExitAction> {
    let grant = read_grant(&args.grant)?;
    let beyond = args.lasts.is_some() || grant.is_some();
    let scope = match (args.scope, beyond) {
        (Some(ScopeName::Once), true) => {
            return Err(usage(
                "--scope once is for this request only; leave out --for and --grant",
            ));
        }
        (Some(ScopeName::Once) | None, false) => DecisionScope::Once,
        (None, true) if grant.as_ref().is_some_and(GrantMatch::is_for_edits) => {
            DecisionScope::Session
        }
        (Some(ScopeName::Timebox), _) | (None, true) => DecisionScope::Timebox,
        (Some(ScopeName::Session), _) => DecisionScope::Session,
    };
    let lasts = match (scope, args.lasts) {
        (DecisionScope::Once, _) => None,
        (DecisionScope::Session, None) => Some(MAX_GRANT_LIFETIME),
        (DecisionScope::Timebox, None) => return Err(usage("add how long, such as --for 1h")),
        (_, lasts) => lasts,
    };
    let choice = ApproverChoice {
        verdict: Verdict::Approve,
        scope,
        lasts,
        hints: ArtifactHints {
            reason: args.common.reason.clone(),
            action_id: args.common.action.clone(),
            grant: match scope {
                DecisionScope::Once => None,
                DecisionScope::Timebox | DecisionScope::Session => {
                    Some(grant.unwrap_or(GrantMatch::Same))
                }
            },
            ..ArtifactHints::default()
        },
    };
    decide(&args.common, choice, &args.answers).await
}

pub async fn reject(args: DecisionOptions) -> anyhow::Result<ExitAction> {
    let choice = ApproverChoice {
        verdict: Verdict::Reject,
        scope: DecisionScope::Once,
        lasts: None,
        hints: ArtifactHints {
            reason: args.reason.clone(),
            action_id: args.action.clone(),
            ..ArtifactHints::default()
        },
    };
    decide(&args, choice, &[]).await
}

/// Describes what an approval permits beyond the request.
fn beyond(choice: &ApproverChoice, item: &InboxRequest) -> Option<String> {
    let session = match choice.scope {
        DecisionScope::Session => ", in the agent's session",
        DecisionScope::Once | DecisionScope::Timebox => "",
    };
    let opened = item.content.as_ref().ok();
    let subject = opened.and_then(|opened| subject_of(opened.artifact()));
    let what = match choice.hints.grant.as_ref()? {
        GrantMatch::Prefix(words) => {
            let words: Vec<_> = words.iter().map(|word| visible(word)).collect();
            format!("every command that begins with: {}", words.join(" "))
        }
        matches => describe_match(matches, subject.as_ref()),
    };
    Some(format!("{what}{session}"))
}

async fn decide(
    args: &DecisionOptions,
    mut choice: ApproverChoice,
    given: &[String],
) -> anyhow::Result<ExitAction> {
    let approver = open(&args.options)?;
    let mut screen = TerminalScreen::new(args.options.json);
    let Some(item) = select(&approver, args.id.as_deref()).await? else {
        screen.say(NOTHING_WAITING);
        return Ok(ExitAction::code(DENIED));
    };
    // By now a part of an id may mean another request.
    let mut sure = match choice.verdict {
        Verdict::Approve => args.id.as_deref() == Some(item.request_id.as_str()),
        Verdict::Reject => args.id.is_some(),
    };
    if choice.verdict == Verdict::Approve
        && let Ok(opened) = &item.content
    {
        let artifact = opened.artifact();
        if !given.is_empty() {
            choice.hints.answers = Some(read_answers(artifact, given)?);
        } else if asks_questions(artifact) {
            if !is_interactive() {
                return Err(usage(
                    "it asks questions: give an --answer to each; to leave them to the agent's own dialog, reject it",
                ));
            }
            show(&approver, &item, &screen)?;
            choice.hints.answers = ask_answers(artifact).await?;
            if choice.hints.answers.is_none() {
                screen.say("no decision was made");
                return Ok(ExitAction::code(DENIED));
            }
            sure = true;
        }
    }
    if !sure && !confirmed(&approver, &item, &mut screen, &choice).await? {
        screen.say("no decision was made");
        return Ok(ExitAction::code(DENIED));
    }
    if args.save.is_some() && item.content.is_err() {
        return Err(usage(
            "a decision about a request that could not be opened cannot be saved",
        ));
    }
    if args.save.as_ref().is_some_and(|file| file.exists()) {
        return Err(usage("the file to save to already exists"));
    }
    let decided = approver.decide(&item, &choice).await?;
    let word = match decided.verdict {
        Verdict::Approve => screen.paint(Colour::Green, "approved"),
        Verdict::Reject => screen.paint(Colour::Red, "rejected"),
    };
    let what = match &item.content {
        Ok(opened) => headline(opened.artifact()),
        Err(_) => "a request that could not be opened".to_owned(),
    };
    screen.remark(&format!("{word}: {what}"));
    if let (Some(beyond), Ok(opened)) = (beyond(&choice, &item), &item.content) {
        let until = decided.expires_at;
        screen.remark(&format!("this also allows {beyond}, until {until}"));
        if let Err(error) = approver.remember_grant(opened, &choice, &decided, beyond) {
            screen.remark(&format!("`countersign grants` does not list it: {error}"));
        }
    }
    if let (Some(file), Ok(opened)) = (&args.save, &item.content) {
        let record = approver.record(opened, &decided).await;
        save(file, &record.to_text()?)?;
        screen.remark(&format!("saved to {}", file.display()));
    }
    screen.progress("waiting for the agent's machine to confirm …");
    let delivered = approver.delivered(&item, &decided, args.wait).await;
    screen.clear();
    let reported = report(args, &mut screen, &item, &decided, &delivered);
    remark_problems(&approver, &item).await;
    reported
}

fn report(
    args: &DecisionOptions,
    screen: &mut TerminalScreen,
    item: &InboxRequest,
    decided: &AcceptedDecision,
    delivered: &Result<DeliveryConfirmation, ClientError>,
) -> anyhow::Result<ExitAction> {
    let (state, told, text) = match delivered {
        Ok(DeliveryConfirmation::ByEnforcer(effect)) => (
            "delivered",
            Some(("outcome", effect.to_string())),
            format!("confirmed by the agent's machine: {}", outcome_text(*effect)),
        ),
        Ok(DeliveryConfirmation::ByGateway) => (
            "delivered",
            None,
            "the gateway says that it was delivered; the agent's machine has not signed a confirmation"
                .to_owned(),
        ),
        Ok(DeliveryConfirmation::Forged) => (
            "delivered",
            Some(("outcome", "forged".to_owned())),
            screen.paint(Colour::Red, FORGED),
        ),
        Ok(DeliveryConfirmation::Missing) => (
            "decided",
            None,
            "sent; the agent's machine has not confirmed it yet".to_owned(),
        ),
        Err(error) => (
            "decided",
            Some(("problem", error.to_string())),
            format!("sent; the confirmation cannot be read: {error}"),
        ),
    };
    if args.options.json {
        let mut shown = json!({
            "requestId": item.request_id,
            "decision": decided.verdict.as_str(),
            "expiresAt": decided.expires_at,
            "state": state,
        });
        if let Some((name, value)) = told {
            shown[name] = value.into();
        }
        print_json(&shown)?;
    }
    if matches!(delivered, Ok(DeliveryConfirmation::Forged)) {
        screen.say(&text);
        return Ok(ExitAction::code(FAILURE));
    }
    screen.remark(&text);
    Ok(ExitAction::DONE)
}

fn outcome_text(effect: OutcomeEffect) -> &'static str {
    match effect {
        OutcomeEffect::Allowed => "it went ahead",
        OutcomeEffect::Denied(DenialCause::Rejected) => "it was denied",
        OutcomeEffect::Denied(DenialCause::Missing) => {
            "it was denied, because more approvals are needed"
        }
        OutcomeEffect::Denied(DenialCause::Untrusted) => {
            "it was denied, because the decision came too late or this device is not trusted there"
        }
        OutcomeEffect::Denied(DenialCause::Interrupted) => {
            "it was denied, because the agent was interrupted"
        }
        OutcomeEffect::Denied(DenialCause::Changed) => {
            "it was denied, because a file changed or could not be read"
        }
    }
}

fn show(approver: &Approver, item: &InboxRequest, screen: &TerminalScreen) -> anyhow::Result<()> {
    if screen.is_terminal() {
        print_line(&render(item, approver, output_has_colour()))
    } else {
        print_json(&request_json(item))
    }
}

/// Shows the request, and asks.
async fn confirmed(
    approver: &Approver,
    item: &InboxRequest,
    screen: &mut TerminalScreen,
    choice: &ApproverChoice,
) -> anyhow::Result<bool> {
    if !is_interactive() {
        return Err(usage(
            "there is no terminal to ask on; give the whole id of the request",
        ));
    }
    show(approver, item, screen)?;
    match (choice.verdict, &item.content) {
        (Verdict::Approve, Err(problem)) => {
            Err(ClientError::NotApprovable(problem.to_string()).into())
        }
        (Verdict::Approve, Ok(_)) => match beyond(choice, item) {
            Some(beyond) => says_yes(&format!("\nApprove this, and allow {beyond}?")).await,
            None => says_yes("\nApprove this?").await,
        },
        (Verdict::Reject, _) => says_yes("\nReject this?").await,
    }
}
