//! `devices`, `devices add` and `devices revoke`.

use clap::{Args, Subcommand};
use countersign::client::approver::{Approver, DeviceStanding, ListedDevice};
use countersign::client::{ClientError, visible};
use countersign::e2e::{DeviceId, EndorsementRequest};
use serde_json::{Value, json};

use super::input::{argument_or_input, open, says_yes};
use super::pair::share;
use crate::commands::client_options::{ClientOptions, NOT_UNIQUE};
use crate::commands::exit_action::{DENIED, ExitAction};
use crate::commands::output::{print_json, print_line};
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
    /// List the devices of this approver.
    List {
        #[command(flatten)]
        options: ClientOptions,
    },
    /// Add a device, by the link that it shows.
    Add {
        #[command(flatten)]
        options: ClientOptions,
        /// The link, or - to read it from standard input.
        link: String,
        /// Do not ask whether name and id are those that the new device shows.
        #[arg(long)]
        yes: bool,
    },
    /// Revoke a device, for ever.
    Revoke {
        #[command(flatten)]
        options: ClientOptions,
        /// The device's id, or as much of it as is unique.
        #[arg(allow_hyphen_values = true)]
        id: String,
        /// Do not ask first.
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
        let standing = device.standing.as_str();
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
        screen.say("\nNo device that this one trusts has added those that are not verified. If you do not know one, revoke it.");
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
            "A new device asks to decide for {}:\n\n  {}\n  {}\n",
            visible(approver.id().as_str()),
            screen.paint(Colour::Bold, &name),
            screen.paint(Colour::Bold, &id.to_string()),
        ));
        if !says_yes("Does the new device show this name and id, and shall it be added?").await? {
            screen.say("nothing was added");
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
    let whole = DeviceId::parse(id).ok();
    let known = whole.and_then(|id| devices.find(id));
    let (device, name) = match (known, devices.beginning(id).as_slice(), whole) {
        (Some(device), ..) => (device.id, visible(&device.name)),
        (None, [device], _) => (device.id, visible(&device.name)),
        // A gateway may list fewer devices here than it lists to enforcers, which show the whole
        // ids.
        (None, [], Some(device)) => (device, "a device that the gateway does not list".into()),
        (None, [], None) => {
            return Err(ClientError::Choice(
                "there is no such device; see: countersign devices, or give its whole id",
            )
            .into());
        }
        _ => return Err(NOT_UNIQUE.into()),
    };
    for other in devices.added_by(device) {
        if other.id != approver.device_id() {
            let (name, id) = (visible(&other.name), other.id);
            screen.say(&format!(
                "{name} ({id}) was added by it, or by a device that it had added, and stays in force. If you do not know {name}, revoke it too."
            ));
        }
    }
    if !yes && !confirmed(&approver, device, &name).await? {
        screen.say("nothing was revoked");
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
        "This is the device that you are using. "
    } else {
        ""
    };
    says_yes(&format!("{own}Revoke {name} ({device}) for ever?")).await
}
