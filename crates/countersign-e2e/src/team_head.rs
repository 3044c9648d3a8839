//! The name of a state of a team: the team's id, the state's number and its digest.

use std::fmt;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::encoding::{decode_array, encode};
use super::error::Result;
use countersign_protocol::canonical::Sha256Hex;
use countersign_protocol::json::{JsonNode, JsonValue};
use countersign_protocol::reader::{MemberReader, ReadResult};

const TEAM_HEAD: &str = "the head of a team";
const MAX_STATES: u32 = 2_048;

/// The id of a team, which follows from its first state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TeamId([u8; 16]);

impl TeamId {
    pub fn parse(text: &str) -> Result<Self> {
        decode_array("the id of a team", text).map(Self)
    }

    pub(super) fn of_first(text: &str) -> Self {
        let hash = Sha256::new()
            .chain_update(b"countersign team v1")
            .chain_update(text)
            .finalize();
        let mut id = [0; 16];
        id.copy_from_slice(&hash[..16]);
        Self(id)
    }
}

impl fmt::Display for TeamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&encode(&self.0))
    }
}

/// Names one state of a team.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TeamHead {
    pub team: TeamId,
    pub seq: u32,
    pub digest: Sha256Hex,
}

impl TeamHead {
    pub fn to_json(&self) -> Value {
        json!({
            "teamId": self.team.to_string(),
            "seq": self.seq,
            "digest": self.digest.to_string(),
        })
    }

    pub(super) fn read(node: &JsonNode<'_>) -> Option<Self> {
        let mut reader = MemberReader::named(TEAM_HEAD, node).ok()?;
        let head = Self {
            team: TeamId::parse(reader.str("teamId").ok()?).ok()?,
            seq: read_seq(&mut reader).ok()?,
            digest: reader.hash("digest").ok()?,
        };
        reader.finish().is_ok().then_some(head)
    }
}

pub(super) fn read_seq(reader: &mut MemberReader<'_, '_>) -> ReadResult<u32> {
    let value = &reader.required("seq", "a number")?.value;
    let found = (0..MAX_STATES).find(|seq| *value == JsonValue::Number(f64::from(*seq)));
    found.ok_or_else(|| reader.refusal("seq", "a whole number from 0 to 2047"))
}
