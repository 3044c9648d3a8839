//! Forgetting: finished exchanges and old prompts, and their payloads before them where configured, in small batches.

use sqlx::postgres::types::PgInterval;

use super::Store;
use super::error::StoreError;
use super::reach::Reach;
use crate::protocol::id::TenantId;

impl Store {
    /// Deletes finished exchanges of a tenant that ended longer ago than `keep`, with all that belongs to them.
    pub async fn forget_exchanges(
        &self,
        tenant: &TenantId,
        keep: PgInterval,
        limit: i64,
    ) -> Result<u64, StoreError> {
        let mut lease = self.quiet.lease(Reach::Tenant(tenant)).await?;
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
                 where m.tenant_id = d.tenant_id and m.request_id = d.request_id and m.kind <> 'prompt.send'
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
        let mut lease = self.quiet.lease(Reach::Tenant(tenant)).await?;
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

    /// Deletes prompts of a tenant that were taken longer ago than `keep`.
    pub async fn forget_prompts(
        &self,
        tenant: &TenantId,
        keep: PgInterval,
        limit: i64,
    ) -> Result<u64, StoreError> {
        let mut lease = self.quiet.lease(Reach::Tenant(tenant)).await?;
        let gone = sqlx::query_scalar!(
            r#"
            with doomed as materialized (
                select p.tenant_id, p.request_id, p.enforcer_id, p.message_id
                  from prompts p
                 where p.tenant_id = $1 and p.accepted_at < clock_timestamp() + $2::interval - $3::interval
                 order by p.accepted_at
                 limit $4
                   for update of p skip locked
            ),
            payloads as (
                delete from prompt_payloads y using doomed d
                 where y.tenant_id = d.tenant_id and y.request_id = d.request_id
            ),
            sent as (
                delete from messages m using doomed d
                 where m.tenant_id = d.tenant_id and m.recipient_kind = 'enforcer' and m.recipient = d.enforcer_id
                   and m.message_id = d.message_id
            ),
            gone as (
                delete from prompts p using doomed d
                 where p.tenant_id = d.tenant_id and p.request_id = d.request_id
                returning p.request_id
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

    /// Deletes the texts of prompts of a tenant that were settled longer ago than `keep`; their hashes stay.
    pub async fn scrub_prompts(
        &self,
        tenant: &TenantId,
        keep: PgInterval,
        limit: i64,
    ) -> Result<u64, StoreError> {
        let mut lease = self.quiet.lease(Reach::Tenant(tenant)).await?;
        let gone = sqlx::query!(
            r#"
            with settled as materialized (
                select p.tenant_id, p.request_id
                  from prompts p
                 where p.tenant_id = $1 and p.accepted_at < clock_timestamp() + $2::interval - $3::interval
                   and p.status <> 'queued'
                   and exists (select from prompt_payloads y where y.tenant_id = p.tenant_id and y.request_id = p.request_id)
                 order by p.accepted_at
                 limit $4
            )
            delete from prompt_payloads y using settled s
             where y.tenant_id = s.tenant_id and y.request_id = s.request_id
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
}
