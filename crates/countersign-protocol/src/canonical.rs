//! Canonical JSON (RFC 8785). The canonical text is only hashed or verified; the sender's own text
//! is stored and forwarded.

use std::fmt;

use sha2::{Digest, Sha256};

use super::hex;
use super::json::{JsonMember, JsonNode, JsonObject, JsonValue};

pub fn canonical(node: &JsonNode<'_>) -> String {
    // Canonical text is seldom longer than its source.
    let mut out = String::with_capacity(node.raw.len());
    write_node(&mut out, node);
    out
}

/// The canonical text of an object without one member, as hashes and signatures cover it.
pub fn canonical_without(object: &JsonObject<'_>, member: &str) -> String {
    let mut out = String::new();
    write_members(&mut out, object.iter().filter(|other| other.name != member));
    out
}

fn write_node(out: &mut String, node: &JsonNode<'_>) {
    match &node.value {
        JsonValue::Null | JsonValue::Bool(_) => out.push_str(node.raw),
        // As ECMAScript prints it; -0 becomes 0.
        JsonValue::Number(number) => out.push_str(ryu_js::Buffer::new().format(*number)),
        JsonValue::String(text) => write_string(out, text),
        JsonValue::Array(items) => write_items(out, items),
        JsonValue::Object(object) => write_members(out, object.iter()),
    }
}

fn write_items(out: &mut String, items: &[JsonNode<'_>]) {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_node(out, item);
    }
    out.push(']');
}

fn write_members<'m, 'a: 'm>(out: &mut String, members: impl Iterator<Item = &'m JsonMember<'a>>) {
    let mut members: Vec<_> = members.collect();
    // RFC 8785 sorts by UTF-16 code units: U+1F600 (two surrogates) comes before U+FB33.
    members.sort_unstable_by(|a, b| a.name.encode_utf16().cmp(b.name.encode_utf16()));
    out.push('{');
    for (index, member) in members.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_string(out, &member.name);
        out.push(':');
        write_node(out, &member.node);
    }
    out.push('}');
}

/// With the fewest escapes that JSON permits, in their short forms.
fn write_string(out: &mut String, text: &str) {
    out.push('"');
    let mut plain_from = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte != b'"' && byte != b'\\' && byte >= b' ' {
            continue;
        }
        out.push_str(&text[plain_from..at]);
        plain_from = at + 1;
        match byte {
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x08 => out.push_str("\\b"),
            0x0c => out.push_str("\\f"),
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            control => {
                out.push_str("\\u00");
                out.push_str(&hex::encode(&[control]));
            }
        }
    }
    out.push_str(&text[plain_from..]);
    out.push('"');
}

/// A SHA-256, written as 64 lowercase hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sha256Hex([u8; 32]);

impl Sha256Hex {
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    pub fn parse(text: &str) -> Option<Self> {
        hex::decode(text).map(Self)
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for Sha256Hex {
    fn from(hash: [u8; 32]) -> Self {
        Self(hash)
    }
}

impl fmt::Display for Sha256Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

impl fmt::Debug for Sha256Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sha256Hex({self})")
    }
}
