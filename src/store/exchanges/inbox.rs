//! Pages of an approver's inbox, oldest first; its count; and removal of items.

use sqlx::postgres::types::PgInterval;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::protocol::artifact::Form;
use crate::protocol::id::{ApproverId, EnforcerId, MessageId, RequestId, TenantId};
use crate::protocol::listing::InboxKind;
use crate::protocol::message::RequestMessage;
use crate::protocol::timestamp::Timestamp;
use crate::store::ExchangeStore;
use crate::store::database::busy::{LockTries, RowLock};
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::rows::column;
use crate::store::error::Result;

/// Where a page starts: after this row.
#[derive(Debug, Clone, Copy)]
pub struct PageStart {
    pub created_at: OffsetDateTime,
    pub message_id: Uuid,
}

/// The items that are pending in an inbox.
#[derive(Debug)]
pub struct PendingItems {
    pub count: i64,
    /// The enforcers that many of them are from.
    pub busiest: Vec<EnforcerId>,
}

pub struct InboxPage {
    pub items: Vec<RequestMessage>,
    pub more: bool,
}

impl ExchangeStore {
    /// One page of an inbox: at most `limit` items, ending early once it holds `max_bytes` of payload.
    pub async fn inbox_page(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        kind: InboxKind,
        after: Option<PageStart>,
        limit: i64,
        max_bytes: i64,
    ) -> Result<InboxPage> {
        let (at, id) = after.map_or((OffsetDateTime::UNIX_EPOCH, Uuid::nil()), |after| {
            (after.created_at, after.message_id)
        });
        let offset: PgInterval = clock_offset(&self.database.clock);
        // A union of two branches, so that each uses its own partial index.
        let query = sqlx::query!(
            r#"
            with page as materialized (
                select x.tenant_id, x.request_id, x.message_id, x.created_at
                  from (
                      (select o.tenant_id, o.request_id, o.message_id, o.created_at
                         from inbox_items o
                        where o.tenant_id = $1 and o.approver_id = $2
                          and o.closed_at is null and o.removed_at is null
                          and (o.expires_at <= clock_timestamp() + $3::interval) = $4
                          and (o.created_at, o.message_id) > ($5, $6)
                        order by o.created_at, o.message_id
                        limit $7)
                      union all
                      (select c.tenant_id, c.request_id, c.message_id, c.created_at
                         from inbox_items c
                        where $4 and c.tenant_id = $1 and c.approver_id = $2
                          and c.closed_as = 'expired' and c.removed_at is null
                          and (c.created_at, c.message_id) > ($5, $6)
                        order by c.created_at, c.message_id
                        limit $7)
                  ) x
                 order by x.created_at, x.message_id
                 limit $7
            ),
            weighed as (
                select p.request_id, p.message_id, p.created_at,
                       coalesce(sum(pg_column_size(y.body) + coalesce(pg_column_size(y.trace), 0))
                           over (order by p.created_at, p.message_id
                                  rows between unbounded preceding and 1 preceding), 0) as before
                  from page p
                  left join exchange_payloads y
                         on y.tenant_id = p.tenant_id and y.request_id = p.request_id and y.part = 'artifact'
            )
            select w.request_id as "request_id!: RequestId", w.message_id as "message_id!: MessageId",
                   w.created_at as "created_at!: Timestamp", e.expires_at as "expires_at!: Timestamp",
                   e.enforcer_id as "enforcer_id!: EnforcerId", e.form as "form!: Form",
                   -- As in `approver_messages`.
                   case when g.approver_id is null then n.label else g.enforcer_label end as "enforcer_label?",
                   e.artifact_type as "artifact_type!", e.artifact_hash as "artifact_hash!",
                   y.body::text as "body?", y.trace::text as "trace?",
                   (select count(*) from page) as "found!"
              from weighed w
              join exchanges e on e.tenant_id = $1 and e.request_id = w.request_id
              left join exchange_payloads y
                     on y.tenant_id = $1 and y.request_id = w.request_id and y.part = 'artifact'
              left join enforcers n on n.tenant_id = $1 and n.enforcer_id = e.enforcer_id
              left join pairings g on g.tenant_id = $1 and g.enforcer_id = e.enforcer_id
                                  and g.approver_id = $2
             where w.before < $8
             order by w.created_at, w.message_id
            "#,
            tenant.as_str(),
            approver.as_str(),
            offset,
            kind == InboxKind::Expired,
            at,
            id,
            limit + 1,
            max_bytes,
        );
        let found = self.database.pool.fetch_all(tenant, query).await?;
        let fetched = i64::try_from(found.len()).unwrap_or(i64::MAX);
        let more = found
            .first()
            .is_some_and(|row| row.found > fetched.min(limit));
        let wanted = usize::try_from(limit).unwrap_or_default();
        let items = found.into_iter().take(wanted).map(|row| RequestMessage {
            message_id: row.message_id,
            request_id: row.request_id,
            created_at: row.created_at,
            expires_at: row.expires_at,
            enforcer_id: row.enforcer_id,
            enforcer_label: row.enforcer_label,
            approver_id: approver.clone(),
            form: row.form,
            artifact_type: row.artifact_type,
            artifact_hash: row.artifact_hash,
            stored: row.body,
            trace: row.trace,
            expired: kind == InboxKind::Expired,
        });
        let items = items.collect();
        Ok(InboxPage { items, more })
    }

