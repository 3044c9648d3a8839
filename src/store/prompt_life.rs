//! What becomes of prompts: acknowledged, in one statement that also ends redelivery; expired; and read.

use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use super::batch::BatchStatement;
use super::error::StoreError;
use super::tenant_scope::TenantScope;
use super::{Store, rows};
use crate::clock::Clock;
use crate::protocol::id::{ApproverId, EnforcerId, OperationId, RequestId, TenantId};
use crate::protocol::prompt::{AckFact, PromptRecord, PromptStatus, SentAck};

#[derive(Debug)]
pub struct PromptAckRow {
    pub operation: OperationId,
    pub tenant: TenantId,
    /// The enforcer it comes from; none for a caller that may be any of them and does not say which.
    pub enforcer: Option<EnforcerId>,
    pub ack: SentAck,
}

pub struct TakePromptAcks {
    pub clock: Clock,
}

impl BatchStatement for TakePromptAcks {
    const NAME: &'static str = "ack_prompt";
    type Row = PromptAckRow;
    /// What was found and whose prompt it is, if there is such a prompt for this enforcer.
    type Fact = Option<(EnforcerId, AckFact)>;

    fn tenant_scope(rows: &[PromptAckRow]) -> TenantScope<'_> {
        TenantScope::of(rows.iter().map(|row| &row.tenant))
    }

    fn conflict_keys(row: &PromptAckRow) -> Vec<String> {
        vec![format!("{}\n{}", row.tenant, row.ack.request_id)]
    }

    fn bytes(row: &PromptAckRow) -> usize {
        row.ack.details.as_ref().map_or(0, String::len) + 512
    }

    async fn run(
        &self,
        connection: &mut PgConnection,
        rows: &[PromptAckRow],
    ) -> Result<Vec<Option<(EnforcerId, AckFact)>>, sqlx::Error> {
        let found = sqlx::query!(
            r#"
            with input as (
                select operation_id, tenant_id, request_id, enforcer_id, prompt_hash, status, ack_at, details
                  from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[],
                              $8::text[])
                       as i (operation_id, tenant_id, request_id, enforcer_id, prompt_hash, status, ack_at, details)
            ),
            locked as materialized (
                select i.operation_id, p.tenant_id, p.request_id, p.enforcer_id, p.message_id, p.prompt_hash, p.status,
                       p.ack_at, p.details, p.expires_at, p.operation_id as last_operation
                  from prompts p
                  join input i on i.tenant_id = p.tenant_id and i.request_id = p.request_id
                 where i.enforcer_id is null or i.enforcer_id = p.enforcer_id
                 order by p.tenant_id, p.request_id
                   for no key update of p
            ),
            -- After the locks: a clock that was read before them would be too early.
            judged as materialized (
                select l.operation_id, l.tenant_id, l.request_id, l.enforcer_id, l.message_id, l.prompt_hash, l.status,
                       l.ack_at, l.details, l.expires_at, l.last_operation,
                       coalesce(l.expires_at <= clock_timestamp() + $9::interval, false) as past
                  from locked l
            ),
            moved as (
                update prompts p
                   set status = i.status, ack_at = i.ack_at, details = i.details::json, operation_id = i.operation_id
                  from judged j join input i on i.operation_id = j.operation_id
                 where p.tenant_id = j.tenant_id and p.request_id = j.request_id
                   and j.status = 'queued' and not j.past and j.prompt_hash = i.prompt_hash
                returning i.operation_id, p.tenant_id, p.enforcer_id, p.message_id
            ),
            -- In the order in which every other statement locks messages.
            held as materialized (
                select m.tenant_id, m.recipient, m.message_id
                  from messages m
                  join moved v on v.tenant_id = m.tenant_id and m.recipient_kind = 'enforcer'
                              and v.enforcer_id = m.recipient and v.message_id = m.message_id
                 order by m.tenant_id, m.recipient_kind, m.recipient, m.message_id
                   for no key update of m
            ),
            acked as (
                update messages m
                   set acked_at = clock_timestamp() + $9::interval
                  from held h
                 where m.tenant_id = h.tenant_id and m.recipient_kind = 'enforcer' and m.recipient = h.recipient
                   and m.message_id = h.message_id
                   and coalesce(m.acked_at, 'infinity') = 'infinity'
            )
            select i.operation_id as "operation!", v.operation_id is not null as "moved!",
                   coalesce(j.last_operation = i.operation_id, false) as "own!",
                   j.enforcer_id as "enforcer_id?", j.prompt_hash as "hash?", j.status as "status?", j.ack_at as "ack_at?",
                   j.details::text as "details?", j.expires_at as "expires_at?", j.past as "past?"
              from input i
              left join judged j on j.operation_id = i.operation_id
              left join moved v on v.operation_id = i.operation_id
            "#,
            &rows.iter().map(|row| row.operation.0).collect::<Vec<Uuid>>(),
            &rows::texts(rows, |row| row.tenant.as_str()) as _,
            &rows::texts(rows, |row| row.ack.request_id.as_str()) as _,
            &rows::optional(rows, |row| row.enforcer.as_ref().map(EnforcerId::as_str)) as _,
            &rows.iter().map(|row| row.ack.hash.to_string()).collect::<Vec<_>>(),
            &rows::texts(rows, |row| row.ack.status.as_str()) as _,
            &rows.iter().map(|row| row.ack.ack_at.inner()).collect::<Vec<OffsetDateTime>>(),
            &rows::optional(rows, |row| row.ack.details.as_deref()) as _,
            self.clock.offset(),
        )
        .fetch_all(connection)
        .await?;
        let mut facts = Vec::with_capacity(found.len());
        for row in found {
            let fact = match (row.enforcer_id, row.hash, row.status, row.ack_at) {
                (Some(enforcer), Some(hash), Some(status), Some(ack_at)) => {
                    let mut standing = standing(
                        (&hash, &status, ack_at, row.details),
                        row.expires_at,
                        row.past,
                    )?;
                    let asked = rows.iter().find(|asked| asked.operation.0 == row.operation);
                    if let Some(asked) = asked.filter(|_| row.moved) {
                        standing.status = asked.ack.status;
                        standing.ack_at = asked.ack.ack_at;
                        standing.details.clone_from(&asked.ack.details);
                    }
                    let fact = AckFact {
                        written: row.moved || row.own,
                        standing,
                    };
                    Some((rows::id(&enforcer)?, fact))
                }
                _ => None,
            };
            facts.push((row.operation, fact));
        }
        rows::in_order(rows.iter().map(|row| row.operation.0), facts.into_iter())
    }
}

