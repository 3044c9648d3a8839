//! The devices, teams and log keys by which a receipt is verified: those of this profile, those in
//! options, or those of a file that `anchors` wrote for a machine without a profile.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context as _;
use clap::Args;
use countersign::client::ClientError;
use countersign::client::log::known_keys;
use countersign::client::profile::{Profile, ProfileError, ProfileFile, known_teams};
use countersign::e2e::{DeviceId, DeviceTrust, Error, ReceiptAnchors, TeamId, TrustedDevice};
use countersign::protocol::id::{ApproverId, TenantId, TextId as _};
use countersign::protocol::signature::PublicKey;
use serde::{Deserialize, Serialize};

use crate::commands::client_options::ClientOptions;
use crate::commands::exit_action::ExitAction;
use crate::commands::output::print_json;

const VERSION: u8 = 1;

pub const EXAMPLES: &str = "\
Examples:
  countersign anchors > anchors.json
  countersign verify receipt.json --anchors anchors.json       on any other machine";

#[derive(Args)]
pub struct AnchorsArgs {
    #[command(flatten)]
    options: ClientOptions,
}

/// The anchors as a file. Nothing in it is secret. Its writer decides what is trusted.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AnchorFile {
    v: u8,
    /// Of each approver, the ids of the devices.
    devices: BTreeMap<String, BTreeSet<String>>,
    teams: BTreeSet<String>,
    /// Of each tenant, the key of the log.
    log_keys: BTreeMap<String, String>,
}

/// `anchors`: prints those of the profile.
pub fn run(args: &AnchorsArgs) -> anyhow::Result<ExitAction> {
    let file = args.options.file()?;
    let (trusts, mut devices) = (profile_trusts(&file)?, BTreeMap::<_, BTreeSet<_>>::new());
    for trust in &trusts {
        let same = trusts.iter().filter(|it| it.approver() == trust.approver());
        let is_revoked = |id| {
            let mut known = same.clone().map(|other| other.device(id));
            // One role knows of the revocation, and another may not.
            known.any(|device| matches!(device, Err(Error::RevokedDevice(_))))
        };
        let own = trust.in_force().iter().map(TrustedDevice::id);
        let own = own.filter(|id| !is_revoked(*id)).map(|id| id.to_string());
        let listed = devices.entry(trust.approver().to_string());
        listed.or_default().extend(own);
    }
    let teams = known_teams(&file)?.into_iter();
    let sound = teams.filter(|(_, chains)| chains.iter().all(Result::is_ok));
    let keys = known_keys(&file)?.into_iter();
    print_json(&AnchorFile {
        v: VERSION,
        devices,
        teams: sound.map(|(id, _)| id).collect(),
        log_keys: keys
            .map(|(tenant, key)| (tenant.to_string(), key.to_text()))
            .collect(),
    })?;
    Ok(ExitAction::DONE)
}

/// Everything that the profile's roles know: a record may leave a revocation out.
pub fn profile_trusts(file: &ProfileFile) -> anyhow::Result<Vec<DeviceTrust>> {
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

/// The devices and teams that the profile knows. A team with a fork is none of them.
pub fn profile_anchors(file: &ProfileFile) -> anyhow::Result<ReceiptAnchors> {
    let trusts = profile_trusts(file)?.into_iter();
    let anchors = trusts.fold(ReceiptAnchors::default(), ReceiptAnchors::with_trust);
    let teams = known_teams(file)?.into_values();
    let sound = teams.filter_map(|chains| chains.into_iter().collect::<Result<Vec<_>, _>>().ok());
    Ok(sound.flatten().fold(anchors, ReceiptAnchors::with_chain))
}

/// Adds devices, as texts like `alice=ID`. The approver must be named: one person's two devices could
/// otherwise count as two people.
pub fn add_devices(
    mut anchors: ReceiptAnchors,
    texts: &[String],
) -> anyhow::Result<ReceiptAnchors> {
    for text in texts {
        let named = text.rsplit_once('=').and_then(|(approver, id)| {
            Some((ApproverId::parse(approver)?, DeviceId::parse(id).ok()?))
        });
        let (approver, id) = named.ok_or(ClientError::Choice(
            "for a receipt, name each device with its approver: --device alice=ID",
        ))?;
        anchors = anchors.with_device(approver, id);
    }
    Ok(anchors)
}

/// Adds teams by their ids, with what the profile knows of them: perhaps a later state, or a fork.
pub fn add_teams(
    mut anchors: ReceiptAnchors,
    ids: &[String],
    file: &ProfileFile,
) -> anyhow::Result<ReceiptAnchors> {
    let mut known = known_teams(file)?;
    for id in ids {
        let team = TeamId::parse(id).map_err(|_| {
            ClientError::Choice("a team's id has 22 characters; see: countersign team show")
        })?;
        anchors = anchors.with_team(team);
        for chain in known.remove(id).unwrap_or_default() {
            anchors = anchors.with_chain(chain?);
        }
    }
    Ok(anchors)
}

/// Adds everything in a file that `anchors` wrote.
pub fn add_file(
    anchors: ReceiptAnchors,
    path: &Path,
    profile: &ProfileFile,
) -> anyhow::Result<ReceiptAnchors> {
    let name = || path.display().to_string();
    let text = std::fs::read(path).with_context(name)?;
    let malformed = || ClientError::Record(format!("{} has no anchors", name()));
    let read = serde_json::from_slice::<AnchorFile>(&text).ok();
    let read = read.filter(|file| file.v == VERSION);
    let read = read.ok_or_else(malformed)?;
    let named = read.devices.iter().flat_map(|(approver, ids)| {
        let text = move |id| format!("{approver}={id}");
        ids.iter().map(text)
    });
    let anchors = add_devices(anchors, &named.collect::<Vec<_>>())?;
    let teams: Vec<_> = read.teams.into_iter().collect();
    let mut anchors = add_teams(anchors, &teams, profile)?;
    for (tenant, key) in &read.log_keys {
        let known = TenantId::parse(tenant).zip(PublicKey::parse(key));
        let (tenant, key) = known.ok_or_else(malformed)?;
        anchors = anchors.with_log_key(tenant, key);
    }
    Ok(anchors)
}
