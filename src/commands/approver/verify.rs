//! `verify`: offline, by the profile's own knowledge of devices.

use std::io::Read as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use countersign::client::log::known_keys;
use countersign::client::profile::{Profile, ProfileError, ProfileFile};
use countersign::client::{ClientError, DecisionRecord, MAX_RECORD_BYTES, VerifiedRecord, visible};
use countersign::e2e::{DeviceId, DeviceTrust, Error};
use serde_json::json;

use super::artifact::members_of;
use super::receipt::{ReceiptDemands, anchors_of, is_receipt, named_anchors, verify_receipt};
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
    #[command(flatten)]
    demands: ReceiptDemands,
}

pub fn run(args: &VerifyArgs) -> anyhow::Result<ExitAction> {
    let text = read(&args.file)?;
    let mut screen = TerminalScreen::new(args.options.json);
    if is_receipt(&text) {
        let anchors = match args.devices.as_slice() {
            [] => anchors_of(trusts(&args.options.file()?)?),
            devices => named_anchors(devices)?,
        };
        let keys = known_keys(&args.options.file()?)?.into_iter();
        let anchors = keys.fold(anchors, |anchors, (tenant, key)| {
            anchors.with_log_key(tenant, key)
        });
        let json = args.options.json;
        return verify_receipt(&text, &anchors, &args.demands, json, &mut screen);
    }
    if !args.demands.is_empty() {
        let problem = "--approvals and --enforcer are for receipts; this is one person's decision";
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
    for trust in trusts(&options.file()?)? {
        match record.is_trusted_by(&trust) {
            // One role knows of the revocation, and another may not.
            Err(error @ Error::RevokedDevice(_)) => return Ok(Err(error.to_string())),
            Ok(()) => judged = Ok(()),
            Err(_) => {}
        }
    }
    Ok(judged.map_err(|error| error.to_string()))
}

/// Everything that the profile's roles know: a record may leave a revocation out.
fn trusts(file: &ProfileFile) -> anyhow::Result<Vec<DeviceTrust>> {
    let profile = match file.load() {
        Ok(profile) => profile,
        Err(ProfileError::Missing(_)) => Profile::default(),
        Err(error) => return Err(error.into()),
    };
    let mut trusts = Vec::new();
    if profile.enforcer.is_some() {
        let enforcer = file.load_enforcer()?;
        let tenant = enforcer.gateway.tenant()?;
        for record in &enforcer.approvers {
            trusts.push(record.trust(tenant.clone())?);
        }
    }
    if let Some(approver) = &profile.approver {
        trusts.push(approver.trust()?);
    }
    Ok(trusts)
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
        render_artifact(artifact, colour),
    ))
}
