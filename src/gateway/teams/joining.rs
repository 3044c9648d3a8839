//! Joining a team, and introducing enforcers to it. Owners' devices judge consents, and members' devices introductions.

use crate::e2e::{self, InviteId, SignedConsent, SignedIntroduction, TeamId};
use crate::gateway::devices::introductions::{
    IntroductionCommand, IntroductionRefusals, check_introduced_at,
};
use crate::gateway::error::{Error, Result, found};
use crate::gateway::identity::caller::{Approver, Member};
use crate::gateway::teams::refusal::{bound, check_tenant, malformed};
use crate::gateway::teams::service::TeamService;
use crate::protocol::device::{IntroductionLine, MAX_INTRODUCTIONS};
use crate::protocol::error::{DeviceError, TeamError};
use crate::protocol::id::ApproverId;
use crate::protocol::json::JsonNode;
use crate::protocol::message::raw;
use crate::protocol::reader::{InvalidMember, MemberReader};
use crate::protocol::team::{
    MAX_TEAM_INVITATIONS, TeamConsentList, TeamIntroductionList, TeamInvitationLine,
};
use crate::store::teams::introduction::TeamSigner;
use crate::store::teams::invitation::{NewConsent, NewTeamInvitation, TeamInvitationFact};
use crate::store::teams::state::TeamReader;

/// An invitation to a team. The secret of its link is not known here.
#[derive(Debug)]
pub struct TeamInvitation {
    invite: InviteId,
    approver: ApproverId,
}

impl TeamInvitation {
    pub fn parse(document: &JsonNode<'_>) -> Result<Self, InvalidMember> {
        let mut reader = MemberReader::new(document, "")?;
        let expected = "16 bytes in base64url, without padding";
        let invite = reader.parsed("inviteId", expected, |text| InviteId::parse(text).ok())?;
        let approver = reader.id("approverId")?;
        reader.finish()?;
        Ok(Self { invite, approver })
    }
}

/// A consent that its approver's device has signed.
#[derive(Debug)]
pub struct ConsentCommand {
    /// The invitation that it answers.
    pub invite: InviteId,
    /// As it was received.
    text: String,
}

impl TeamService {
    /// Lets an approver read the states of a team and consent, for some days. Also returns whether it is new.
    pub async fn invite(
        &self,
        caller: &Approver,
        team: TeamId,
        invitation: TeamInvitation,
    ) -> Result<(TeamInvitationLine, bool)> {
        let (tenant, inviter) = (&caller.origin.tenant, bound(caller)?);
        let (team, invite_id) = (team.to_string(), invitation.invite.to_string());
        let new = NewTeamInvitation {
            team: &team,
            inviter,
            invite: &invite_id,
            invited: &invitation.approver,
        };
        let actor = caller.actor(inviter);
        let made = self.store().invite_to_team(&actor, tenant, &new);
        let (expires_at, is_new) = match made.await? {
            TeamInvitationFact::Written(expires_at) => (expires_at, true),
            TeamInvitationFact::Stands(expires_at) => (expires_at, false),
            TeamInvitationFact::NoSeat => return Err(Error::NotFound),
            TeamInvitationFact::Taken => {
                let pointer = "/inviteId";
                return Err(Error::Taken { pointer });
            }
            TeamInvitationFact::TooMany => {
                let limit = MAX_TEAM_INVITATIONS;
                return Err(TeamError::TooManyInvitations { limit }.into());
            }
        };
        let approver_id = invitation.approver;
        let line = TeamInvitationLine {
            invite_id,
            approver_id,
            expires_at,
        };
        Ok((line, is_new))
    }

    /// Reads a consent by this caller to join this team. The device that it names has signed it.
    pub fn read_consent(
        caller: &Approver,
        team: TeamId,
        document: &JsonNode<'_>,
    ) -> Result<ConsentCommand> {
        let signed = SignedConsent::parse(document).map_err(|error| malformed(&error))?;
        let consent = signed.consent();
        check_tenant(caller, consent.tenant())?;
        if consent.team() != team {
            let expected = "the team that the path names";
            return Err(Error::invalid("/statement/teamId", expected));
        }
        caller.acting(Some(consent.approver().clone()), "/statement/approverId")?;
        signed.verify().map_err(|error| signature(&error))?;
        Ok(ConsentCommand {
            invite: consent.invite(),
            text: document.raw.to_owned(),
        })
    }

