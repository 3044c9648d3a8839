//! Reads sessions.

use sqlx::PgConnection;
use sqlx::postgres::types::PgInterval;

use crate::protocol::id::{ApproverId, EnforcerId, SessionId, SnapshotId, TenantId};
use crate::protocol::listing::{SessionDetails, SnapshotLine};
use crate::protocol::message::raw;
use crate::protocol::session::{EndReason, SessionState, SnapshotType};
use crate::protocol::timestamp::Timestamp;
use crate::store::SessionStore;
use crate::store::database::clock_offset::clock_offset;
use crate::store::error::Result;

const SHOWN_SNAPSHOTS: i64 = 20;
/// A longer payload of a summary is left out of the list.
const SHOWN_PAYLOAD_BYTES: i32 = 1_024;

impl SessionStore {
    pub async fn session_enforcer(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Option<EnforcerId>> {
        let query = sqlx::query!(
            r#"select enforcer_id as "id: EnforcerId" from sessions where tenant_id = $1 and session_id = $2"#,
            tenant.as_str(),
            session.as_str(),
        )
        .map(|row| row.id);
        self.database.pool.fetch_optional(tenant, query).await
    }

    /// Reads a session, and whether this approver (any, if none is named) is paired with its enforcer.
    pub async fn session(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        approver: Option<&ApproverId>,
    ) -> Result<Option<(SessionDetails, bool)>> {
        let mut lease = self.database.pool.lease(tenant).await?;
        let offset = clock_offset(&self.database.clock);
        let found = read_session(lease.connection()?, tenant, session, approver, offset);
        let found = self.database.pool.within(found).await;
        Ok(lease.settle(found)?)
    }
}

async fn read_session(
    connection: &mut PgConnection,
    tenant: &TenantId,
    session: &SessionId,
    approver: Option<&ApproverId>,
    offset: PgInterval,
) -> sqlx::Result<Option<(SessionDetails, bool)>> {
    // A hook that was killed cannot say that the agent no longer waits. The exchange of a session
    // that waits was submitted about when the state was reported.
    let found = sqlx::query!(
        r#"
        select s.enforcer_id as "enforcer_id: EnforcerId", s.agent_host, s.repo_ref,
               case when s.state <> 'waiting_approval' or s.heard_at > now.at - interval '1 minute'
                      or exists (select from exchanges e
                                  where e.tenant_id = s.tenant_id and e.enforcer_id = s.enforcer_id and e.state = 'pendingApproval'
                                    and e.expires_at > now.at
                                    and e.accepted_at between s.heard_at - interval '1 minute'
                                                          and s.heard_at + interval '10 minutes')
                    then s.state else 'idle' end as "state!: SessionState",
               s.started_at as "started_at: Timestamp", s.updated_at as "updated_at: Timestamp",
               s.ended_at as "ended_at: Timestamp", s.end_reason as "end_reason: EndReason",
               s.metadata::text as "metadata?",
               exists (select from pairings p
                        where p.tenant_id = s.tenant_id and p.enforcer_id = s.enforcer_id and p.revoked_at is null
                          and ($1::text is null or p.approver_id = $1)) as "paired!"
          from sessions s
         cross join (select clock_timestamp() + $4::interval as at) now
         where s.tenant_id = $2 and s.session_id = $3
        "#,
        approver.map(ApproverId::as_str),
        tenant.as_str(),
        session.as_str(),
        offset,
    )
    .fetch_optional(&mut *connection)
    .await?;
    let Some(row) = found else {
        return Ok(None);
    };
    let metadata = row.metadata.map(raw).transpose();
    let session = SessionDetails {
        session_id: session.clone(),
        enforcer_id: row.enforcer_id,
        agent_host: row.agent_host,
        repo_ref: row.repo_ref,
        state: row.state,
        started_at: row.started_at,
        updated_at: row.updated_at,
        ended_at: row.ended_at,
        reason: row.end_reason,
        metadata: metadata.map_err(|error| sqlx::Error::Decode(error.into()))?,
        snapshots: read_snapshots(connection, tenant, session).await?,
    };
    Ok(Some((session, row.paired)))
}

async fn read_snapshots(
    connection: &mut PgConnection,
    tenant: &TenantId,
    session: &SessionId,
) -> sqlx::Result<Vec<SnapshotLine>> {
    let lines = sqlx::query!(
        r#"
        select snapshot_id as "snapshot_id: SnapshotId", snapshot_type as "snapshot_type: SnapshotType", snapshot_hash,
               created_at as "created_at: Timestamp",
               case when snapshot_type = 'summary' and octet_length((body -> 'payload')::text) <= $4
                    then (body -> 'payload')::text end as "payload?"
          from session_snapshots
         where tenant_id = $1 and session_id = $2
         order by created_at desc, snapshot_id desc
         limit $3
        "#,
        tenant.as_str(),
        session.as_str(),
        SHOWN_SNAPSHOTS,
        SHOWN_PAYLOAD_BYTES,
    )
    .fetch_all(connection)
    .await?;
    let lines = lines.into_iter().map(|row| {
        let payload = row.payload.map(raw).transpose();
        Ok(SnapshotLine {
            snapshot_id: row.snapshot_id,
            snapshot_type: row.snapshot_type,
            snapshot_hash: row.snapshot_hash,
            created_at: row.created_at,
            payload: payload.map_err(|error| sqlx::Error::Decode(error.into()))?,
        })
    });
    lines.collect()
}
