//! What a submission meets that was not written: an exchange of its name, a key that is bound; and the keys of repeats. What is
//! new is written in `submit`.

use sqlx::PgConnection;
use uuid::Uuid;

use super::idempotency::{Binding, bind, key_fact};
use super::rows;
use super::submit::{Refused, SubmissionOutcome, SubmissionRow, Submit};
use crate::protocol::exchange::{ExistingExchange, KeyFact, SubmissionFact};
use crate::protocol::id::OperationId;

impl Submit {
    /// Reads what stood in the way of the rows that were not written.
    pub(super) async fn look(
        &self,
        connection: &mut PgConnection,
        unwritten: &[(&SubmissionRow, &Refused)],
    ) -> Result<Vec<SubmissionFact>, sqlx::Error> {
        if unwritten.is_empty() {
            return Ok(Vec::new());
        }
        let keys: Vec<_> = unwritten
            .iter()
            .map(|(row, _)| row.idempotency.as_ref())
            .collect();
        let found = sqlx::query!(
            r#"
            select i.submission_id as "operation!",
                   e.submission_id as "submission_id?", e.enforcer_id as "enforcer_id?",
                   e.artifact_hash as "artifact_hash?", e.state as "state?", e.expires_at as "expires_at?",
                   e.expires_at <= c.at as "past?",
                   k.fingerprint as "fingerprint?"
              from unnest($1::text[], $2::text[], $3::uuid[], $4::text[], $5::text[])
                   as i (tenant_id, request_id, submission_id, principal, key)
             cross join (select clock_timestamp() + $6::interval as at) c
              left join exchanges e on e.tenant_id = i.tenant_id and e.request_id = i.request_id
              left join idempotency_keys k
                     on k.tenant_id = i.tenant_id and k.principal = i.principal and k.key = i.key and k.expires_at > c.at
            "#,
            &rows::texts(unwritten, |(row, _)| row.tenant.as_str()) as _,
            &rows::texts(unwritten, |(row, _)| row.submission.request_id.as_str()) as _,
            &unwritten.iter().map(|(row, _)| row.operation.0).collect::<Vec<Uuid>>(),
            &rows::optional(&keys, |key| key.map(|key| key.principal.as_str())) as _,
            &rows::optional(&keys, |key| key.map(|key| key.key.as_str())) as _,
            self.clock.offset(),
        )
        .fetch_all(connection)
        .await?;
        let mut facts = Vec::with_capacity(found.len());
        for fact in found {
            let existing = match (
                fact.submission_id,
                fact.enforcer_id,
                fact.artifact_hash,
                fact.state,
                fact.expires_at,
            ) {
                (Some(submission), Some(enforcer), Some(hash), Some(state), Some(expires_at)) => {
                    Some(ExistingExchange {
                        submission_id: OperationId(submission),
                        enforcer_id: rows::id(&enforcer)?,
                        artifact_hash: rows::hash(&hash)?,
                        state: rows::state(&state)?.at(fact.past.unwrap_or(false)),
                        expires_at: expires_at.into(),
                    })
                }
                _ => None,
            };
            facts.push((fact.operation, (existing, fact.fingerprint)));
        }
        let facts = rows::in_order(
            unwritten.iter().map(|(row, _)| row.operation.0),
            facts.into_iter(),
        )?;
        Ok(unwritten
            .iter()
            .zip(facts)
            .map(
                |((row, refused), (existing, fingerprint))| SubmissionFact::Unwritten {
                    existing,
                    key: key_fact(row.idempotency.as_ref(), fingerprint),
                    past: refused.past,
                    crowded: refused.crowded,
                },
            )
            .collect())
    }

    /// Binds the keys of repeats: there is no work to bind them to, only an outcome that must stay theirs.
    pub(super) async fn bind_duplicates(
        &self,
        connection: &mut PgConnection,
        rows: &[SubmissionRow],
        outcomes: &[SubmissionOutcome],
    ) -> Result<(), sqlx::Error> {
        let repeats: Vec<_> = rows
            .iter()
            .zip(outcomes)
            .filter_map(|(row, outcome)| match (&outcome.fact, &row.idempotency) {
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
        bind(connection, &repeats, &self.clock, &self.key_lifetime).await
    }
}
