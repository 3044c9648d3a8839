//! The teams that a role of a profile knows, in a file beside it: the chain of states of each, as far
//! as it was verified. Chains only grow, whichever program writes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::file::{APPROVER_TEAMS, ENFORCER_TEAMS, ProfileFile};
use crate::error::{ClientError, Result};
use crate::private_file::PrivateFile;
use countersign_e2e::{Error, SignedTeamState, TeamChain, TeamId, TeamSeat};
use countersign_protocol::canonical::Sha256Hex;
use countersign_protocol::timestamp::Timestamp;

const VERSION: u8 = 1;

/// The role whose teams these are. Each has a file of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TeamRole {
    Enforcer,
    Approver,
}

/// A team as far as this program knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TeamRecord {
    pub team_id: String,
    /// The newest state, signed.
    newest: String,
    /// Of all states, from the first on.
    digests: Vec<String>,
    /// When the states were last read.
    pub checked_at: String,
    /// Of an enforcer: ends the pairing with the team at the gateway.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing_token: Option<String>,
    /// Newer states that decisions named and the gateway withholds. Until they are known, nothing of the
    /// team counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<WithheldHead>,
    /// Signed states and heads that contradict each other. Then nothing of the team counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fork: Vec<String>,
    /// Of an owner: invitations that may still be answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invitations: Vec<TeamInvitationRecord>,
}

/// The claim of a member that the team has a state which the gateway does not deliver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WithheldHead {
    pub seq: u32,
    pub approver_id: String,
}

