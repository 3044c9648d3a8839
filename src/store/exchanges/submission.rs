//! A submission as the statement in `submit` sees it, and what may keep it from being written: a full inbox, an exchange with
//! the same id, or a bound idempotency key. Inboxes are counted only where they may be near their limit, so that most
//! submissions do not pay for it. Two nodes that count at once may exceed the limit by a batch.

use std::collections::HashMap;

use sqlx::PgConnection;

use crate::clock::Clock;
use crate::config;
use crate::protocol::artifact::Submission;
use crate::protocol::canonical::Sha256Hex;
use crate::protocol::exchange::{ExchangeState, NotWritten, SubmissionFact};
use crate::protocol::id::{ApproverId, EnforcerId, MessageId, OperationId, TenantId};
use crate::protocol::idempotent::ExistingRow;
use crate::protocol::timestamp::Timestamp;
use crate::store::audit::AuditSource;
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::rows;
use crate::store::database::rows::column;
use crate::store::exchanges::idempotency::{IdempotencyKey, key_fact};

/// How many items may be pending in an inbox, and how many of them from one enforcer.
#[derive(Debug, Clone, Copy)]
pub struct InboxLimits {
    pub pending: i64,
    pub share: i64,
}

impl InboxLimits {
    pub fn of(limits: &config::Limits) -> Self {
        Self {
            pending: i64::from(limits.pending_per_approver),
            share: i64::from(limits.pending_per_enforcer()),
        }
    }
}

#[derive(Debug, Clone)]
pub struct AskedApprover {
    pub approver: ApproverId,
    pub message: MessageId,
    /// Whether a channel would take the request without reading its row.
    pub is_awaited: bool,
    /// Whether its inbox, or the enforcer's share of it, may be near its limit, so that it must be counted.
    pub count: bool,
}

#[derive(Debug)]
pub struct SubmissionRow {
    pub operation: OperationId,
    pub tenant: TenantId,
    pub enforcer: EnforcerId,
    pub submission: Submission,
    pub asked: Vec<AskedApprover>,
    pub idempotency: Option<IdempotencyKey>,
    pub source: AuditSource,
}

/// Which of these submissions ask an approver who would then have too many pending, in all or from this enforcer.
pub(in crate::store) async fn over_limit(
    connection: &mut PgConnection,
    clock: &Clock,
    limits: InboxLimits,
    rows: &[SubmissionRow],
) -> sqlx::Result<HashMap<OperationId, NotWritten>> {
    let asked: Vec<_> = rows
        .iter()
        .flat_map(|row| row.asked.iter().map(move |asked| (row, asked)))
        .collect();
    if !asked.iter().any(|(_, asked)| asked.count) {
        return Ok(HashMap::new());
    }
    let over_limit = sqlx::query!(
        r#"
        with settings as materialized (
            select $1::interval as clock_offset, $2::bigint as pending, $3::bigint as share
        ),
        asked as materialized (
            select a.*
              from unnest($4::text[], $5::uuid[], $6::timestamptz[], $7::text[], $8::boolean[], $9::text[])
                   as a (tenant_id, submission_id, expires_at, approver_id, counted, enforcer_id)
        ),
        inbox_loads as materialized (
            select d.tenant_id, d.approver_id, d.enforcer_id, n.pending, n.own
              from (select distinct a.tenant_id, a.approver_id, a.enforcer_id from asked a where a.counted) d
             cross join lateral (
                 select count(*) as pending, count(*) filter (where counted.enforcer_id = d.enforcer_id) as own
                   from (select x.enforcer_id
                           from inbox_items x
                          where x.tenant_id = d.tenant_id and x.approver_id = d.approver_id
                            and x.closed_at is null and x.removed_at is null
                            and x.expires_at > clock_timestamp() + (select s.clock_offset from settings s)
                          limit (select s.pending from settings s)) counted) n
        ),
        shared_loads as (
            select a.tenant_id, a.approver_id, a.submission_id, l.pending,
                   l.own + row_number() over (partition by a.tenant_id, a.approver_id, a.enforcer_id
                                                  order by a.submission_id) > s.share as over_share
              from asked a
              join inbox_loads l on l.tenant_id = a.tenant_id and l.approver_id = a.approver_id
                                and l.enforcer_id = a.enforcer_id
             cross join settings s
             where a.expires_at > clock_timestamp() + s.clock_offset
        ),
        -- What is over its share takes no place from the others.
        placed_submissions as (
            select l.submission_id, l.over_share,
                   l.pending + case when l.over_share then 1
                                    else row_number() over (partition by l.tenant_id, l.approver_id, l.over_share
                                                                order by l.submission_id) end > s.pending as is_full
              from shared_loads l
             cross join settings s
        )
        select p.submission_id as "operation!: OperationId", bool_or(p.is_full) as "full!"
          from placed_submissions p
         where p.is_full or p.over_share
         group by p.submission_id
        "#,
        clock_offset(&clock),
        limits.pending,
        limits.share,
        column(&asked, |(row, _)| &row.tenant) as _,
        column(&asked, |(row, _)| row.operation) as _,
        column(&asked, |(row, _)| row.submission.expires_at) as _,
        column(&asked, |(_, asked)| &asked.approver) as _,
        &column(&asked, |(_, asked)| asked.count),
        column(&asked, |(row, _)| &row.enforcer) as _,
    )
    .fetch_all(connection)
    .await?;
    let over_limit = over_limit.into_iter().map(|row| {
        let share = u32::try_from(limits.share).unwrap_or(u32::MAX);
        let reason = if row.full {
            NotWritten::InboxFull
        } else {
            NotWritten::ShareUsed(share)
        };
        (row.operation, reason)
    });
    Ok(over_limit.collect())
}

