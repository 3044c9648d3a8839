//! Deletes expired idempotency keys, finished exchanges and old prompts and, earlier if configured, their payloads, in small
//! batches. Rows that another node has locked are left for the next run.
//!
//! What is found by age is walked from the oldest on, each statement from where the one before ended: starting over, each would
//! read again what is not due yet, and all that was deleted and not vacuumed yet.

use sqlx::postgres::types::PgInterval;
use time::OffsetDateTime;

use super::error::Result;
use super::tenant_scope::TenantScope;
use super::{ExchangeStore, PromptStore};
use crate::protocol::cursor::PagePosition;
use crate::protocol::id::TenantId;
use crate::store::clock_offset::clock_offset;

/// What one statement of a walk did.
#[derive(Debug)]
pub struct DeletedBatch {
    pub rows: u64,
    /// Where the walk goes on; `None` at its end.
    pub next: Option<PagePosition>,
}

/// A statement's count of rows deleted, of rows read, and the last of these.
struct DeletedBatchRow {
    deleted: i64,
    read: i64,
    last_at: Option<OffsetDateTime>,
    last_id: Option<String>,
}

impl DeletedBatchRow {
    fn deleted_batch(self, limit: i64) -> DeletedBatch {
        let last = self.last_at.zip(self.last_id);
        DeletedBatch {
            rows: u64::try_from(self.deleted).unwrap_or_default(),
            next: last
                .filter(|_| self.read >= limit)
                .map(|(at, id)| PagePosition { at, id }),
        }
    }
}

fn start(after: Option<&PagePosition>) -> (OffsetDateTime, &str) {
    // Before everything: rows without a known age have that of the epoch.
    let before = OffsetDateTime::UNIX_EPOCH - time::Duration::DAY;
    after.map_or((before, ""), |position| (position.at, &position.id))
}

impl ExchangeStore {
    /// Deletes finished exchanges of a tenant that ended longer ago than `keep`, with all that belongs to them. Reads at most
    /// `limit` exchanges, from `after` on.
    pub async fn delete_expired_exchanges(
        &self,
        tenant: &TenantId,
        keep: PgInterval,
        after: Option<&PagePosition>,
        limit: i64,
    ) -> Result<DeletedBatch> {
        let (at, id) = start(after);
        let query = sqlx::query_as!(
            DeletedBatchRow,
            r#"
            with old as materialized (
                select e.accepted_at, e.request_id
                  from exchanges e
                 where e.tenant_id = $1
                   and e.accepted_at < (select clock_timestamp() + $2::interval - $3::interval)
                   and (e.accepted_at, e.request_id) > ($5, $6)
                 order by e.accepted_at, e.request_id
                 limit $4
            ),
            to_delete as materialized (
                select e.tenant_id, e.request_id
                  from unnest(array(select request_id from old)) as o (request_id)
                  join exchanges e on e.tenant_id = $1 and e.request_id = o.request_id
                 where e.state <> 'pendingApproval'
                   and coalesce(e.ended_at, e.decided_at) < clock_timestamp() + $2::interval - $3::interval
                 order by e.tenant_id, e.request_id
                   for update of e skip locked
            ),
            payloads as (
                delete from exchange_payloads p using to_delete d
                 where p.tenant_id = d.tenant_id and p.request_id = d.request_id
            ),
            items as materialized (
                select i.tenant_id, i.request_id, i.approver_id
                  from inbox_items i
                  join to_delete d on d.tenant_id = i.tenant_id and d.request_id = i.request_id
                 order by i.tenant_id, i.request_id, i.approver_id
                   for update of i
            ),
            unasked as (
                delete from inbox_items x using items i
                 where x.tenant_id = i.tenant_id and x.request_id = i.request_id and x.approver_id = i.approver_id
            ),
            sent as materialized (
                select m.tenant_id, m.recipient_kind, m.recipient, m.message_id
                  from messages m
                  join to_delete d on d.tenant_id = m.tenant_id and d.request_id = m.request_id and m.kind <> 'prompt.send'
                 -- Messages are locked after the items.
                 cross join (select count(*) as items from items) behind
                 order by m.tenant_id, m.recipient_kind, m.recipient, m.message_id
                   for update of m
            ),
            unsent as (
                delete from messages m using sent s
                 where m.tenant_id = s.tenant_id and m.recipient_kind = s.recipient_kind and m.recipient = s.recipient
                   and m.message_id = s.message_id
            ),
            gone as (
                delete from exchanges e using to_delete d
                 where e.tenant_id = d.tenant_id and e.request_id = d.request_id
                returning e.request_id
            )
            select (select count(*) from gone) as "deleted!", c.read as "read!", l.accepted_at as "last_at?",
                   l.request_id as "last_id?"
              from (select count(*) as read from old) c
             -- The node's own role may only add events.
             cross join (select forget_exchange_events($1, array(select d.request_id from to_delete d)) as events) v
              left join (select o.accepted_at, o.request_id from old o
                          order by o.accepted_at desc, o.request_id desc
                          limit 1) l on true
             where v.events is not null
            "#,
            tenant.as_str(),
            clock_offset(&self.database.clock),
            keep,
            limit,
            at,
            id,
        );
        let walked = self.database.background.fetch_one(tenant, query).await?;
        Ok(walked.deleted_batch(limit))
    }

