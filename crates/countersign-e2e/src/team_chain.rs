//! The chain of a team's states, as a client has verified and pinned it. It only grows. A state that
//! contradicts what is pinned is a fork: then nothing of the team counts any more.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::device_id::DeviceId;
use super::encoding::parse;
use super::error::{Error, Result};
use super::keys::DeviceKeys;
use super::statement::read_signature;
use super::team::{MAX_TEAM_SEATS, TeamContent, TeamState};
use super::team_head::TeamHead;
use super::team_seat::TeamSeat;
use countersign_protocol::canonical::Sha256Hex;
use countersign_protocol::id::ApproverId;
use countersign_protocol::json::JsonNode;
use countersign_protocol::reader::MemberReader;
use countersign_protocol::signature::Signature;

pub const SIGNED_TEAM_STATE: &str = "the signed state of a team";
/// Only owners sign later states, so that a full chain does not protect a stolen device.
const MAX_MEMBER_STATES: u32 = 1_024;

/// A state with signatures that nobody has verified yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedTeamState {
    state: TeamState,
    signatures: Vec<(DeviceId, Signature)>,
}

impl SignedTeamState {
    pub fn sign(state: TeamState, keys: &DeviceKeys) -> Result<Self> {
        let signature = keys.sign(state.text().as_bytes())?;
        let signatures = vec![(keys.id(), signature)];
        Ok(Self { state, signatures })
    }

    /// Adds the signature of a further owner.
    pub fn countersign(&mut self, keys: &DeviceKeys) -> Result<()> {
        let signature = keys.sign(self.state.text().as_bytes())?;
        self.signatures.retain(|(by, _)| *by != keys.id());
        self.signatures.push((keys.id(), signature));
        Ok(())
    }

    pub fn parse_text(text: &str) -> Result<Self> {
        Self::parse(&parse(SIGNED_TEAM_STATE, text.as_bytes())?)
    }

    pub fn parse(node: &JsonNode<'_>) -> Result<Self> {
        let mut reader = MemberReader::named(SIGNED_TEAM_STATE, node)?;
        let statement = reader.nested("statement")?;
        let list = reader.items("signatures", MAX_TEAM_SEATS, "signatures")?;
        let signature = |node| {
            let mut signed = reader.item("signatures", node)?;
            let by = DeviceId::parse(signed.str("by")?)?;
            let signature = read_signature(signed.str("signature")?)?;
            signed.finish()?;
            Ok((by, signature))
        };
        let signatures: Vec<_> = list.iter().map(signature).collect::<Result<_>>()?;
        reader.finish()?;
        let signers: BTreeSet<_> = signatures.iter().map(|(by, _)| by).collect();
        if signers.len() < signatures.len() {
            let expected = "signatures by different devices";
            return Err(reader.refusal("signatures", expected).into());
        }
        let state = TeamState::parse(statement)?;
        Ok(Self { state, signatures })
    }

    pub fn to_text(&self) -> String {
        let signatures = self.signatures.iter();
        let signatures: Value = signatures
            .map(|(by, it)| json!({ "by": by.to_string(), "signature": it.to_text() }))
            .collect();
        let statement = self.state.text();
        format!("{{\"signatures\":{signatures},\"statement\":{statement}}}")
    }

    pub fn state(&self) -> &TeamState {
        &self.state
    }

    /// The devices that have signed it. Nobody has verified that, unless a chain has it.
    pub fn signers_named(&self) -> impl Iterator<Item = DeviceId> {
        self.signatures.iter().map(|(by, _)| *by)
    }

    /// The seats of `content` whose devices have signed. Refused if any signature is another one.
    fn signers<'c>(&self, content: &'c TeamContent) -> Result<Vec<&'c TeamSeat>> {
        let text = self.state.text().as_bytes();
        let signer = |(by, signature): &(DeviceId, Signature)| {
            let seat = content.seat_of(*by).ok_or(Error::UnknownDevice(*by))?;
            let device = seat.device(*by).ok_or(Error::UnknownDevice(*by))?;
            if device.signing_key().verifies(text, signature) {
                Ok(seat)
            } else {
                Err(Error::StatementSignature)
            }
        };
        self.signatures.iter().map(signer).collect()
    }
}