/// Reads what stands in the way of rows that were not written.
pub(in crate::store) async fn read_existing(
    connection: &mut PgConnection,
    clock: &Clock,
    unwritten: &[(&SubmissionRow, NotWritten)],
) -> sqlx::Result<Vec<SubmissionFact>> {
    if unwritten.is_empty() {
        return Ok(Vec::new());
    }
    let keys = column(unwritten, |(row, _)| row.idempotency.as_ref());
    let found = sqlx::query!(
        r#"
        select i.submission_id as "operation!: OperationId", e.submission_id as "submission_id?: OperationId",
               e.enforcer_id as "enforcer_id?: EnforcerId", e.artifact_hash as "artifact_hash?: Sha256Hex",
               e.state as "state?: ExchangeState", e.expires_at as "expires_at?: Timestamp", e.expires_at <= c.at as "past?",
               k.fingerprint as "fingerprint?"
          from unnest($1::text[], $2::text[], $3::uuid[], $4::text[], $5::text[])
               as i (tenant_id, request_id, submission_id, principal, key)
         cross join (select clock_timestamp() + $6::interval as at) c
          left join exchanges e on e.tenant_id = i.tenant_id and e.request_id = i.request_id
          -- A key that this attempt has bound itself tells nothing.
          left join idempotency_keys k
                 on k.tenant_id = i.tenant_id and k.principal = i.principal and k.key = i.key and k.expires_at > c.at
                and k.submission_id <> i.submission_id
        "#,
        column(unwritten, |(row, _)| &row.tenant) as _,
        column(unwritten, |(row, _)| &row.submission.request_id) as _,
        column(unwritten, |(row, _)| row.operation) as _,
        column(&keys, |key| key.map(|key| &key.principal)) as _,
        column(&keys, |key| key.map(|key| &key.key)) as _,
        clock_offset(&clock),
    )
    .fetch_all(connection)
    .await?;
    let found = found.into_iter().map(|row| (row.operation, row));
    let found = rows::in_order(unwritten.iter().map(|(row, _)| row.operation), found)?;
    let facts = unwritten.iter().zip(found).map(|((row, reason), found)| {
        let same = found.enforcer_id.as_ref() == Some(&row.enforcer)
            && found.artifact_hash == Some(row.submission.artifact_hash);
        let existing = match (found.submission_id, found.state, found.expires_at) {
            (Some(submission_id), Some(state), Some(expires_at)) => Some(ExistingRow {
                submission_id,
                same,
                value: (state.at(found.past.unwrap_or(false)), expires_at),
            }),
            _ => None,
        };
        SubmissionFact::Unwritten {
            existing,
            key: key_fact(row.idempotency.as_ref(), found.fingerprint),
            reason: *reason,
        }
    });
    Ok(facts.collect())
}
