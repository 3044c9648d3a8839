//! `verify`: offline, by the profile's own knowledge of devices.

use std::io::Read as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use countersign::client::log::known_keys;
use countersign::client::{ClientError, DecisionRecord, MAX_RECORD_BYTES, VerifiedRecord, visible};
use countersign::clock::Clock;
use countersign::e2e::{DeviceId, Error, ReceiptAnchors};
use serde_json::json;

use super::anchors::{add_devices, add_file, add_teams, profile_anchors, profile_trusts};
use super::artifact::members_of;
use super::receipt::{ReceiptDemands, is_receipt, verify_receipt};
use super::rule_text::TeamNames;
use super::view::render_artifact;
use crate::commands::client_options::ClientOptions;
use crate::commands::exit_action::{DENIED, ExitAction};
use crate::commands::output::{print_json, print_line};
use crate::commands::terminal::{Colour, TerminalScreen, output_has_colour, paint};

pub const EXAMPLES: &str = "\
Examples:
  countersign verify decision.json                   by the devices that this profile knows
  countersign verify decision.json --device BZ1OM9Qh8n1nAHjvVg9kmg
  countersign verify receipt.json                    the decisions of several people, from --approvals
  countersign verify receipt.json --device alice=BZ1OM9Qh8n1nAHjvVg9kmg --device bob=Yx0fT7mR2oZ4aQmJc1uE5g
  countersign verify receipt.json --team pZ0Wm3nBqVx1cT8sKjY5Ag
  countersign verify receipt.json --anchors anchors.json
  countersign verify receipt.json --approvals 2 --from alice,bob,carol --enforcer ci";

#[derive(Args)]
pub struct VerifyArgs {
    #[command(flatten)]
    options: ClientOptions,
    /// A file that `approve --save`, `ask --save` or `run --save` wrote, or - for standard input.
    file: PathBuf,
    /// Trust this device instead of those that the profile knows. For a receipt of several people
    /// as APPROVER=ID, once for each.
    #[arg(long = "device", value_name = "ID", allow_hyphen_values = true)]
    devices: Vec<String>,
    /// Trust the team with this id, as in `team show`, instead of the devices that the profile knows:
    /// its states are in the receipt. Once for each.
    #[arg(long = "team", value_name = "ID", allow_hyphen_values = true)]
    teams: Vec<String>,
    /// Trust what a file of `countersign anchors` names, instead of the profile's devices and teams.
    #[arg(long, value_name = "FILE")]
    anchors: Option<PathBuf>,
    #[command(flatten)]
    demands: ReceiptDemands,
}

impl VerifyArgs {
    /// The devices and teams to trust: those that are named, or else those of the profile.
    fn anchors(&self) -> anyhow::Result<ReceiptAnchors> {
        let file = self.options.file()?;
        if self.devices.is_empty() && self.teams.is_empty() && self.anchors.is_none() {
            return profile_anchors(&file);
        }
        let anchors = add_devices(ReceiptAnchors::default(), &self.devices)?;
        let anchors = add_teams(anchors, &self.teams, &file)?;
        match &self.anchors {
            Some(path) => add_file(anchors, path, &file),
            None => Ok(anchors),
        }
    }

    /// Whether an option was given that is about receipts.
    fn expects_receipt(&self) -> bool {
        !self.demands.is_empty() || !self.teams.is_empty() || self.anchors.is_some()
    }
}

