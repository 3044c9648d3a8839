//! The teams of an approver: to create and change them, and to join.

use std::collections::BTreeMap;

use time::Duration;
use zeroize::Zeroizing;

use serde_json::json;

use super::devices::array;
use super::role::Approver;
use crate::access::call_deadline;
use crate::error::{ClientError, Result};
use crate::gateway::{GatewayCall, path};
use crate::profile::{TeamFile, TeamInvitationRecord, TeamRecord, TeamRole};
use crate::random::random;
use crate::team_reading::{read_chain, renew_chain};
use crate::wire;
use countersign_e2e::{
    DeviceBundle, SignedConsent, SignedTeamState, TeamChain, TeamConsent, TeamContent, TeamHead,
    TeamId, TeamLink, TeamSeat, TeamState,
};
use countersign_protocol::id::{ApproverId, TextId as _};
use countersign_protocol::timestamp::Timestamp;

const INVITATION_LIFETIME: Duration = Duration::days(7);

/// An answer to an invitation of this device, proven.
pub struct TeamAnswer {
    pub consent: TeamConsent,
    link: String,
}

impl Approver {
    pub(super) fn team_file(&self) -> TeamFile {
        TeamFile::beside(&self.file, TeamRole::Approver)
    }

    pub(super) fn team_path(team: TeamId, resource: &str) -> String {
        path(&["v1", "teams", &team.to_string(), resource])
    }

    /// The names of the teams that are known here.
    pub fn team_names(&self) -> BTreeMap<TeamId, String> {
        self.team_file().names()
    }

    /// The teams that this device takes part in.
    pub fn teams(&self) -> Result<Vec<TeamRecord>> {
        self.team_file().load()
    }

    /// The team with this name or id, read again.
    pub async fn team(&self, name: &str) -> Result<TeamChain> {
        self.renew(&self.named_record(name)?).await
    }

    fn named_record(&self, name: &str) -> Result<TeamRecord> {
        let mut found = self.teams()?;
        // Its owners choose a team's name, which could be the id of another one.
        if found.iter().any(|record| record.team_id == name) {
            found.retain(|record| record.team_id == name);
        } else {
            found.retain(|record| record.is_named(name));
        }
        match found.as_slice() {
            [record] => Ok(record.clone()),
            [] => Err(ClientError::Choice(
                "this device takes part in no team of this name; see: countersign team list",
            )),
            _ => Err(ClientError::Choice(
                "several teams have this name; use the id",
            )),
        }
    }

    /// The team as it is known here.
    pub fn known_team(&self, team: TeamId) -> Result<TeamChain> {
        let record = self.team_file().find(team)?;
        let problem = ClientError::Choice("this device takes no part in the team");
        record.ok_or(problem)?.chain()
    }

    pub(super) async fn renew(&self, record: &TeamRecord) -> Result<TeamChain> {
        renew_chain(&self.access, &self.team_file(), record, call_deadline()).await
    }

    /// The bundles of this approver's devices in force.
    pub(super) fn own_bundles(&self) -> Result<Vec<DeviceBundle>> {
        let trust = self.own_trust()?;
        let devices = trust.in_force().iter();
        Ok(devices.map(|device| device.bundle().clone()).collect())
    }

    pub(super) fn keep_team(&self, chain: &TeamChain) -> Result<()> {
        let now = self.now();
        let record = TeamRecord::new(chain, now);
        self.team_file().update(|teams| {
            match teams.iter_mut().find(|it| it.team_id == record.team_id) {
                Some(known) => known.extend(chain, now),
                None => teams.push(record),
            }
            Ok(())
        })
    }

    /// Forgets a team. After a fork its person can join it anew.
    fn forget_team(&self, id: &str) -> Result<()> {
        self.team_file().update(|teams| {
            teams.retain(|record| record.team_id != id);
            Ok(())
        })
    }