    /// Deletes the artifacts of exchanges of a tenant that ended longer ago than `keep`; hashes and decisions stay. Reads at
    /// most `limit` artifacts, from `after` on: what was scrubbed is never read again.
    pub async fn scrub_artifacts(
        &self,
        tenant: &TenantId,
        keep: PgInterval,
        after: Option<&PagePosition>,
        limit: i64,
    ) -> Result<DeletedBatch> {
        let (at, id) = start(after);
        let query = sqlx::query_as!(
            DeletedBatchRow,
            r#"
            with old as materialized (
                select p.stored_at, p.request_id
                  from exchange_payloads p
                 where p.tenant_id = $1 and p.part = 'artifact'
                   and p.stored_at < (select clock_timestamp() + $2::interval - $3::interval)
                   and (p.stored_at, p.request_id) > ($5, $6)
                 order by p.stored_at, p.request_id
                 limit $4
            ),
            finished as materialized (
                select e.tenant_id, e.request_id
                  from unnest(array(select request_id from old)) as o (request_id)
                  join exchanges e on e.tenant_id = $1 and e.request_id = o.request_id
                 where e.state <> 'pendingApproval'
                   and coalesce(e.ended_at, e.decided_at) < clock_timestamp() + $2::interval - $3::interval
                 order by e.tenant_id, e.request_id
                   for no key update of e skip locked
            ),
            gone as (
                delete from exchange_payloads p using finished f
                 where p.tenant_id = f.tenant_id and p.request_id = f.request_id and p.part = 'artifact'
                returning p.request_id
            )
            select (select count(*) from gone) as "deleted!", c.read as "read!", l.stored_at as "last_at?",
                   l.request_id as "last_id?"
              from (select count(*) as read from old) c
              left join (select o.stored_at, o.request_id from old o
                          order by o.stored_at desc, o.request_id desc
                          limit 1) l on true
            "#,
            tenant.as_str(),
            clock_offset(&self.database.clock),
            keep,
            limit,
            at,
            id,
        );
        let walked = self.database.background.fetch_one(tenant, query).await?;
        Ok(walked.deleted_batch(limit))
    }

    /// Deletes nonces that were used longer ago than `keep`.
    pub async fn delete_expired_nonces(&self, keep: PgInterval, limit: i64) -> Result<u64> {
        let query = sqlx::query!(
            r#"
            with found as materialized (
                select n.tenant_id, n.approver_id, n.signer_key_id, n.nonce
                  from decision_nonces n
                 where n.used_at < (select clock_timestamp() + $1::interval - $2::interval)
                 order by n.used_at
                 limit $3
            ),
            to_delete as materialized (
                select d.tenant_id, d.approver_id, d.signer_key_id, d.nonce
                  from unnest(array(select tenant_id from found), array(select approver_id from found),
                              array(select signer_key_id from found), array(select nonce from found))
                       as d (tenant_id, approver_id, signer_key_id, nonce)
            )
            delete from decision_nonces n using to_delete d
             where n.tenant_id = d.tenant_id and n.approver_id = d.approver_id and n.signer_key_id = d.signer_key_id
               and n.nonce = d.nonce
            "#,
            clock_offset(&self.database.clock),
            keep,
            limit,
        );
        // All: the sweep serves every tenant.
        let scope = TenantScope::All;
        self.database.background.execute(scope, query).await
    }

    /// Deletes who was asked by whom, if that was longer ago than `keep`.
    pub async fn delete_expired_inbox_rows(&self, keep: PgInterval, limit: i64) -> Result<u64> {
        let query = sqlx::query!(
            r#"
            with found as materialized (
                select k.tenant_id, k.approver_id, k.enforcer_id
                  from asked_approvers k
                 where k.asked_at < (select clock_timestamp() + $1::interval - $2::interval)
                 order by k.asked_at
                 limit $3
                   for update of k skip locked
            ),
            to_delete as materialized (
                select d.tenant_id, d.approver_id, d.enforcer_id
                  from unnest(array(select tenant_id from found), array(select approver_id from found),
                              array(select enforcer_id from found))
                       as d (tenant_id, approver_id, enforcer_id)
            )
            delete from asked_approvers k using to_delete d
             where k.tenant_id = d.tenant_id and k.approver_id = d.approver_id and k.enforcer_id = d.enforcer_id
            "#,
            clock_offset(&self.database.clock),
            keep,
            limit,
        );
        // All: the sweep serves every tenant.
        let scope = TenantScope::All;
        self.database.background.execute(scope, query).await
    }

