//! Writes session reports. Each is one guarded statement on the session's row, so that reports on several nodes are serialised
//! and none undoes a newer one.

mod read;

use std::sync::Arc;

use time::OffsetDateTime;

use super::error::{Result, StoreError};
use crate::protocol::canonical::Sha256Hex;
use crate::protocol::id::{EnforcerId, OperationId, SnapshotId, TenantId};
use crate::protocol::session::{
    ReportFact, SessionEvent, SessionRecord, SessionReport, SessionState, SnapshotType,
};
use crate::protocol::timestamp::Timestamp;
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::pools::Database;

#[derive(Debug)]
pub struct ReportRow<'a> {
    pub operation: OperationId,
    pub tenant: &'a TenantId,
    pub enforcer: &'a EnforcerId,
    pub report: &'a SessionReport,
}

/// A report as columns. Those that its kind does not have are null, and leave the stored value.
#[derive(Default)]
struct ReportColumns<'a> {
    agent_host: Option<&'a str>,
    repo_ref: Option<&'a str>,
    metadata: Option<&'a str>,
    state: Option<SessionState>,
    details: Option<&'a str>,
    started_at: Option<OffsetDateTime>,
    state_at: Option<OffsetDateTime>,
    ended_at: Option<OffsetDateTime>,
    end_reason: Option<&'static str>,
    start_hash: Option<&'a [u8]>,
    status_hash: Option<&'a [u8]>,
    end_hash: Option<&'a [u8]>,
    snapshot: Option<(&'a SnapshotId, SnapshotType, &'a str)>,
}

impl<'a> ReportColumns<'a> {
    fn of(report: &'a SessionReport) -> Self {
        let at = Some(report.at.inner());
        let hash = Some(report.hash.as_bytes().as_slice());
        match &report.event {
            SessionEvent::Start {
                agent_host,
                repo_ref,
                metadata,
            } => Self {
                agent_host: Some(agent_host),
                repo_ref: repo_ref.as_deref(),
                metadata: metadata.as_deref(),
                started_at: at,
                start_hash: hash,
                ..Self::default()
            },
            SessionEvent::Snapshot {
                snapshot_id,
                snapshot_type,
                body,
            } => Self {
                snapshot: Some((snapshot_id, *snapshot_type, body)),
                ..Self::default()
            },
            SessionEvent::Status { state, details } => Self {
                state: Some(*state),
                details: details.as_deref(),
                state_at: at,
                status_hash: hash,
                ..Self::default()
            },
            SessionEvent::End { reason, metadata } => Self {
                metadata: metadata.as_deref(),
                ended_at: at,
                end_reason: Some(reason.as_str()),
                end_hash: hash,
                ..Self::default()
            },
        }
    }
}

pub struct SessionStore {
    pub(super) database: Arc<Database>,
}

impl SessionStore {
    /// Writes a report if the stored session allows. A retry recognises its own work, unless another report has overwritten
    /// it meanwhile.
    pub async fn report(&self, row: &ReportRow<'_>) -> Result<ReportFact> {
        match self.write_report(row).await {
            Ok(Some(state)) => return Ok(ReportFact::Written(state)),
            Ok(None) => {}
            // Another node wrote this snapshot while the statement waited for the session's row. Its snapshot is not visible
            // to this statement, which fails as a whole.
            Err(StoreError::Taken(constraint)) if constraint == "session_snapshots_pkey" => {}
            Err(error) => return Err(error),
        }
        Ok(ReportFact::Unwritten(self.read_existing(row).await?))
    }

