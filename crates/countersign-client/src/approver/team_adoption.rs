//! The teams that count on this device. It believes one only once it, or a device that it trusts, has
//! agreed to be in it.

use super::devices::array;
use super::own_seats::SeatNotice;
use super::role::Approver;
use crate::access::call_deadline;
use crate::error::{ClientError, Result};
use crate::gateway::GatewayCall;
use crate::profile::{EnforcerRecord, TeamRecord};
use crate::team_reading::read_chain;
use crate::wire;
use countersign_e2e::{
    ArtifactRule, Error, Introduction, SignedConsent, SignedIntroduction, SignedTeamState,
    TeamChain, TeamId,
};
use countersign_protocol::id::ApproverId;
use tokio::time::Instant;

/// Of the unknown teams that the gateway lists. A gateway that lists more is not followed.
const MAX_ADOPTED: usize = 64;

/// A team of which this device knew nothing.
enum ListedTeam {
    /// This device, or one that it trusts, has agreed to be in it.
    Joined(TeamChain),
    /// The gateway says that this person is in it, and nobody else does.
    Strange(TeamChain),
}

/// The introductions to a team that count by its newest state.
pub(super) struct TeamIntroductions {
    pub(super) chain: TeamChain,
    pub(super) accepted: Vec<SignedIntroduction>,
}

impl TeamIntroductions {
    /// Whether the record still has a basis in this team. An owner who left without being removed
    /// cannot be told from a thief, so their word does not last.
    fn supports(&self, record: &EnforcerRecord) -> bool {
        let introducer = record.introduced_by.as_ref();
        let mut seats = self.chain.content().seats.iter().filter(|seat| seat.owner);
        let is_owners = seats.any(|seat| {
            let mut devices = seat.devices.iter().map(|device| device.id().to_string());
            devices.any(|id| Some(&id) == introducer)
        });
        is_owners || self.introduces(record)
    }

    pub(super) fn introduces(&self, record: &EnforcerRecord) -> bool {
        self.introducers_of(record).next().is_some()
    }

    /// The owners who vouch for the enforcer with this key.
    pub(super) fn introducers_of<'t>(
        &'t self,
        record: &'t EnforcerRecord,
    ) -> impl Iterator<Item = &'t ApproverId> {
        let introductions = self.accepted.iter().map(SignedIntroduction::introduction);
        let about = introductions.filter(|introduction| {
            let enforcer = introduction.claimed();
            enforcer.id().as_str() == record.id && enforcer.encryption_key().to_text() == record.key
        });
        about.map(Introduction::approver)
    }

    /// Whether this record rests on the team alone and has lost that basis.
    pub(super) fn has_dropped(&self, record: &EnforcerRecord) -> bool {
        let team = self.chain.head().team.to_string();
        record.introduced_in.as_ref() == Some(&team) && !self.supports(record)
    }
}

impl Approver {
    /// The chains of the teams in a rule in which this device takes part, read on until they have
    /// the heads that the rule names.
    pub(super) async fn teams_of(&self, rule: Option<&ArtifactRule>) -> Result<Vec<TeamChain>> {
        let Some(ArtifactRule::Known(rule)) = rule else {
            return Ok(Vec::new());
        };
        let (file, mut chains) = (self.team_file(), Vec::<TeamChain>::new());
        for head in rule.terms.teams() {
            if chains.iter().any(|chain| chain.head().team == head.team) {
                continue;
            }
            let found = match file.find(head.team)? {
                Some(record) => self.renew(&record).await.map(ListedTeam::Joined),
                None => self.adopted(head.team, call_deadline()).await,
            };
            let chain = match found {
                Ok(ListedTeam::Joined(chain)) => chain,
                // It is a team of others now. A decision on one of its seats does not count without its head.
                Ok(ListedTeam::Strange(_)) => continue,
                Err(error) if error.is_refusal(404) => continue,
                Err(error) => return Err(error),
            };
            // One that the gateway withholds is refused by the checks of the rule.
            chain.knows(head)?;
            chains.push(chain);
        }
        Ok(chains)
    }

