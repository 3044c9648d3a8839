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

use super::input::{argument_or_input, open};
use super::pair::share;
use crate::commands::client_options::{ClientOptions, host_name};
use crate::commands::exit_action::{ExitAction, NO_DECISION};
use crate::commands::output::{print_json, print_line};
use crate::commands::terminal::{Colour, TerminalScreen, parse_duration};

pub const EXAMPLES: &str = "\
Examples:
  countersign join 'https://gateway.example.org/#/join/…'
  countersign join -                          read the link from standard input, hidden from other users
  countersign join --profile work --name 'work laptop' 'https://…'
  countersign join                            continue, if this device was not approved in time";

/// The gateway takes a statement for ten minutes.
const LINK_LIFETIME: Duration = Duration::from_secs(9 * 60 + 30);

#[derive(Args)]
pub struct JoinArgs {
    #[command(flatten)]
    options: ClientOptions,
    /// The invitation's link, or - to read it from standard input.
    link: Option<String>,
    /// A name for this device, if you join as an approver; by default the host name.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The gateway's address, if the link leads elsewhere. Repeat it for several nodes.
    #[arg(long, value_name = "URL")]
    gateway: Vec<String>,
    /// Root certificates to trust instead of the system's (PEM).
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Allow plain HTTP to another machine. Anyone on the network can then read the credential.
    #[arg(long)]
    allow_http: bool,
    /// Replace the keys that the profile has for this role.
    #[arg(long)]
    replace: bool,
    /// How long to wait until you approve this device from another one.
    #[arg(long, default_value = "1h", value_parser = parse_duration)]
    wait: Duration,
}

pub async fn run(args: JoinArgs) -> anyhow::Result<ExitAction> {
    let mut screen = TerminalScreen::new(args.options.json);
    let Some(link) = &args.link else {
        let approver = open(&args.options)?;
        return enrol(&args, &approver, None, &mut screen).await;
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
                visible(approver.bundle().name().as_str())
            ));
            elsewhere(&mut screen, &file, approver.profile());
            let inviter = invitation.device().map(|_| &invitation);
            enrol(&args, &approver, inviter, &mut screen).await
        }
        JoinOutcome::Enforcer(id, kept) => {
            screen.remark(&format!("joined as the enforcer {}", visible(id.as_str())));
            elsewhere(&mut screen, &file, &kept);
            screen.remark("next, pair it with an approver: countersign pair");
            if args.options.json {
                let profile = kept.path();
                print_json(&json!({ "role": "enforcer", "enforcerId": id, "profile": profile }))?;
            }
            Ok(ExitAction::DONE)
        }
        JoinOutcome::Administrator(api_key) => {
            screen.remark(
                "Your administrator's API key. It isn't shown again, and isn't saved in a profile:",
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
            "the profile already has this role and was not changed; use the new one with --profile {name}"
        ));
    }
}

async fn enrol(
    args: &JoinArgs,
    approver: &Approver,
    mut inviter: Option<&InvitationLink>,
    screen: &mut TerminalScreen,
) -> anyhow::Result<ExitAction> {
    let until = tokio::time::Instant::now() + args.wait;
    loop {
        let request = match approver.enrol().await? {
            EnrolmentProgress::InForce => break,
            EnrolmentProgress::Asks(request) => request,
        };
        let link = request.link(&approver.page())?;
        if let Some(inviter) = inviter.take() {
            let digits = approver.ask_inviter(inviter).await?.to_string();
            explain_digits(args, screen, approver, &digits)?;
        } else if args.options.json {
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
        screen.progress("waiting until you approve this device from another one …");
        let added = approver.wait_until_in_force(left.min(LINK_LIFETIME)).await;
        screen.clear();
        if added? {
            break;
        }
        if tokio::time::Instant::now() + Duration::from_secs(1) >= until {
            screen.say("this device was not approved in time; continue with: countersign join");
            return Ok(ExitAction::code(NO_DECISION));
        }
        screen.remark("the link has expired; here is a new one:");
    }
    let word = screen.paint(Colour::Green, "ready");
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
        screen.remark("next, pair it with an agent's machine, unless another device of yours is paired: countersign pair LINK");
    }
    Ok(ExitAction::DONE)
}

/// The device that showed the link knows of this one already.
fn explain_digits(
    args: &JoinArgs,
    screen: &mut TerminalScreen,
    approver: &Approver,
    digits: &str,
) -> anyhow::Result<()> {
    let name = approver.bundle().name().as_str();
    if args.options.json {
        return print_json(&json!({
            "role": "approver",
            "approverId": approver.id(),
            "deviceId": approver.device_id().to_string(),
            "state": "waiting",
            "name": name,
            "digits": digits,
        }));
    }
    screen.say(&format!(
        "Confirm this device where the link was shown. It has to show this name and these digits there:\n\n  {}\n  {}\n",
        screen.paint(Colour::Bold, name),
        screen.paint(Colour::Bold, digits),
    ));
    Ok(())
}

pub fn show_link(screen: &mut TerminalScreen, link: &str) {
    if let Some(code) = screen.qr_code(link) {
        screen.say(&code);
    }
    screen.say(&format!("  {}\n", screen.paint(Colour::Bold, link)));
}

fn explain(
    screen: &mut TerminalScreen,
    approver: &Approver,
    request: &EndorsementRequest,
    link: &str,
) {
    screen.say(
        "Approve this device from one you already use: open this link there within ten minutes.\n",
    );
    show_link(screen, link);
    screen.say("In a terminal: countersign devices add LINK");
    let name = request.bundle().name().as_str();
    screen.say(&format!(
        "Check that it shows this name and id: {}, {}\n",
        screen.paint(Colour::Bold, name),
        screen.paint(Colour::Bold, &approver.device_id().to_string()),
    ));
}

fn default_name() -> Result<DeviceName, Error> {
    let name = host_name().map(|host| {
        let short: String = host.chars().take(40).collect();
        DeviceName::parse(&format!("terminal on {short}"))
    });
    match name {
        Some(Ok(name)) => Ok(name),
        _ => DeviceName::parse("terminal"),
    }
}
