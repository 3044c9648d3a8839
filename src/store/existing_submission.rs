//! What stands in the way of submissions that were not written: an exchange with the same id, or a bound idempotency key.
//! `submit` writes new ones.

use sqlx::PgConnection;

use super::idempotency::key_fact;
use super::rows::{self, column};
use super::submission::SubmissionRow;
use crate::clock::Clock;
use crate::protocol::canonical::Sha256Hex;
use crate::protocol::exchange::{ExchangeState, NotWritten, SubmissionFact};
use crate::protocol::id::{EnforcerId, OperationId};
use crate::protocol::idempotent::Existing;
use crate::protocol::timestamp::Timestamp;

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
          left join idempotency_keys k
                 on k.tenant_id = i.tenant_id and k.principal = i.principal and k.key = i.key and k.expires_at > c.at
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
