//! `inbox` and `show`.

use std::collections::BTreeSet;

use clap::Args;
use countersign::client::PushedEvent;
use countersign::client::approver::{Approver, InboxRequest};
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use super::input::{open, select};
use super::view::{listed, render, request_json, summary};
use crate::commands::client_options::ClientOptions;
use crate::commands::complete;
use crate::commands::exit_action::{DENIED, ExitAction};
use crate::commands::output::{plain_json, print_json, print_line, remark};
use crate::commands::short_id::short_id;
use crate::commands::terminal::{TerminalScreen, output_has_colour};

pub const EXAMPLES: &str = "\
Examples:
  countersign inbox
  countersign inbox --watch            keep watching for new requests, until Ctrl-C
  countersign inbox --json | jq '.[].requestId'";

pub const NOTHING_WAITING: &str = "no requests are waiting";

#[derive(Args)]
pub struct InboxArgs {
    #[command(flatten)]
    options: ClientOptions,
    /// Keep watching for new requests.
    #[arg(long)]
    watch: bool,
}

#[derive(Args)]
pub struct ShowArgs {
    #[command(flatten)]
    options: ClientOptions,
    /// The request's id, or a unique end or beginning of it. Without it, the only request that is
    /// waiting.
    #[arg(add = complete::requests())]
    id: Option<String>,
}

pub async fn run(args: InboxArgs) -> anyhow::Result<ExitAction> {
    let approver = open(&args.options)?;
    if args.watch {
        return watch(&approver, args.options.json).await;
    }
    let (now, colour) = (approver.now(), output_has_colour());
    let (mut list, mut lines) = (Vec::new(), Vec::new());
    approver
        .inbox(|item| {
            if args.options.json {
                list.push(request_json(&item));
            } else {
                let id = item.request_id.to_string();
                lines.push((item.expires_at, id, summary(&item, now, colour)));
            }
        })
        .await?;
    if args.options.json {
        print_json(&Value::Array(list))?;
        return Ok(ExitAction::DONE);
    }
    if lines.is_empty() {
        TerminalScreen::new(false).say(NOTHING_WAITING);
        return Ok(ExitAction::DONE);
    }
    // The one that expires next comes first.
    lines.sort_by_key(|(expires_at, ..)| (expires_at.is_none(), *expires_at));
    let ids: Vec<_> = lines.iter().map(|(_, id, _)| id.clone()).collect();
    for (_, id, line) in &lines {
        print_line(&listed(short_id(id, &ids), line, colour))?;
    }
    TerminalScreen::new(false)
        .say("\nRead one: countersign show ID. Then: countersign approve ID, or reject ID");
    Ok(ExitAction::DONE)
}

async fn watch(approver: &Approver, json: bool) -> anyhow::Result<ExitAction> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        failed = announce_all(approver, json) => failed.map(|()| ExitAction::DONE),
        _ = interrupt.recv() => Ok(ExitAction::DONE),
        _ = terminate.recv() => Ok(ExitAction::DONE),
    }
}

/// Ends only with an error.
async fn announce_all(approver: &Approver, json: bool) -> anyhow::Result<()> {
    let mut screen = TerminalScreen::new(json);
    let mut shown = BTreeSet::new();
    let mut channel = approver.watch();
    let mut quiet = false;
    loop {
        match channel.next().await? {
            PushedEvent::Open => {
                quiet = false;
                // Requests that came while no channel was open.
                let mut printed = Ok(());
                screen.clear();
                let read = approver.inbox(|item| {
                    if printed.is_ok() {
                        printed = announce(approver, &item, &mut shown, json);
                    }
                });
                let read = read.await;
                printed?;
                match read {
                    Err(error) if error.is_unavailable() => {
                        screen.remark(&format!("the inbox cannot be read: {error}"));
                    }
                    read => read?,
                }
                screen.progress("watching for new requests, until Ctrl-C …");
            }
            PushedEvent::Envelope(text) => {
                // Other messages, and those that cannot be read, are not for this list.
                if let Ok(Some(item)) = approver.read_pushed(&text).await {
                    screen.clear();
                    announce(approver, &item, &mut shown, json)?;
                    let _unanswered = approver.acknowledge(&item.request_id, &item.msg_id).await;
                    screen.progress("watching for new requests, until Ctrl-C …");
                }
            }
            PushedEvent::Interrupted(error) => {
                if !std::mem::replace(&mut quiet, true) {
                    screen.remark(&format!("connection lost: {error}; trying again …"));
                }
            }
        }
    }
}

fn announce(
    approver: &Approver,
    item: &InboxRequest,
    shown: &mut BTreeSet<String>,
    json: bool,
) -> anyhow::Result<()> {
    if !shown.insert(item.request_id.to_string()) {
        return Ok(());
    }
    let ids: Vec<_> = shown.iter().collect();
    // One line each, for programs that read along.
    print_line(&if json {
        plain_json(&request_json(item).to_string())
    } else {
        let colour = output_has_colour();
        let id = short_id(item.request_id.as_str(), &ids);
        listed(id, &summary(item, approver.now(), colour), colour)
    })
}

pub async fn show(args: ShowArgs) -> anyhow::Result<ExitAction> {
    let approver = open(&args.options)?;
    let Some(item) = select(&approver, args.id.as_deref()).await? else {
        remark(NOTHING_WAITING);
        return Ok(ExitAction::code(DENIED));
    };
    if args.options.json {
        print_json(&request_json(&item))?;
    } else {
        print_line(&render(&item, &approver, output_has_colour()))?;
    }
    Ok(ExitAction::DONE)
}