/// What became of a prompt: past its time, a queued one is expired, whether or not the sweep has been by.
pub(super) fn standing(
    (hash, status, ack_at, details): (&str, &str, OffsetDateTime, Option<String>),
    expires_at: Option<OffsetDateTime>,
    past: Option<bool>,
) -> Result<PromptRecord, sqlx::Error> {
    let status = rows::prompt_status(status)?;
    let (status, ack_at) = match (status, expires_at) {
        (PromptStatus::Queued, Some(at)) if past.unwrap_or(false) => (PromptStatus::Expired, at),
        (status, _) => (status, ack_at),
    };
    Ok(PromptRecord {
        hash: rows::hash(hash)?,
        status,
        ack_at: ack_at.into(),
        details,
        expires_at: expires_at.map(Into::into),
    })
}

/// A prompt as those it concerns may read it.
#[derive(Debug)]
pub struct StoredPrompt {
    pub enforcer_id: EnforcerId,
    /// Who sent it; none for an administrator.
    pub approver_id: Option<ApproverId>,
    pub standing: PromptRecord,
}

impl Store {
    pub async fn prompt(
        &self,
        tenant: &TenantId,
        request: &RequestId,
    ) -> Result<Option<StoredPrompt>, StoreError> {
        let mut lease = self.pool.lease(TenantScope::Tenant(tenant)).await?;
        let found = sqlx::query!(
            r#"
            select enforcer_id, approver_id as "approver_id?", prompt_hash, status, ack_at, details::text as "details?",
                   expires_at as "expires_at?", expires_at <= clock_timestamp() + $3::interval as "past?"
              from prompts
             where tenant_id = $1 and request_id = $2
            "#,
            tenant.as_str(),
            request.as_str(),
            self.clock.offset(),
        )
        .fetch_optional(lease.connection()?)
        .await;
        let Some(row) = lease.settle(found)? else {
            return Ok(None);
        };
        Ok(Some(StoredPrompt {
            enforcer_id: rows::id(&row.enforcer_id)?,
            approver_id: row.approver_id.as_deref().map(rows::id).transpose()?,
            standing: standing(
                (&row.prompt_hash, &row.status, row.ack_at, row.details),
                row.expires_at,
                row.past,
            )?,
        }))
    }

    pub async fn expire_prompts(&self, limit: i64) -> Result<u64, StoreError> {
        // All: whatever is due, whoever's it is.
        let mut lease = self.background.lease(TenantScope::All).await?;
        let expired = sqlx::query_scalar!(
            r#"
            with found as materialized (
                select p.tenant_id, p.request_id
                  from prompts p
                 where p.status = 'queued' and p.expires_at <= (select clock_timestamp() + $1::interval)
                 order by p.expires_at
                 limit $2
                   for no key update of p skip locked
            ),
            due as materialized (
                select d.tenant_id, d.request_id
                  from unnest(array(select tenant_id from found), array(select request_id from found))
                       as d (tenant_id, request_id)
            ),
            expired as (
                update prompts p
                   set status = 'expired', ack_at = p.expires_at
                  from due d
                 where p.tenant_id = d.tenant_id and p.request_id = d.request_id and p.status = 'queued'
                returning p.tenant_id, p.enforcer_id, p.message_id, p.expires_at
            ),
            held as materialized (
                select m.tenant_id, m.recipient, m.message_id, e.expires_at
                  from messages m
                  join expired e on e.tenant_id = m.tenant_id and m.recipient_kind = 'enforcer'
                                and e.enforcer_id = m.recipient and e.message_id = m.message_id
                 order by m.tenant_id, m.recipient_kind, m.recipient, m.message_id
                   for no key update of m
            ),
            -- Nobody is going to acknowledge what is never sent again.
            closed as (
                update messages m
                   set acked_at = h.expires_at
                  from held h
                 where m.tenant_id = h.tenant_id and m.recipient_kind = 'enforcer' and m.recipient = h.recipient
                   and m.message_id = h.message_id
                   and coalesce(m.acked_at, 'infinity') = 'infinity'
            )
            select count(*) as "count!" from expired
            "#,
            self.clock.offset(),
            limit,
        )
        .fetch_one(lease.connection()?)
        .await;
        Ok(u64::try_from(lease.settle(expired)?).unwrap_or_default())
    }
}
