//! What stands in the way of submissions that were not written: an exchange with the same id, or a bound idempotency key.
//! `submit` writes new ones.

use sqlx::PgConnection;
use sqlx::postgres::types::PgInterval;

use super::idempotency::{Binding, bind, key_fact};
use super::rows::{self, column};
use super::submission::SubmissionRow;
use crate::clock::Clock;
use crate::protocol::canonical::Sha256Hex;
use crate::protocol::exchange::{Existing, KeyFact, State, SubmissionFact};
use crate::protocol::id::{EnforcerId, OperationId};
use crate::protocol::timestamp::Timestamp;

/// Why a row was not written, as far as the writing statement knows.
pub(super) struct NotWritten {
    pub past: bool,
    pub over_limit: bool,
}

/// Reads what stands in the way of rows that were not written.
pub(super) async fn read_existing(
    connection: &mut PgConnection,
    clock: &Clock,
    unwritten: &[(&SubmissionRow, &NotWritten)],
) -> sqlx::Result<Vec<SubmissionFact>> {
    if unwritten.is_empty() {
        return Ok(Vec::new());
    }
    let keys = column(unwritten, |(row, _)| row.idempotency.as_ref());
    let found = sqlx::query!(
        r#"
        select i.submission_id as "operation!: OperationId", e.submission_id as "submission_id?: OperationId",
               e.enforcer_id as "enforcer_id?: EnforcerId", e.artifact_hash as "artifact_hash?: Sha256Hex",
               e.state as "state?: State", e.expires_at as "expires_at?: Timestamp", e.expires_at <= c.at as "past?",
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
    let facts = found.into_iter().map(|fact| {
        let (hash, state, expires_at) = (fact.artifact_hash, fact.state, fact.expires_at);
        let existing = match (
            fact.submission_id,
            fact.enforcer_id,
            hash,
            state,
            expires_at,
        ) {
            (Some(submission_id), Some(enforcer_id), Some(hash), Some(state), Some(expires_at)) => {
                Some(Existing {
                    submission_id,
                    enforcer_id,
                    artifact_hash: hash,
                    state: state.at(fact.past.unwrap_or(false)),
                    expires_at,
                })
            }
            _ => None,
        };
        (fact.operation, (existing, fact.fingerprint))
    });
    let facts = rows::in_order(unwritten.iter().map(|(row, _)| row.operation), facts)?;
    let facts = unwritten.iter().zip(facts);
    Ok(facts
        .map(
            |((row, reason), (existing, fingerprint))| SubmissionFact::Unwritten {
                existing,
                key: key_fact(row.idempotency.as_ref(), fingerprint),
                past: reason.past,
                crowded: reason.over_limit,
            },
        )
        .collect())
}

/// Binds the keys of repeats to the exchange that was found.
pub(super) async fn bind_duplicates<'a>(
    connection: &mut PgConnection,
    clock: &Clock,
    key_lifetime: &PgInterval,
    facts: impl Iterator<Item = (&'a SubmissionRow, &'a SubmissionFact)>,
) -> sqlx::Result<()> {
    let repeats: Vec<_> = facts
        .filter_map(|(row, fact)| match (fact, &row.idempotency) {
            (
                SubmissionFact::Unwritten {
                    existing: Some(existing),
                    key: KeyFact::Free,
                    ..
                },
                Some(key),
            ) if existing.enforcer_id == row.enforcer
                && existing.artifact_hash == row.submission.artifact_hash =>
            {
                Some(Binding {
                    tenant: &row.tenant,
                    request_id: &row.submission.request_id,
                    submission_id: existing.submission_id,
                    key,
                })
            }
            _ => None,
        })
        .collect();
    bind(connection, &repeats, clock, key_lifetime).await
}
