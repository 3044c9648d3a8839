//! `pair`, `pairings` and `unpair` from the enforcer's side.

use std::path::Path;

use anyhow::Context as _;
use clap::Args;
use countersign::client::approver::{KnownKey, PairingChoice};
use countersign::client::enforcer::{Enforcer, PairingCompletion, team_name};
use countersign::client::profile::ProfileFile;
use countersign::client::{ClientError, visible};
use countersign::clock::Clock;
use countersign::e2e::{MAX_LABEL_CHARS, OperatorList, ReceivedAnswer, is_label};
use countersign::protocol::id::{ApproverId, TextId as _};
use serde_json::json;

use crate::commands::client_options::{ClientOptions, ListedEntry, host_name};
use crate::commands::exit_action::{DENIED, ExitAction, NO_DECISION};
use crate::commands::output::print_json;
use crate::commands::terminal::{Colour, TerminalScreen, confirm_digits, minutes};

#[derive(Args)]
pub struct PairArgs {
    #[command(flatten)]
    pub options: ClientOptions,
    /// The link or code that an agent's machine shows, or - to read it from standard input. Without
    /// it, this machine starts a pairing.
    #[arg(value_name = "LINK|CODE")]
    pub answer: Option<String>,
    /// Accept a new key of an enforcer that this device already knows. Only if it was set up again.
    #[arg(long, requires = "answer")]
    pub replace: bool,
    /// The approver who works with this agent, and so does not approve where a rule wants somebody
    /// else; may be repeated. `none`: nobody does.
    #[arg(long = "operator", value_name = "ID", requires = "answer")]
    operators: Vec<String>,
    /// The name or id of a team of which you are an owner: its members decide, instead of you alone.
    #[arg(long, value_name = "TEAM", requires = "answer")]
    pub team: Option<String>,
    #[command(flatten)]
    offer: OfferArgs,
}

impl PairArgs {
    /// The person's word on the pairing that is answered.
    pub fn choice(&self) -> anyhow::Result<PairingChoice> {
        let ids = match self.operators.as_slice() {
            [only] if only == "none" => [].iter(),
            ids => ids.iter(),
        };
        let ids = ids.map(|id| ApproverId::parse(id).filter(|id| id.as_str() != "none"));
        let list = ids.collect::<Option<_>>().and_then(OperatorList::new);
        let problem = "--operator takes the id of an approver, each once and at most 16, or none";
        let list = list.ok_or(ClientError::Choice(problem))?;
        Ok(PairingChoice {
            known: if self.replace {
                KnownKey::Replace
            } else {
                KnownKey::Keep
            },
            operators: (!self.operators.is_empty()).then_some(list),
            team: None,
        })
    }
}

/// The offer of an enforcer to an approver.
#[derive(Args, Default)]
pub struct OfferArgs {
    /// What the approver sees as this machine's name; by default its host name.
    #[arg(long, value_name = "TEXT", value_parser = parse_label)]
    label: Option<String>,
    /// The address of the approvers' page, if it isn't the gateway's.
    #[arg(long, value_name = "URL")]
    page: Option<String>,
}

fn parse_label(text: &str) -> Result<String, String> {
    if is_label(text) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "expected 1 to {MAX_LABEL_CHARS} visible characters"
    ))
}

/// Begins a pairing and waits for its end.
pub async fn pair(args: PairArgs) -> anyhow::Result<ExitAction> {
    let mut enforcer = Enforcer::open(&args.options.file()?, &Clock::system())?;
    let mut screen = TerminalScreen::new(false);
    let paired = pair_on(&mut enforcer, &mut screen, &args.offer).await?;
    match (paired, args.options.json) {
        (Ok(approver), true) => {
            print_json(&json!({ "approverId": approver }))?;
            Ok(ExitAction::DONE)
        }
        (Ok(_), false) => Ok(ExitAction::DONE),
        (Err(code), _) => Ok(ExitAction::code(code)),
    }
}

/// The approver that this enforcer is paired with now, or the exit status.
pub(super) async fn pair_on(
    enforcer: &mut Enforcer,
    screen: &mut TerminalScreen,
    args: &OfferArgs,
) -> anyhow::Result<Result<String, u8>> {
    let label = args.label.clone().or_else(host_name);
    let workspace = std::env::current_dir().ok();
    let workspace = workspace.as_deref().and_then(Path::file_name);
    let workspace = workspace.and_then(|name| name.to_str());
    let attempt = enforcer.begin_pairing(label.as_deref(), workspace).await?;
    let page = match &args.page {
        Some(page) => page.clone(),
        None => enforcer.client().address(),
    };
    let link = attempt.link(&page);
    let code = screen.qr_code(&link);
    let how = match code {
        Some(_) => "scan this code or open this link",
        None => "open this link",
    };
    screen.say(&format!(
        "Pair this machine with an approver: {how} on the approver's device.\n"
    ));
    if let Some(code) = code {
        screen.say(&code);
    }
    screen.say(&format!("  {}\n", screen.paint(Colour::Bold, &link)));
    screen.say(&format!(
        "In a terminal: countersign pair '{}'\nOr type this code, then compare the digits on both screens: {}\n",
        *link,
        screen.paint(Colour::Bold, &attempt.code().to_string()),
    ));
    let left = attempt.expires_at().inner() - Clock::system().now().inner();
    let left = left.try_into().unwrap_or_default();
    screen.progress(&format!(
        "waiting for the approver, {} left …",
        minutes(left)
    ));
    let Some(completed) = enforcer.wait_for_answer(attempt).await? else {
        screen.say("nobody answered in time, so nothing was paired");
        return Ok(Err(NO_DECISION));
    };
    screen.clear();
    settle(enforcer, screen, completed).await
}