pub fn run(args: &VerifyArgs) -> anyhow::Result<ExitAction> {
    let text = read(&args.file)?;
    let mut screen = TerminalScreen::new(args.options.json);
    if is_receipt(&text) {
        let anchors = args.anchors()?;
        let anchors = anchors.with_time(Clock::system().now());
        let keys = known_keys(&args.options.file()?)?.into_iter();
        let anchors = keys.fold(anchors, |anchors, (tenant, key)| {
            anchors.with_log_key(tenant, key)
        });
        let json = args.options.json;
        return verify_receipt(&text, &anchors, &args.demands, json, &mut screen);
    }
    if args.expects_receipt() {
        let problem = "--approvals, --enforcer, --team and --anchors are for receipts; this is one person's decision";
        return Err(ClientError::Choice(problem).into());
    }
    let record = DecisionRecord::parse(&text)?;
    let outcome = record.verify().map_err(|error| error.to_string());
    let trust = match args.devices.as_slice() {
        [] => by_profile(&record, &args.options)?,
        [id] => by_id(&record, id)?,
        _ => {
            let problem = "one device signed this decision, so --device can be given once";
            return Err(ClientError::Choice(problem).into());
        }
    };
    let outcome = outcome.and_then(|verified| match &trust {
        Ok(()) => Ok(verified),
        Err(problem) => Err(problem.clone()),
    });
    match outcome {
        Ok(verified) => {
            print(&record, &verified, args.options.json)?;
            Ok(ExitAction::DONE)
        }
        Err(problem) => {
            if args.options.json {
                print_json(&json!({ "trusted": false, "problem": problem }))?;
            }
            let word = screen.paint(Colour::Red, "not trusted");
            screen.remark(&format!("{word}: {problem}"));
            Ok(ExitAction::code(DENIED))
        }
    }
}

fn read(file: &PathBuf) -> anyhow::Result<Vec<u8>> {
    let name = || file.display().to_string();
    let mut bytes = Vec::new();
    let input: &mut dyn std::io::Read = match file.to_str() {
        Some("-") => &mut std::io::stdin(),
        _ => &mut std::fs::File::open(file).with_context(name)?,
    };
    (input.take(MAX_RECORD_BYTES + 1).read_to_end(&mut bytes)).with_context(name)?;
    if bytes.len() as u64 > MAX_RECORD_BYTES {
        return Err(ClientError::Record("it is larger than 16 MiB".to_owned()).into());
    }
    Ok(bytes)
}

fn by_id(record: &DecisionRecord, id: &str) -> anyhow::Result<Result<(), String>> {
    let id = DeviceId::parse(id).map_err(|_| {
        ClientError::Choice("a device's id has 22 characters; see: countersign devices")
    })?;
    let own = record.device.id();
    if own == id {
        return Ok(Ok(()));
    }
    Ok(Err(format!("it was signed by the device {own}")))
}

/// Whether the profile has pinned the device, or its own devices lead to it.
fn by_profile(
    record: &DecisionRecord,
    options: &ClientOptions,
) -> anyhow::Result<Result<(), String>> {
    let mut judged = Err(Error::UnknownDevice(record.device.id()));
    for trust in profile_trusts(&options.file()?)? {
        match record.is_trusted_by(&trust) {
            // One role knows of the revocation, and another may not.
            Err(error @ Error::RevokedDevice(_)) => return Ok(Err(error.to_string())),
            Ok(()) => judged = Ok(()),
            Err(_) => {}
        }
    }
    Ok(judged.map_err(|error| error.to_string()))
}

fn print(record: &DecisionRecord, verified: &VerifiedRecord, json: bool) -> anyhow::Result<()> {
    let (device, signed) = (&record.device, &verified.verdict);
    let artifact = &verified.artifact;
    if json {
        return print_json(&json!({
            "trusted": true,
            "decision": signed.verdict.as_str(),
            "scope": signed.scope.as_str(),
            "expiresAt": signed.expires_at,
            "approverId": record.approver,
            "tenantId": record.tenant,
            "deviceId": device.id().to_string(),
            "deviceName": device.name().as_str(),
            "requestId": artifact.request_id(),
            "artifactHash": artifact.hash().to_string(),
            "artifact": members_of(artifact),
        }));
    }
    let colour = output_has_colour();
    let word = match signed.verdict.as_str() {
        "approve" => paint(colour, Colour::Green, "approved"),
        _ => paint(colour, Colour::Red, "rejected"),
    };
    print_line(&format!(
        "{word} by {} on {} ({}), scope {}, valid until {}\nrequest    {}\ntype       {}\n{}",
        visible(record.approver.as_str()),
        visible(device.name().as_str()),
        device.id(),
        signed.scope.as_str(),
        signed.expires_at,
        visible(artifact.request_id().as_str()),
        artifact.artifact_type(),
        render_artifact(artifact, &TeamNames::new(), colour),
    ))
}