impl WithheldHead {
    /// Whether this chain has reached that state, or another one of its number, or the member has no
    /// seat any more.
    pub(crate) fn is_over(&self, chain: &TeamChain) -> bool {
        let mut seats = chain.content().seats.iter();
        let is_seated = |seat: &TeamSeat| {
            let stand_in = seat.stand_in.as_ref().map(|it| &it.approver);
            let mut people = stand_in.into_iter().chain([&seat.approver]);
            people.any(|person| person.as_str() == self.approver_id)
        };
        chain.head().seq >= self.seq || !seats.any(is_seated)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TeamInvitationRecord {
    pub approver_id: String,
    /// With the secret.
    pub link: String,
    pub expires_at: String,
}

impl TeamRecord {
    pub(crate) fn new(chain: &TeamChain, now: Timestamp) -> Self {
        let mut record = Self {
            team_id: chain.head().team.to_string(),
            newest: String::new(),
            digests: Vec::new(),
            checked_at: String::new(),
            routing_token: None,
            withheld: Vec::new(),
            fork: Vec::new(),
            invitations: Vec::new(),
        };
        record.remember(chain, now);
        record
    }

    /// The chain, unless it has a fork.
    pub fn chain(&self) -> Result<TeamChain> {
        if !self.fork.is_empty() {
            return Err(Error::TeamFork.into());
        }
        let newest = SignedTeamState::parse_text(&self.newest)?;
        let digests = self.digests.iter().map(|text| Sha256Hex::parse(text));
        let chain = digests.collect::<Option<_>>();
        let chain = chain.and_then(|digests| TeamChain::from_own_records(newest, digests));
        let chain = chain.filter(|chain| chain.head().team.to_string() == self.team_id);
        chain.ok_or(ClientError::Choice(
            "the profile's record of a team is damaged; pair with the team again, or join it again",
        ))
    }

    /// The name in the newest state, also of a team that has a fork.
    pub fn name(&self) -> Option<String> {
        let newest = SignedTeamState::parse_text(&self.newest).ok()?;
        Some(newest.state().content().name.clone())
    }

    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.name().is_some_and(|own| own == name)
    }

    /// Remembers the newest state that somebody knows, and forgets what is over by this chain.
    pub(crate) fn note_withheld(&mut self, heads: Vec<WithheldHead>, chain: &TeamChain) {
        for head in heads {
            let mut known = self.withheld.iter_mut();
            match known.find(|known| known.approver_id == head.approver_id) {
                Some(known) => known.seq = known.seq.max(head.seq),
                None => self.withheld.push(head),
            }
        }
        self.withheld.retain(|head| !head.is_over(chain));
    }

    fn remember(&mut self, chain: &TeamChain, now: Timestamp) {
        self.newest = chain.newest().to_text();
        self.digests = chain.digests().iter().map(ToString::to_string).collect();
        self.checked_at = now.to_string();
    }

    /// Takes over a chain that was read, unless another program has read more. One that contradicts
    /// what is known is a fork.
    pub(crate) fn extend(&mut self, chain: &TeamChain, now: Timestamp) {
        let (own, read) = (self.digests.len(), chain.digests().iter());
        let differs = |(own, read): (&String, &Sha256Hex)| *own != read.to_string();
        if self.digests.iter().zip(read).any(differs) {
            self.fork = vec![self.newest.clone(), chain.newest().to_text()];
        } else if chain.digests().len() >= own {
            self.remember(chain, now);
        }
    }
}

/// The teams that the roles of a profile know, with their ids. An error instead of the chain is a
/// fork that one of the roles has seen.
pub fn known_teams(profile: &ProfileFile) -> Result<BTreeMap<String, Vec<Result<TeamChain>>>> {
    let mut teams = BTreeMap::<_, Vec<_>>::new();
    for role in [TeamRole::Approver, TeamRole::Enforcer] {
        for record in TeamFile::beside(profile, role).load()? {
            let chain = record.chain();
            teams.entry(record.team_id).or_default().push(chain);
        }
    }
    Ok(teams)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TeamContents {
    v: u8,
    teams: Vec<TeamRecord>,
}

pub(crate) struct TeamFile {
    file: PrivateFile,
}

impl TeamFile {
    pub(crate) fn beside(profile: &ProfileFile, role: TeamRole) -> Self {
        let file = profile.beside(match role {
            TeamRole::Enforcer => ENFORCER_TEAMS,
            TeamRole::Approver => APPROVER_TEAMS,
        });
        Self { file }
    }

    fn problem(&self, problem: impl std::fmt::Display) -> ClientError {
        ClientError::Teams {
            path: self.file.path().to_owned(),
            problem: problem.to_string(),
        }
    }

    /// A damaged file is an error: it may know of a removal that is withheld now.
    pub(crate) fn load(&self) -> Result<Vec<TeamRecord>> {
        let text = self.file.read().map_err(|error| self.problem(error))?;
        let Some(text) = text else {
            return Ok(Vec::new());
        };
        let contents = serde_json::from_str::<TeamContents>(&text).ok();
        let contents = contents.filter(|it| it.v == VERSION);
        contents
            .map(|it| it.teams)
            .ok_or_else(|| self.problem("it is damaged"))
    }

    /// The names of the teams, as far as they can be read.
    pub(crate) fn names(&self) -> BTreeMap<TeamId, String> {
        let records = self.load().unwrap_or_default();
        let named = records.iter().filter_map(|record| {
            let team = TeamId::parse(&record.team_id).ok()?;
            Some((team, record.name()?))
        });
        named.collect()
    }

    pub(crate) fn find(&self, team: TeamId) -> Result<Option<TeamRecord>> {
        let (records, id) = (self.load()?, team.to_string());
        Ok(records.into_iter().find(|record| record.team_id == id))
    }

    pub(crate) fn update<T>(
        &self,
        change: impl FnOnce(&mut Vec<TeamRecord>) -> Result<T>,
    ) -> Result<T> {
        let _lock = self.file.lock().map_err(|error| self.problem(error))?;
        let before = self.load()?;
        let mut teams = before.clone();
        let result = change(&mut teams)?;
        if teams != before {
            let text = json!({ "v": VERSION, "teams": teams }).to_string();
            (self.file.write(&text)).map_err(|error| self.problem(error))?;
        }
        Ok(result)
    }

    /// Changes one record; without it, nothing.
    pub(crate) fn change(&self, team: TeamId, change: impl FnOnce(&mut TeamRecord)) -> Result<()> {
        let id = team.to_string();
        self.update(|teams| {
            let record = teams.iter_mut().find(|record| record.team_id == id);
            record.map(change);
            Ok(())
        })
    }
}
