//! Introductions of enforcers to teams. A row counts while the team's pairing is the one that it was made under; whatever ends that
//! one also deletes the rows.

use super::TeamStore;
use crate::protocol::device::MAX_INTRODUCTIONS;
use crate::protocol::id::{ApproverId, TenantId};
use crate::protocol::timestamp::Timestamp;
use crate::store::audit::AuditActor;
use crate::store::database::clock_offset::clock_offset;
use crate::store::devices::introduction::{IntroductionFact, NewIntroduction};
use crate::store::error::Result;

/// Somebody who introduces an enforcer to a team.
#[derive(Debug, Clone, Copy)]
pub struct TeamSigner<'a> {
    pub team: &'a str,
    pub approver: &'a ApproverId,
}

impl TeamStore {
    /// The introductions by people who still own the team, of enforcers that are paired with it, as they were received.
    pub async fn team_introductions(&self, tenant: &TenantId, team: &str) -> Result<Vec<String>> {
        let query = sqlx::query!(
            r#"
            select x.signed::text as "signed!"
              from team_introductions x
              join team_pairings p on p.tenant_id = x.tenant_id and p.team_id = x.team_id and p.enforcer_id = x.enforcer_id
                                  and p.nonce = x.nonce
              join team_seats s on s.tenant_id = x.tenant_id and s.team_id = x.team_id and s.approver_id = x.approver_id
                               and s.seat = 'owner'
             where x.tenant_id = $1 and x.team_id = $2
             order by x.enforcer_id, x.device_id
            "#,
            tenant.as_str(),
            team,
        )
        .map(|row| row.signed);
        self.database.pool.fetch_all(tenant, query).await
    }

    /// Writes an introduction whose signature was verified. `NoSigner`: its approver is no owner any more.
    pub async fn introduce_to_team(
        &self,
        actor: &AuditActor,
        tenant: &TenantId,
        signer: TeamSigner<'_>,
        new: &NewIntroduction<'_>,
    ) -> Result<IntroductionFact> {
        let query = sqlx::query!(
            r#"
            with input as materialized (
                select $1::text as tenant_id, $2::text as team_id, $3::text as approver_id, $4::text as enforcer_id,
                       $5::text as device_id, $6::timestamptz as at, $7::text::json as signed, $8::bigint as most,
                       clock_timestamp() + $9::interval as now, $10::text::json as origin
            ),
            pairing as materialized (
                select p.nonce
                  from team_pairings p
                  join input i on i.tenant_id = p.tenant_id and i.team_id = p.team_id and i.enforcer_id = p.enforcer_id
                   for share of p
            ),
            standing_introduction as materialized (
                select x.introduced_at as at
                  from team_introductions x
                  join input i on i.tenant_id = x.tenant_id and i.team_id = x.team_id and i.enforcer_id = x.enforcer_id
                              and i.device_id = x.device_id
                  join pairing p on p.nonce = x.nonce
            ),
            state as materialized (
                select exists (select from team_seats o
                                where o.tenant_id = i.tenant_id and o.team_id = i.team_id and o.approver_id = i.approver_id
                                  and o.seat = 'owner') as owner,
                       exists (select from pairing) as paired,
                       (select s.at from standing_introduction s where s.at >= i.at) as stands,
                       (select count(*) from team_introductions x
                         where x.tenant_id = i.tenant_id and x.team_id = i.team_id
                           and (x.enforcer_id, x.device_id) <> (i.enforcer_id, i.device_id)) < i.most as room
                  from input i
            ),
            written_introduction as (
                insert into team_introductions (tenant_id, team_id, enforcer_id, device_id, approver_id, nonce, introduced_at,
                                                signed)
                select i.tenant_id, i.team_id, i.enforcer_id, i.device_id, i.approver_id, p.nonce, i.at, i.signed
                  from input i
                 cross join state s
                 cross join pairing p
                 where s.owner and s.stands is null and s.room
                on conflict on constraint team_introductions_pkey do update
                   set approver_id = excluded.approver_id, nonce = excluded.nonce, introduced_at = excluded.introduced_at,
                       signed = excluded.signed
                returning tenant_id, team_id, enforcer_id, device_id
            ),
            inserted_audit as (
                insert into audit_events
                select a.*
                  from written_introduction w
                 cross join input i
                 cross join audit_event(i.origin, w.tenant_id, i.now, 'enforcer.introduced', w.enforcer_id || '/' || i.approver_id,
                                        concat_ws(' ', 'by', w.device_id, 'to team', w.team_id)) a
            )
            select s.owner as "owner!", s.paired as "paired!", s.stands as "stands?: Timestamp",
                   exists (select from written_introduction) as "written!"
              from state s
            "#,
            tenant.as_str(),
            signer.team,
            signer.approver.as_str(),
            new.enforcer.as_str(),
            new.device,
            new.at.inner(),
            new.signed,
            i64::try_from(MAX_INTRODUCTIONS).unwrap_or(i64::MAX),
            clock_offset(&self.database.clock),
            self.database.audit_origin(actor),
        );
        let found = self.database.pool.fetch_one(tenant, query).await?;
        Ok(match found {
            found if found.written => IntroductionFact::Written,
            found if !found.owner => IntroductionFact::NoSigner,
            found if !found.paired => IntroductionFact::NotPaired,
            found => match found.stands {
                Some(at) => IntroductionFact::Stands(at),
                None => IntroductionFact::TooMany,
            },
        })
    }
}
