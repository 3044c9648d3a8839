//! Extensions that our enforcers add to an artifact before they seal it.
//!
//! - The repository. Decisions repeat `repoRef` in plain, so `repoRef` is a salted hash, and the
//!   gateway learns neither machine nor directory.
//! - The devices that the enforcer obeys. An approver's client compares them with those it knows,
//!   and so detects a withheld revocation.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::device_id::{DeviceId, MAX_DEVICES};
use super::encoding::{decode_array, encode};
use super::error::Result;
use super::random::{RandomSource, draw};
use super::trust::{DeviceTrust, TrustedDevice};
use countersign_protocol::artifact::MAX_WORD_CHARS;
use countersign_protocol::canonical::Sha256Hex;
use countersign_protocol::id::{ApproverId, TextId as _};
use countersign_protocol::json::JsonValue;
use countersign_protocol::reader::{MemberReader, ReadResult};
use countersign_protocol::signature::PublicKey;

/// The extension that holds the text behind `repoRef`.
pub const REPOSITORY: &str = "countersign.repository";
/// The extension that names the devices in force of those who are asked.
pub const DEVICES: &str = "countersign.devices";

/// The extension that names the key of the outcome.
pub const OUTCOME: &str = "countersign.outcome";

/// The extension that has the newest checkpoint of the gateway's log that the enforcer has seen. The
/// gateway cannot read it, and so cannot show the enforcer and its approvers logs that differ.
pub const LOG: &str = "countersign.log";

pub(super) type NamedDevices = BTreeMap<ApproverId, BTreeSet<DeviceId>>;

/// Adds `repoRef` and the text behind it to the members of an artifact.
pub fn hide_repository(
    members: &mut Map<String, Value>,
    text: &str,
    random: &mut impl RandomSource,
) -> Result<()> {
    let salt = encode(draw::<16>(random)?.as_slice());
    members.insert("repoRef".into(), hash_of(&salt, text).into());
    insert(members, REPOSITORY, json!({ "salt": salt, "text": text }));
    Ok(())
}

/// Adds the devices that an artifact is sealed for, by approver.
pub fn name_devices(members: &mut Map<String, Value>, asked: &[DeviceTrust]) {
    let named = asked.iter().map(|trust| {
        let devices = trust.in_force().iter().map(TrustedDevice::id);
        let devices: Value = devices.map(|id| id.to_string()).collect();
        (trust.approver().to_string(), devices)
    });
    insert(members, DEVICES, Value::Object(named.collect()));
}

/// Adds the signed note of a checkpoint to the members of an artifact.
pub fn name_checkpoint(members: &mut Map<String, Value>, note: &str) {
    insert(members, LOG, json!({ "v": 1, "note": note }));
}

pub(super) fn insert(members: &mut Map<String, Value>, name: &str, value: Value) {
    let mut extensions = match members.remove("extensions") {
        Some(Value::Object(extensions)) => extensions,
        _ => Map::new(),
    };
    extensions.insert(name.into(), value);
    members.insert("extensions".into(), extensions.into());
}

/// The text behind `repo_ref`, if the extensions of an artifact have one. The inner error is what
/// `repo_ref` should have been.
pub(super) fn read_repository(
    extensions: &mut Option<MemberReader<'_, '_>>,
    repo_ref: &str,
) -> ReadResult<Result<Option<String>, &'static str>> {
    let Some(mut hidden) = extension(extensions, REPOSITORY)? else {
        return Ok(Ok(None));
    };
    let salt = hidden.bounded_str("salt", 22, 22)?;
    let text = hidden.bounded_str("text", 0, MAX_WORD_CHARS)?;
    hidden.finish()?;
    let is_same = hash_of(salt, text) == repo_ref;
    Ok(is_same
        .then(|| Some(text.to_owned()))
        .ok_or("the hash of the repository"))
}

pub(super) fn read_devices(
    extensions: &mut Option<MemberReader<'_, '_>>,
) -> ReadResult<NamedDevices> {
    let (Some(named), Some(extensions)) = (extension(extensions, DEVICES)?, extensions) else {
        return Ok(NamedDevices::new());
    };
    let read = named.object().iter().map(|member| {
        let list = member.node.as_array()?;
        let ids = list.iter().map(|node| DeviceId::parse(node.as_str()?).ok());
        let ids: BTreeSet<_> = ids.collect::<Option<_>>()?;
        let is_sound = ids.len() == list.len() && ids.len() <= MAX_DEVICES;
        Some((ApproverId::parse(&member.name).filter(|_| is_sound)?, ids))
    });
    let expected = "at most 32 ids of devices, none twice, for each id of an approver";
    let read: Option<_> = read.collect();
    read.ok_or_else(|| extensions.refusal(DEVICES, expected))
}

pub(super) fn extension<'n, 'a>(
    extensions: &mut Option<MemberReader<'n, 'a>>,
    name: &'static str,
) -> ReadResult<Option<MemberReader<'n, 'a>>> {
    let extensions = extensions.as_mut();
    extensions.map_or(Ok(None), |extensions| extensions.optional_inner(name))
}

/// The key named in an artifact. `None` for a version that this program does not know.
pub(super) fn read_outcome_key(
    extensions: &mut Option<MemberReader<'_, '_>>,
) -> ReadResult<Option<PublicKey>> {
    let Some(mut named) = extension(extensions, OUTCOME)? else {
        return Ok(None);
    };
    if named.required("v", "1")?.value != JsonValue::Number(1.0) {
        return Ok(None);
    }
    let bytes = decode_array::<32>("the key of the outcome", named.str("key")?);
    named.finish()?;
    let key = bytes.ok().and_then(|bytes| PublicKey::from_bytes(&bytes));
    let refusal = || named.refusal("key", "an Ed25519 key in base64url");
    key.map(Some).ok_or_else(refusal)
}

fn hash_of(salt: &str, text: &str) -> String {
    let hashed = format!("countersign repository v1\n{salt}\n{text}");
    format!("sha256:{}", Sha256Hex::of(hashed.as_bytes()))
}
