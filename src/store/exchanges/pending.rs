//! Which exchanges are pending, and how many.

use std::collections::HashMap;
use std::time::Duration;

use crate::protocol::id::{ApproverId, EnforcerId, RequestId, TenantId};
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::rows::column;
use crate::store::database::tenant_scope::TenantScope;
use crate::store::error::Result;
use crate::store::exchanges::exchange::ExchangeStore;

/// Most rows that are counted, of an index that holds nothing but pending exchanges.
const COUNTED: i64 = 1_000;

/// Exchanges of the whole cluster.
#[derive(Debug, Clone, Copy)]
pub struct PendingCounts {
    pub pending: i64,
    /// Past their expiry and not closed yet.
    pub overdue: i64,
}

impl ExchangeStore {
    /// Of these exchanges, the ones that are pending, and for how long yet. Those that are not this enforcer's, or that this
    /// approver was not asked about, are left out.
    pub async fn pending_of(
        &self,
        tenant: &TenantId,
        requests: &[RequestId],
        enforcer: Option<&EnforcerId>,
        approver: Option<&ApproverId>,
    ) -> Result<HashMap<RequestId, Duration>> {
        let query = sqlx::query!(
            r#"
            select e.request_id as "request_id: RequestId",
                   extract(epoch from e.expires_at - c.at)::float8 as "expires_in!"
              from unnest($1::text[]) as i (request_id)
             cross join (select clock_timestamp() + $2::interval as at) c
              join exchanges e on e.tenant_id = $3 and e.request_id = i.request_id
             where e.state = 'pendingApproval' and e.expires_at > c.at
               and ($4::text is null or e.enforcer_id = $4)
               -- The limit keeps the planner from hashing all inbox items.
               and ($5::text is null
                    or (select true from inbox_items x
                         where x.tenant_id = e.tenant_id and x.request_id = e.request_id and x.approver_id = $5
                         limit 1) is not null)
            "#,
            column(requests, |request| request) as _,
            clock_offset(&self.database.clock),
            tenant.as_str(),
            enforcer.map(EnforcerId::as_str),
            approver.map(ApproverId::as_str),
        )
        .map(|row| {
            let left = Duration::try_from_secs_f64(row.expires_in);
            (row.request_id, left.unwrap_or_default())
        });
        let found = self.database.pool.fetch_all(tenant, query).await?;
        Ok(found.into_iter().collect())
    }

    /// Of these exchanges, the ones that are no longer pending, or are gone.
    pub async fn settled_exchanges(
        &self,
        waited_for: &[(TenantId, RequestId)],
    ) -> Result<Vec<(TenantId, RequestId)>> {
        let scope = TenantScope::of(waited_for.iter().map(|(tenant, _)| tenant));
        let query = sqlx::query!(
            r#"
            select i.tenant_id as "tenant_id!: TenantId", i.request_id as "request_id!: RequestId"
              from unnest($1::text[], $2::text[]) as i (tenant_id, request_id)
              left join exchanges e on e.tenant_id = i.tenant_id and e.request_id = i.request_id
             where e.request_id is null or e.state <> 'pendingApproval'
                or e.expires_at <= clock_timestamp() + $3::interval
            "#,
            column(waited_for, |(tenant, _)| tenant) as _,
            column(waited_for, |(_, request)| request) as _,
            clock_offset(&self.database.clock),
        )
        .map(|row| (row.tenant_id, row.request_id));
        self.database.background.fetch_all(scope, query).await
    }

    /// Counts for the metrics. Past a thousand the exact figure is of no use, and a long backlog must not make the count
    /// slow.
    pub async fn count_pending(&self) -> Result<PendingCounts> {
        // By their inbox items, which are open as long as they are pending. Ordered as the index is, or the planner would read
        // all of it before it applies the limit.
        let query = sqlx::query_as!(
            PendingCounts,
            r#"
            select (select count(*)
                      from (select distinct i.expires_at, i.tenant_id, i.request_id
                              from inbox_items i
                             where coalesce(i.closed_at, 'infinity') = 'infinity'
                               and i.expires_at > (select clock_timestamp() + $1::interval)
                             order by i.expires_at, i.tenant_id, i.request_id
                             limit $2) p) as "pending!",
                   (select count(*)
                      from (select distinct i.expires_at, i.tenant_id, i.request_id
                              from inbox_items i
                             where coalesce(i.closed_at, 'infinity') = 'infinity'
                               and i.expires_at <= (select clock_timestamp() + $1::interval)
                             order by i.expires_at, i.tenant_id, i.request_id
                             limit $2) o) as "overdue!"
            "#,
            clock_offset(&self.database.clock),
            COUNTED,
        );
        // All: an operator asks for the cluster, and learns no more than two numbers.
        let scope = TenantScope::All;
        self.database.background.fetch_one(scope, query).await
    }
}