    /// Gives up the own seat, and forgets the team. The last owner cannot leave.
    pub async fn leave_team(&self, name: &str) -> Result<()> {
        let record = self.named_record(name)?;
        if record.chain().is_err() {
            // It is not forgotten: then the gateway could show it as if it were whole.
            let problem = "what this device knows of the team is damaged or contradictory, so nothing of it counts here; ask an owner to remove you from it, and to invite you again if you are to stay";
            return Err(ClientError::Choice(problem));
        }
        let chain = match self.renew(&record).await {
            // Its owners have removed this person already.
            Err(error) if error.is_refusal(404) => return self.forget_team(&record.team_id),
            chain => chain?,
        };
        let seats = &chain.content().seats;
        let is_last_owner = |seat: &TeamSeat| seat.owner == (seat.approver == self.id);
        if seats.iter().all(is_last_owner) {
            let problem = "you are its last owner; make somebody else an owner first: countersign team set TEAM --owner ID";
            return Err(ClientError::Choice(problem));
        }
        let stands_in = |seat: &TeamSeat| {
            let stand_in = seat.stand_in.as_ref();
            stand_in.is_some_and(|it| it.approver == self.id)
        };
        if seats.iter().any(stands_in) {
            let problem = "you stand in for a member of this team; ask that member to end it: countersign team stand-in TEAM --end";
            return Err(ClientError::Choice(problem));
        }
        let left = self.change_team(&chain, |content| {
            content.seats.retain(|seat| seat.approver != self.id);
            Ok(())
        });
        left.await?;
        self.forget_team(&record.team_id)
    }

    /// Creates a team with this approver as its only owner. `content` has no seats.
    pub async fn create_team(&self, mut content: TeamContent) -> Result<TeamHead> {
        content.seats.push(TeamSeat {
            approver: self.id.clone(),
            owner: true,
            devices: self.own_bundles()?,
            stand_in: None,
        });
        let first = TeamState::first(&self.tenant, &content, self.now(), &mut random)?;
        let signed = SignedTeamState::sign(first, &self.keys)?;
        let chain = TeamChain::begin(signed.clone())?;
        let call = GatewayCall::post("/v1/teams", signed.to_text());
        self.access.call(&call, &[200, 201]).await?;
        self.keep_team(&chain)?;
        Ok(chain.head())
    }

    /// Publishes the next state of a team, if this device may sign the change alone.
    pub async fn change_team(
        &self,
        chain: &TeamChain,
        change: impl FnOnce(&mut TeamContent) -> Result<()>,
    ) -> Result<TeamHead> {
        let (mut next, mut content) = (chain.clone(), chain.content().clone());
        change(&mut content)?;
        if content == *chain.content() {
            return Ok(chain.head());
        }
        let state = chain.state().next(&content, self.now())?;
        let signed = SignedTeamState::sign(state, &self.keys)?;
        next.follow(signed.clone())?;
        let mut published = self.publish_state(&signed).await;
        if matches!(&published, Err(error) if error.is_refusal(409)) && self.restore(chain).await? {
            published = self.publish_state(&signed).await;
        }
        let changed = ClientError::Choice("the team was changed meanwhile; try again");
        published.map_err(|error| error.refused_as(&[409], changed))?;
        self.keep_team(&next)?;
        Ok(next.head())
    }

    async fn publish_state(&self, signed: &SignedTeamState) -> Result<()> {
        let states = Self::team_path(signed.state().head().team, "states");
        let call = GatewayCall::post(states, signed.to_text());
        self.access.call(&call, &[200, 201]).await.map(drop)
    }

    /// Publishes the newest state once more if the gateway has lost it, as in a failover.
    async fn restore(&self, chain: &TeamChain) -> Result<bool> {
        let read = read_chain(&self.access, chain.head().team, None, call_deadline()).await?;
        let stored = read.chain.head();
        if !chain.knows(&stored)? || stored.seq + 1 != chain.head().seq {
            return Ok(false);
        }
        self.publish_state(chain.newest()).await.map(|()| true)
    }

    /// Invites an approver, and returns the link for that person.
    pub async fn invite_to_team(
        &self,
        chain: &TeamChain,
        approver: &ApproverId,
        page: &str,
    ) -> Result<Zeroizing<String>> {
        let team = chain.head().team;
        let link = TeamLink::generate(team, &mut random)?;
        let body = json!({ "inviteId": link.invite().to_string(), "approverId": approver });
        let call = GatewayCall::post(Self::team_path(team, "invitations"), body.to_string());
        self.access.call(&call, &[200, 201]).await?;
        let text = link.expose(page);
        let now = self.now();
        let invitation = TeamInvitationRecord {
            approver_id: approver.to_string(),
            link: text.to_string(),
            expires_at: Timestamp::from(now.inner() + INVITATION_LIFETIME).to_string(),
        };
        self.team_file().change(team, |record| {
            record.invitations.retain(|it| is_open(it, now));
            record.invitations.push(invitation);
        })?;
        Ok(text)
    }

