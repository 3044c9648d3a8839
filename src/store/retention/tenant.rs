//! Statements that delete expired rows of one tenant, except its exchanges.

use sqlx::postgres::types::PgInterval;

use super::rules::{BATCH, DeletedBatch, LARGE_ROWS, TenantRule};
use crate::protocol::cursor::PagePosition;
use crate::protocol::id::TenantId;
use crate::store::Database;
use crate::store::database::clock_offset::clock_offset;
use crate::store::error::Result;

/// Deletes one batch of a tenant's rows that are older than `keep`.
pub(super) async fn delete(
    database: &Database,
    rule: TenantRule,
    tenant: &TenantId,
    keep: PgInterval,
    after: Option<&PagePosition>,
) -> Result<DeletedBatch> {
    let clock = clock_offset(&database.clock);
    let query = match rule {
        TenantRule::Exchanges => return database.delete_exchanges(tenant, keep, after).await,
        TenantRule::Artifacts => return database.delete_artifacts(tenant, keep, after).await,
        TenantRule::Sessions => return database.delete_sessions(tenant, keep).await,
        TenantRule::Audit => return database.delete_audit(tenant, keep).await,
        TenantRule::Prompts => return database.delete_prompts(tenant, keep).await,
        TenantRule::Enforcers => sqlx::query!(
            r#"
            with found as materialized (
                select e.enforcer_id
                  from enforcers e
                 where e.tenant_id = $1 and e.seen_at < (select clock_timestamp() + $2::interval - $3::interval)
                   and not exists (select from channels c
                                     join nodes n on n.node_id = c.node_id
                                    where c.tenant_id = e.tenant_id and c.kind = 'enforcer' and c.identity = e.enforcer_id)
                   and coalesce(e.seen_at, 'infinity') > '-infinity'
                 order by e.seen_at
                 limit $4
                   for update of e skip locked
            ),
            to_delete as materialized (
                select d.enforcer_id from unnest(array(select enforcer_id from found)) as d (enforcer_id)
            )
            delete from enforcers e using to_delete d
             where e.tenant_id = $1 and e.enforcer_id = d.enforcer_id
            "#,
            tenant.as_str(),
            clock,
            keep,
            BATCH,
        ),
        TenantRule::Pairings => sqlx::query!(
            r#"
            with found as materialized (
                select p.enforcer_id, p.approver_id, p.token_hash
                  from pairings p
                 where p.tenant_id = $1 and p.revoked_at < (select clock_timestamp() + $2::interval - $3::interval)
                 order by p.revoked_at
                 limit $4
                   for update of p skip locked
            ),
            to_delete as materialized (
                select d.enforcer_id, d.approver_id, d.token_hash
                  from unnest(array(select enforcer_id from found), array(select approver_id from found),
                              array(select token_hash from found)) as d (enforcer_id, approver_id, token_hash)
            ),
            tokens as (
                delete from routing_tokens t using to_delete d
                 where t.tenant_id = $1 and t.token_hash = d.token_hash
            ),
            -- One that was written in the moment of the revocation.
            forgotten as (
                delete from introductions i using to_delete d
                 where i.tenant_id = $1 and i.approver_id = d.approver_id and i.enforcer_id = d.enforcer_id
            )
            delete from pairings p using to_delete d
             where p.tenant_id = $1 and p.enforcer_id = d.enforcer_id and p.approver_id = d.approver_id
            "#,
            tenant.as_str(),
            clock,
            keep,
            BATCH,
        ),
        TenantRule::Tokens => sqlx::query!(
            r#"
            with found as materialized (
                select t.token_hash
                  from routing_tokens t
                 where t.tenant_id = $1 and t.replaced_at < (select clock_timestamp() + $2::interval - $3::interval)
                 order by t.replaced_at
                 limit $4
                   for update of t skip locked
            ),
            to_delete as materialized (
                select d.token_hash from unnest(array(select token_hash from found)) as d (token_hash)
            )
            delete from routing_tokens t using to_delete d
             where t.tenant_id = $1 and t.token_hash = d.token_hash
            "#,
            tenant.as_str(),
            clock,
            keep,
            BATCH,
        ),
        TenantRule::Snapshots => sqlx::query!(
            r#"
            with found as materialized (
                select p.tenant_id, p.session_id, p.snapshot_id
                  from session_snapshots p
                 where p.tenant_id = $1 and not p.scrubbed
                   and p.received_at < (select clock_timestamp() + $2::interval - $3::interval)
                   -- The limit keeps the planner from hashing all sessions.
                   and (select true from sessions s
                         where s.tenant_id = p.tenant_id and s.session_id = p.session_id and s.ended_at is not null
                           and s.heard_at < (select clock_timestamp() + $2::interval - $3::interval)
                         limit 1)
                 order by p.received_at
                 limit $4
                   for update of p skip locked
            ),
            unscrubbed as materialized (
                select d.tenant_id, d.session_id, d.snapshot_id
                  from unnest(array(select tenant_id from found), array(select session_id from found),
                              array(select snapshot_id from found))
                       as d (tenant_id, session_id, snapshot_id)
            )
            update session_snapshots p
               set body = 'null'::json, scrubbed = true
              from unscrubbed u
             where p.tenant_id = u.tenant_id and p.session_id = u.session_id and p.snapshot_id = u.snapshot_id
            "#,
            tenant.as_str(),
            clock,
            keep,
            LARGE_ROWS,
        ),
        TenantRule::PromptTexts => sqlx::query!(
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
            clock,
            keep,
            BATCH,
        ),
    };
    let rows = database.background.execute(tenant, query).await?;
    let full = match rule {
        TenantRule::Snapshots => 1,
        _ => BATCH,
    };
    Ok(DeletedBatch::counted(rows, full))
}

