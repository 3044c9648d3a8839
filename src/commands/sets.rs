//! `sets`: the requests of several people, or of a rule, that stay open without the call that made
//! them.

use clap::{Args, Subcommand};
use countersign::agent::receipt_folder;
use countersign::client::enforcer::{Enforcer, OpenSet};
use countersign::client::visible;
use countersign::clock::Clock;
use serde_json::json;

use super::approver::{TeamNames, artifact_headline, rule_sentence};
use super::client_options::{ClientOptions, ListedEntry};
use super::complete;
use super::exit_action::{DENIED, ExitAction};
use super::output::{print_list, remark};
use super::short_id::{find_id, short_id};

pub const EXAMPLES: &str = "\
Examples:
  countersign sets
  countersign sets withdraw 5e0c71f2         the same call asks anew
  countersign sets withdraw --all";

#[derive(Args)]
pub struct SetsArgs {
    #[command(flatten)]
    options: ClientOptions,
    #[command(subcommand)]
    command: Option<SetsCommand>,
}

#[derive(Subcommand)]
enum SetsCommand {
    /// List what is open.
    List {
        #[command(flatten)]
        options: ClientOptions,
    },
    /// Withdraw the requests of a set; no call is allowed by them any more.
    Withdraw {
        #[command(flatten)]
        options: ClientOptions,
        /// The set's id, or a unique end or beginning of it.
        #[arg(required_unless_present = "all", conflicts_with = "all", add = complete::sets())]
        id: Option<String>,
        /// Every set, even if its file is damaged.
        #[arg(long)]
        all: bool,
    },
}

pub async fn run(args: SetsArgs) -> anyhow::Result<ExitAction> {
    match &args.command {
        None => list(&args.options),
        Some(SetsCommand::List { options }) => list(options),
        Some(SetsCommand::Withdraw { options, id, .. }) => withdraw(options, id.as_deref()).await,
    }
}

fn as_entry(set: &OpenSet, ids: &[&str], names: &TeamNames) -> ListedEntry {
    let id = visible(short_id(set.id.as_str(), ids));
    let Some(artifact) = &set.artifact else {
        let problem = "its file is damaged, so no call is allowed by it";
        return ListedEntry {
            json: json!({ "requestId": set.id, "problem": problem }),
            line: format!("{id}  {problem}"),
        };
    };
    let headline = artifact_headline(artifact);
    let rule = artifact.rule().map(|rule| rule_sentence(rule, names));
    let rule = rule.unwrap_or_default();
    let until = artifact.expires_at();
    let awaited = if set.is_awaited {
        "a call waits for it"
    } else {
        "no call waits for it"
    };
    ListedEntry {
        json: json!({
            "requestId": set.id,
            "headline": headline,
            "rule": rule,
            "expiresAt": until,
            "awaited": set.is_awaited,
        }),
        line: format!("{id}  {headline}\n    {rule}\n    open until {until}; {awaited}"),
    }
}

fn list(options: &ClientOptions) -> anyhow::Result<ExitAction> {
    let enforcer = Enforcer::open(&options.file()?, &Clock::system())?;
    let (sets, names) = (enforcer.open_sets()?, enforcer.team_names());
    if !options.json && sets.is_empty() {
        remark("nothing stays open");
    }
    let ids: Vec<_> = sets.iter().map(|set| set.id.as_str()).collect();
    let entries: Vec<_> = sets.iter().map(|set| as_entry(set, &ids, &names)).collect();
    print_list(options.json, &entries, |entry| entry.line.clone())?;
    Ok(ExitAction::DONE)
}

/// One set, or without an id all of them.
async fn withdraw(options: &ClientOptions, id: Option<&str>) -> anyhow::Result<ExitAction> {
    let file = options.file()?;
    let mut enforcer = Enforcer::open(&file, &Clock::system())?;
    enforcer.keep_receipts(receipt_folder(&file).map_err(anyhow::Error::msg)?);
    let mut sets = enforcer.open_sets()?;
    if let Some(part) = id {
        let Some(id) = find_id(part, sets.iter().map(|set| set.id.as_str()))? else {
            let part = visible(part);
            remark(&format!("there is no set {part}; see: countersign sets"));
            return Ok(ExitAction::code(DENIED));
        };
        let id = id.to_owned();
        sets.retain(|set| set.id.as_str() == id);
    }
    for set in sets {
        let withdrawn = enforcer.withdraw_set(&set.id).await;
        withdrawn.map_err(|denial| anyhow::anyhow!("{}: {denial}", visible(set.id.as_str())))?;
        remark(&format!("withdrawn: {}", visible(set.id.as_str())));
        if let Some(problem) = enforcer.take_receipt_problem() {
            remark(&visible(&problem));
        }
    }
    Ok(ExitAction::DONE)
}
