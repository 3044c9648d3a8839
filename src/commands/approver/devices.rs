//! `devices`, `devices add`, `devices rename` and `devices revoke`.

use std::time::Duration;

use clap::{Args, Subcommand};
use countersign::client::approver::{
    Approver, DeviceStanding, KnownDevices, ListedDevice, SeatNotice,
};
use countersign::client::{ClientError, visible};
use countersign::e2e::{DeviceId, DeviceName, EndorsementRequest};
use serde_json::{Value, json};

use super::input::{argument_or_input, open, says_yes};
use super::join::show_link;
use super::pair::share;
use crate::commands::client_options::ClientOptions;
use crate::commands::complete;
use crate::commands::exit_action::{DENIED, ExitAction, FAILURE, NO_DECISION};
use crate::commands::output::{print_json, print_line};
use crate::commands::short_id::find_id;
use crate::commands::terminal::{Colour, TerminalScreen, output_has_colour, paint};

pub const EXAMPLES: &str = "\
Examples:
  countersign devices
  countersign devices add                     shows a link for the new device, and waits for it
  countersign devices add 'https://gateway.example.org/#/device/…'
  countersign devices rename BZ1OM9Qh 'work laptop'
  countersign devices revoke BZ1OM9Qh";

/// As long as an offer can be used.
const OFFER_LIFETIME: Duration = Duration::from_secs(10 * 60);

#[derive(Args)]
pub struct DevicesArgs {
    #[command(flatten)]
    options: ClientOptions,
    #[command(subcommand)]
    command: Option<DevicesCommand>,
}

#[derive(Subcommand)]
enum DevicesCommand {
    /// List your devices.
    List {
        #[command(flatten)]
        options: ClientOptions,
    },
    /// Add a device: show it a link, or open the link that it shows.
    Add {
        #[command(flatten)]
        options: ClientOptions,
        /// The link that the new device shows, or - to read it from standard input; without one,
        /// the new device opens a link that is shown here.
        link: Option<String>,
        /// Don't ask whether the new device shows the same.
        #[arg(long)]
        yes: bool,
    },
    /// Rename a device, on this device only.
    Rename {
        #[command(flatten)]
        options: ClientOptions,
        /// The device's id, or as much of it as is unique.
        #[arg(allow_hyphen_values = true)]
        id: String,
        name: String,
    },
    /// Revoke a device. This can't be undone.
    Revoke {
        #[command(flatten)]
        options: ClientOptions,
        /// The device's id, or a unique end or beginning of it.
        #[arg(allow_hyphen_values = true, add = complete::devices())]
        id: String,
        /// Don't ask first.
        #[arg(long)]
        yes: bool,
    },
}

pub async fn run(args: DevicesArgs) -> anyhow::Result<ExitAction> {
    match args.command {
        None => list(&args.options).await,
        Some(DevicesCommand::List { options }) => list(&options).await,
        Some(DevicesCommand::Add { options, link, yes }) => match link {
            Some(link) => add(&options, &link, yes).await,
            None => invite(&options, yes).await,
        },
        Some(DevicesCommand::Rename { options, id, name }) => rename(&options, &id, &name).await,
        Some(DevicesCommand::Revoke { options, id, yes }) => revoke(&options, &id, yes).await,
    }
}

fn device_json(device: &ListedDevice) -> Value {
    json!({
        "deviceId": device.id.to_string(),
        "name": device.name,
        "nickname": device.nickname,
        "inForce": device.standing.is_in_force(),
        "standing": device.standing.as_str(),
        "addedAt": device.added_at,
        "addedBy": device.added_by,
        "revokedAt": device.revoked_at,
    })
}

/// By its name here, and the name that others see.
fn called(device: &ListedDevice) -> String {
    let name = visible(&device.name);
    match &device.nickname {
        Some(nickname) => format!("{} (joined as {name})", visible(nickname)),
        None => name,
    }
}

