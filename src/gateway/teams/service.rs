//! Publishes and lists the states of teams. The chain is checked with the code of the clients, so that a broken state is refused
//! at once.

use std::sync::Arc;
use std::time::Duration;

use crate::e2e::{self, SignedTeamState, TeamChain, TeamHead, TeamId};
use crate::gateway::admission::KeyedSemaphore;
use crate::gateway::context::GatewayContext;
use crate::gateway::error::{Error, Result, found};
use crate::gateway::identity::caller::{Approver, Member};
use crate::gateway::teams::refusal::{bound, check_tenant, malformed};
use crate::protocol::canonical::Sha256Hex;
use crate::protocol::error::TeamError;
use crate::protocol::id::{ApproverId, TenantId};
use crate::protocol::json::JsonNode;
use crate::protocol::message::raw;
use crate::protocol::team::{MAX_TEAMS, MemberTeam, TeamLine, TeamStateList};
use crate::store::TeamStore;
use crate::store::teams::state::{NewState, PublishFact, TeamReader};

/// Most states of one answer.
const MAX_STATES: i64 = 100;
const TURN_TIMEOUT: Duration = Duration::from_secs(10);

/// A signed state, well formed and about the right tenant and team.
#[derive(Debug)]
pub struct StateCommand {
    signed: SignedTeamState,
    /// As it was received.
    text: String,
}

pub enum StateListing {
    /// The reader has the newest state.
    Unchanged(String),
    Whole(String, TeamStateList),
}

pub struct TeamService {
    pub(super) context: Arc<GatewayContext>,
    /// One state of a tenant at a time. Concurrent ones wait here, not each with a connection for the same lock.
    turns: KeyedSemaphore<TenantId>,
}

impl TeamService {
    pub(in crate::gateway) fn new(context: &Arc<GatewayContext>) -> Self {
        Self {
            context: Arc::clone(context),
            turns: KeyedSemaphore::new(1),
        }
    }

    pub(super) fn store(&self) -> &TeamStore {
        &self.context.store.teams
    }

    /// Reads a state of this team, or the first one of a new team.
    pub fn read_state(
        caller: &Approver,
        team: Option<TeamId>,
        document: &JsonNode<'_>,
    ) -> Result<StateCommand> {
        let signed = SignedTeamState::parse(document).map_err(|error| malformed(&error))?;
        check_tenant(caller, signed.state().tenant())?;
        let head = signed.state().head();
        match team {
            None if head.seq > 0 => Err(Error::invalid("/statement/seq", "0: the first state")),
            Some(team) if head.team != team => {
                let expected = "the team that the path names";
                Err(Error::invalid("/statement/teamId", expected))
            }
            _ => Ok(StateCommand {
                signed,
                text: document.raw.to_owned(),
            }),
        }
    }

    /// Creates a team, for its owner. The others join later, since an invitation is to a team that exists. Also returns whether it is
    /// new.
    pub async fn create(
        &self,
        caller: &Approver,
        command: StateCommand,
    ) -> Result<(TeamLine, bool)> {
        let approver = bound(caller)?;
        let seat = command.signed.state().content().seat(approver);
        if !seat.is_some_and(|seat| seat.owner) {
            let pointer = "/statement/seats";
            return Err(TeamError::NotOwner { pointer }.into());
        }
        TeamChain::begin(command.signed.clone()).map_err(|error| broken(&error))?;
        self.publish_judged(caller, approver, &command).await
    }

    /// Publishes the next state of a team, for somebody in it. Also returns whether it is new.
    pub async fn publish(
        &self,
        caller: &Approver,
        command: StateCommand,
    ) -> Result<(TeamLine, bool)> {
        let approver = bound(caller)?;
        let (tenant, head) = (&caller.origin.tenant, command.signed.state().head());
        let team = head.team.to_string();
        let reader = TeamReader::Approver(Some(approver));
        found(self.store().may_read(tenant, &team, reader).await?)?;
        let mut chain = self.chain(tenant, &team).await?;
        let is_next = head.seq == chain.head().seq + 1;
        match chain.knows(&head) {
            Ok(true) => return Ok((line_of(&command.signed), false)),
            Ok(false) if is_next => {}
            _ => return Err(taken(&chain)),
        }
        (chain.follow(command.signed.clone())).map_err(|error| broken(&error))?;
        self.publish_judged(caller, approver, &command).await
    }