    /// Keeps a consent for the one who invited. Returns whether it is new.
    pub async fn consent(
        &self,
        caller: &Approver,
        team: TeamId,
        command: &ConsentCommand,
    ) -> Result<bool> {
        let (tenant, approver) = (&caller.origin.tenant, bound(caller)?);
        let (team, invite) = (team.to_string(), command.invite.to_string());
        let new = NewConsent {
            team: &team,
            invite: &invite,
            approver,
            signed: &command.text,
        };
        let kept = self.store().consent_to_team(tenant, &new);
        kept.await?.ok_or(Error::NotFound)
    }

    /// The consents of the last days.
    pub async fn consents(&self, caller: &Member, team: TeamId) -> Result<TeamConsentList> {
        let team_id = team.to_string();
        self.check_reader(caller, &team_id, false).await?;
        let texts = self
            .store()
            .team_consents(&caller.origin().tenant, &team_id);
        let consents = texts.await?.into_iter().map(raw);
        Ok(TeamConsentList {
            consents: consents.collect::<Result<_, _>>()?,
            team_id,
        })
    }

    /// Reads an introduction by this caller to this team.
    pub fn read_introduction(
        &self,
        caller: &Approver,
        team: TeamId,
        document: &JsonNode<'_>,
    ) -> Result<IntroductionCommand> {
        let signed = SignedIntroduction::parse(document).map_err(|error| malformed(&error))?;
        let introduction = signed.introduction();
        check_tenant(caller, introduction.tenant())?;
        caller.acting(
            Some(introduction.approver().clone()),
            "/statement/approverId",
        )?;
        if introduction.team() != Some(team) {
            let expected = "the team that the path names";
            return Err(Error::invalid("/statement/teamId", expected));
        }
        check_introduced_at(&self.context, introduction.at())?;
        let text = document.raw.to_owned();
        Ok(IntroductionCommand { signed, text })
    }

    /// Keeps an introduction by a device of an owner. Also returns whether it is new.
    pub async fn introduce(
        &self,
        caller: &Approver,
        team: TeamId,
        command: &IntroductionCommand,
    ) -> Result<(IntroductionLine, bool)> {
        let (tenant, approver) = (&caller.origin.tenant, bound(caller)?);
        let team = team.to_string();
        let store = self.store();
        let reader = TeamReader::Approver(Some(approver));
        found(store.may_read(tenant, &team, reader).await?)?;
        let chain = self.chain(tenant, &team).await?;
        let accepted = command.signed.accept_in(chain.state());
        accepted.map_err(|error| signature(&error))?;
        let (actor, line) = (caller.actor(approver), command.line());
        let (team, new) = (team.as_str(), command.row(&line));
        let signer = TeamSigner { team, approver };
        let written = store.introduce_to_team(&actor, tenant, signer, &new);
        let fact = written.await?;
        let limit = MAX_INTRODUCTIONS;
        let refusals = IntroductionRefusals {
            no_signer: DeviceError::UnknownSigner.into(),
            not_paired: TeamError::NotPaired.into(),
            too_many: TeamError::TooManyIntroductions { limit }.into(),
        };
        refusals.judge(fact, line)
    }

    /// The introductions of enforcers that are paired with the team.
    pub async fn introductions(
        &self,
        caller: &Member,
        team: TeamId,
    ) -> Result<TeamIntroductionList> {
        let team_id = team.to_string();
        self.check_reader(caller, &team_id, false).await?;
        let texts = self
            .store()
            .team_introductions(&caller.origin().tenant, &team_id);
        let introductions = texts.await?.into_iter().map(raw);
        Ok(TeamIntroductionList {
            introductions: introductions.collect::<Result<_, _>>()?,
            team_id,
        })
    }
}

/// The refusal of a statement that is well formed, by its signer.
fn signature(error: &e2e::Error) -> Error {
    match error {
        e2e::Error::StatementSignature => DeviceError::Signature.into(),
        _ => DeviceError::UnknownSigner.into(),
    }
}