async fn list(options: &ClientOptions) -> anyhow::Result<ExitAction> {
    let devices = open(options)?.devices().await?;
    if options.json {
        print_json(&devices.listed.iter().map(device_json).collect::<Vec<_>>())?;
        return Ok(ExitAction::DONE);
    }
    let colour = output_has_colour();
    for device in &devices.listed {
        let standing = match device.standing {
            DeviceStanding::Trusted => "active",
            other => other.as_str(),
        };
        let standing = match device.standing {
            DeviceStanding::Own | DeviceStanding::Trusted => paint(colour, Colour::Green, standing),
            DeviceStanding::Unverified => paint(colour, Colour::Yellow, standing),
            DeviceStanding::Revoked | DeviceStanding::Ended => paint(colour, Colour::Red, standing),
        };
        let since = device.added_at.as_deref().map(visible).unwrap_or_default();
        print_line(&format!(
            "{}  {standing}  {}  added {since}",
            device.id,
            called(device),
        ))?;
    }
    let unverified = |device: &ListedDevice| device.standing == DeviceStanding::Unverified;
    if devices.listed.iter().any(unverified) {
        let mut screen = TerminalScreen::new(false);
        screen.say("\nNone of the devices that this one trusts has added those that are not verified. If you don't recognize one, revoke it.");
    }
    Ok(ExitAction::DONE)
}

async fn add(options: &ClientOptions, link: &str, yes: bool) -> anyhow::Result<ExitAction> {
    let approver = open(options)?;
    let request = EndorsementRequest::parse(&argument_or_input(link)?)?;
    let mut screen = TerminalScreen::new(options.json);
    let (name, id) = (
        visible(request.bundle().name().as_str()),
        request.bundle().id(),
    );
    if !yes {
        screen.say(&format!(
            "A new device wants to approve requests as {}:\n\n  {}\n  {}\n",
            visible(approver.id().as_str()),
            screen.paint(Colour::Bold, &name),
            screen.paint(Colour::Bold, &id.to_string()),
        ));
        if !says_yes("Does the new device show the same name and id? Add it?").await? {
            screen.say("no device was added");
            return Ok(ExitAction::code(DENIED));
        }
    }
    finish(&approver, &request, options, &mut screen).await
}

/// Adds a device that a person has compared.
async fn finish(
    approver: &Approver,
    request: &EndorsementRequest,
    options: &ClientOptions,
    screen: &mut TerminalScreen,
) -> anyhow::Result<ExitAction> {
    approver.add_device(request).await?;
    let (name, id) = (request.bundle().name().as_str(), request.bundle().id());
    screen.remark(&format!("added {} ({id})", visible(name)));
    share(approver, screen).await;
    tell(&approver.add_to_seats().await?, screen);
    if options.json {
        print_json(&json!({ "deviceId": id.to_string(), "name": name }))?;
    }
    Ok(ExitAction::DONE)
}

async fn invite(options: &ClientOptions, yes: bool) -> anyhow::Result<ExitAction> {
    let approver = open(options)?;
    let mut screen = TerminalScreen::new(options.json);
    let offer = approver.invite_device().await?;
    let link = offer.expose(&approver.page());
    if options.json {
        print_json(&json!({ "state": "waiting", "link": *link }))?;
    } else {
        screen.say("Open this link on the new device, within ten minutes:\n");
        show_link(&mut screen, &link);
        screen.say("In a terminal: countersign join LINK\n");
    }
    screen.progress("waiting for the new device …");
    let asked = approver.wait_for_device(&offer, OFFER_LIFETIME).await;
    screen.clear();
    let Ok(Some(comparison)) = asked else {
        // Somebody may have joined by the link and asked for nothing that it proves.
        let ended = approver.decline_device(&offer).await;
        asked?;
        ended?;
        screen.say("no device asked in time, and the link no longer works; start again: countersign devices add");
        return Ok(ExitAction::code(NO_DECISION));
    };
    if !yes {
        let name = comparison.claimed().bundle().name().as_str();
        screen.say(&format!(
            "A new device wants to approve requests as {}:\n\n  {}\n  {}\n",
            visible(approver.id().as_str()),
            screen.paint(Colour::Bold, &visible(name)),
            screen.paint(Colour::Bold, &comparison.digits().to_string()),
        ));
        let question = "Does the new device show this name and these digits? Add it?";
        if !says_yes(question).await? {
            approver.decline_device(&offer).await?;
            screen.say("nothing was added, and the link no longer works");
            return Ok(ExitAction::code(DENIED));
        }
    }
    let request = comparison.confirmed_by_person();
    finish(&approver, &request, options, &mut screen).await
}