    /// Writes a report if nothing conflicts with it, and returns the session's new state.
    async fn write_report(&self, row: &ReportRow<'_>) -> Result<Option<SessionState>> {
        let columns = ReportColumns::of(row.report);
        let hash = row.report.hash.to_string();
        let query = || {
            sqlx::query!(
                r#"
            with input as materialized (
                select $1::text as tenant_id, $2::text as session_id, $3::text as enforcer_id, $4::uuid as operation_id,
                       $5::text as agent_host, $6::text as repo_ref, $7::text::json as metadata, $8::text as state,
                       $9::timestamptz as started_at, $10::timestamptz as state_at, $11::timestamptz as reported_at,
                       $12::timestamptz as ended_at, $13::text as end_reason, $14::bytea as start_hash, $15::bytea as status_hash,
                       $16::bytea as end_hash, $17::text::json as details, $18::interval as clock_offset,
                       $19::text as snapshot_id, $20::text as snapshot_type, $21::text as snapshot_hash,
                       $22::text::json as snapshot_body
            ),
            written_session as (
                insert into sessions as s
                       (tenant_id, session_id, enforcer_id, operation_id, agent_host, repo_ref, metadata, state,
                        started_at, state_at, updated_at, ended_at, end_reason, start_hash, status_hash, end_hash, details,
                        heard_at)
                select i.tenant_id, i.session_id, i.enforcer_id, i.operation_id, i.agent_host, i.repo_ref, i.metadata,
                       coalesce(i.state, 'idle'), i.started_at, i.state_at, i.reported_at, i.ended_at, i.end_reason,
                       i.start_hash, i.status_hash, i.end_hash, i.details, clock_timestamp() + i.clock_offset
                  from input i
                on conflict on constraint sessions_pkey do update
                   set operation_id = excluded.operation_id,
                       agent_host = coalesce(s.agent_host, excluded.agent_host),
                       repo_ref = coalesce(s.repo_ref, excluded.repo_ref),
                       metadata = coalesce(s.metadata, excluded.metadata),
                       state = case when excluded.status_hash is null then s.state else excluded.state end,
                       started_at = coalesce(s.started_at, excluded.started_at),
                       state_at = coalesce(excluded.state_at, s.state_at),
                       updated_at = greatest(s.updated_at, excluded.updated_at),
                       ended_at = excluded.ended_at,
                       end_reason = excluded.end_reason,
                       start_hash = coalesce(s.start_hash, excluded.start_hash),
                       status_hash = coalesce(excluded.status_hash, s.status_hash),
                       end_hash = excluded.end_hash,
                       details = case when excluded.status_hash is null then s.details else excluded.details end,
                       heard_at = clock_timestamp() + (select i.clock_offset from input i)
                 where s.enforcer_id = excluded.enforcer_id
                   and s.ended_at is null
                   and (excluded.start_hash is null or s.start_hash is null)
                   and (excluded.status_hash is null
                        or s.state_at is null
                        or s.state_at < excluded.state_at
                        or s.state_at = excluded.state_at and s.status_hash <> excluded.status_hash)
                   and not exists (select from session_snapshots p
                                    join input i on i.tenant_id = p.tenant_id and i.session_id = p.session_id
                                                and i.snapshot_id = p.snapshot_id)
                returning s.tenant_id, s.session_id, s.state, s.heard_at
            ),
            inserted_snapshot as (
                insert into session_snapshots
                       (tenant_id, session_id, snapshot_id, snapshot_type, snapshot_hash, created_at, received_at, body)
                select w.tenant_id, w.session_id, i.snapshot_id, i.snapshot_type, i.snapshot_hash, i.reported_at, w.heard_at,
                       i.snapshot_body
                  from written_session w
                 cross join input i
                 where i.snapshot_id is not null
            )
            select state as "state: SessionState" from written_session
            "#,
                row.tenant.as_str(),
                row.report.session_id.as_str(),
                row.enforcer.as_str(),
                row.operation.0,
                columns.agent_host,
                columns.repo_ref,
                columns.metadata,
                columns.state.map(SessionState::as_str),
                columns.started_at,
                columns.state_at,
                row.report.at.inner(),
                columns.ended_at,
                columns.end_reason,
                columns.start_hash,
                columns.status_hash,
                columns.end_hash,
                columns.details,
                clock_offset(&self.database.clock),
                columns.snapshot.map(|(id, _, _)| id.as_str()),
                columns.snapshot.map(|(_, kind, _)| kind.as_str()),
                hash.as_str(),
                columns.snapshot.map(|(_, _, body)| body),
            )
        };
        let pool = &self.database.pool;
        let written = pool.fetch_retried(row.tenant, "writing a report", query);
        Ok(written.await?.map(|row| row.state))
    }

    async fn read_existing(&self, row: &ReportRow<'_>) -> Result<Option<SessionRecord>> {
        let snapshot = match &row.report.event {
            SessionEvent::Snapshot { snapshot_id, .. } => Some(snapshot_id.as_str()),
            SessionEvent::Start { .. } | SessionEvent::Status { .. } | SessionEvent::End { .. } => {
                None
            }
        };
        let query = || {
            sqlx::query!(
                r#"
            select s.operation_id as "operation_id: OperationId", s.enforcer_id as "enforcer_id: EnforcerId",
                   s.state as "state: SessionState", s.state_at as "state_at: Timestamp", s.ended_at is not null as "ended!",
                   s.start_hash as "start_hash: [u8; 32]", s.status_hash as "status_hash: [u8; 32]",
                   s.end_hash as "end_hash: [u8; 32]", p.snapshot_hash as "snapshot_hash?: Sha256Hex"
              from sessions s
              left join session_snapshots p
                     on p.tenant_id = s.tenant_id and p.session_id = s.session_id and p.snapshot_id = $1
             where s.tenant_id = $2 and s.session_id = $3
            "#,
                snapshot,
                row.tenant.as_str(),
                row.report.session_id.as_str(),
            )
        };
        let pool = &self.database.pool;
        let found = pool.fetch_retried(row.tenant, "reading a session", query);
        let found = found.await?;
        Ok(found.map(|found| SessionRecord {
            operation_id: found.operation_id,
            enforcer_id: found.enforcer_id,
            state: found.state,
            state_at: found.state_at,
            ended: found.ended,
            hash: match &row.report.event {
                SessionEvent::Start { .. } => found.start_hash.map(Sha256Hex::from),
                SessionEvent::Status { .. } => found.status_hash.map(Sha256Hex::from),
                SessionEvent::End { .. } => found.end_hash.map(Sha256Hex::from),
                SessionEvent::Snapshot { .. } => found.snapshot_hash,
            },
        }))
    }
}
