//! `join`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use countersign::client::approver::{
    Approver, EnrolmentProgress, InvitationLink, JoinOutcome, join,
};
use countersign::client::profile::ProfileFile;
use countersign::client::{ClientError, GatewayLocation, visible};
use countersign::clock::Clock;
use countersign::e2e::{DeviceName, EndorsementRequest, Error};
use serde_json::json;

use super::pair::share;
use super::{argument_or_input, open};
use crate::commands::client::ClientOptions;
use crate::commands::ending::{ExitAction, NO_DECISION};
use crate::commands::terminal::{Colour, TerminalScreen, parse_duration, qr_code};
use crate::commands::{print_json, print_line};

pub const EXAMPLES: &str = "\
Examples:
  countersign join 'https://gateway.example.org/#/join/…'
  countersign join -                          reads the link from standard input, where other users do not see it
  countersign join --profile work --name 'work laptop' 'https://…'
  countersign join                            goes on: brings a device into force that was not added in time";

/// The gateway takes a statement for ten minutes.
const LINK_LIFETIME: Duration = Duration::from_secs(9 * 60 + 30);

#[derive(Args)]
pub struct JoinArgs {
    #[command(flatten)]
    options: ClientOptions,
    /// The invitation's link, or - to read it from standard input.
    link: Option<String>,
    /// What this device of an approver is called; by default after the machine.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Where the gateway is, if the link leads elsewhere; can be given for each node.
    #[arg(long, value_name = "URL")]
    gateway: Vec<String>,
    /// Root certificates to trust instead of the system's, in PEM.
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Send the credential over plain HTTP to another machine, for a network that nobody else reads.
    #[arg(long)]
    allow_http: bool,
    /// Give up the keys of this role that the profile has.
    #[arg(long)]
    replace: bool,
    /// How long to wait until a device in force has added this one.
    #[arg(long, default_value = "1h", value_parser = parse_duration)]
    wait: Duration,
}

pub async fn run(args: JoinArgs) -> anyhow::Result<ExitAction> {
    let mut screen = TerminalScreen::new(args.options.json);
    let Some(link) = &args.link else {
        let approver = open(&args.options)?;
        return enrol(&args, &approver, &mut screen).await;
    };
    let invitation = InvitationLink::parse(&argument_or_input(link)?)?;
    let urls = match (args.gateway.is_empty(), invitation.page()) {
        (false, _) => args.gateway.clone(),
        (true, Some(page)) => vec![page.to_owned()],
        (true, None) => return Err(ClientError::Invitation.into()),
    };
    let ca = args.ca.as_deref().map(std::path::absolute).transpose()?;
    let location = GatewayLocation {
        urls: &urls,
        ca: ca.as_deref(),
        allow_http: args.allow_http,
    };
    let name = match &args.name {
        Some(name) => DeviceName::parse(name)?,
        None => default_name()?,
    };
    let file = args.options.file()?;
    let clock = Clock::system();
    let joined = join(&file, args.replace, &clock, &invitation, &location, &name).await?;
    match joined {
        JoinOutcome::Approver(approver) => {
            let id = visible(approver.id().as_str());
            screen.remark(&format!(
                "joined as the approver {id}; this device is called {}",
                name.as_str()
            ));
            elsewhere(&mut screen, &file, approver.profile());
            enrol(&args, &approver, &mut screen).await
        }
        JoinOutcome::Enforcer(id, kept) => {
            screen.remark(&format!("joined as the enforcer {}", visible(id.as_str())));
            elsewhere(&mut screen, &file, &kept);
            screen.remark("pair it with an approver: countersign pair");
            if args.options.json {
                let profile = kept.path();
                print_json(&json!({ "role": "enforcer", "enforcerId": id, "profile": profile }))?;
            }
            Ok(ExitAction::DONE)
        }
        JoinOutcome::Administrator(api_key) => {
            screen.remark(
                "The API key of an administrator, which is not shown again and kept in no profile:",
            );
            if args.options.json {
                print_json(&json!({ "role": "admin", "apiKey": api_key.expose() }))?;
            } else {
                print_line(api_key.expose())?;
            }
            Ok(ExitAction::DONE)
        }
    }
}

/// The profile that was named had this role already.
fn elsewhere(screen: &mut TerminalScreen, wanted: &ProfileFile, kept: &ProfileFile) {
    if wanted.path() != kept.path() {
        let name = kept
            .path()
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy();
        screen.say(&format!(
            "the profile has this role already and was not changed; use the new one with --profile {name}"
        ));
    }
}

async fn enrol(
    args: &JoinArgs,
    approver: &Approver,
    screen: &mut TerminalScreen,
) -> anyhow::Result<ExitAction> {
    let until = tokio::time::Instant::now() + args.wait;
    loop {
        let request = match approver.enrol().await? {
            EnrolmentProgress::InForce => break,
            EnrolmentProgress::Asks(request) => request,
        };
        let link = request.link(&approver.page())?;
        if args.options.json {
            print_json(&json!({
                "role": "approver",
                "approverId": approver.id(),
                "deviceId": approver.device_id().to_string(),
                "state": "waiting",
                "link": link,
            }))?;
        } else {
            explain(screen, approver, &request, &link);
        }
        let left = until.saturating_duration_since(tokio::time::Instant::now());
        screen.progress("waiting for a device in force to add this one …");
        let added = approver.wait_until_in_force(left.min(LINK_LIFETIME)).await;
        screen.clear();
        if added? {
            break;
        }
        if tokio::time::Instant::now() + Duration::from_secs(1) >= until {
            screen.say("no device has added this one in time; go on with: countersign join");
            return Ok(ExitAction::code(NO_DECISION));
        }
        screen.remark("the link has expired; here is another:");
    }
    let word = screen.paint(Colour::Green, "in force");
    screen.remark(&format!("this device is {word} ({})", approver.device_id()));
    share(approver, screen).await;
    if args.options.json {
        print_json(&json!({
            "role": "approver",
            "approverId": approver.id(),
            "deviceId": approver.device_id().to_string(),
            "state": "inForce",
            "profile": approver.profile().path(),
        }))?;
    } else if approver.enforcers().is_empty() {
        screen.remark("pair it with an enforcer, unless another device of yours is paired: countersign pair LINK");
    }
    Ok(ExitAction::DONE)
}

fn explain(
    screen: &mut TerminalScreen,
    approver: &Approver,
    request: &EndorsementRequest,
    link: &str,
) {
    screen.say("This approver has a device already, which has to add this one. Open this link there, within ten minutes:\n");
    if screen.is_terminal()
        // A long link does not fit into a code that a camera could read.
        && let Ok(code) = qr_code(link)
    {
        screen.say(&code);
    }
    screen.say(&format!("  {}\n", screen.paint(Colour::Bold, link)));
    screen.say("In a terminal: countersign devices add LINK");
    let name = request.bundle().name().as_str();
    screen.say(&format!(
        "It has to show this name and id there: {}, {}\n",
        screen.paint(Colour::Bold, name),
        screen.paint(Colour::Bold, &approver.device_id().to_string()),
    ));
}

fn default_name() -> Result<DeviceName, Error> {
    let host = nix::unistd::gethostname().ok();
    let host = host.and_then(|host| host.into_string().ok());
    let name = host.map(|host| {
        let short: String = host.chars().take(40).collect();
        DeviceName::parse(&format!("terminal on {short}"))
    });
    match name {
        Some(Ok(name)) => Ok(name),
        _ => DeviceName::parse("terminal"),
    }
}
