//! `pair LINK|CODE`, `pairings` and `unpair` from the approver's side.

use anyhow::Context as _;
use countersign::client::approver::{Approver, EnrolmentProgress, PairingChoice};
use countersign::client::profile::{EnforcerRecord, ProfileFile, TeamPairingRecord, known_teams};
use countersign::client::{ClientError, visible};
use countersign::e2e::{PairingLink, TeamId};
use countersign::protocol::pairing::PairingCode;
use serde_json::json;

use super::input::{argument_or_input, open};
use super::passphrase;
use crate::commands::client_options::{ClientOptions, ListedEntry};
use crate::commands::exit_action::{DENIED, ExitAction};
use crate::commands::output::{print_json, remark};
use crate::commands::terminal::{Colour, TerminalScreen, confirm_digits};

/// Answers a pairing that an enforcer has begun.
pub async fn pair(
    options: &ClientOptions,
    answer: &str,
    mut choice: PairingChoice,
    team: Option<&str>,
) -> anyhow::Result<ExitAction> {
    let mut approver = open(options)?;
    if let Some(team) = team {
        choice.team = Some(approver.team(team).await?.head());
    }
    let mut screen = TerminalScreen::new(options.json);
    let text = argument_or_input(answer)?;
    // An enforcer must not pin a device whose decisions the gateway would refuse.
    if !matches!(approver.enrol().await?, EnrolmentProgress::InForce) {
        return Err(ClientError::DeviceNotInForce.into());
    }
    let record = if let Some(code) = PairingCode::parse(&text) {
        match by_code(&mut approver, &mut screen, code, choice).await? {
            Some(record) => record,
            None => return Ok(ExitAction::code(DENIED)),
        }
    } else {
        let link = PairingLink::parse(&text)?;
        approver.pair_by_link_with(&link, choice).await?
    };
    let word = screen.paint(Colour::Green, "paired");
    screen.remark(&format!("{word} with {}", shown(&record)));
    share(&approver, &mut screen).await;
    if options.json {
        print_json(&json!({ "enforcerId": record.id, "enforcerLabel": record.label }))?;
    }
    Ok(ExitAction::DONE)
}

/// Exchanges the known enforcers with the approver's other devices. Nothing else depends on it.
pub async fn share(approver: &Approver, screen: &mut TerminalScreen) {
    if let Err(error) = approver.share_enforcers().await {
        screen.say(&format!(
            "your other devices could not be told about the machines that this one knows: {error}; try again: countersign join"
        ));
    }
}

fn shown(record: &EnforcerRecord) -> String {
    let label = record.label.as_deref().map(visible);
    let label = label.map(|label| format!(" ({label})")).unwrap_or_default();
    format!("{}{label}", visible(&record.id))
}

async fn by_code(
    approver: &mut Approver,
    screen: &mut TerminalScreen,
    code: PairingCode,
    choice: PairingChoice,
) -> anyhow::Result<Option<EnforcerRecord>> {
    let comparing = approver.pair_by_code_with(code, choice).await?;
    let label = comparing.label().map(visible);
    let label = label.map(|label| format!(" ({label})")).unwrap_or_default();
    screen.say(&format!(
        "{}{label} (unverified) wants to pair. Compare all fifteen digits with those on the other screen:\n\n  {}\n",
        visible(comparing.enforcer().as_str()),
        screen.paint(Colour::Bold, &comparing.digits().to_string()),
    ));
    if confirm_digits(screen).await {
        return Ok(Some(approver.confirm(comparing).await?));
    }
    let told = approver.abort(comparing).await;
    told.context("the gateway could not be told to drop this pairing")?;
    Ok(None)
}

pub fn pairings(file: &ProfileFile) -> anyhow::Result<Vec<ListedEntry>> {
    let approver = passphrase::open(file)?;
    let mut pairings = Vec::new();
    for record in approver.enforcers() {
        let mut json = json!({
            "role": "approver",
            "enforcerId": record.id,
            "enforcerLabel": record.label,
            "pairedAt": record.paired_at,
            "introducedBy": null,
            "operators": record.operators,
        });
        let (id, since) = (visible(&record.id), visible(&record.paired_at));
        let mut line = format!("{id}  enforcer, paired {since}");
        // By another device, if this one was not paired itself.
        if let Some(by) = approver.introducer(&record)? {
            let name = by.name.as_deref();
            let name = name.map(|name| format!("{} ", visible(name)));
            let (name, id) = (name.unwrap_or_default(), visible(&by.id));
            let revoked = if by.is_revoked {
                ", which has been revoked since"
            } else {
                ""
            };
            line = format!("{line}, introduced by {name}({id}){revoked}");
            json["introducedBy"] =
                json!({ "deviceId": by.id, "name": by.name, "revoked": by.is_revoked });
        }
        if !record.operators.is_empty() {
            let names: Vec<_> = record.operators.iter().map(|id| visible(id)).collect();
            line = format!("{line}; works with it: {}", names.join(", "));
        }
        pairings.push(ListedEntry { json, line });
    }
    Ok(pairings)
}

/// The consequence of ending a pairing for others than this person, as a question. None if there is
/// none.
pub fn unpair_question(file: &ProfileFile, enforcer: &str) -> anyhow::Result<Option<String>> {
    let profile = file.load()?;
    let mut records = profile.approver.iter().flat_map(|own| &own.enforcers);
    let record = records.find(|record| record.id == enforcer && !record.teams.is_empty());
    let Some(record) = record else {
        return Ok(None);
    };
    let known = known_teams(file)?;
    let teams = record
        .teams
        .iter()
        .map(|TeamPairingRecord { team_id: id, .. }| {
            let mut chains = known.get(id).into_iter().flatten();
            let chain = chains.find_map(|chain| chain.as_ref().ok());
            visible(chain.map_or(id, |chain| &chain.content().name))
        });
    let teams = teams.collect::<Vec<_>>().join(" and ");
    if teams.is_empty() {
        return Ok(None);
    }
    let enforcer = visible(enforcer);
    Ok(Some(format!(
        "This device has paired {enforcer} with {teams}: its members won't be asked any more either. Unpair {enforcer}?"
    )))
}

/// False if there was no such pairing.
pub async fn unpair(file: &ProfileFile, enforcer: &str) -> anyhow::Result<bool> {
    let mut approver = passphrase::open(file)?;
    let record = approver.enforcer(enforcer);
    let ended = approver.unpair(enforcer).await;
    let ended = ended
        .context("the pairing was removed on this device, but the gateway could not be told")?;
    let team = record.and_then(|record| TeamId::parse(&record.introduced_in?).ok());
    if let Some(team) = team {
        let name = approver.team_names().remove(&team);
        let name = name.map_or_else(|| team.to_string(), |name| visible(&name));
        remark(&format!(
            "{} still asks the team {name}; leave the team, or ask an owner to unpair it",
            visible(enforcer)
        ));
    }
    Ok(ended)
}
