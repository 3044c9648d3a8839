//! A submission as the statement in `submit` sees it, and what may keep it from being written: a full inbox, an exchange with
//! the same id, or a bound idempotency key. Inboxes are counted only where they may be near their limit, so that most
//! submissions do not pay for it. Two nodes that count at once may exceed the limit by a batch.

use std::collections::HashSet;

use sqlx::PgConnection;

use super::idempotency::{IdempotencyKey, key_fact};
use super::rows::{self, column};
use crate::clock::Clock;
use crate::protocol::artifact::Submission;
use crate::protocol::canonical::Sha256Hex;
use crate::protocol::exchange::{ExchangeState, NotWritten, SubmissionFact};
use crate::protocol::id::{ApproverId, EnforcerId, MessageId, OperationId, TenantId};
use crate::protocol::idempotent::Existing;
use crate::protocol::timestamp::Timestamp;

#[derive(Debug, Clone)]
pub struct Asked {
    pub approver: ApproverId,
    pub message: MessageId,
    /// Whether its inbox may be near its limit, so that it must be counted.
    pub count: bool,
}

#[derive(Debug)]
pub struct SubmissionRow {
    pub operation: OperationId,
    pub tenant: TenantId,
    pub enforcer: EnforcerId,
    pub submission: Submission,
    pub asked: Vec<Asked>,
    pub idempotency: Option<IdempotencyKey>,
}

/// Which of these submissions ask an approver who would then have more than `most` pending.
pub(super) async fn over_limit(
    connection: &mut PgConnection,
    clock: &Clock,
    most: i64,
    rows: &[SubmissionRow],
) -> sqlx::Result<HashSet<OperationId>> {
    let asked: Vec<_> = rows
        .iter()
        .flat_map(|row| row.asked.iter().map(move |asked| (row, asked)))
        .collect();
    if !asked.iter().any(|(_, asked)| asked.count) {
        return Ok(HashSet::new());
    }
    let over_limit = sqlx::query_scalar!(
        r#"
        with asked as (
            select tenant_id, submission_id, expires_at, approver_id, counted
              from unnest($1::text[], $2::uuid[], $3::timestamptz[], $4::text[], $5::boolean[])
                   as a (tenant_id, submission_id, expires_at, approver_id, counted)
        ),
        load as materialized (
            select d.tenant_id, d.approver_id, n.pending
              from (select distinct a.tenant_id, a.approver_id from asked a where a.counted) d
             cross join lateral (
                 select count(*) as pending
                   from (select 1
                           from inbox_items x
                          where x.tenant_id = d.tenant_id and x.approver_id = d.approver_id
                            and x.closed_at is null and x.removed_at is null
                            and x.expires_at > clock_timestamp() + $6::interval
                          limit $7) counted) n
        )
        select distinct r.submission_id as "operation!: OperationId"
          from (select a.submission_id,
                       l.pending + row_number() over (partition by a.tenant_id, a.approver_id
                                                          order by a.submission_id) as nth
                  from asked a
                  join load l on l.tenant_id = a.tenant_id and l.approver_id = a.approver_id
                 where a.expires_at > clock_timestamp() + $6::interval) r
         where r.nth > $7
        "#,
        column(&asked, |(row, _)| &row.tenant) as _,
        column(&asked, |(row, _)| row.operation) as _,
        column(&asked, |(row, _)| row.submission.expires_at) as _,
        column(&asked, |(_, asked)| &asked.approver) as _,
        &column(&asked, |(_, asked)| asked.count),
        clock.offset(),
        most,
    )
    .fetch_all(connection)
    .await?;
    Ok(over_limit.into_iter().collect())
}

/// Reads what stands in the way of rows that were not written.
pub(super) async fn read_existing(
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
        clock.offset(),
    )
    .fetch_all(connection)
    .await?;
    let found = found.into_iter().map(|row| (row.operation, row));
    let found = rows::in_order(unwritten.iter().map(|(row, _)| row.operation), found)?;
    let facts = unwritten.iter().zip(found).map(|((row, reason), found)| {
        let same = found.enforcer_id.as_ref() == Some(&row.enforcer)
            && found.artifact_hash == Some(row.submission.artifact_hash);
        let existing = match (found.submission_id, found.state, found.expires_at) {
            (Some(submission_id), Some(state), Some(expires_at)) => Some(Existing {
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