    async fn publish_judged(
        &self,
        caller: &Approver,
        approver: &ApproverId,
        command: &StateCommand,
    ) -> Result<(TeamLine, bool)> {
        let (tenant, state) = (&caller.origin.tenant, command.signed.state());
        let line = line_of(&command.signed);
        let (mut people, mut seats) = (Vec::new(), Vec::new());
        for seat in &state.content().seats {
            people.push(seat.approver.to_string());
            seats.push(if seat.owner { "owner" } else { "member" });
            if let Some(it) = &seat.stand_in {
                people.push(it.approver.to_string());
                seats.push("standIn");
            }
        }
        let prev = state.prev().map(|digest| digest.to_string());
        let new = NewState {
            team: &line.team_id,
            seq: line.seq,
            digest: &line.digest,
            prev: prev.as_deref(),
            name: &state.content().name,
            signed: &command.text,
            people: &people,
            seats: &seats,
        };
        let actor = caller.actor(approver);
        let _turn = self.turns.turn(tenant, TURN_TIMEOUT).await?;
        let store = self.store();
        match store.publish_state(&actor, tenant, approver, &new).await? {
            PublishFact::Written => {
                tracing::info!(%tenant, team = line.team_id, seq = line.seq, "a team's state was published");
                Ok((line, true))
            }
            PublishFact::NoTenant => Err(Error::NotFound),
            PublishFact::TooMany => Err(TeamError::TooMany { limit: MAX_TEAMS }.into()),
            PublishFact::NoConsent(approver) => Err(TeamError::NoConsent { approver }.into()),
            PublishFact::Stale => {
                let chain = self.chain(tenant, &line.team_id).await?;
                match chain.knows(&state.head()) {
                    Ok(true) => Ok((line, false)),
                    _ => Err(taken(&chain)),
                }
            }
        }
    }

    /// The chain as it is stored. It was judged when it was written, so one that cannot be read is a fault.
    pub(super) async fn chain(&self, tenant: &TenantId, team: &str) -> Result<TeamChain> {
        let row = self.store().team_chain(tenant, team).await?;
        let row = row.ok_or(Error::NotFound)?;
        let digests = row.digests.iter().map(|text| Sha256Hex::parse(text));
        let chain = SignedTeamState::parse_text(&row.signed)
            .ok()
            .zip(digests.collect());
        let chain =
            chain.and_then(|(newest, digests)| TeamChain::from_own_records(newest, digests));
        chain.ok_or_else(|| {
            tracing::error!(%tenant, team, "the stored states of a team cannot be read");
            Error::Internal
        })
    }

    /// Refuses a caller who may not know that there is such a team.
    pub(super) async fn check_reader(
        &self,
        caller: &Member,
        team: &str,
        also_invited: bool,
    ) -> Result<()> {
        let tenant = &caller.origin().tenant;
        let reader = match caller {
            Member::Admin(_) => {
                let head = self.store().team_head(tenant, team).await?;
                return found(head.is_some());
            }
            Member::Enforcer(caller) => TeamReader::Enforcer(caller.bound.as_ref()),
            Member::Approver(caller) if also_invited => TeamReader::Invited(caller.bound.as_ref()),
            Member::Approver(caller) => TeamReader::Approver(caller.bound.as_ref()),
        };
        found(self.store().may_read(tenant, team, reader).await?)
    }

    /// The states after this number, as many as fit, unless the reader knows the newest one.
    pub async fn states(
        &self,
        caller: &Member,
        team: TeamId,
        after: Option<&str>,
        known: impl Fn(&str) -> bool,
    ) -> Result<StateListing> {
        let after = match after.map(str::parse::<u16>) {
            None => -1,
            Some(Ok(after)) => i32::from(after),
            Some(Err(_)) => {
                return Err(Error::Parameter {
                    name: "after",
                    expected: "the number of a state",
                });
            }
        };
        let (team_id, tenant) = (team.to_string(), &caller.origin().tenant);
        self.check_reader(caller, &team_id, true).await?;
        let head = self.store().team_head(tenant, &team_id).await?;
        let head = head.ok_or(Error::NotFound)?;
        let tag = format!("\"{}-{}\"", head.seq, head.digest);
        if known(&tag) {
            return Ok(StateListing::Unchanged(tag));
        }
        let states = self
            .store()
            .team_states(tenant, &team_id, after, MAX_STATES);
        let states = states.await?.into_iter().map(raw);
        let list = TeamStateList {
            head: TeamLine {
                team_id: team_id.clone(),
                seq: head.seq,
                digest: head.digest,
            },
            team_id,
            states: states.collect::<Result<_, _>>()?,
        };
        Ok(StateListing::Whole(tag, list))
    }

    /// The teams that an approver is in.
    pub async fn teams_of(
        &self,
        caller: &Approver,
        approver: &ApproverId,
    ) -> Result<Vec<MemberTeam>> {
        caller.acting(Some(approver.clone()), "approverId")?;
        let teams = self.store().teams_of(&caller.origin.tenant, approver);
        let teams = teams.await?.into_iter().map(|row| MemberTeam {
            team_id: row.team,
            name: row.name,
            seq: row.seq,
            digest: row.digest,
            owner: row.owner,
        });
        Ok(teams.collect())
    }
}

fn line(head: &TeamHead) -> TeamLine {
    TeamLine {
        team_id: head.team.to_string(),
        // There are at most some thousand.
        seq: i32::try_from(head.seq).unwrap_or(i32::MAX),
        digest: head.digest.to_string(),
    }
}

fn line_of(signed: &SignedTeamState) -> TeamLine {
    line(&signed.state().head())
}

fn taken(chain: &TeamChain) -> Error {
    let TeamLine {
        team_id,
        seq,
        digest,
    } = line(&chain.head());
    let team = team_id;
    TeamError::StateTaken { team, seq, digest }.into()
}

fn broken(error: &e2e::Error) -> Error {
    let reason = error.to_string();
    TeamError::Broken { reason }.into()
}
