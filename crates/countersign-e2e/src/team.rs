//! The state of a team: a complete, signed description of its members and their devices. States
//! form a chain, in which each names the digest of the one before (`team_chain`). Members vouch for
//! each other by it; the gateway only carries it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::bundle::{DeviceBundle, DeviceName};
use super::comment_duty::CommentDuty;
use super::device_id::DeviceId;
use super::encoding::{canonical_text, decode_array, encode, parse, read_number, versioned};
use super::error::{Error, Result};
use super::random::{RandomSource, draw};
use super::team_head::{TeamHead, TeamId, read_seq};
use super::team_seat::{TeamSeat, read_flag};
use countersign_protocol::canonical::{Sha256Hex, canonical};
use countersign_protocol::id::{ApproverId, TenantId};
use countersign_protocol::json::JsonNode;
use countersign_protocol::reader::{MemberReader, ReadResult};
use countersign_protocol::timestamp::Timestamp;

pub const TEAM_STATE: &str = "the team's state";
pub const MAX_TEAM_SEATS: usize = 32;
const MAX_TEAM_DEVICES: usize = 256;
const MAX_STATE_BYTES: usize = 64 * 1024;
/// Of numbers in a state: as many as there can be seats.
const MAX_COUNT: u32 = 32;
const STATEMENT: &str = "team.state";

/// The least that a rule which names the team demands. A rule may demand more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TeamMinimum {
    pub approvals: u32,
    /// As many end it, or fewer.
    pub rejections: u32,
    pub comment: CommentDuty,
    /// Whether the people who work with the agent may not approve.
    pub separate: bool,
}

impl Default for TeamMinimum {
    fn default() -> Self {
        Self {
            approvals: 1,
            rejections: MAX_COUNT,
            comment: CommentDuty::None,
            separate: false,
        }
    }
}

/// Everything in a state that its signers decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamContent {
    pub name: String,
    /// Owners who must sign a change together.
    pub changes: u32,
    pub minimum: TeamMinimum,
    /// Whether members may name stand-ins.
    pub stand_ins: bool,
    pub seats: Vec<TeamSeat>,
}

impl TeamContent {
    pub fn seat(&self, approver: &ApproverId) -> Option<&TeamSeat> {
        self.seats.iter().find(|seat| seat.approver == *approver)
    }

    pub fn seat_mut(&mut self, approver: &ApproverId) -> Option<&mut TeamSeat> {
        let mut seats = self.seats.iter_mut();
        seats.find(|seat| seat.approver == *approver)
    }

    /// The seat whose member has this device. A stand-in's devices are on no seat of their own.
    pub fn seat_of(&self, device: DeviceId) -> Option<&TeamSeat> {
        self.seats.iter().find(|seat| seat.has_device(device))
    }

    fn check(&self) -> Result<()> {
        let owners = self.seats.iter().filter(|seat| seat.owner).count();
        let stand_ins = || self.seats.iter().filter_map(|seat| seat.stand_in.as_ref());
        let people = self.seats.iter().map(|seat| &seat.approver);
        let people: Vec<_> = people.chain(stand_ins().map(|it| &it.approver)).collect();
        let devices = self.seats.iter().flat_map(|seat| &seat.devices);
        let devices = devices.chain(stand_ins().flat_map(|it| &it.devices));
        let devices: Vec<_> = devices.map(DeviceBundle::id).collect();
        let problem = if owners < self.changes as usize {
            "it has too few owners"
        } else if people.iter().collect::<BTreeSet<_>>().len() < people.len() {
            "it has somebody twice, as member or stand-in"
        } else if devices.iter().collect::<BTreeSet<_>>().len() < devices.len() {
            "it has a device twice"
        } else if devices.len() > MAX_TEAM_DEVICES {
            "it has more than 256 devices"
        } else if !self.stand_ins && stand_ins().next().is_some() {
            "it has a stand-in, and its owners do not allow any"
        } else {
            return Ok(());
        };
        Err(Error::Team(problem))
    }
}

/// A well-formed state within the limits. Nobody has verified a signature yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamState {
    tenant: TenantId,
    head: TeamHead,
    prev: Option<Sha256Hex>,
    at: Timestamp,
    content: TeamContent,
    text: String,
}

