//! Statements that delete the finished exchanges of a tenant, or their artifacts alone. Some old
//! rows are not due yet, so each statement continues where the previous one stopped. Starting over,
//! it would read these again, and all rows that were deleted and are not vacuumed yet.

use sqlx::postgres::types::PgInterval;
use time::OffsetDateTime;

use super::rules::{BATCH, DeletedBatch, LARGE_ROWS};
use crate::protocol::cursor::PagePosition;
use crate::protocol::id::TenantId;
use crate::store::Database;
use crate::store::database::clock_offset::clock_offset;
use crate::store::error::Result;

struct DeletedBatchRow {
    deleted: i64,
    read: i64,
    last_at: Option<OffsetDateTime>,
    last_id: Option<String>,
}

impl DeletedBatchRow {
    fn deleted_batch(self, limit: i64) -> DeletedBatch {
        let last = self.last_at.zip(self.last_id);
        let last = last.filter(|_| self.read >= limit);
        DeletedBatch {
            rows: self.deleted,
            more: last.is_some(),
            last: last.map(|(at, id)| PagePosition { at, id }),
        }
    }
}

fn start(after: Option<&PagePosition>) -> (OffsetDateTime, &str) {
    // Before everything: rows without a known age have that of the epoch.
    let before = OffsetDateTime::UNIX_EPOCH - time::Duration::DAY;
    after.map_or((before, ""), |position| (position.at, &position.id))
}

impl Database {
    /// Deletes finished exchanges that ended longer ago than `keep`, with all rows that belong to
    /// them.
    pub async fn delete_exchanges(
        &self,
        tenant: &TenantId,
        keep: PgInterval,
        after: Option<&PagePosition>,
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
            -- The tree of the log keeps its hashes.
            leaves as (
                delete from log_leaves l using to_delete d
                 where l.tenant_id = d.tenant_id and l.request_id = d.request_id
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
            clock_offset(&self.clock),
            keep,
            LARGE_ROWS,
            at,
            id,
        );
        let row = self.background.fetch_one(tenant, query).await?;
        Ok(row.deleted_batch(LARGE_ROWS))
    }

    /// Deletes the artifacts of exchanges that ended longer ago than `keep`. Hashes and decisions
    /// stay.
    pub async fn delete_artifacts(
        &self,
        tenant: &TenantId,
        keep: PgInterval,
        after: Option<&PagePosition>,
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
            clock_offset(&self.clock),
            keep,
            BATCH,
            at,
            id,
        );
        let row = self.background.fetch_one(tenant, query).await?;
        Ok(row.deleted_batch(BATCH))
    }
}
