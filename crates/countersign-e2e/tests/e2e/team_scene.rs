//! A team of the tests: two owners and two members.

use countersign_e2e::{
    DeviceBundle, DeviceKeys, Error, SignedTeamState, StandIn, TeamChain, TeamContent, TeamMinimum,
    TeamSeat, TeamState,
};
use serde_json::{Value, json};

use super::people::{device, known, now, tenant, time};
use super::several::person;
use super::texts::parsed;

pub fn seat(id: &str, owner: bool, devices: &[&DeviceBundle]) -> TeamSeat {
    TeamSeat {
        approver: person(id),
        owner,
        devices: devices.iter().map(|it| (*it).clone()).collect(),
        stand_in: None,
    }
}

/// Alice and Bob are owners, Carol and Dave are members. Erin is not in it.
pub struct TeamScene {
    pub content: TeamContent,
    pub chain: TeamChain,
    pub states: Vec<String>,
}

pub const NAMES: [&str; 4] = ["alice", "bob", "carol", "dave"];

pub fn key(name: &'static str) -> DeviceKeys {
    device(name).0
}

pub fn bundle(name: &'static str) -> DeviceBundle {
    device(name).1
}

pub fn stand_in(name: &'static str) -> StandIn {
    StandIn {
        approver: person(name),
        devices: vec![bundle(name)],
        from: time("2026-02-21T12:00:00Z"),
        until: time("2026-02-28T12:00:00Z"),
    }
}

impl TeamScene {
    pub fn new(changes: u32) -> Self {
        let seats = NAMES.map(|name| seat(name, name < "c", &[&bundle(name)]));
        let content = TeamContent {
            name: "payments".to_owned(),
            changes,
            minimum: TeamMinimum::default(),
            stand_ins: true,
            seats: seats.to_vec(),
        };
        let first = TeamState::first(&tenant(), &content, now(), &mut known("team")).unwrap();
        let mut signed = SignedTeamState::sign(first, &key("alice")).unwrap();
        if changes > 1 {
            signed.countersign(&key("bob")).unwrap();
        }
        let states = vec![signed.to_text()];
        let chain = TeamChain::begin(reread(&signed).unwrap()).unwrap();
        Self {
            content,
            chain,
            states,
        }
    }

    /// Another team: an owner and a member.
    pub fn pair(owner: &'static str, member: &'static str) -> Self {
        let seats = [(owner, true), (member, false)];
        let seats = seats.map(|(name, is_owner)| seat(name, is_owner, &[&bundle(name)]));
        let content = TeamContent {
            seats: seats.to_vec(),
            ..Self::new(1).content
        };
        let first = TeamState::first(&tenant(), &content, now(), &mut known(owner)).unwrap();
        let signed = SignedTeamState::sign(first, &key(owner)).unwrap();
        Self {
            content,
            states: vec![signed.to_text()],
            chain: TeamChain::begin(reread(&signed).unwrap()).unwrap(),
        }
    }

    /// The next state after a change, signed by these devices.
    pub fn next(
        &self,
        by: &[&'static str],
        change: impl FnOnce(&mut TeamContent),
    ) -> SignedTeamState {
        let mut content = self.chain.content().clone();
        change(&mut content);
        self.signed(&content, by)
    }

    pub fn signed(&self, content: &TeamContent, by: &[&'static str]) -> SignedTeamState {
        let next = self.chain.state().next(content, now()).unwrap();
        let mut signed = SignedTeamState::sign(next, &key(by[0])).unwrap();
        for name in &by[1..] {
            signed.countersign(&key(name)).unwrap();
        }
        signed
    }

    pub fn follow(&mut self, signed: &SignedTeamState) -> Result<bool, Error> {
        let result = self.chain.follow(reread(signed)?);
        self.states.push(signed.to_text());
        result
    }

    pub fn accept(&mut self, by: &[&'static str], change: impl FnOnce(&mut TeamContent)) {
        let signed = self.next(by, change);
        assert_eq!(self.follow(&signed), Ok(true));
    }

    /// As a vector: the last state is refused, unless there is no refusal.
    pub fn vector(&self, name: &str, refusal: Option<&Error>) -> Value {
        let states = self.states.iter().map(|text| parsed(text));
        json!({
            "name": name,
            "states": states.collect::<Value>(),
            "head": self.chain.head().to_json(),
            "refusal": refusal.map(|error| if *error == Error::TeamFork { "fork" } else { "refused" }),
        })
    }
}

pub fn reread(signed: &SignedTeamState) -> Result<SignedTeamState, Error> {
    SignedTeamState::parse_text(&signed.to_text())
}

pub fn own<'c>(content: &'c mut TeamContent, id: &str) -> &'c mut TeamSeat {
    content.seat_mut(&person(id)).unwrap()
}
