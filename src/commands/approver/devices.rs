//! `devices`, `devices add` and `devices revoke`.

use clap::{Args, Subcommand};
use countersign::client::approver::{Approver, DeviceStanding, ListedDevice};
use countersign::client::{ClientError, visible};
use countersign::e2e::{DeviceId, EndorsementRequest};
use serde_json::{Value, json};

use super::input::{argument_or_input, open, says_yes};
use super::pair::share;
use crate::commands::client_options::ClientOptions;
use crate::commands::complete;
use crate::commands::exit_action::{DENIED, ExitAction};
use crate::commands::output::{print_json, print_line};
use crate::commands::short_id::find_id;
use crate::commands::terminal::{Colour, TerminalScreen, output_has_colour, paint};

pub const EXAMPLES: &str = "\
Examples:
  countersign devices
  countersign devices add 'https://gateway.example.org/#/device/…'
  countersign devices revoke BZ1OM9Qh";

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
    /// Approve a new device, with the link that it shows.
    Add {
        #[command(flatten)]
        options: ClientOptions,
        /// The link, or - to read it from standard input.
        link: String,
        /// Don't ask whether the new device shows the same name and id.
        #[arg(long)]
        yes: bool,
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
        Some(DevicesCommand::Add { options, link, yes }) => add(&options, &link, yes).await,
        Some(DevicesCommand::Revoke { options, id, yes }) => revoke(&options, &id, yes).await,
    }
}

fn device_json(device: &ListedDevice) -> Value {
    json!({
        "deviceId": device.id.to_string(),
        "name": device.name,
        "inForce": device.standing.is_in_force(),
        "standing": device.standing.as_str(),
        "addedAt": device.added_at,
        "addedBy": device.added_by,
        "revokedAt": device.revoked_at,
    })
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
            visible(&device.name)
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
    approver.add_device(&request).await?;
    screen.remark(&format!("added {name} ({id})"));
    share(&approver, &mut screen).await;
    if options.json {
        print_json(
            &json!({ "deviceId": id.to_string(), "name": request.bundle().name().as_str() }),
        )?;
    }
    Ok(ExitAction::DONE)
}

async fn revoke(options: &ClientOptions, id: &str, yes: bool) -> anyhow::Result<ExitAction> {
    let approver = open(options)?;
    let mut screen = TerminalScreen::new(options.json);
    let devices = approver.devices().await?;
    let ids: Vec<_> = devices.listed.iter().map(|it| it.id.to_string()).collect();
    let found = find_id(id, ids.iter().map(String::as_str))?;
    let found = found.and_then(|id| devices.find(DeviceId::parse(id).ok()?));
    let (device, name) = match (found, DeviceId::parse(id).ok()) {
        (Some(device), _) => (device.id, visible(&device.name)),
        // A gateway may list fewer devices here than it lists to enforcers, which show the whole
        // ids.
        (None, Some(device)) => (device, "a device that the gateway does not list".into()),
        (None, None) => {
            return Err(ClientError::Choice(
                "there is no such device; see: countersign devices, or give its whole id",
            )
            .into());
        }
    };
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
    approver.revoke_known(device, &devices).await?;
    screen.remark(&format!("revoked {name} ({device})"));
    if options.json {
        print_json(&json!({ "deviceId": device.to_string(), "inForce": false }))?;
    }
    Ok(ExitAction::DONE)
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
