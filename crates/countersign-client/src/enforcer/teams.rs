//! The teams that this enforcer is paired with: their chains, and the devices of their seats.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::pairing::PairingToken;
use super::role::Enforcer;
use crate::access::call_deadline;
use crate::error::{ClientError, Result};
use crate::profile::{TeamFile, TeamRecord, TeamRole, WithheldHead};
use crate::team_reading::{read_chain, renew_chain};
use countersign_e2e::{
    DeviceTrust, Error, MAX_RULE_PEOPLE, PinnedDevice, RuleTerms, SeatSource, TeamChain, TeamHead,
    TeamId,
};
use countersign_protocol::id::ApproverId;
use countersign_protocol::timestamp::Timestamp;

/// States are read again when they are older.
const CHAIN_LIFETIME: Duration = Duration::from_secs(60);
const MARK: &str = "team:";

/// The name or id of a team, as a rule names it in the place of people.
pub fn team_name(text: &str) -> Option<&str> {
    text.strip_prefix(MARK)
}

/// A state of a team that the device of this person knows, as its decision says.
pub(super) struct HeadClaim {
    pub(super) approver: ApproverId,
    pub(super) head: TeamHead,
}

/// The heads that go beyond this chain.
fn withheld_heads(chain: &TeamChain, claims: &[HeadClaim]) -> Vec<WithheldHead> {
    let unknown = claims.iter().filter(|claim| {
        let is_own = claim.head.team == chain.head().team;
        is_own && matches!(chain.knows(&claim.head), Ok(false))
    });
    let withheld = unknown.map(|claim| WithheldHead {
        seq: claim.head.seq,
        approver_id: claim.approver.to_string(),
    });
    withheld.collect()
}

fn withheld_by(chain: &TeamChain, approver: String) -> ClientError {
    ClientError::WithheldTeam {
        team: chain.content().name.clone(),
        approver,
    }
}

impl Enforcer {
    pub(super) fn team_file(&self) -> TeamFile {
        TeamFile::beside(&self.file, TeamRole::Enforcer)
    }

    /// The names of the teams that are known here.
    pub fn team_names(&self) -> BTreeMap<TeamId, String> {
        self.team_file().names()
    }

    /// The teams that this enforcer is paired with.
    pub fn teams(&self) -> Result<Vec<TeamRecord>> {
        self.team_file().load()
    }

    /// The newest state that is known of the team with this name or id.
    pub(super) fn named_team(&self, name: &str) -> Result<TeamHead> {
        let records = self.teams()?;
        // Its owners choose a team's name, which could be the id of another one.
        if let Some(record) = records.iter().find(|record| record.team_id == name) {
            return Ok(record.chain()?.head());
        }
        // Also those that have a fork: another team could take the name of one.
        let named: Vec<_> = records.iter().filter(|it| it.is_named(name)).collect();
        match named.as_slice() {
            [only] => Ok(only.chain()?.head()),
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
            let record = record.ok_or(ClientError::Choice(
                "a rule names a team that this machine is not paired with; pair it: countersign pair",
            ))?;
            let is_known = record.withheld.is_empty() && self.is_recent(&record.checked_at);
            let chain = if again || !is_known {
                renew_chain(&self.access, &file, &record, deadline).await?
            } else {
                record.chain()?
            };
            if !record.withheld.is_empty() {
                self.check_withheld(&chain, Vec::new())?;
            }
            chains.push(chain);
        }
        Ok(chains)
    }

    /// The team as the gateway has it now.
    pub async fn renewed_team(&self, record: &TeamRecord) -> Result<TeamChain> {
        let team = TeamId::parse(&record.team_id)?;
        let chains = self.team_chains([team], true, call_deadline()).await?;
        let chain = chains.into_iter().next();
        chain.ok_or(ClientError::Choice(
            "the team was removed from this profile meanwhile",
        ))
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
    /// gone. The chains of its teams are read again if they are old, or if `again`; own devices always.
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
            direct = Some(self.devices_of(&asked, true, deadline).await?);
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
    /// something that somebody in the team knows. That is remembered, or a gateway would only have to
    /// withhold the next decision of that person as well.
    pub(super) async fn confirm_heads(
        &self,
        claims: &[HeadClaim],
        teams: impl IntoIterator<Item = TeamId>,
        deadline: Instant,
    ) -> Result<()> {
        let mut confirmed = Ok(());
        for chain in self.team_chains(teams, true, deadline).await? {
            let withheld = withheld_heads(&chain, claims);
            confirmed = confirmed.and(self.check_withheld(&chain, withheld));
            let team = chain.head().team;
            let heads = claims.iter().map(|claim| &claim.head);
            let mut heads = heads.filter(|head| head.team == team);
            let known = heads.try_for_each(|head| chain.knows(head).map(drop));
            confirmed = confirmed.and(known.map_err(ClientError::from));
        }
        confirmed
    }

    /// Remembers the heads of a call that ends otherwise. The next call reads the chains again.
    pub(super) fn remember_claims(&self, claims: &[HeadClaim]) -> Result<()> {
        for record in self.teams()? {
            let Ok(chain) = record.chain() else { continue };
            let withheld = withheld_heads(&chain, claims);
            if !withheld.is_empty() {
                let _told = self.check_withheld(&chain, withheld);
            }
        }
        Ok(())
    }

    /// Remembers these heads beside those of before. An error if one is not known yet.
    fn check_withheld(&self, chain: &TeamChain, heads: Vec<WithheldHead>) -> Result<()> {
        let mut approver = None;
        self.team_file().change(chain.head().team, |record| {
            record.note_withheld(heads, chain);
            approver = record.withheld.first().map(|it| it.approver_id.clone());
        })?;
        match approver {
            Some(approver) => Err(withheld_by(chain, approver)),
            None => Ok(()),
        }
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
        let unnamed = || ClientError::answer("a pairing with a team");
        let head = *device.team().ok_or_else(unnamed)?;
        let read = read_chain(&self.access, head.team, None, call_deadline()).await?;
        let chain = read.chain;
        if read.fork.is_some() {
            return Err(Error::TeamFork.into());
        }
        if !chain.knows(&head)? {
            return Err(withheld_by(&chain, device.approver().to_string()));
        }
        let mut record = TeamRecord::new(&chain, self.access.now());
        record.routing_token = Some(token.text().to_owned());
        self.team_file().update(|teams| {
            // A state that was seen is not forgotten, unless there was a fork.
            let known = teams.iter().find(|known| known.team_id == record.team_id);
            if let Some(known) = known.and_then(|known| known.chain().ok()) {
                record.extend(&known, self.access.now());
            }
            let chain = record.chain()?;
            let owner = chain.content().seat(device.approver());
            if !owner.is_some_and(|it| it.owner && it.has_device(device.bundle().id())) {
                let problem = "the device that answered is not an owner's of the team; pair again with one of its owners";
                return Err(ClientError::Choice(problem));
            }
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
        let is_named = |record: &TeamRecord| record.team_id == name || record.is_named(name);
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