    /// How many items are active in each of these inboxes, counted up to `most`, and which enforcers have more than `many`
    /// of them.
    pub async fn pending(
        &self,
        tenant: &TenantId,
        approvers: &[&ApproverId],
        most: i64,
        many: i64,
    ) -> Result<Vec<PendingItems>> {
        let query = sqlx::query_as!(
            PendingItems,
            r#"
            select n.count as "count!", n.busiest as "busiest!: Vec<EnforcerId>"
              from unnest($1::text[]) with ordinality as i (approver_id, n)
             cross join lateral (
                 select coalesce(sum(g.own), 0)::bigint as count,
                        coalesce(array_agg(g.enforcer_id) filter (where g.enforcer_id is not null and g.own > $2), '{}')
                            as busiest
                   from (select counted.enforcer_id, count(*) as own
                           from (select x.enforcer_id
                                   from inbox_items x
                                  where x.tenant_id = $3 and x.approver_id = i.approver_id
                                    and x.closed_at is null and x.removed_at is null
                                    and x.expires_at > clock_timestamp() + $4::interval
                                  limit $5) counted
                          group by counted.enforcer_id) g) n
             order by i.n
            "#,
            column(approvers, |approver| *approver) as _,
            many,
            tenant.as_str(),
            clock_offset(&self.database.clock),
            most,
        );
        self.database.pool.fetch_all(tenant, query).await
    }

    /// Hides an item, active or expired, from one approver; returns when its exchange expires. `None`: nothing to hide.
    pub async fn remove_item(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        request: &RequestId,
    ) -> Result<Option<Timestamp>> {
        let (database, mut tries) = (&self.database, LockTries::new(self.database.lock_timeout));
        loop {
            let found = self.try_remove(tenant, approver, request).await?;
            let again = database.is_tried_again("remove_item", &found, &mut tries);
            if !again.await {
                return found.locked();
            }
        }
    }

    async fn try_remove(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        request: &RequestId,
    ) -> Result<RowLock<Option<Timestamp>>> {
        let query = sqlx::query!(
            r#"
            with locked as materialized (
                select x.request_id
                  from inbox_items x
                 where x.tenant_id = $1 and x.request_id = $2 and x.approver_id = $3
                   for no key update of x skip locked
            ),
            removed as (
                update inbox_items x
                   set removed_at = clock_timestamp() + $4::interval
                  from locked l
                 where x.tenant_id = $1 and x.request_id = l.request_id and x.approver_id = $3
                   and x.removed_at is null and (x.closed_at is null or x.closed_as = 'expired')
                returning x.expires_at
            )
            select (select expires_at from removed) as expires_at,
                   exists (select from inbox_items x
                            where x.tenant_id = $1 and x.request_id = $2 and x.approver_id = $3)
                   and not exists (select from locked) as "busy!"
            "#,
            tenant.as_str(),
            request.as_str(),
            approver.as_str(),
            clock_offset(&self.database.clock),
        );
        let found = self.database.pool.fetch_one(tenant, query).await?;
        let expires_at = found.expires_at.map(Timestamp::from);
        Ok(RowLock::unless(found.busy, expires_at))
    }
}