    /// Takes part in the teams that other devices of this approver have joined. All of them have the
    /// time of one call: others can seat this person in teams of theirs. A notice tells of each team
    /// that may count a device of this person and cannot be told of its end here.
    pub(super) async fn adopt_teams(&self) -> Vec<SeatNotice> {
        let mut notices = Vec::new();
        if let Err(problem) = self.adopt_listed(&mut notices).await {
            notices.push(SeatNotice::Unread(problem));
        }
        notices
    }

    async fn adopt_listed(&self, notices: &mut Vec<SeatNotice>) -> Result<()> {
        let deadline = call_deadline();
        let call = GatewayCall::get(self.path(&["teams"]));
        let answer = self.access.call(&call, &[200, 404]).await?;
        // An older gateway knows no teams.
        if answer.status == 404 {
            return Ok(());
        }
        let node = wire::parse(&answer.body)?;
        let listed = array(&node, "teams")?.iter();
        let ids = listed.filter_map(|team| team.as_object()?.get("teamId")?.as_str());
        let known = self.teams()?;
        let unknown = ids.filter(|id| known.iter().all(|record| record.team_id != *id));
        let mut unknown: Vec<_> = unknown.filter_map(|id| TeamId::parse(id).ok()).collect();
        let is_whole = unknown.len() <= MAX_ADOPTED;
        unknown.truncate(MAX_ADOPTED);
        let mut failed = is_whole.then_some(()).ok_or(ClientError::Choice(
            "the gateway lists more teams than a person can have",
        ));
        if unknown.is_empty() {
            return failed;
        }
        // A device that has joined one may be new itself.
        self.follow_statements().await?;
        for team in unknown {
            match self.adopted(team, deadline).await {
                Ok(ListedTeam::Strange(chain)) if self.is_in(&chain) => {
                    let team = chain.content().name.clone();
                    notices.push(SeatNotice::NotJoined { team });
                }
                Err(error) if !error.is_refusal(404) => failed = failed.and(Err(error)),
                Ok(_) | Err(_) => {}
            }
        }
        failed
    }

    fn is_in(&self, chain: &TeamChain) -> bool {
        let mut seats = chain.content().seats.iter();
        seats.any(|seat| {
            let stand_in = seat.stand_in.as_ref();
            seat.approver == self.id || stand_in.is_some_and(|it| it.approver == self.id)
        })
    }

    /// A team that another device of this approver has joined or changed.
    async fn adopted(&self, team: TeamId, deadline: Instant) -> Result<ListedTeam> {
        let read = read_chain(&self.access, team, None, deadline).await?;
        if read.fork.is_some() {
            return Err(Error::TeamFork.into());
        }
        let (trust, consents) = (self.own_trust()?, self.listed_consents(team).await?);
        let is_own = |signed: &SignedConsent| {
            let consent = signed.consent();
            let is_same = consent.approver() == &self.id && consent.team() == team;
            is_same && trust.device(consent.by()).is_ok() && signed.verify().is_ok()
        };
        let mut signers = read.states.iter().flat_map(SignedTeamState::signers_named);
        let is_signed = signers.any(|id| trust.device(id).is_ok());
        if !is_signed && !consents.iter().any(is_own) {
            return Ok(ListedTeam::Strange(read.chain));
        }
        self.keep_team(&read.chain)?;
        Ok(ListedTeam::Joined(read.chain))
    }

    /// The introductions to the teams of this device. A team that cannot be read, such as one that this
    /// person has left, is not among them.
    pub(super) async fn team_introductions(&self) -> Result<Vec<TeamIntroductions>> {
        let mut read = Vec::new();
        for record in self.teams()? {
            read.extend(self.introductions_in(&record).await.ok());
        }
        Ok(read)
    }

    async fn introductions_in(&self, record: &TeamRecord) -> Result<TeamIntroductions> {
        let chain = self.renew(record).await?;
        let call = GatewayCall::get(Self::team_path(chain.head().team, "introductions"));
        let answer = self.access.call(&call, &[200]).await?;
        let node = wire::parse(&answer.body)?;
        let listed = array(&node, "introductions")?.iter();
        let listed = listed.filter_map(|node| SignedIntroduction::parse(node).ok());
        let accepted = listed.filter(|it| it.accept_in(chain.state()).is_ok());
        let accepted = accepted.collect();
        Ok(TeamIntroductions { chain, accepted })
    }
}
