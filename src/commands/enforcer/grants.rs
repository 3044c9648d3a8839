//! `grants`: permissions of people to this enforcer beyond one request.

use clap::{Args, Subcommand};
use countersign::client::enforcer::{Enforcer, GrantSubject, KeptGrant};
use countersign::client::visible;
use countersign::clock::Clock;
use countersign::e2e::{Grant, GrantMatch};
use serde_json::{Value, json};

use crate::commands::client_options::ClientOptions;
use crate::commands::complete;
use crate::commands::exit_action::{DENIED, ExitAction};
use crate::commands::output::{print_json, print_line, remark};
use crate::commands::short_id::{find_id, short_id};

pub const EXAMPLES: &str = "\
Examples:
  countersign grants
  countersign grants forget 5e0c71f2
  countersign grants forget --all";

#[derive(Args)]
pub struct GrantsArgs {
    #[command(flatten)]
    options: ClientOptions,
    #[command(subcommand)]
    command: Option<GrantsCommand>,
}

#[derive(Subcommand)]
enum GrantsCommand {
    /// List the grants.
    List {
        #[command(flatten)]
        options: ClientOptions,
    },
    /// Forget a grant, or all of them: an approver is asked again.
    Forget {
        #[command(flatten)]
        options: ClientOptions,
        /// The grant's id, or a unique end or beginning of it.
        #[arg(required_unless_present = "all", conflicts_with = "all", add = complete::grants())]
        id: Option<String>,
        /// Every grant, even if their file is damaged.
        #[arg(long)]
        all: bool,
    },
}

pub fn run(args: &GrantsArgs) -> anyhow::Result<ExitAction> {
    match &args.command {
        None => list(&args.options),
        Some(GrantsCommand::List { options }) => list(options),
        Some(GrantsCommand::Forget { options, id, .. }) => forget(options, id.as_deref()),
    }
}

fn open(options: &ClientOptions) -> anyhow::Result<Enforcer> {
    Ok(Enforcer::open(&options.file()?, &Clock::system())?)
}

/// Describes what a grant permits, and until when.
pub fn describe(grant: &Grant) -> String {
    let what = match &grant.matches {
        GrantMatch::Same => "the same again".to_owned(),
        GrantMatch::Prefix(words) => format!("commands that begin with {}", shown(words)),
    };
    let end = if grant.session_only {
        ", or the end of the session"
    } else {
        ""
    };
    format!("{what}, until {}{end}", grant.until)
}

/// Words, each apart from the next.
fn shown(words: &[String]) -> String {
    let quote = |word: &String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", visible(&word.replace('\'', "'\\''")))
        }
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

fn as_json(kept: &KeptGrant) -> Value {
    let act = kept.subject.as_ref();
    let mut line = json!({
        "requestId": kept.request_id,
        "approverId": kept.approver,
        "acceptedAt": kept.accepted_at,
        "repoRef": act.map(GrantSubject::repository),
        "tool": act.map(GrantSubject::tool),
        "words": act.map(GrantSubject::words),
        "sessionId": kept.session,
    });
    match &kept.standing {
        Ok(grant) => {
            line["until"] = json!(grant.until);
            line["match"] = match &grant.matches {
                GrantMatch::Same => json!({ "match": "same" }),
                GrantMatch::Prefix(words) => json!({ "match": "prefix", "argv": words }),
            };
        }
        Err(problem) => line["problem"] = problem.to_string().into(),
    }
    line
}

fn list(options: &ClientOptions) -> anyhow::Result<ExitAction> {
    let grants = open(options)?.grants()?;
    if options.json {
        let lines: Vec<_> = grants.iter().map(as_json).collect();
        print_json(&lines)?;
        return Ok(ExitAction::DONE);
    }
    if grants.is_empty() {
        remark("there are no grants; every command needs approval");
    }
    let ids: Vec<_> = grants.iter().map(|kept| &kept.request_id).collect();
    for kept in &grants {
        let standing = match &kept.standing {
            Ok(grant) => describe(grant),
            Err(problem) => format!("not used: {}", visible(&problem.to_string())),
        };
        let asked = match &kept.subject {
            Some(act) => {
                let command = act.words().map(shown);
                let command = command.unwrap_or_else(|| visible(act.tool()));
                format!(", asked for {command} in {}", visible(act.repository()))
            }
            None => String::new(),
        };
        let id = visible(short_id(&kept.request_id, &ids));
        let who = visible(&kept.approver);
        print_line(&format!("{id}  {who}{asked}: {standing}"))?;
    }
    Ok(ExitAction::DONE)
}

fn forget(options: &ClientOptions, id: Option<&str>) -> anyhow::Result<ExitAction> {
    let enforcer = open(options)?;
    let Some(part) = id else {
        enforcer.delete_all_grants()?;
        remark("all grants are forgotten");
        return Ok(ExitAction::DONE);
    };
    let grants = enforcer.grants()?;
    let ids = grants.iter().map(|kept| kept.request_id.as_str());
    let Some(id) = find_id(part, ids)? else {
        let part = visible(part);
        remark(&format!(
            "there is no grant {part}; see: countersign grants"
        ));
        return Ok(ExitAction::code(DENIED));
    };
    enforcer.delete_grant(id)?;
    remark(&format!("forgotten: {}", visible(id)));
    Ok(ExitAction::DONE)
}
