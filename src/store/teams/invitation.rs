//! Invitations to teams, and the consents that answer them. Both are kept for as long as an invitation can be used, or until the
//! invited person leaves the team.

use super::TeamStore;
use super::state::invitation_lifetime;
use crate::protocol::id::{ApproverId, TenantId};
use crate::protocol::team::MAX_TEAM_INVITATIONS;
use crate::protocol::timestamp::Timestamp;
use crate::store::audit::AuditActor;
use crate::store::database::clock_offset::clock_offset;
use crate::store::error::Result;

#[derive(Debug)]
pub struct NewTeamInvitation<'a> {
    pub team: &'a str,
    pub inviter: &'a ApproverId,
    pub invite: &'a str,
    pub invited: &'a ApproverId,
}

/// A consent whose signature was verified.
#[derive(Debug)]
pub struct NewConsent<'a> {
    pub team: &'a str,
    pub invite: &'a str,
    pub approver: &'a ApproverId,
    pub signed: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TeamInvitationFact {
    Written(Timestamp),
    /// It was made before, for the same approver.
    Stands(Timestamp),
    /// The id was used for another approver.
    Taken,
    /// The inviting approver has no seat in the team.
    NoSeat,
    TooMany,
}

impl TeamStore {
    pub async fn invite_to_team(
        &self,
        actor: &AuditActor,
        tenant: &TenantId,
        new: &NewTeamInvitation<'_>,
    ) -> Result<TeamInvitationFact> {
        let query = sqlx::query!(
            r#"
            with input as materialized (
                select $1::text as tenant_id, $2::text as team_id, $3::text as invited_by, $4::text as invite_id,
                       $5::text as approver_id, $6::bigint as most, $7::interval as lifetime,
                       clock_timestamp() + $8::interval as at, $9::text::json as origin
            ),
            standing_invitation as materialized (
                select c.approver_id, c.invited_at
                  from team_consents c
                  join input i on i.tenant_id = c.tenant_id and i.team_id = c.team_id and i.invite_id = c.invite_id
            ),
            state as materialized (
                select exists (select from team_seats s
                                where s.tenant_id = i.tenant_id and s.team_id = i.team_id and s.approver_id = i.invited_by
                                  and s.seat <> 'standIn') as seated,
                       (select count(*) from team_consents c
                         where c.tenant_id = i.tenant_id and c.team_id = i.team_id and c.invited_by = i.invited_by
                           and c.invited_at > i.at - i.lifetime) < i.most as room
                  from input i
            ),
            written_invitation as (
                insert into team_consents (tenant_id, team_id, invite_id, approver_id, invited_by, invited_at)
                select i.tenant_id, i.team_id, i.invite_id, i.approver_id, i.invited_by, i.at
                  from input i
                 cross join state s
                 where s.seated and s.room
                on conflict on constraint team_consents_pkey do nothing
                returning tenant_id, team_id, approver_id, invited_at
            ),
            inserted_audit as (
                insert into audit_events
                select a.*
                  from written_invitation w
                 cross join input i
                 cross join audit_event(i.origin, w.tenant_id, w.invited_at, 'team.invited', w.team_id,
                                        'approver ' || w.approver_id) a
            )
            select s.seated as "seated!", s.room as "room!",
                   (select w.invited_at + i.lifetime from written_invitation w) as "written?: Timestamp",
                   (select x.invited_at + i.lifetime from standing_invitation x
                     where x.approver_id = i.approver_id) as "stands?: Timestamp"
              from state s
             cross join input i
            "#,
            tenant.as_str(),
            new.team,
            new.inviter.as_str(),
            new.invite,
            new.invited.as_str(),
            i64::try_from(MAX_TEAM_INVITATIONS).unwrap_or(i64::MAX),
            invitation_lifetime(),
            clock_offset(&self.database.clock),
            self.database.audit_origin(actor),
        );
        let found = self.database.pool.fetch_one(tenant, query).await?;
        Ok(match (found.written, found.stands) {
            _ if !found.seated => TeamInvitationFact::NoSeat,
            (Some(expires_at), _) => TeamInvitationFact::Written(expires_at),
            (None, Some(expires_at)) => TeamInvitationFact::Stands(expires_at),
            (None, None) if found.room => TeamInvitationFact::Taken,
            (None, None) => TeamInvitationFact::TooMany,
        })
    }

    /// Keeps the consent of the approver whom the invitation is for, in place of an earlier one. Returns whether it is new; `None` if
    /// there is no such invitation, or its inviter is no member any more.
    pub async fn consent_to_team(
        &self,
        tenant: &TenantId,
        new: &NewConsent<'_>,
    ) -> Result<Option<bool>> {
        let query = sqlx::query!(
            r#"
            with input as materialized (
                select $1::text as tenant_id, $2::text as team_id, $3::text as invite_id, $4::text as approver_id,
                       $5::text as signed, clock_timestamp() + $6::interval - $7::interval as since
            ),
            answered_invitation as materialized (
                select c.tenant_id, c.team_id, c.invite_id, i.signed, c.signed::text is distinct from i.signed as is_new
                  from team_consents c
                  join input i on i.tenant_id = c.tenant_id and i.team_id = c.team_id and i.invite_id = c.invite_id
                              and i.approver_id = c.approver_id
                 where c.invited_at > i.since
                   and exists (select from team_seats b
                                where b.tenant_id = c.tenant_id and b.team_id = c.team_id and b.approver_id = c.invited_by
                                  and b.seat <> 'standIn')
                   for no key update of c
            ),
            written_consent as (
                update team_consents c
                   set signed = a.signed::json
                  from answered_invitation a
                 where a.is_new and c.tenant_id = a.tenant_id and c.team_id = a.team_id and c.invite_id = a.invite_id
            )
            select a.is_new as "is_new!" from answered_invitation a
            "#,
            tenant.as_str(),
            new.team,
            new.invite,
            new.approver.as_str(),
            new.signed,
            clock_offset(&self.database.clock),
            invitation_lifetime(),
        )
        .map(|row| row.is_new);
        self.database.pool.fetch_optional(tenant, query).await
    }

    /// The consents of the last days, as they were received, oldest invitation first.
    pub async fn team_consents(&self, tenant: &TenantId, team: &str) -> Result<Vec<String>> {
        let query = sqlx::query!(
            r#"
            select c.signed::text as "signed!"
              from team_consents c
             where c.tenant_id = $1 and c.team_id = $2 and c.signed is not null
               and c.invited_at > clock_timestamp() + $3::interval - $4::interval
             order by c.invited_at, c.invite_id
             limit $5
            "#,
            tenant.as_str(),
            team,
            clock_offset(&self.database.clock),
            invitation_lifetime(),
            i64::try_from(4 * MAX_TEAM_INVITATIONS).unwrap_or(i64::MAX),
        )
        .map(|row| row.signed);
        self.database.pool.fetch_all(tenant, query).await
    }
}
