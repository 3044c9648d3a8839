//! `prompt`: writes to an agent.

use std::io::Read as _;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use countersign::client::approver::SentPrompt;
use countersign::client::{ClientError, visible};
use countersign::protocol::prompt::PromptStatus;
use serde_json::json;

use super::input::open;
use crate::commands::client_options::ClientOptions;
use crate::commands::complete;
use crate::commands::exit_action::{DENIED, ExitAction, NO_DECISION};
use crate::commands::output::print_json;
use crate::commands::terminal::{TerminalScreen, parse_duration};

pub const EXAMPLES: &str = "\
Examples:
  countersign prompt build-bot 'Use the staging database.'
  countersign prompt build-bot --wait - < notes.md
  countersign prompt build-bot --session 5b0c3f0e-… --wait=1h 'Stop after this step.'";

/// More could not be sent.
const MAX_TEXT_BYTES: u64 = 256 << 10;

#[derive(Args)]
pub struct PromptArgs {
    #[command(flatten)]
    options: ClientOptions,
    /// The agent's machine; see `pairings`.
    #[arg(add = complete::enforcers())]
    enforcer: String,
    /// Only for this session of the agent, as its requests show it. Otherwise for the session that
    /// asks next.
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Wait until the agent has the text or rejects it; 10m unless you give a time.
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "10m",
          value_parser = parse_duration)]
    wait: Option<Duration>,
    /// The text, or - to read it from standard input, hidden from other users.
    #[arg(required = true, value_name = "TEXT|-")]
    text: Vec<String>,
}

pub async fn run(args: PromptArgs) -> anyhow::Result<ExitAction> {
    let text = match args.text.as_slice() {
        [dash] if dash == "-" => read_input()?,
        words => words.join(" "),
    };
    if text.trim().is_empty() {
        return Err(ClientError::Choice("there is nothing to send").into());
    }
    let approver = open(&args.options)?;
    let mut screen = TerminalScreen::new(args.options.json);
    let session = args.session.as_deref();
    let mut sent = approver.prompt(&args.enforcer, session, &text).await?;
    if let Some(time) = args.wait {
        screen.progress("waiting for the agent …");
        sent = approver.prompt_taken(&sent.request_id, time).await?;
        screen.clear();
    }
    report(&args, &mut screen, &sent)
}

fn read_input() -> anyhow::Result<String> {
    let mut text = String::new();
    let mut input = std::io::stdin().lock().take(MAX_TEXT_BYTES + 1);
    input.read_to_string(&mut text).context("standard input")?;
    if text.len() as u64 > MAX_TEXT_BYTES {
        let problem = "a prompt can have at most 256 KiB";
        return Err(ClientError::Choice(problem).into());
    }
    Ok(text)
}

fn report(
    args: &PromptArgs,
    screen: &mut TerminalScreen,
    sent: &SentPrompt,
) -> anyhow::Result<ExitAction> {
    if args.options.json {
        print_json(&json!({
            "requestId": sent.request_id,
            "enforcerId": args.enforcer,
            "status": sent.status,
            "reason": sent.reason,
        }))?;
    }
    let reason = match &sent.reason {
        Some(reason) => format!(": {}", visible(reason)),
        None => String::new(),
    };
    let (line, code) = match (sent.status, args.wait) {
        (PromptStatus::Delivered, _) => ("delivered: the agent has it", 0),
        (PromptStatus::Queued, None) => ("sent: the agent gets it when it next asks", 0),
        (PromptStatus::Queued, Some(_)) => {
            ("sent; the agent has not picked it up yet", NO_DECISION)
        }
        (PromptStatus::Expired, _) => {
            ("expired: the agent did not pick it up in time", NO_DECISION)
        }
        (PromptStatus::Rejected, _) => ("rejected by the agent's machine", DENIED),
        (PromptStatus::Error, _) => ("the agent's machine could not pass it on", DENIED),
    };
    screen.remark(&format!("{line}{reason}"));
    Ok(ExitAction::code(code))
}
