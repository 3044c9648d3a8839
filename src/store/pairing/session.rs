//! Pairing sessions: begun by an enforcer, completed once by an approver. The session is locked first, then the pairing.
//! Codes and tokens are stored as hashes only.

use sqlx::postgres::types::PgInterval;

use crate::protocol::id::{ApproverId, EnforcerId, OperationId, TenantId};
use crate::protocol::pairing::{InitiatePairing, Nonce};
use crate::protocol::timestamp::Timestamp;
use crate::store::PairingStore;
use crate::store::audit::AuditActor;
use crate::store::database::clock_offset::clock_offset;
use crate::store::error::Result;
use crate::store::teams::follow::FollowScope;

/// A pairing session, as its initiator may know it.
#[derive(Debug)]
pub struct PairingSession {
    pub enforcer: EnforcerId,
    pub expires_at: Timestamp,
    pub past: bool,
    pub resolved: bool,
    pub approver: Option<ApproverId>,
    pub approver_key: Option<String>,
    /// The approver's answer in another dialect.
    pub response: Option<String>,
    /// Hash of its pairing's token, while that is valid.
    pub token_hash: Option<Vec<u8>>,
}

/// The side that begins a session.
#[derive(Debug, Clone, Copy)]
pub enum SessionOwner<'a> {
    Enforcer(&'a InitiatePairing),
    /// Offers it to the enforcer that claims it first.
    Approver(&'a ApproverId),
}

#[derive(Debug)]
pub struct CompleteRow<'a> {
    pub operation: OperationId,
    pub actor: &'a AuditActor,
    pub tenant: &'a TenantId,
    pub nonce: &'a Nonce,
    pub approver: &'a ApproverId,
    pub approver_key: Option<&'a str>,
    pub response: Option<&'a str>,
    /// In place of the approver alone, who must be an owner of it.
    pub team: Option<&'a str>,
    pub token_hash: &'a [u8],
}

#[derive(Debug, PartialEq, Eq)]
pub enum CompleteFact {
    Paired {
        label: Option<String>,
        workspace: Option<String>,
    },
    /// It was completed before.
    Completed,
    /// The approver is no owner of the team.
    NotOwner,
    /// There is no such session, or it expired.
    Missing,
}

impl PairingStore {
    /// Begins a session; returns when it expires. A code that is in use is `Taken`.
    pub async fn begin_pairing(
        &self,
        actor: &AuditActor,
        tenant: &TenantId,
        nonce: &Nonce,
        code_hash: &[u8],
        owner: SessionOwner<'_>,
        lifetime: PgInterval,
    ) -> Result<Timestamp> {
        let (initiate, offered_by) = match owner {
            SessionOwner::Enforcer(initiate) => (Some(initiate), None),
            SessionOwner::Approver(approver) => (None, Some(approver)),
        };
        let query = sqlx::query!(
            r#"
            with begun as (
                insert into pairing_sessions (tenant_id, nonce, operation_id, code_hash, enforcer_id, enforcer_label,
                                              workspace_name, enforcer_key, created_at, expires_at, offered_by)
                select $1, $2, $3, $4,
                       $5, $6, $7,
                       $8, c.at, c.at + $9::interval, $12
                  from (select clock_timestamp() + $10::interval as at) c
                returning tenant_id, enforcer_id, offered_by, created_at, expires_at
            ),
            inserted_audit as (
                insert into audit_events
                select a.*
                  from begun b
                 cross join audit_event($11::text::json, b.tenant_id, b.created_at,
                                        case when b.enforcer_id is null then 'pairing.offered' else 'pairing.initiated' end,
                                        coalesce(b.enforcer_id, b.offered_by)) a
            )
            select b.expires_at as "expires_at!" from begun b
            "#,
            tenant.as_str(),
            nonce.as_str(),
            self.database.clock.operation_id().0,
            code_hash,
            initiate.map(|initiate| initiate.enforcer.as_str()),
            initiate.and_then(|initiate| initiate.label.as_deref()),
            initiate.and_then(|initiate| initiate.workspace.as_deref()),
            initiate.and_then(|initiate| initiate.public_key.as_deref()),
            lifetime,
            clock_offset(&self.database.clock),
            self.database.audit_origin(actor),
            offered_by.map(ApproverId::as_str),
        )
        .map(|row| row.expires_at);
        Ok(self.database.pool.fetch_one(tenant, query).await?.into())
    }

