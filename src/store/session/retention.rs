//! Deletes old sessions and, earlier if configured, the payloads of their snapshots.

use sqlx::postgres::types::PgInterval;

use crate::protocol::id::TenantId;
use crate::store::SessionStore;
use crate::store::clock_offset::clock_offset;
use crate::store::error::Result;

const SESSIONS: i64 = 100;
/// Snapshots per statement: each may hold megabytes.
const SNAPSHOTS: i64 = 100;

impl SessionStore {
    /// Deletes sessions of a tenant without a report for `keep`, with their snapshots; returns how many rows were deleted. A
    /// session of many snapshots takes several calls; if a report comes meanwhile, the rest of it stays.
    pub async fn delete_expired_sessions(
        &self,
        tenant: &TenantId,
        keep: PgInterval,
    ) -> Result<u64> {
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
            clock_offset(&self.database.clock),
            keep,
            SESSIONS,
            SNAPSHOTS,
        )
        .map(|row| u64::try_from(row.count).unwrap_or_default());
        self.database.background.fetch_one(tenant, query).await
    }

    /// Empties the snapshots of a tenant's ended sessions without a report for `keep`; their hashes stay.
    pub async fn scrub_snapshots(&self, tenant: &TenantId, keep: PgInterval) -> Result<u64> {
        let query = sqlx::query!(
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
            clock_offset(&self.database.clock),
            keep,
            SNAPSHOTS,
        );
        self.database.background.execute(tenant, query).await
    }
}
