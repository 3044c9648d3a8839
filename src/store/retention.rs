//! Deletes expired idempotency keys, finished exchanges and old prompts and, earlier if configured, their payloads, in small
//! batches. Rows that another node has locked are left for the next run.

use sqlx::postgres::types::PgInterval;

use super::error::Result;
use super::tenant_scope::TenantScope;
use super::{ExchangeStore, PromptStore};
use crate::protocol::id::TenantId;

impl ExchangeStore {
    /// Deletes finished exchanges of a tenant that ended longer ago than `keep`, with all that belongs to them.
    pub async fn forget_exchanges(
        &self,
        tenant: &TenantId,
        keep: PgInterval,
        limit: i64,
    ) -> Result<u64> {
        let query = sqlx::query!(
            r#"
            with found as materialized (
                select e.tenant_id, e.request_id
                  from exchanges e
                 where e.tenant_id = $1
                   and e.accepted_at < (select clock_timestamp() + $2::interval - $3::interval)
                   and e.state <> 'pendingApproval'
                   and coalesce(e.ended_at, e.decided_at) < (select clock_timestamp() + $2::interval - $3::interval)
                 order by e.accepted_at
                 limit $4
                   for update of e skip locked
            ),
            to_delete as materialized (
                select d.tenant_id, d.request_id
                  from unnest(array(select tenant_id from found), array(select request_id from found))
                       as d (tenant_id, request_id)
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
            events as (
                delete from exchange_events v using to_delete d
                 where v.tenant_id = d.tenant_id and v.request_id = d.request_id
            ),
            gone as (
                delete from exchanges e using to_delete d
                 where e.tenant_id = d.tenant_id and e.request_id = d.request_id
                returning e.request_id
            )
            select count(*) as "count!" from gone
            "#,
            tenant.as_str(),
            self.database.clock.offset(),
            keep,
            limit,
        )
        .map(|row| u64::try_from(row.count).unwrap_or_default());
        self.database.background.fetch_one(tenant, query).await
    }

    /// Deletes the artifacts of exchanges of a tenant that ended longer ago than `keep`; hashes and decisions stay.
    pub async fn scrub_artifacts(
        &self,
        tenant: &TenantId,
        keep: PgInterval,
        limit: i64,
    ) -> Result<u64> {
        let query = sqlx::query!(
            r#"
            with found as materialized (
                select e.tenant_id, e.request_id
                  from exchanges e
                 where e.tenant_id = $1
                   and e.accepted_at < (select clock_timestamp() + $2::interval - $3::interval)
                   and e.state <> 'pendingApproval'
                   and coalesce(e.ended_at, e.decided_at) < (select clock_timestamp() + $2::interval - $3::interval)
                   and exists (select from exchange_payloads p
                                where p.tenant_id = e.tenant_id and p.request_id = e.request_id and p.part = 'artifact')
                 order by e.accepted_at
                 limit $4
                   -- So that two nodes never scrub the same rows.
                   for no key update of e skip locked
            ),
            finished as materialized (
                select d.tenant_id, d.request_id
                  from unnest(array(select tenant_id from found), array(select request_id from found))
                       as d (tenant_id, request_id)
            )
            delete from exchange_payloads p using finished f
             where p.tenant_id = f.tenant_id and p.request_id = f.request_id and p.part = 'artifact'
            "#,
            tenant.as_str(),
            self.database.clock.offset(),
            keep,
            limit,
        );
        self.database.background.execute(tenant, query).await
    }

    /// Deletes expired idempotency keys.
    pub async fn forget_keys(&self, limit: i64) -> Result<u64> {
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
            self.database.clock.offset(),
            limit,
        );
        // All: the sweep serves every tenant.
        let scope = TenantScope::All;
        self.database.background.execute(scope, query).await
    }
}

impl PromptStore {
    /// Deletes prompts of a tenant that were accepted longer ago than `keep`.
    pub async fn forget_prompts(
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
            self.database.clock.offset(),
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
                 where p.tenant_id = $1 and p.accepted_at < (select clock_timestamp() + $2::interval - $3::interval)
                   and p.status <> 'queued'
                   and exists (select from prompt_payloads y where y.tenant_id = p.tenant_id and y.request_id = p.request_id)
                 order by p.accepted_at
                 limit $4
                   for no key update of p skip locked
            ),
            settled as materialized (
                select d.tenant_id, d.request_id
                  from unnest(array(select tenant_id from found), array(select request_id from found))
                       as d (tenant_id, request_id)
            )
            delete from prompt_payloads y using settled s
             where y.tenant_id = s.tenant_id and y.request_id = s.request_id
            "#,
            tenant.as_str(),
            self.database.clock.offset(),
            keep,
            limit,
        );
        self.database.background.execute(tenant, query).await
    }
}
