//! `grants`: what people have permitted this enforcer beyond one request.

use clap::{Args, Subcommand};
use countersign::client::enforcer::{Enforcer, GrantSubject, KeptGrant};
use countersign::client::{ClientError, visible};
use countersign::clock::Clock;
use countersign::e2e::{Grant, GrantMatch};
use serde_json::{Value, json};

use crate::commands::client::ClientOptions;
use crate::commands::ending::{DENIED, ExitAction};
use crate::commands::{print_json, print_line, remark};

pub const EXAMPLES: &str = "\
Examples:
  countersign grants
  countersign grants forget 0195c1c2
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
    /// List the grants that are kept.
    List {
        #[command(flatten)]
        options: ClientOptions,
    },
    /// Forget a grant, or all of them: then it is asked again.
    Forget {
        #[command(flatten)]
        options: ClientOptions,
        /// The grant's id, or as much of it as is unique.
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        id: Option<String>,
        /// Every grant, also of a file that cannot be read.
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

/// What a grant permits, and until when.
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
        remark("there are no grants; everything is asked");
    }
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
        let (id, who) = (visible(&kept.request_id), visible(&kept.approver));
        print_line(&format!("{id}  {who}{asked}: {standing}"))?;
    }
    Ok(ExitAction::DONE)
}

fn forget(options: &ClientOptions, id: Option<&str>) -> anyhow::Result<ExitAction> {
    let enforcer = open(options)?;
    let Some(prefix) = id else {
        enforcer.delete_all_grants()?;
        remark("every grant is forgotten");
        return Ok(ExitAction::DONE);
    };
    let grants = enforcer.grants()?;
    let found = grants
        .iter()
        .filter(|kept| kept.request_id.starts_with(prefix));
    let found: Vec<_> = found.map(|kept| kept.request_id.as_str()).collect();
    match found.as_slice() {
        _ if prefix.is_empty() => Err(ClientError::Choice("an id is not empty").into()),
        [] => {
            remark(&format!(
                "there is no grant {}; see: countersign grants",
                visible(prefix)
            ));
            Ok(ExitAction::code(DENIED))
        }
        [one] => {
            enforcer.delete_grant(one)?;
            remark(&format!("forgotten: {}", visible(one)));
            Ok(ExitAction::DONE)
        }
        _ => Err(ClientError::Choice("the id is not unique; give more of it").into()),
    }
}
