//! `waiting`: the requests that programs of this user wait for on this machine, and who is asked.
//! With the key of a device of their own, people decide them here.

mod file;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use countersign::client::{ClientError, visible};
use serde_json::json;
use tokio::time::sleep;

use super::approver::{decide_here, open_sealed};
use super::client_options::ClientOptions;
use super::exit_action::{DENIED, ExitAction};
use super::output::{plain_json, print_json, print_line, remark};
use super::signals::signals;
use super::terminal::{TerminalScreen, minutes};

pub use self::file::{WaitingFile, WaitingRequest};

pub const EXAMPLES: &str = "\
Examples:
  countersign waiting                               what waits on this machine, and for whom
  countersign waiting --watch                       the same, live
  countersign waiting --decide --profile alice      decide it here, with the key of your own device";

/// Programs begin and end at any time.
const WATCH_INTERVAL: Duration = Duration::from_millis(500);

#[derive(Args)]
pub struct WaitingArgs {
    #[command(flatten)]
    pub options: ClientOptions,
    /// Keep watching for new requests, until Ctrl-C.
    #[arg(long, conflicts_with = "decide")]
    watch: bool,
    /// Decide them here, one after the other, with the approver's profile. Its keys must be
    /// encrypted with a passphrase, because the agent runs as the same user.
    #[arg(long)]
    decide: bool,
}

pub async fn run(args: WaitingArgs) -> anyhow::Result<ExitAction> {
    let directory = file::directory(&args.options.file()?);
    if args.decide {
        return decide(&args.options).await;
    }
    if args.watch {
        return tokio::select! {
            failed = watch(&directory, args.options.json) => failed.map(|()| ExitAction::DONE),
            _ = signals()? => Ok(ExitAction::DONE),
        };
    }
    let requests = file::list(&directory);
    if args.options.json {
        print_json(&requests.iter().map(for_programs).collect::<Vec<_>>())?;
        return Ok(ExitAction::DONE);
    }
    if requests.is_empty() {
        remark("nothing on this machine is waiting for a decision");
    }
    requests.iter().try_for_each(|it| print_line(&lines(it)))?;
    Ok(ExitAction::DONE)
}

fn for_programs(request: &WaitingRequest) -> serde_json::Value {
    let mut shown = json!(request);
    shown["link"] = request.link().into();
    shown
}

fn lines(request: &WaitingRequest) -> String {
    let place = match request.link() {
        Some(link) => format!("decide it at {}", visible(&link)),
        None => "asked through the guard; decide it on the page".to_owned(),
    };
    format!(
        "{}  {} waits for {}, {} left\n    {}\n    {place}, or here: countersign waiting --decide",
        visible(&request.request_id),
        visible(&request.by),
        visible(&request.approvers.join(", ")),
        minutes(request.time_left()),
        visible(&request.sentence),
    )
}

/// Ends only with an error.
async fn watch(directory: &Path, json: bool) -> anyhow::Result<()> {
    let mut screen = TerminalScreen::new(json);
    let mut known: BTreeMap<String, WaitingRequest> = BTreeMap::new();
    loop {
        let now: BTreeMap<_, _> = (file::list(directory).into_iter())
            .map(|request| (request.request_id.clone(), request))
            .collect();
        for (id, ended) in known.iter().filter(|(id, _)| !now.contains_key(*id)) {
            screen.clear();
            print_line(&if json {
                plain_json(&json!({ "requestId": id, "ended": true }).to_string())
            } else {
                format!("{}  ended: {}", visible(id), visible(&ended.sentence))
            })?;
        }
        for (_, request) in now.iter().filter(|(id, _)| !known.contains_key(*id)) {
            screen.clear();
            print_line(&if json {
                plain_json(&for_programs(request).to_string())
            } else {
                lines(request)
            })?;
        }
        let next = now.values().map(WaitingRequest::time_left).min();
        screen.progress(&match next {
            Some(left) => format!(
                "{} waiting, {} left; until Ctrl-C …",
                now.len(),
                minutes(left)
            ),
            None => "watching for requests, until Ctrl-C …".to_owned(),
        });
        known = now;
        sleep(WATCH_INTERVAL).await;
    }
}

/// Decides what waits here, one request after the other. The request itself comes from the gateway
/// and is opened with the approver's key: the file only says which one it is.
pub async fn decide(options: &ClientOptions) -> anyhow::Result<ExitAction> {
    anyhow::ensure!(
        !options.json,
        ClientError::Choice("--json doesn't work with --decide; use approve and reject")
    );
    let profile = options.file()?;
    let approver = open_sealed(&profile)?;
    let mut decided = 0;
    for waiting in file::list(&file::directory(&profile)) {
        let found = approver.find(&waiting.request_id).await?;
        let Some(item) = found
            .into_iter()
            .find(|it| it.request_id.as_str() == waiting.request_id)
        else {
            remark(&format!(
                "{}: not for {}, or decided already",
                visible(&waiting.request_id),
                visible(approver.id().as_str())
            ));
            continue;
        };
        let done = decide_here(&approver, &item).await;
        decided += usize::from(done.context("nothing else was decided")?);
    }
    if decided == 0 {
        remark("no decision was made");
        return Ok(ExitAction::code(DENIED));
    }
    Ok(ExitAction::DONE)
}
