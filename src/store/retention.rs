//! Forgetting: finished exchanges, payloads before them where configured, and idempotency keys, in small batches.

use sqlx::postgres::types::PgInterval;

use super::Store;
use super::error::StoreError;
use crate::protocol::id::TenantId;

impl Store {
    /// Deletes finished exchanges of a tenant that ended longer ago than `keep`, with all that belongs to them.
    pub async fn forget_exchanges(
        &self,
        tenant: &TenantId,
        keep: PgInterval,
        limit: i64,
    ) -> Result<u64, StoreError> {
        let mut lease = self.quiet.lease().await?;
        let gone = sqlx::query_scalar!(
            r#"
            with doomed as materialized (
                select e.tenant_id, e.request_id
                  from exchanges e
                 where e.tenant_id = $1
                   and e.accepted_at < clock_timestamp() + $2::interval - $3::interval
                   and e.state <> 'pendingApproval'
                   and coalesce(e.ended_at, e.decided_at) < clock_timestamp() + $2::interval - $3::interval
                 order by e.accepted_at
                 limit $4
                   for update of e skip locked
            ),
            payloads as (
                delete from exchange_payloads p using doomed d
                 where p.tenant_id = d.tenant_id and p.request_id = d.request_id
            ),
            items as (
                delete from inbox_items i using doomed d
                 where i.tenant_id = d.tenant_id and i.request_id = d.request_id
            ),
            sent as (
                delete from messages m using doomed d
                 where m.tenant_id = d.tenant_id and m.request_id = d.request_id
            ),
            events as (
                delete from exchange_events v using doomed d
                 where v.tenant_id = d.tenant_id and v.request_id = d.request_id
            ),
            gone as (
                delete from exchanges e using doomed d
                 where e.tenant_id = d.tenant_id and e.request_id = d.request_id
                returning e.request_id
            )
            select count(*) as "count!" from gone
            "#,
            tenant.as_str(),
            self.clock.offset(),
            keep,
            limit,
        )
        .fetch_one(lease.connection()?)
        .await;
        Ok(u64::try_from(lease.settle(gone)?).unwrap_or_default())
    }

    /// Deletes the artifacts of exchanges of a tenant that ended longer ago than `keep`; hashes and decisions stay.
    pub async fn scrub_artifacts(
        &self,
        tenant: &TenantId,
        keep: PgInterval,
        limit: i64,
    ) -> Result<u64, StoreError> {
        let mut lease = self.quiet.lease().await?;
        let gone = sqlx::query!(
            r#"
            with finished as materialized (
                select e.tenant_id, e.request_id
                  from exchanges e
                 where e.tenant_id = $1
                   and e.accepted_at < clock_timestamp() + $2::interval - $3::interval
                   and e.state <> 'pendingApproval'
                   and coalesce(e.ended_at, e.decided_at) < clock_timestamp() + $2::interval - $3::interval
                   and exists (select from exchange_payloads p
                                where p.tenant_id = e.tenant_id and p.request_id = e.request_id and p.part = 'artifact')
                 order by e.accepted_at
                 limit $4
            )
            delete from exchange_payloads p using finished f
             where p.tenant_id = f.tenant_id and p.request_id = f.request_id and p.part = 'artifact'
            "#,
            tenant.as_str(),
            self.clock.offset(),
            keep,
            limit,
        )
        .execute(lease.connection()?)
        .await;
        Ok(lease.settle(gone)?.rows_affected())
    }

    /// Deletes idempotency keys past their time.
    pub async fn forget_keys(&self, limit: i64) -> Result<u64, StoreError> {
        let mut lease = self.quiet.lease().await?;
        let gone = sqlx::query!(
            r#"
            with doomed as materialized (
                select k.tenant_id, k.principal, k.key
                  from idempotency_keys k
                 where k.expires_at <= clock_timestamp() + $1::interval
                 order by k.expires_at
                 limit $2
                   for update of k skip locked
            )
            delete from idempotency_keys k using doomed d
             where k.tenant_id = d.tenant_id and k.principal = d.principal and k.key = d.key
            "#,
            self.clock.offset(),
            limit,
        )
        .execute(lease.connection()?)
        .await;
        Ok(lease.settle(gone)?.rows_affected())
    }
}