async fn rename(options: &ClientOptions, id: &str, name: &str) -> anyhow::Result<ExitAction> {
    let approver = open(options)?;
    let devices = approver.devices().await?;
    let (device, former) = select(&devices, id)?;
    let name = DeviceName::parse(name)?;
    approver.rename_device(device, &devices, &name)?;
    let mut screen = TerminalScreen::new(options.json);
    let name = visible(name.as_str());
    screen.remark(&format!("{former} ({device}) is called {name} here"));
    if options.json {
        print_json(&json!({ "deviceId": device.to_string(), "nickname": name }))?;
    }
    Ok(ExitAction::DONE)
}

/// The device that this id, or a part of it, names, and its name.
fn select(devices: &KnownDevices, id: &str) -> anyhow::Result<(DeviceId, String)> {
    let ids: Vec<_> = devices.listed.iter().map(|it| it.id.to_string()).collect();
    let found = find_id(id, ids.iter().map(String::as_str))?;
    let found = found.and_then(|id| devices.find(DeviceId::parse(id).ok()?));
    Ok(match (found, DeviceId::parse(id).ok()) {
        (Some(device), _) => (device.id, called(device)),
        // A gateway may list fewer devices here than it lists to enforcers, which show the whole
        // ids.
        (None, Some(device)) => (device, "a device that the gateway does not list".into()),
        (None, None) => {
            return Err(ClientError::Choice(
                "there is no such device; see: countersign devices, or give its whole id",
            )
            .into());
        }
    })
}

async fn revoke(options: &ClientOptions, id: &str, yes: bool) -> anyhow::Result<ExitAction> {
    let approver = open(options)?;
    let mut screen = TerminalScreen::new(options.json);
    let devices = approver.devices().await?;
    let (device, name) = select(&devices, id)?;
    for other in devices.added_by(device) {
        if other.id != approver.device_id() {
            let (name, id) = (visible(&other.name), other.id);
            screen.say(&format!(
                "It added {name} ({id}), directly or through another device. {name} stays active: if you don't recognize it, revoke it too."
            ));
        }
    }
    if !yes && !confirmed(&approver, device, &name).await? {
        screen.say("no device was revoked");
        return Ok(ExitAction::code(DENIED));
    }
    let notices = approver.revoke_known(device, &devices).await?;
    screen.remark(&format!("revoked {name} ({device})"));
    tell(&notices, &mut screen);
    if options.json {
        let texts: Vec<_> = notices.iter().map(ToString::to_string).collect();
        print_json(&json!({ "deviceId": device.to_string(), "inForce": false, "notices": texts }))?;
    }
    if notices.iter().any(SeatNotice::is_failure) {
        return Ok(ExitAction::code(FAILURE));
    }
    Ok(ExitAction::DONE)
}

/// Tells the person what the change means for their seats in teams.
fn tell(notices: &[SeatNotice], screen: &mut TerminalScreen) {
    for notice in notices {
        screen.say(&notice.to_string());
    }
}

async fn confirmed(approver: &Approver, device: DeviceId, name: &str) -> anyhow::Result<bool> {
    let own = if device == approver.device_id() {
        "This is the device you are using. "
    } else {
        ""
    };
    says_yes(&format!(
        "{own}Revoke {name} ({device})? This can't be undone."
    ))
    .await
}