    /// The team of an invitation, to show to the invited person.
    pub async fn invited_team(&self, link: &TeamLink) -> Result<TeamChain> {
        let known = self.known_team(link.team()).ok();
        let read = read_chain(&self.access, link.team(), known, call_deadline()).await?;
        let chain = read.chain;
        if read.fork.is_some() || chain.state().tenant() != &self.tenant {
            return Err(ClientError::answer("the team of this invitation"));
        }
        Ok(chain)
    }

    /// Agrees to be a member, after the person has said yes to this team.
    pub async fn join_team(&self, link: &TeamLink, chain: &TeamChain) -> Result<()> {
        let (bundles, at) = (self.own_bundles()?, self.now());
        let consent = link.consent(&self.tenant, &self.id, &bundles, at, &self.keys)?;
        let consents = Self::team_path(link.team(), "consents");
        let call = GatewayCall::post(consents, consent.to_text());
        self.access.call(&call, &[200, 201]).await?;
        // The person has seen this history, and said yes to it.
        if self.known_team(link.team()).is_err() {
            self.forget_team(&link.team().to_string())?;
        }
        self.keep_team(chain)
    }

    /// The answers to invitations of this device, each proven by its link.
    pub async fn team_answers(&self, chain: &TeamChain) -> Result<Vec<TeamAnswer>> {
        let (team, now) = (chain.head().team, self.now());
        let listed = self.listed_consents(team).await?;
        let record = self.team_file().find(team)?;
        let mut answers = Vec::new();
        for invitation in record.iter().flat_map(|it| &it.invitations) {
            let link = TeamLink::parse(&invitation.link)?;
            let invited = ApproverId::parse(&invitation.approver_id);
            let Some(invited) = invited.filter(|_| is_open(invitation, now)) else {
                continue;
            };
            let mut consents = listed.iter();
            let proven = |signed| link.receive(&self.tenant, &invited, signed).ok();
            if let Some(consent) = consents.find_map(proven) {
                answers.push(TeamAnswer {
                    consent: consent.clone(),
                    link: invitation.link.clone(),
                });
            }
        }
        Ok(answers)
    }

    pub(super) async fn listed_consents(&self, team: TeamId) -> Result<Vec<SignedConsent>> {
        let call = GatewayCall::get(Self::team_path(team, "consents"));
        let answer = self.access.call(&call, &[200]).await?;
        let node = wire::parse(&answer.body)?;
        let listed = array(&node, "consents")?.iter().map(SignedConsent::parse);
        Ok(listed.filter_map(Result::ok).collect())
    }

    /// Makes the invited person a member. The invitation is used up.
    pub async fn admit(&self, chain: &TeamChain, answer: &TeamAnswer) -> Result<TeamHead> {
        let consent = &answer.consent;
        let head = self.change_team(chain, |content| {
            if let Some(seat) = content.seat_mut(consent.approver()) {
                // A device that is lost now could have named the stand-in.
                (seat.devices, seat.stand_in) = (consent.devices().to_vec(), None);
                return Ok(());
            }
            content.seats.push(TeamSeat {
                approver: consent.approver().clone(),
                owner: false,
                devices: consent.devices().to_vec(),
                stand_in: None,
            });
            Ok(())
        });
        let head = head.await?;
        self.forget_invitation(answer)?;
        Ok(head)
    }

    pub(super) fn forget_invitation(&self, answer: &TeamAnswer) -> Result<()> {
        self.team_file().change(answer.consent.team(), |record| {
            record.invitations.retain(|it| it.link != answer.link);
        })
    }
}

fn is_open(invitation: &TeamInvitationRecord, now: Timestamp) -> bool {
    Timestamp::parse(&invitation.expires_at).is_some_and(|until| now < until)
}
