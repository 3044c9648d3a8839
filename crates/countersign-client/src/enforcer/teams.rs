//! The teams that this enforcer is paired with: their chains, and the devices of their seats.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use super::pairing::PairingToken;
use super::role::Enforcer;
use crate::access::call_deadline;
use crate::error::{ClientError, Result};
use crate::profile::{TeamFile, TeamRecord, TeamRole};
use crate::team_reading::{read_chain, renew_chain};
use countersign_e2e::{
    DeviceTrust, Error, MAX_RULE_PEOPLE, PinnedDevice, RuleRefusal, RuleTerms, SeatSource,
    TeamChain, TeamHead, TeamId,
};
use countersign_protocol::timestamp::Timestamp;

/// States are read again when they are older.
const CHAIN_LIFETIME: Duration = Duration::from_secs(60);
const MARK: &str = "team:";

/// The name or id of a team, as a rule names it in the place of people.
pub(super) fn team_name(text: &str) -> Option<&str> {
    text.strip_prefix(MARK)
}

impl Enforcer {
    pub(super) fn team_file(&self) -> TeamFile {
        TeamFile::beside(&self.file, TeamRole::Enforcer)
    }

    /// The teams that this enforcer is paired with.
    pub fn teams(&self) -> Result<Vec<TeamRecord>> {
        self.team_file().load()
    }

    /// The newest state that is known of the team with this name or id.
    pub(super) fn named_team(&self, name: &str) -> Result<TeamHead> {
        let chains = self.teams()?;
        let chains = chains.iter().map(TeamRecord::chain);
        let chains: Vec<_> = chains.collect::<Result<_>>()?;
        // Its owners choose a team's name, which could be the id of another one.
        let mut by_id = chains.iter();
        if let Some(chain) = by_id.find(|chain| chain.head().team.to_string() == name) {
            return Ok(chain.head());
        }
        let is_named = |chain: &&TeamChain| chain.content().name == name;
        let named: Vec<_> = chains.iter().filter(is_named).collect();
        match named.as_slice() {
            [only] => Ok(only.head()),
            [] => Err(ClientError::Choice(
                "a rule names a team that this machine is not paired with; pair it: countersign pair",
            )),
            _ => Err(ClientError::Choice(
                "a rule names a team by a name that several have; use its id",
            )),
        }
    }

    /// The chains of these teams, read again if they are old, or if `again`.
    pub(super) async fn team_chains(
        &self,
        teams: impl IntoIterator<Item = TeamId>,
        again: bool,
        deadline: Instant,
    ) -> Result<Vec<TeamChain>> {
        let (file, mut chains) = (self.team_file(), Vec::new());
        for team in teams.into_iter().collect::<BTreeSet<_>>() {
            let record = file.find(team)?;
            let record = record.ok_or(Error::Rule(RuleRefusal::NotAsked))?;
            let chain = if again || !self.is_recent(&record.checked_at) {
                renew_chain(&self.access, &file, &record, deadline).await?
            } else {
                record.chain()?
            };
            chains.push(chain);
        }
        Ok(chains)
    }

    fn is_recent(&self, checked_at: &str) -> bool {
        let age = Timestamp::parse(checked_at).map(|at| self.access.now().inner() - at.inner());
        age.is_some_and(|age| !age.is_negative() && age < CHAIN_LIFETIME)
    }

    /// The terms by the newest states of their teams, with the minimum of each.
    pub(super) async fn renewed_terms(
        &self,
        mut terms: RuleTerms,
        deadline: Instant,
    ) -> Result<RuleTerms> {
        let teams: Vec<_> = terms.teams().map(|head| head.team).collect();
        let chains = self.team_chains(teams, true, deadline).await?;
        for chain in &chains {
            let (head, minimum) = (chain.head(), &chain.content().minimum);
            for ask in &mut terms.asks {
                let steps = ask.escalate.iter_mut().map(|step| &mut step.team);
                for team in [&mut ask.team].into_iter().chain(steps) {
                    *team = team.map(|it| if it.team == head.team { head } else { it });
                }
            }
            terms = terms.join_minimum(head.team, minimum);
            if minimum.separate {
                let problem = "the team's owners want to know who works with this agent; pair again with --operator";
                let operators = self.operators().ok_or(ClientError::Choice(problem))?;
                terms.not_by.extend(operators.iter().cloned());
            }
        }
        let terms = terms.resolve(&chains);
        if terms.people().len() > MAX_RULE_PEOPLE {
            let problem =
                "the teams of this rule have more than 64 members, which one call cannot ask";
            return Err(ClientError::Choice(problem));
        }
        Ok(terms)
    }

    /// The terms with the seats of their teams, as far as they are known here.
    pub(super) fn known_terms(&self, terms: &RuleTerms) -> RuleTerms {
        let records = self.teams().unwrap_or_default();
        let chains = records.iter().filter_map(|record| record.chain().ok());
        terms.clone().resolve(&chains.collect::<Vec<_>>())
    }

