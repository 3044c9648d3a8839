//! Reading sessions.

use serde::Serialize;
use serde_json::value::RawValue;
use sqlx::PgConnection;

use super::session_state;
use crate::protocol::id::{ApproverId, EnforcerId, SessionId, SnapshotId, TenantId};
use crate::protocol::message::raw;
use crate::protocol::session::{EndReason, SessionState, SnapshotType};
use crate::protocol::timestamp::Timestamp;
use crate::store::error::StoreError;
use crate::store::tenant_scope::TenantScope;
use crate::store::{Store, rows};

const SHOWN_SNAPSHOTS: i64 = 20;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    pub session_id: SessionId,
    pub enforcer_id: EnforcerId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo_ref: Option<String>,
    pub state: SessionState,
    /// When it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    pub updated_at: Timestamp,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<EndReason>,
    /// The metadata of its start, else of its end, verbatim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Box<RawValue>>,
    pub snapshots: Vec<SnapshotLine>,
}

/// A snapshot without its payload.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotLine {
    pub snapshot_id: SnapshotId,
    pub snapshot_type: SnapshotType,
    pub snapshot_hash: String,
    /// When it was taken.
    pub created_at: Timestamp,
}

impl Store {
    pub async fn session_enforcer(
        &self,
        tenant: &TenantId,
        session: &SessionId,
    ) -> Result<Option<EnforcerId>, StoreError> {
        let mut lease = self.pool.lease(TenantScope::Tenant(tenant)).await?;
        let found = sqlx::query_scalar!(
            "select enforcer_id from sessions where tenant_id = $1 and session_id = $2",
            tenant.as_str(),
            session.as_str(),
        )
        .fetch_optional(lease.connection()?)
        .await;
        let found = lease.settle(found)?;
        Ok(found.map(|id| rows::id(&id)).transpose()?)
    }

    /// Reads a session, and whether this approver (any, if none is named) is paired with its enforcer.
    pub async fn session(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        approver: Option<&ApproverId>,
    ) -> Result<Option<(Session, bool)>, StoreError> {
        let mut lease = self.pool.lease(TenantScope::Tenant(tenant)).await?;
        let found = read_session(lease.connection()?, tenant, session, approver).await;
        Ok(lease.settle(found)?)
    }
}

async fn read_session(
    connection: &mut PgConnection,
    tenant: &TenantId,
    session: &SessionId,
    approver: Option<&ApproverId>,
) -> Result<Option<(Session, bool)>, sqlx::Error> {
    let found = sqlx::query!(
        r#"
        select s.enforcer_id, s.agent_host as "agent_host?", s.repo_ref as "repo_ref?", s.state,
               s.started_at as "started_at?", s.updated_at, s.ended_at as "ended_at?", s.end_reason as "end_reason?",
               s.metadata::text as "metadata?",
               exists (select from pairings p
                        where p.tenant_id = s.tenant_id and p.enforcer_id = s.enforcer_id and p.revoked_at is null
                          and ($3::text is null or p.approver_id = $3)) as "paired!"
          from sessions s
         where s.tenant_id = $1 and s.session_id = $2
        "#,
        tenant.as_str(),
        session.as_str(),
        approver.map(ApproverId::as_str),
    )
    .fetch_optional(&mut *connection)
    .await?;
    let Some(row) = found else {
        return Ok(None);
    };
    let reason = match &row.end_reason {
        Some(word) => Some(EndReason::parse(word).ok_or_else(|| rows::foreign("reason"))?),
        None => None,
    };
    let metadata = row.metadata.map(raw).transpose();
    let session = Session {
        session_id: session.clone(),
        enforcer_id: rows::id(&row.enforcer_id)?,
        agent_host: row.agent_host,
        repo_ref: row.repo_ref,
        state: session_state(&row.state)?,
        started_at: row.started_at.map(Into::into),
        updated_at: row.updated_at.into(),
        ended_at: row.ended_at.map(Into::into),
        reason,
        metadata: metadata.map_err(|_| rows::foreign("metadata"))?,
        snapshots: read_snapshots(connection, tenant, session).await?,
    };
    Ok(Some((session, row.paired)))
}

async fn read_snapshots(
    connection: &mut PgConnection,
    tenant: &TenantId,
    session: &SessionId,
) -> Result<Vec<SnapshotLine>, sqlx::Error> {
    let found = sqlx::query!(
        r#"
        select snapshot_id, snapshot_type, snapshot_hash, created_at
          from session_snapshots
         where tenant_id = $1 and session_id = $2
         order by created_at desc, snapshot_id desc
         limit $3
        "#,
        tenant.as_str(),
        session.as_str(),
        SHOWN_SNAPSHOTS,
    )
    .fetch_all(connection)
    .await?;
    let lines = found.into_iter().map(|row| {
        let kind = SnapshotType::parse(&row.snapshot_type);
        Ok(SnapshotLine {
            snapshot_id: rows::id(&row.snapshot_id)?,
            snapshot_type: kind.ok_or_else(|| rows::foreign("snapshot type"))?,
            snapshot_hash: row.snapshot_hash,
            created_at: row.created_at.into(),
        })
    });
    lines.collect()
}
