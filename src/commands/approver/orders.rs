//! Orders to an enforcer: end a grant, `pause` an agent, let it go on with `resume`.

use std::time::Duration;

use clap::Args;
use countersign::client::approver::{Approver, GivenGrant, GrantUse, SentOrder};
use countersign::client::{ClientError, visible};
use countersign::e2e::{ControlOrder, MAX_PAUSE_LIFETIME};
use countersign::protocol::id::{RequestId, SessionId, TextId as _};
use countersign::protocol::prompt::PromptStatus;
use countersign::protocol::timestamp::Timestamp;
use serde_json::json;

use super::input::open;
use crate::commands::client_options::{ClientOptions, ListedEntry};
use crate::commands::complete;
use crate::commands::exit_action::{DENIED, ExitAction, FAILURE, NO_DECISION};
use crate::commands::output::{print_json, remark, times};
use crate::commands::short_id::{find_id, short_id};
use crate::commands::terminal::{TerminalScreen, parse_duration};

pub const PAUSE_EXAMPLES: &str = "\
Examples:
  countersign pause build-bot                      for an hour
  countersign pause build-bot --for 8h --wait
  countersign resume build-bot";

#[derive(Args)]
pub struct OrderOptions {
    #[command(flatten)]
    options: ClientOptions,
    /// The enforcer beside the agent, as `pairings` shows it.
    #[arg(add = complete::enforcers())]
    enforcer: String,
    /// Only this session of the agent, as its requests show it.
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Wait until the enforcer confirms it, at the agent's next call; 10m unless a time is given.
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "10m",
          value_parser = parse_duration)]
    wait: Option<Duration>,
}

#[derive(Args)]
pub struct PauseArgs {
    #[command(flatten)]
    common: OrderOptions,
    /// For how long, at most 24h.
    #[arg(long = "for", value_name = "TIME", default_value = "1h", value_parser = parse_duration)]
    lasts: Duration,
}

impl OrderOptions {
    fn session(&self) -> anyhow::Result<Option<SessionId>> {
        let parsed = self.session.as_deref().map(SessionId::parse);
        match parsed {
            Some(None) => Err(ClientError::Choice("that isn't a session ID").into()),
            session => Ok(session.flatten()),
        }
    }
}

pub async fn pause(args: PauseArgs) -> anyhow::Result<ExitAction> {
    if args.lasts > MAX_PAUSE_LIFETIME || args.lasts.is_zero() {
        return Err(ClientError::Choice("a pause lasts at most 24 hours").into());
    }
    let approver = open(&args.common.options)?;
    let lasts = args.lasts.try_into().unwrap_or(time::Duration::MAX);
    let until = Timestamp::from(approver.now().inner().saturating_add(lasts));
    let session = args.common.session()?;
    let order = ControlOrder::Pause { session, until };
    let text = format!("paused until {until}");
    send(&approver, &args.common, &order, &text).await
}

pub async fn resume(args: OrderOptions) -> anyhow::Result<ExitAction> {
    let approver = open(&args.options)?;
    let session = args.session()?;
    let order = ControlOrder::Resume { session };
    send(&approver, &args, &order, "no longer paused by you").await
}

async fn send(
    approver: &Approver,
    args: &OrderOptions,
    order: &ControlOrder,
    text: &str,
) -> anyhow::Result<ExitAction> {
    let sent = order_and_wait(approver, &args.options, &args.enforcer, order, args.wait).await?;
    report(&args.options, &args.enforcer, &sent, args.wait, text)
}

async fn order_and_wait(
    approver: &Approver,
    options: &ClientOptions,
    enforcer: &str,
    order: &ControlOrder,
    wait: Option<Duration>,
) -> anyhow::Result<SentOrder> {
    let mut screen = TerminalScreen::new(options.json);
    let sent = approver.order(enforcer, order).await?;
    let Some(time) = wait else {
        return Ok(sent);
    };
    screen.progress("waiting for the agent's machine …");
    let sent = approver.order_obeyed(sent, time).await;
    screen.clear();
    Ok(sent?)
}

