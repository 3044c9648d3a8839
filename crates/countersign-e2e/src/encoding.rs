//! Base64url and canonical JSON with one spelling per value, because values are hashed, signed and
//! compared.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use zeroize::Zeroizing;

use super::device_id::DeviceId;
use super::error::{Error, Result};
use super::random::{RandomSource, draw};
use countersign_protocol::canonical::{Sha256Hex, canonical, canonical_without};
use countersign_protocol::json::{self, JsonNode, JsonObject, JsonValue};
use countersign_protocol::reader::{MemberReader, ReadResult};

pub const DEVICE_ID: &str = "a device id";

/// The extension that makes the hash of an artifact or a prompt unpredictable.
const SALT: &str = "countersign.salt";

pub(super) fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Without padding, and with unused bits zero.
pub(super) fn decode(what: &'static str, text: &str) -> Result<Vec<u8>> {
    let refused = |_| Error::Base64 { what };
    URL_SAFE_NO_PAD.decode(text).map_err(refused)
}

pub(super) fn decode_array<const N: usize>(what: &'static str, text: &str) -> Result<[u8; N]> {
    let bytes = decode(what, text)?;
    let wrong = |_| Error::Length { what, expected: N };
    bytes.as_slice().try_into().map_err(wrong)
}

impl DeviceId {
    pub fn parse(text: &str) -> Result<Self> {
        decode_array(DEVICE_ID, text).map(Self)
    }
}

/// The canonical text of a value that this client built.
pub(super) fn canonical_text(what: &'static str, value: &serde_json::Value) -> Result<String> {
    let text = value.to_string();
    Ok(canonical(&parse(what, text.as_bytes())?))
}

pub(super) fn parse<'a>(what: &'static str, bytes: &'a [u8]) -> Result<JsonNode<'a>> {
    json::parse(bytes).map_err(|error| Error::Json { what, error })
}

/// Parses a text that must be canonical already.
pub(super) fn parse_canonical<'a>(what: &'static str, bytes: &'a [u8]) -> Result<JsonNode<'a>> {
    let node = parse(what, bytes)?;
    if Zeroizing::new(canonical(&node)).as_bytes() == bytes {
        Ok(node)
    } else {
        Err(Error::NotCanonical { what })
    }
}

/// Reads an object that has a version. `v` is read before anything else, so that a later version
/// is refused as such and not for its new members.
pub(super) fn versioned<'n, 'a>(
    what: &'static str,
    node: &'n JsonNode<'a>,
) -> Result<MemberReader<'n, 'a>> {
    let mut reader = MemberReader::named(what, node)?;
    read_version(&mut reader)?;
    Ok(reader)
}

pub(super) fn read_version(reader: &mut MemberReader<'_, '_>) -> Result<()> {
    if reader.required("v", "1")?.value == JsonValue::Number(1.0) {
        Ok(())
    } else {
        let what = reader.document();
        Err(Error::Version { what })
    }
}

/// The hash of an object without the member that is to hold it.
pub(super) fn hash_without(
    what: &'static str,
    node: &JsonNode<'_>,
    name: &str,
) -> Result<Sha256Hex> {
    let object = MemberReader::named(what, node)?.object();
    let hashed = Zeroizing::new(canonical_without(object, name));
    Ok(Sha256Hex::of(hashed.as_bytes()))
}

/// The text of an object in which some members have other values, or are gone. The spelling of the
/// others stays.
pub(super) fn with_members(object: &JsonObject<'_>, changed: &[(&str, Option<String>)]) -> String {
    let is_changed = |name: &str| changed.iter().any(|(other, _)| *other == name);
    let kept = object.iter().filter(|member| !is_changed(&member.name));
    let kept = kept.map(|member| format!("{}:{}", member.raw_name, member.node.raw));
    let changed = changed.iter().filter_map(|(name, value)| {
        let value = value.as_ref()?;
        Some(format!("\"{name}\":{value}"))
    });
    let members: Vec<_> = kept.chain(changed).collect();
    format!("{{{}}}", members.join(","))
}

/// The object with fresh randomness among its `extensions`. Its hash travels in plain: without the
/// randomness, a reader of the hash could try short commands until one has it.
fn salted(
    what: &'static str,
    node: &JsonNode<'_>,
    random: &mut impl RandomSource,
) -> Result<Zeroizing<String>> {
    let mut reader = MemberReader::named(what, node)?;
    let extensions = reader.optional_nested("extensions")?;
    let salt = format!("\"{}\"", encode(draw::<16>(random)?.as_slice()));
    let none = JsonObject::default();
    let inner = extensions.and_then(JsonNode::as_object).unwrap_or(&none);
    let inner = with_members(inner, &[(SALT, Some(salt))]);
    let outer = with_members(reader.object(), &[("extensions", Some(inner))]);
    Ok(Zeroizing::new(outer))
}

/// The canonical text of an object, in any spelling, salted, with the hash of its other members
/// under `name`.
pub(super) fn complete(
    what: &'static str,
    text: &str,
    name: &str,
    random: &mut impl RandomSource,
) -> Result<Zeroizing<String>> {
    let salted = salted(what, &parse(what, text.as_bytes())?, random)?;
    with_hash(what, &salted, name)
}

/// The canonical text of an object with the hash of its other members under `name`.
pub(super) fn with_hash(what: &'static str, text: &str, name: &str) -> Result<Zeroizing<String>> {
    let node = parse(what, text.as_bytes())?;
    let object = MemberReader::named(what, &node)?.object();
    let hash = hash_without(what, &node, name)?;
    let rest = Zeroizing::new(canonical_without(object, name));
    let open = rest.strip_suffix('}').unwrap_or(&rest);
    let whole = Zeroizing::new(format!("{open},\"{name}\":\"{hash}\"}}"));
    let node = parse(what, whole.as_bytes())?;
    Ok(Zeroizing::new(canonical(&node)))
}

pub(super) fn agree(same: bool, member: &'static str) -> Result<()> {
    if same {
        Ok(())
    } else {
        Err(Error::Mismatch { member })
    }
}

pub(super) fn read_number(
    reader: &mut MemberReader<'_, '_>,
    name: &'static str,
    max: u32,
) -> ReadResult<u32> {
    let value = &reader.required(name, "a number")?.value;
    let mut numbers = 1..=max;
    let found = numbers.find(|number| *value == JsonValue::Number(f64::from(*number)));
    found.ok_or_else(|| reader.refusal(name, format!("a whole number from 1 to {max}")))
}