    /// Deletes expired idempotency keys.
    pub async fn delete_expired_idempotency_keys(&self, limit: i64) -> Result<u64> {
        let query = sqlx::query!(
            r#"
            with found as materialized (
                select k.tenant_id, k.principal, k.key
                  from idempotency_keys k
                 where k.expires_at <= (select clock_timestamp() + $1::interval)
                 order by k.expires_at
                 limit $2
                   for update of k skip locked
            ),
            to_delete as materialized (
                select d.tenant_id, d.principal, d.key
                  from unnest(array(select tenant_id from found), array(select principal from found),
                              array(select key from found))
                       as d (tenant_id, principal, key)
            )
            delete from idempotency_keys k using to_delete d
             where k.tenant_id = d.tenant_id and k.principal = d.principal and k.key = d.key
            "#,
            clock_offset(&self.database.clock),
            limit,
        );
        // All: the sweep serves every tenant.
        let scope = TenantScope::All;
        self.database.background.execute(scope, query).await
    }
}

impl PromptStore {
    /// Deletes prompts of a tenant that were accepted longer ago than `keep`.
    pub async fn delete_expired_prompts(
        &self,
        tenant: &TenantId,
        keep: PgInterval,
        limit: i64,
    ) -> Result<u64> {
        let query = sqlx::query!(
            r#"
            with found as materialized (
                select p.tenant_id, p.request_id, p.enforcer_id, p.message_id
                  from prompts p
                 where p.tenant_id = $1 and p.accepted_at < (select clock_timestamp() + $2::interval - $3::interval)
                 order by p.accepted_at
                 limit $4
                   for update of p skip locked
            ),
            to_delete as materialized (
                select d.tenant_id, d.request_id, d.enforcer_id, d.message_id
                  from unnest(array(select tenant_id from found), array(select request_id from found),
                              array(select enforcer_id from found), array(select message_id from found))
                       as d (tenant_id, request_id, enforcer_id, message_id)
            ),
            payloads as (
                delete from prompt_payloads y using to_delete d
                 where y.tenant_id = d.tenant_id and y.request_id = d.request_id
            ),
            sent as materialized (
                select m.tenant_id, m.recipient_kind, m.recipient, m.message_id
                  from messages m
                  join to_delete d on m.tenant_id = d.tenant_id and m.recipient_kind = 'enforcer'
                               and m.recipient = d.enforcer_id and m.message_id = d.message_id
                 order by m.tenant_id, m.recipient_kind, m.recipient, m.message_id
                   for update of m
            ),
            unsent as (
                delete from messages m using sent s
                 where m.tenant_id = s.tenant_id and m.recipient_kind = s.recipient_kind and m.recipient = s.recipient
                   and m.message_id = s.message_id
            ),
            gone as (
                delete from prompts p using to_delete d
                 where p.tenant_id = d.tenant_id and p.request_id = d.request_id
                returning p.request_id
            )
            select count(*) as "count!" from gone
            "#,
            tenant.as_str(),
            clock_offset(&self.database.clock),
            keep,
            limit,
        )
        .map(|row| u64::try_from(row.count).unwrap_or_default());
        self.database.background.fetch_one(tenant, query).await
    }

    /// Deletes the texts of prompts of a tenant that were settled longer ago than `keep`; their hashes stay.
    pub async fn scrub_prompts(
        &self,
        tenant: &TenantId,
        keep: PgInterval,
        limit: i64,
    ) -> Result<u64> {
        let query = sqlx::query!(
            r#"
            with found as materialized (
                select p.tenant_id, p.request_id
                  from prompts p
                 where p.tenant_id = $1 and not p.scrubbed and p.status <> 'queued'
                   and p.accepted_at < (select clock_timestamp() + $2::interval - $3::interval)
                 order by p.accepted_at
                 limit $4
                   for no key update of p skip locked
            ),
            settled as materialized (
                select d.tenant_id, d.request_id
                  from unnest(array(select tenant_id from found), array(select request_id from found))
                       as d (tenant_id, request_id)
            ),
            texts as (
                delete from prompt_payloads y using settled s
                 where y.tenant_id = s.tenant_id and y.request_id = s.request_id
            )
            update prompts p
               set scrubbed = true
              from settled s
             where p.tenant_id = s.tenant_id and p.request_id = s.request_id
            "#,
            tenant.as_str(),
            clock_offset(&self.database.clock),
            keep,
            limit,
        );
        self.database.background.execute(tenant, query).await
    }
}