impl Database {
    /// Deletes sessions with their snapshots, and counts both. A session of many snapshots takes
    /// several calls. If a report arrives in between, the rest of the session stays.
    async fn delete_sessions(&self, tenant: &TenantId, keep: PgInterval) -> Result<DeletedBatch> {
        let query = sqlx::query!(
            r#"
            with found as materialized (
                select s.tenant_id, s.session_id
                  from sessions s
                 where s.tenant_id = $1 and s.heard_at < (select clock_timestamp() + $2::interval - $3::interval)
                 order by s.heard_at
                 limit $4
                   for update of s skip locked
            ),
            stale as materialized (
                select d.tenant_id, d.session_id
                  from unnest(array(select tenant_id from found), array(select session_id from found))
                       as d (tenant_id, session_id)
            ),
            snapshots as materialized (
                select p.tenant_id, p.session_id, p.snapshot_id
                  from session_snapshots p
                  join stale s on s.tenant_id = p.tenant_id and s.session_id = p.session_id
                 limit $5
            ),
            taken as (
                delete from session_snapshots p using snapshots d
                 where p.tenant_id = d.tenant_id and p.session_id = d.session_id and p.snapshot_id = d.snapshot_id
            ),
            gone as (
                delete from sessions s using stale d
                 where s.tenant_id = d.tenant_id and s.session_id = d.session_id
                   and (select count(*) from session_snapshots p
                         where p.tenant_id = d.tenant_id and p.session_id = d.session_id)
                       = (select count(*) from snapshots n where n.session_id = d.session_id)
                returning s.session_id
            )
            select (select count(*) from gone) + (select count(*) from snapshots) as "count!"
            "#,
            tenant.as_str(),
            clock_offset(&self.clock),
            keep,
            LARGE_ROWS,
            LARGE_ROWS,
        );
        let row = self.background.fetch_one(tenant, query).await?;
        Ok(DeletedBatch::counted(row.count, 1))
    }

    /// Calls a function of the tables' owner, which also keeps the floor of the database: the
    /// node's own role may only add events.
    async fn delete_audit(&self, tenant: &TenantId, keep: PgInterval) -> Result<DeletedBatch> {
        let query = sqlx::query!(
            r#"
            select forget_audit_events($1, clock_timestamp() + $2::interval - $3::interval, $4) as "count!"
            "#,
            tenant.as_str(),
            clock_offset(&self.clock),
            keep,
            BATCH,
        );
        let row = self.background.fetch_one(tenant, query).await?;
        Ok(DeletedBatch::counted(row.count, BATCH))
    }

    /// Deletes prompts with their texts and messages.
    async fn delete_prompts(&self, tenant: &TenantId, keep: PgInterval) -> Result<DeletedBatch> {
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
            clock_offset(&self.clock),
            keep,
            BATCH,
        );
        let row = self.background.fetch_one(tenant, query).await?;
        Ok(DeletedBatch::counted(row.count, BATCH))
    }
}