    /// Whether nobody is asked but the members of teams.
    pub fn asks_teams_only(&self) -> bool {
        self.approvers.is_empty() && self.teams().is_ok_and(|teams| !teams.is_empty())
    }

    /// The people who may decide on a seat now, with the devices that count. Nobody, if the seat is
    /// gone.
    pub(super) async fn seat_devices(
        &mut self,
        source: &SeatSource,
        again: bool,
        deadline: Instant,
    ) -> Result<Vec<DeviceTrust>> {
        let teams = source.teams.iter().map(|head| head.team);
        let chains = self.team_chains(teams, again, deadline).await?;
        let mut direct = None;
        if source.is_direct {
            let asked = [source.seat.to_string()];
            direct = Some(self.devices_of(&asked, again, deadline).await?);
        }
        let now = self.access.now();
        Ok(source.devices(&chains, direct, &self.tenant, Some(now)))
    }

    /// The devices that may decide on this seat, or without one, those of these people.
    pub(super) async fn devices_on(
        &mut self,
        seat: Option<&SeatSource>,
        asked: &[String],
        again: bool,
        deadline: Instant,
    ) -> Result<Vec<DeviceTrust>> {
        match seat {
            Some(seat) => self.seat_devices(seat, again, deadline).await,
            None => self.devices_of(asked, again, deadline).await,
        }
    }

    /// Refuses heads that are not known here, once the chains were read again: the gateway withholds
    /// something that somebody in the team knows.
    pub(super) async fn confirm_heads(
        &self,
        heads: &[TeamHead],
        teams: impl IntoIterator<Item = TeamId>,
        deadline: Instant,
    ) -> Result<()> {
        for chain in self.team_chains(teams, true, deadline).await? {
            for head in heads.iter().filter(|head| head.team == chain.head().team) {
                if !chain.knows(head)? {
                    return Err(Error::Rule(RuleRefusal::WithheldTeam).into());
                }
            }
        }
        Ok(())
    }

    /// Pins the team of a completed pairing, of which the answering device is an owner's.
    /// A failure undoes the pairing at the gateway.
    pub async fn pin_team(&mut self, device: &PinnedDevice, token: PairingToken) -> Result<String> {
        let pinned = self.pin_proven_team(device, &token).await;
        if pinned.is_err() {
            // The first error says why.
            let _undone = self.abort(token).await;
        }
        pinned
    }

    async fn pin_proven_team(
        &mut self,
        device: &PinnedDevice,
        token: &PairingToken,
    ) -> Result<String> {
        let head = *device.team().ok_or(Error::Team("the pairing names none"))?;
        let read = read_chain(&self.access, head.team, None, call_deadline()).await?;
        let chain = read.chain;
        let owner = chain.content().seat(device.approver());
        let is_owner = owner.is_some_and(|it| it.owner && it.has_device(device.bundle().id()));
        if read.fork.is_some() || !chain.knows(&head)? {
            return Err(Error::Rule(RuleRefusal::WithheldTeam).into());
        }
        if !is_owner {
            return Err(Error::Team("the device that answered is no owner's").into());
        }
        let mut record = TeamRecord::new(&chain, self.access.now());
        record.routing_token = Some(token.text().to_owned());
        self.team_file().update(|teams| {
            // A state that was seen is not forgotten, unless there was a fork.
            let known = teams.iter().find(|known| known.team_id == record.team_id);
            if let Some(known) = known.filter(|known| known.fork.is_empty()) {
                record.extend(&known.chain()?, self.access.now());
            }
            record.chain()?;
            teams.retain(|known| known.team_id != record.team_id);
            teams.push(record);
            Ok(())
        })?;
        self.update(|profile| {
            if let Some(operators) = device.operators() {
                profile.add_operators(operators);
            }
            Ok(())
        })?;
        Ok(chain.content().name.clone())
    }

    /// Ends the pairing with the team of this name or id, here and at the gateway. False if there is
    /// none. It ends here even if the call to the gateway fails.
    pub async fn unpair_team(&mut self, name: &str) -> Result<bool> {
        let is_named = |record: &TeamRecord| {
            // A team with a fork has no name that counts.
            let chain = record.chain();
            record.team_id == name || chain.is_ok_and(|it| it.content().name == name)
        };
        let ended = self.team_file().update(|teams| {
            let (ended, kept): (Vec<_>, Vec<_>) = teams.drain(..).partition(is_named);
            *teams = kept;
            Ok(ended)
        })?;
        for token in ended.iter().filter_map(|it| it.routing_token.as_ref()) {
            self.access.revoke_pairing(token).await?;
        }
        Ok(!ended.is_empty())
    }
}