async fn settle(
    enforcer: &mut Enforcer,
    screen: &mut TerminalScreen,
    completed: PairingCompletion,
) -> anyhow::Result<Result<String, u8>> {
    let approver = completed.approver().to_string();
    let shown = visible(&approver);
    let (received, pairing) = completed.split();
    let device = match received {
        ReceivedAnswer::Proven(device) => device,
        ReceivedAnswer::ToCompare(comparison) => {
            screen.say(&format!(
                "{shown} typed the code. If you used the link or the QR code instead, someone is interfering: answer no.\n\
                 Compare all fifteen digits with those on the other screen:\n\n  {}\n",
                screen.paint(Colour::Bold, &comparison.digits().to_string()),
            ));
            if !confirm_digits(screen).await {
                let told = enforcer.abort(pairing).await;
                told.context("the gateway could not be told to drop this pairing")?;
                return Ok(Err(DENIED));
            }
            comparison.confirmed_by_person()
        }
    };
    let name = visible(device.bundle().name().as_str());
    let team = if device.team().is_some() {
        Some(enforcer.pin_team(&device, pairing).await?)
    } else {
        enforcer.pin(&device, pairing)?;
        None
    };
    let paired = screen.paint(Colour::Green, "paired");
    screen.say(&format!(
        "{paired} with {shown} on {name} ({})",
        device.bundle().id()
    ));
    if let Some(team) = team {
        screen.say(&format!("the members of {} decide", visible(&team)));
    }
    if let Some(operators) = device.operators() {
        let names = operators.ids().iter().map(|id| visible(id.as_str()));
        let names = names.collect::<Vec<_>>().join(", ");
        let names = if names.is_empty() { "nobody" } else { &names };
        screen.say(&format!("{shown} says who works with this agent: {names}"));
    }
    Ok(Ok(approver))
}

pub fn pairings(file: &ProfileFile) -> anyhow::Result<Vec<ListedEntry>> {
    let enforcer = Enforcer::open(file, &Clock::system())?;
    let pairings = enforcer.approvers().iter().map(|record| {
        let devices = enforcer.known_devices(record)?;
        let listed = devices
            .iter()
            .map(|device| json!({ "deviceId": device.id.to_string(), "name": device.name }));
        let shown = devices
            .iter()
            .map(|device| format!("{} ({})", visible(&device.name), device.id));
        Ok(ListedEntry {
            json: json!({
                "role": "enforcer",
                "approverId": record.id,
                "pairedAt": record.paired_at,
                "devices": devices.len(),
                "inForce": listed.collect::<Vec<_>>(),
                "operators": enforcer.operators(),
            }),
            line: format!(
                "{}  approver on {}, paired {}",
                visible(&record.id),
                shown.collect::<Vec<_>>().join(", "),
                visible(&record.paired_at),
            ),
        })
    });
    let mut listed: Vec<_> = pairings.collect::<anyhow::Result<_>>()?;
    listed.extend(enforcer.teams()?.iter().map(|record| {
        let (name, problem) = (record.name(), record.chain().err());
        let name = name.as_deref().map(visible).unwrap_or_default();
        let shown = match &problem {
            None => "its members decide".to_owned(),
            Some(problem) => problem.to_string(),
        };
        ListedEntry {
            json: json!({
                "role": "enforcer", "teamId": record.team_id, "name": name,
                "problem": problem.as_ref().map(ToString::to_string),
            }),
            line: format!("team:{}  {name}: {shown}", visible(&record.team_id)),
        }
    }));
    Ok(listed)
}

/// False if there was no such pairing.
pub async fn unpair(file: &ProfileFile, approver: &str) -> anyhow::Result<bool> {
    let mut enforcer = Enforcer::open(file, &Clock::system())?;
    let ended = match team_name(approver) {
        Some(team) => enforcer.unpair_team(team).await,
        None => enforcer.unpair(approver).await,
    };
    ended.context("the pairing was removed on this machine, but the gateway could not be told")
}