fn report(
    options: &ClientOptions,
    enforcer: &str,
    sent: &SentOrder,
    wait: Option<Duration>,
    text: &str,
) -> anyhow::Result<ExitAction> {
    let SentOrder { prompt, .. } = sent;
    if options.json {
        print_json(&json!({
            "requestId": prompt.request_id,
            "enforcerId": enforcer,
            "status": prompt.status,
            "isConfirmed": sent.is_confirmed(),
            "reason": prompt.reason,
        }))?;
    }
    let reason = match &prompt.reason {
        Some(reason) => format!(": {}", visible(reason)),
        None => String::new(),
    };
    let (line, code) = match (prompt.status, wait) {
        _ if sent.is_confirmed() => (format!("confirmed by the agent's machine: {text}"), 0),
        (PromptStatus::Delivered, _) => (
            "the gateway claims that it was delivered, but the agent's machine has not confirmed it; someone may be interfering: tell the operator of the gateway".to_owned(),
            FAILURE,
        ),
        (PromptStatus::Queued, None) => (
            format!("sent: {text}, from the agent's next call on"),
            0,
        ),
        (PromptStatus::Queued, Some(_)) => (
            "sent; the agent's machine has not confirmed it yet".to_owned(),
            NO_DECISION,
        ),
        (PromptStatus::Expired, _) => (
            "expired: the agent's machine didn't pick it up in time".to_owned(),
            NO_DECISION,
        ),
        (PromptStatus::Rejected | PromptStatus::Error, _) => {
            ("rejected by the agent's machine".to_owned(), DENIED)
        }
    };
    remark(&format!("{line}{reason}"));
    Ok(ExitAction::code(code))
}

/// Lists the grants that this device gave.
pub async fn given_grants(options: &ClientOptions) -> anyhow::Result<Vec<ListedEntry>> {
    let approver = open(options)?;
    let mut lines = Vec::new();
    let grants = approver.given_grants()?;
    let ids: Vec<_> = grants.iter().map(|given| &given.request_id).collect();
    for given in &grants {
        // The list is worth something without the uses too.
        let used = approver.grant_use(given).await.ok().flatten();
        lines.push(given_line(given, &ids, used.as_ref()));
    }
    Ok(lines)
}

fn given_line(given: &GivenGrant, ids: &[&String], used: Option<&GrantUse>) -> ListedEntry {
    let uses = match used {
        Some(GrantUse { count, last_at }) => {
            format!("used {}, last at {}", times(*count), visible(last_at))
        }
        None => "no use reported yet".to_owned(),
    };
    let end = if given.session_only {
        ", or the end of the session"
    } else {
        ""
    };
    let id = visible(short_id(&given.request_id, ids));
    let enforcer = visible(&given.enforcer_id);
    let (permits, until) = (&given.permits, visible(&given.until));
    ListedEntry {
        json: json!({
            "requestId": given.request_id,
            "enforcerId": given.enforcer_id,
            "permits": given.permits,
            "sessionOnly": given.session_only,
            "until": given.until,
            "uses": used.map_or(0, |used| used.count),
            "usedAt": used.map(|used| &used.last_at),
        }),
        line: format!("{id}  {enforcer}: {permits}, until {until}{end}; {uses}"),
    }
}

/// Ends a grant at the enforcer that has it.
pub async fn end_grant(
    options: &ClientOptions,
    id: &str,
    enforcer: Option<&str>,
    wait: Option<Duration>,
) -> anyhow::Result<ExitAction> {
    let approver = open(options)?;
    let given = approver.given_grants()?;
    let found = find_id(id, given.iter().map(|given| given.request_id.as_str()))?;
    let found = given
        .iter()
        .find(|given| Some(given.request_id.as_str()) == found);
    let (request_id, enforcer) = match (found, enforcer) {
        (Some(given), _) => (given.request_id.as_str(), given.enforcer_id.as_str()),
        (None, Some(enforcer)) => (id, enforcer),
        (None, None) => {
            remark(&format!(
                "this device gave no grant {}; see: countersign grants. For a grant from another device, give its whole ID and --enforcer",
                visible(id)
            ));
            return Ok(ExitAction::code(DENIED));
        }
    };
    let Some(request_id) = RequestId::parse(request_id) else {
        return Err(ClientError::Choice("that isn't a request ID").into());
    };
    let order = ControlOrder::EndGrant {
        request_id: request_id.clone(),
    };
    let sent = order_and_wait(&approver, options, enforcer, &order, wait).await?;
    // Until then the gateway may have withheld the order, and the grant may still be used.
    if sent.is_confirmed() {
        approver.forget_given(request_id.as_str())?;
    }
    report(options, enforcer, &sent, wait, "the grant has ended")
}