impl TeamState {
    /// The first state of a new team.
    pub fn first(
        tenant: &TenantId,
        content: &TeamContent,
        at: Timestamp,
        random: &mut impl RandomSource,
    ) -> Result<Self> {
        let random = encode(draw::<16>(random)?.as_slice());
        Self::made(tenant, content, at, &json!({ "seq": 0, "random": random }))
    }

    /// The state after this one. Who must sign it depends on the differences.
    pub fn next(&self, content: &TeamContent, at: Timestamp) -> Result<Self> {
        let place = json!({
            "seq": self.head.seq + 1,
            "teamId": self.head.team.to_string(),
            "prev": self.head.digest.to_string(),
        });
        Self::made(&self.tenant, content, at, &place)
    }

    fn made(
        tenant: &TenantId,
        content: &TeamContent,
        at: Timestamp,
        place: &Value,
    ) -> Result<Self> {
        let seats = content.seats.iter().map(TeamSeat::to_json);
        let minimum = &content.minimum;
        let mut members = json!({
            "v": 1,
            "statement": STATEMENT,
            "tenantId": tenant.as_str(),
            "at": at.to_string(),
            "name": content.name,
            "changes": content.changes,
            "minimum": {
                "approvals": minimum.approvals,
                "rejections": minimum.rejections,
                "comment": minimum.comment.as_str(),
                "separate": minimum.separate,
            },
            "standIns": content.stand_ins,
            "seats": seats.collect::<Result<Vec<_>>>()?,
        });
        for (name, value) in place.as_object().into_iter().flatten() {
            members[name] = value.clone();
        }
        let text = canonical_text(TEAM_STATE, &members)?;
        Self::parse(&parse(TEAM_STATE, text.as_bytes())?)
    }

    pub fn parse(node: &JsonNode<'_>) -> Result<Self> {
        let mut reader = versioned(TEAM_STATE, node)?;
        reader.one_of("statement", &[STATEMENT])?;
        let text = canonical(node);
        let seq = read_seq(&mut reader)?;
        let (team, prev) = if seq == 0 {
            decode_array::<16>("the team's random value", reader.str("random")?)?;
            (TeamId::of_first(&text), None)
        } else {
            let team = TeamId::parse(reader.str("teamId")?)?;
            (team, Some(reader.hash("prev")?))
        };
        let seats = reader.items("seats", MAX_TEAM_SEATS, "seats")?.iter();
        let seats = seats.map(|node| TeamSeat::read(reader.item("seats", node)?));
        let seats = seats.collect::<Result<_>>()?;
        let expected = "1 to 64 visible characters";
        let content = TeamContent {
            name: reader
                .parsed("name", expected, |it| DeviceName::parse(it).ok())?
                .as_str()
                .to_owned(),
            changes: read_number(&mut reader, "changes", MAX_COUNT)?,
            minimum: TeamMinimum::read(reader.inner("minimum")?)?,
            stand_ins: read_flag(&mut reader, "standIns")?,
            seats,
        };
        let head = TeamHead {
            team,
            seq,
            digest: Sha256Hex::of(text.as_bytes()),
        };
        let state = Self {
            tenant: reader.id("tenantId")?,
            head,
            prev,
            at: reader.timestamp("at")?,
            content,
            text,
        };
        reader.finish()?;
        if state.text.len() > MAX_STATE_BYTES {
            return Err(Error::Team("it has more than 64 KiB"));
        }
        state.content.check()?;
        Ok(state)
    }

    getters! {
        pub ref tenant: TenantId;
        /// The name of this state.
        pub copy head: TeamHead;
        pub copy prev: Option<Sha256Hex>;
        /// For people to read; no check depends on a signer's clock.
        pub copy at: Timestamp;
        pub ref content: TeamContent;
        /// The canonical text.
        pub ref text: str;
    }
}

impl TeamMinimum {
    fn read(mut reader: MemberReader<'_, '_>) -> ReadResult<Self> {
        let read = Self {
            approvals: read_number(&mut reader, "approvals", MAX_COUNT)?,
            rejections: read_number(&mut reader, "rejections", MAX_COUNT)?,
            comment: reader.word("comment")?,
            separate: read_flag(&mut reader, "separate")?,
        };
        reader.finish()?;
        Ok(read)
    }
}
