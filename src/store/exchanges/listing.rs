//! Pages of a tenant's exchanges, newest first, by state, enforcer and approver.

use time::{OffsetDateTime, PrimitiveDateTime};

use crate::protocol::cursor::PagePosition;
use crate::protocol::exchange::ExchangeState;
use crate::protocol::id::{ApproverId, EnforcerId, RequestId, TenantId};
use crate::protocol::listing::ExchangeLine;
use crate::protocol::timestamp::Timestamp;
use crate::store::ExchangeStore;
use crate::store::database::clock_offset::clock_offset;
use crate::store::error::Result;

#[derive(Debug, Clone, Default)]
pub struct ExchangeFilter {
    /// Only in this state, as of now.
    pub state: Option<ExchangeState>,
    /// Only of this enforcer.
    pub enforcer: Option<EnforcerId>,
    /// Only asking this approver.
    pub approver: Option<ApproverId>,
}

pub struct ExchangePage {
    pub items: Vec<ExchangeLine>,
    /// Where the next page starts, if there may be one.
    pub next: Option<PagePosition>,
}

/// Rows read for one page: a filter that matches little must not read a tenant's whole history in one statement.
const SCANNED_PER_PAGE: i64 = 5_000;

impl ExchangeStore {
    /// One page of a tenant's exchanges, newest first. However few match, only so many rows are read: a page may be short
    /// or even empty, and still say where the next one starts.
    ///
    /// Exchanges in a state that few are in are found by an index: pending ones and those that ended without a decision
    /// through their inbox items, undelivered ones through their messages, unless these are very many. Delivered ones are
    /// what most exchanges are; they are found by age, as are those of an enforcer or an approver.
    pub async fn list_exchanges(
        &self,
        tenant: &TenantId,
        filter: &ExchangeFilter,
        after: Option<(OffsetDateTime, &str)>,
        limit: i64,
    ) -> Result<ExchangePage> {
        let (at, id) = after.unwrap_or((PrimitiveDateTime::MAX.assume_utc(), ""));
        let all = filter.state.is_none() && filter.enforcer.is_none() && filter.approver.is_none();
        let scanned = if all { limit } else { SCANNED_PER_PAGE };
        let query = sqlx::query!(
            r#"
            with undelivered as materialized (
                select m.request_id
                  from messages m
                 where $1 = 'decided' and m.tenant_id = $2 and m.kind = 'decision.deliver'
                   and coalesce(m.acked_at, '-infinity') = '-infinity'
                 order by m.created_at desc
                 limit $3::bigint + 1
            ),
            -- Where to look; several items may lead to one exchange.
            found as materialized (
                select f.accepted_at, f.request_id
                  from (
                      (select e.accepted_at, e.request_id
                         from exchanges e
                        where ($1::text is null or $1 = 'delivered'
                               or $1 = 'decided' and (select count(*) from undelivered) > $3)
                          and e.tenant_id = $2 and (e.accepted_at, e.request_id) < ($4, $5)
                        order by e.accepted_at desc, e.request_id desc
                        limit $3)
                      union all
                      (select e.accepted_at, e.request_id
                         from unnest(array(select request_id from undelivered)) as u (request_id)
                         join exchanges e on e.tenant_id = $2 and e.request_id = u.request_id
                        where (select count(*) from undelivered) <= $3 and (e.accepted_at, e.request_id) < ($4, $5))
                      union all
                      (select p.created_at, p.request_id
                         from inbox_items p
                        where $1 in ('pendingApproval', 'expired') and p.tenant_id = $2
                          and coalesce(p.closed_at, 'infinity') = 'infinity' and (p.created_at, p.request_id) < ($4, $5)
                        order by p.created_at desc, p.request_id desc
                        limit $3)
                      union all
                      (select c.created_at, c.request_id
                         from inbox_items c
                        where c.tenant_id = $2 and c.closed_as = $1 and coalesce(c.closed_as, 'decided') <> 'decided'
                          and (c.created_at, c.request_id) < ($4, $5)
                        order by c.created_at desc, c.request_id desc
                        limit $3)
                  ) f
                 order by f.accepted_at desc, f.request_id desc
                 limit $3
            ),
            scanned as materialized (
                select e.request_id, e.state, e.enforcer_id, e.artifact_type, e.artifact_hash, e.accepted_at,
                       e.expires_at, e.decision, e.decided_by, e.decided_at, e.verified, e.delivered_at,
                       e.expires_at <= clock_timestamp() + $6::interval as past
                  from unnest(array(select distinct f.request_id from found f)) as f (request_id)
                  join exchanges e on e.tenant_id = $2 and e.request_id = f.request_id
            ),
            page as materialized (
                select s.accepted_at, s.request_id
                  from scanned s
                 where ($1::text is null
                        or $1 = case when s.state = 'pendingApproval' and s.past then 'expired' else s.state end)
                   and ($7::text is null or s.enforcer_id = $7)
                   and ($8::text is null
                        or exists (select from inbox_items x
                                    where x.tenant_id = $2 and x.request_id = s.request_id and x.approver_id = $8))
                 order by s.accepted_at desc, s.request_id desc
                 limit $9
            ),
            -- Where the scan ended: at the last of a full page, else at the last row read.
            last as (
                select l.accepted_at, l.request_id
                  from (select p.accepted_at, p.request_id from page p
                         where (select count(*) from page) >= $9
                        union all
                        select f.accepted_at, f.request_id from found f
                         where (select count(*) from page) < $9) l
                 order by l.accepted_at, l.request_id
                 limit 1
            )
            select l.accepted_at as "last_at!", l.request_id as "last_id!",
                   (select count(*) from found) >= $3 or (select count(*) from page) >= $9 as "more!",
                   s.request_id as "request_id?: RequestId", s.state as "state?: ExchangeState",
                   s.enforcer_id as "enforcer_id?: EnforcerId",
                   s.artifact_type as "artifact_type?", s.artifact_hash as "artifact_hash?",
                   s.accepted_at as "accepted_at?: Timestamp", s.expires_at as "expires_at?: Timestamp",
                   s.decision as "decision?", s.decided_by as "decided_by?", s.decided_at as "decided_at?: Timestamp",
                   s.verified as "verified?", s.delivered_at as "delivered_at?: Timestamp", s.past as "past?",
                   (select array_agg(x.approver_id order by x.approver_id)
                      from inbox_items x
                     where x.tenant_id = $2 and x.request_id = s.request_id) as "approver_ids?: Vec<ApproverId>"
              from last l
              left join (page p join scanned s on s.request_id = p.request_id) on true
             order by s.accepted_at desc, s.request_id desc
            "#,
            filter.state.map(ExchangeState::as_str),
            tenant.as_str(),
            scanned,
            at,
            id,
            clock_offset(&self.database.clock),
            filter.enforcer.as_ref().map(EnforcerId::as_str),
            filter.approver.as_ref().map(ApproverId::as_str),
            limit,
        );
        let found = self.database.pool.fetch_all(tenant, query).await?;
        let next = found
            .first()
            .filter(|row| row.more)
            .map(|row| PagePosition {
                at: row.last_at,
                id: row.last_id.clone(),
            });
        // Without a match there is still one row, which says where the scan ended.
        let items = found.into_iter().filter_map(|row| {
            Some(ExchangeLine {
                request_id: row.request_id?,
                state: row.state?.at(row.past.unwrap_or(false)),
                enforcer_id: row.enforcer_id?,
                approver_ids: row.approver_ids.unwrap_or_default(),
                artifact_type: row.artifact_type.unwrap_or_default(),
                artifact_hash: row.artifact_hash.unwrap_or_default(),
                created_at: row.accepted_at?,
                expires_at: row.expires_at?,
                decision: row.decision,
                decided_by: row.decided_by,
                decided_at: row.decided_at,
                verified: row.verified,
                delivered_at: row.delivered_at,
            })
        });
        let items = items.collect();
        Ok(ExchangePage { items, next })
    }
}