/// Whether so many owners are among the signers as `content` demands of a change.
fn are_enough_owners(content: &TeamContent, signers: &[&TeamSeat]) -> bool {
    let owners = signers.iter().filter(|seat| seat.owner);
    let owners: BTreeSet<_> = owners.map(|seat| &seat.approver).collect();
    owners.len() >= content.changes as usize
}

/// Whether `next` differs from `content` only as the member on this seat may decide alone: in its
/// devices and stand-in, or in that the seat is gone, if it is no owner's.
fn is_own_change(content: &TeamContent, next: &TeamContent, member: &ApproverId) -> bool {
    let mut expected = content.clone();
    match (expected.seat_mut(member), next.seat(member)) {
        (Some(own), Some(changed)) if own.owner == changed.owner => own.clone_from(changed),
        (Some(own), None) if !own.owner => {
            expected.seats.retain(|seat| seat.approver != *member);
        }
        _ => return false,
    }
    expected == *next
}

/// The states of a team as far as they are known here: the newest one, and the digests of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamChain {
    newest: SignedTeamState,
    digests: Vec<Sha256Hex>,
}

impl TeamChain {
    /// Begins with the first state. It must be signed by as many of its owners as it demands.
    pub fn begin(first: SignedTeamState) -> Result<Self> {
        let content = first.state.content();
        if first.state.head().seq != 0 {
            return Err(Error::Team("it is not the first one"));
        }
        if !are_enough_owners(content, &first.signers(content)?) {
            return Err(Error::Team("too few owners have signed it"));
        }
        let digests = vec![first.state.head().digest];
        let newest = first;
        Ok(Self { newest, digests })
    }

    /// As this program stored it itself.
    pub fn from_own_records(newest: SignedTeamState, digests: Vec<Sha256Hex>) -> Option<Self> {
        let head = newest.state.head();
        let is_sound = digests.len() == head.seq as usize + 1;
        let is_sound = is_sound && digests.last() == Some(&head.digest);
        is_sound.then_some(Self { newest, digests })
    }

    pub fn state(&self) -> &TeamState {
        &self.newest.state
    }

    pub fn content(&self) -> &TeamContent {
        self.state().content()
    }

    pub fn head(&self) -> TeamHead {
        self.state().head()
    }

    /// The newest state, as its signers published it.
    pub fn newest(&self) -> &SignedTeamState {
        &self.newest
    }

    /// Of all states, from the first on.
    pub fn digests(&self) -> &[Sha256Hex] {
        &self.digests
    }

    /// Whether a head that somebody in the team has named is known here. An error is a fork, or
    /// about another team.
    pub fn knows(&self, head: &TeamHead) -> Result<bool> {
        if head.team != self.head().team {
            return Err(Error::Team("it is another team's"));
        }
        match self.digests.get(head.seq as usize) {
            Some(digest) if *digest != head.digest => Err(Error::TeamFork),
            known => Ok(known.is_some()),
        }
    }

    /// Follows one state. Says whether it was new. It is a fork only if a device in force has signed
    /// it: anybody could make another one.
    pub fn follow(&mut self, signed: SignedTeamState) -> Result<bool> {
        let (own, next) = (self.state(), &signed.state);
        let (newest, head) = (own.head(), next.head());
        if next.tenant() != own.tenant() || head.team != newest.team {
            return Err(Error::Team("it is another team's"));
        }
        if matches!(self.knows(&head), Ok(true)) {
            return Ok(false);
        }
        if head.seq > newest.seq + 1 {
            return Err(Error::Team("a state before it is missing"));
        }
        let content = own.content();
        let signers = signed.signers(content)?;
        if head.seq <= newest.seq || next.prev() != Some(newest.digest) {
            return Err(Error::TeamFork);
        }
        let is_own = |seat: &&TeamSeat| is_own_change(content, next.content(), &seat.approver);
        let by_member = head.seq < MAX_MEMBER_STATES && signers.iter().any(is_own);
        if !by_member && !are_enough_owners(content, &signers) {
            return Err(Error::Team("its signers may not make this change"));
        }
        self.digests.push(head.digest);
        self.newest = signed;
        Ok(true)
    }
}