    pub async fn pairing_session(
        &self,
        tenant: &TenantId,
        nonce: &Nonce,
    ) -> Result<Option<PairingSession>> {
        let query = sqlx::query_as!(
            PairingSession,
            r#"
            select s.enforcer_id as "enforcer!: EnforcerId", s.expires_at,
                   s.expires_at <= clock_timestamp() + $1::interval as "past!",
                   s.resolved_at is not null as "resolved!", s.approver_id as "approver?: ApproverId",
                   s.approver_key as "approver_key?", s.response_json as "response?",
                   coalesce(p.token_hash, t.token_hash) as "token_hash?"
              from pairing_sessions s
              left join pairings p on p.tenant_id = s.tenant_id and p.enforcer_id = s.enforcer_id
                                  and p.approver_id = s.approver_id and p.nonce = s.nonce and p.revoked_at is null
              left join team_pairings t on t.tenant_id = s.tenant_id and t.nonce = s.nonce
             where s.tenant_id = $2 and s.nonce = $3 and s.enforcer_id is not null
            "#,
            clock_offset(&self.database.clock),
            tenant.as_str(),
            nonce.as_str(),
        );
        self.database.pool.fetch_optional(tenant, query).await
    }

    /// Completes a session if it is open.
    pub async fn complete_pairing(&self, row: &CompleteRow<'_>) -> Result<CompleteFact> {
        let origin = self.database.audit_origin_of(row.actor, row.operation);
        let query = || {
            sqlx::query!(
                r#"
            with input as materialized (
                select $1::text as tenant_id, $2::text as nonce,
                       $3::interval as clock_offset, $4::uuid as operation_id,
                       $5::text as approver_id, $6::text as approver_key,
                       $7::bytea as token_hash, $8::text::json as origin, $9::text as response_json,
                       $10::text as team_id
            ),
            permission as materialized (
                select i.team_id is null
                       or exists (select from team_seats s
                                   where s.tenant_id = i.tenant_id and s.team_id = i.team_id
                                     and s.approver_id = i.approver_id and s.seat = 'owner') as given
                  from input i
            ),
            locked_session as materialized (
                select s.tenant_id, s.nonce, s.operation_id, s.enforcer_label, s.workspace_name, s.expires_at, s.completed_at
                  from pairing_sessions s
                  join input i on i.tenant_id = s.tenant_id and i.nonce = s.nonce
                   for no key update of s
            ),
            judged_session as materialized (
                select l.tenant_id, l.nonce, l.completed_at, l.expires_at, clock_timestamp() + i.clock_offset as at
                  from locked_session l
                 cross join input i
            ),
            completed_session as (
                update pairing_sessions s
                   set completed_at = j.at, operation_id = i.operation_id, approver_id = i.approver_id,
                       approver_key = i.approver_key, response_json = i.response_json
                  from judged_session j
                 cross join input i
                 where s.tenant_id = j.tenant_id and s.nonce = j.nonce
                   and s.completed_at is null and j.completed_at is null and j.expires_at > j.at
                   and s.enforcer_id is not null and (s.offered_by is null or s.offered_by = i.approver_id)
                   and (select p.given from permission p)
                returning s.tenant_id, s.nonce, s.enforcer_id, s.approver_id, s.enforcer_label, s.workspace_name,
                          s.enforcer_key, s.approver_key, i.token_hash, i.team_id, s.completed_at as at
            ),
            written_pairing as (
                insert into pairings (tenant_id, enforcer_id, approver_id, nonce, token_hash, enforcer_label,
                                      workspace_name, enforcer_key, approver_key, paired_at)
                select w.tenant_id, w.enforcer_id, w.approver_id, w.nonce, w.token_hash, w.enforcer_label, w.workspace_name,
                       w.enforcer_key, w.approver_key, w.at
                  from completed_session w
                 where w.team_id is null
                on conflict on constraint pairings_pkey do update
                   set nonce = excluded.nonce, token_hash = excluded.token_hash, team_id = null,
                       enforcer_label = excluded.enforcer_label, workspace_name = excluded.workspace_name,
                       enforcer_key = excluded.enforcer_key, approver_key = excluded.approver_key,
                       paired_at = excluded.paired_at, revoked_at = null
                returning tenant_id, enforcer_id, approver_id
            ),
            written_team_pairing as (
                insert into team_pairings (tenant_id, team_id, enforcer_id, nonce, approver_id, token_hash, enforcer_label,
                                           workspace_name, enforcer_key)
                select w.tenant_id, w.team_id, w.enforcer_id, w.nonce, w.approver_id, w.token_hash, w.enforcer_label,
                       w.workspace_name, w.enforcer_key
                  from completed_session w
                 where w.team_id is not null
                on conflict on constraint team_pairings_pkey do update
                   set nonce = excluded.nonce, approver_id = excluded.approver_id, token_hash = excluded.token_hash,
                       enforcer_label = excluded.enforcer_label, workspace_name = excluded.workspace_name,
                       enforcer_key = excluded.enforcer_key
                returning tenant_id, team_id, enforcer_id
            ),
            deleted_team_introductions as (
                delete from team_introductions i using written_team_pairing p
                 where i.tenant_id = p.tenant_id and i.team_id = p.team_id and i.enforcer_id = p.enforcer_id
            ),
            inserted_token as (
                insert into routing_tokens (tenant_id, token_hash, enforcer_id, approver_id, created_at)
                select w.tenant_id, w.token_hash, w.enforcer_id, w.approver_id, w.at
                  from completed_session w
            ),
            replaced_token as (
                update routing_tokens t
                   set replaced_at = w.at
                  from completed_session w
                  left join pairings p on w.team_id is null and p.tenant_id = w.tenant_id and p.enforcer_id = w.enforcer_id
                                      and p.approver_id = w.approver_id
                  left join team_pairings g on g.tenant_id = w.tenant_id and g.team_id = w.team_id
                                           and g.enforcer_id = w.enforcer_id
                 where t.tenant_id = w.tenant_id and t.token_hash = coalesce(p.token_hash, g.token_hash)
                   and t.token_hash <> w.token_hash
            ),
            -- The enforcer may have a new key. The pairing is locked first, as by the statement that introduces it.
            deleted_introductions as (
                delete from introductions i using written_pairing p
                 where i.tenant_id = p.tenant_id and i.approver_id = p.approver_id and i.enforcer_id = p.enforcer_id
            ),
            inserted_audit as (
                insert into audit_events
                select a.*
                  from completed_session w
                 cross join input i
                 cross join audit_event(i.origin, w.tenant_id, w.at, 'pairing.completed',
                                        w.enforcer_id || '/' || w.approver_id, 'team ' || w.team_id) a
            )
            select w.enforcer_id as "enforcer?", p.given as "permitted!", l.enforcer_label as "label?",
                   l.workspace_name as "workspace?",
                   l.completed_at is not null as "completed!",
                   w.nonce is not null or l.completed_at is not null and l.operation_id = i.operation_id as "ours!"
              from locked_session l
             cross join input i
             cross join permission p
              left join completed_session w on w.tenant_id = l.tenant_id and w.nonce = l.nonce
            "#,
                row.tenant.as_str(),
                row.nonce.as_str(),
                clock_offset(&self.database.clock),
                row.operation.0,
                row.approver.as_str(),
                row.approver_key,
                row.token_hash,
                origin.as_str(),
                row.response,
                row.team,
            )
        };
        let found = if row.team.is_some() {
            let turn = self.database.in_team_turn(row.tenant, query(), |found| {
                let enforcer = found.enforcer.clone();
                enforcer.map_or(FollowScope::Nobody, FollowScope::Enforcer)
            });
            turn.await?
        } else {
            let pool = &self.database.pool;
            let work = "completing a pairing";
            pool.fetch_retried(row.tenant, work, query).await?
        };
        Ok(match found {
            Some(row) if row.ours => CompleteFact::Paired {
                label: row.label,
                workspace: row.workspace,
            },
            Some(row) if row.completed => CompleteFact::Completed,
            Some(row) if !row.permitted => CompleteFact::NotOwner,
            // Expired, if it exists at all.
            Some(_) | None => CompleteFact::Missing,
        })
    }
}
