//! Taking submissions: one statement writes exchange, payload, inbox items, history and idempotency key, or none.

use sqlx::PgConnection;
use sqlx::postgres::types::PgInterval;
use time::OffsetDateTime;
use uuid::Uuid;

use super::batch::BatchStatement;
use super::idempotency::{IdempotencyKey, conflict_keys};
use super::inbox_limit::crowded;
use super::rows;
use super::tenant_scope::TenantScope;
use crate::clock::Clock;
use crate::protocol::artifact::Submission;
use crate::protocol::exchange::SubmissionFact;
use crate::protocol::id::{ApproverId, EnforcerId, MessageId, NodeId, OperationId, TenantId};

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

#[derive(Debug)]
pub struct SubmissionOutcome {
    pub fact: SubmissionFact,
    /// Whether someone it asks may be listening on another node.
    pub heard_elsewhere: bool,
}

pub struct Submit {
    pub clock: Clock,
    pub node: NodeId,
    pub instance: Uuid,
    pub max_pending: i64,
    pub key_lifetime: PgInterval,
}

impl BatchStatement for Submit {
    const NAME: &'static str = "submit";
    type Row = SubmissionRow;
    type Fact = SubmissionOutcome;

    fn tenant_scope(rows: &[SubmissionRow]) -> TenantScope<'_> {
        TenantScope::of(rows.iter().map(|row| &row.tenant))
    }

    fn conflict_keys(row: &SubmissionRow) -> Vec<String> {
        conflict_keys(
            &row.tenant,
            &row.submission.request_id,
            row.idempotency.as_ref(),
        )
    }

    fn bytes(row: &SubmissionRow) -> usize {
        row.submission.stored.len() + row.submission.trace.as_ref().map_or(0, String::len)
    }

    async fn run(
        &self,
        connection: &mut PgConnection,
        rows: &[SubmissionRow],
    ) -> Result<Vec<SubmissionOutcome>, sqlx::Error> {
        let written = self.write(connection, rows).await?;
        let mut outcomes = Vec::with_capacity(rows.len());
        // What stood in the way is read by a second statement: the first one's snapshot may be older than its twin.
        let unwritten: Vec<_> = rows
            .iter()
            .zip(&written)
            .filter_map(|(row, written)| Some((row, written.as_ref().err()?)))
            .collect();
        let mut found = self.look(connection, &unwritten).await?.into_iter();
        for written in &written {
            outcomes.push(match written {
                Ok(Written { heard_elsewhere }) => SubmissionOutcome {
                    fact: SubmissionFact::Written,
                    heard_elsewhere: *heard_elsewhere,
                },
                // An earlier try of this very attempt may have written it, and have been cut off before anyone was told.
                Err(_) => SubmissionOutcome {
                    fact: found.next().ok_or(sqlx::Error::RowNotFound)?,
                    heard_elsewhere: true,
                },
            });
        }
        self.bind_duplicates(connection, rows, &outcomes).await?;
        Ok(outcomes)
    }
}

struct Written {
    heard_elsewhere: bool,
}

/// Why a row was not written, as far as the writing statement knows.
pub(super) struct Refused {
    pub past: bool,
    pub crowded: bool,
}

impl Submit {
    /// Writes what can be written; a row that was not comes back as refused.
    async fn write(
        &self,
        connection: &mut PgConnection,
        rows: &[SubmissionRow],
    ) -> Result<Vec<Result<Written, Refused>>, sqlx::Error> {
        let keys: Vec<_> = rows.iter().map(|row| row.idempotency.as_ref()).collect();
        let asked: Vec<_> = rows
            .iter()
            .flat_map(|row| row.asked.iter().map(move |asked| (row, asked)))
            .collect();
        let crowded = crowded(connection, &self.clock, self.max_pending, rows).await?;
        // What asks nobody, or too many, is written nowhere; whether it is a repeat is seen all the same.
        let barred: Vec<_> = rows
            .iter()
            .map(|row| row.asked.is_empty() || crowded.contains(&row.operation))
            .collect();
        let written = sqlx::query!(
            r#"
            with judged as materialized (
                select i.tenant_id, i.request_id, i.submission_id, i.enforcer_id, i.form, i.artifact_type, i.artifact_hash,
                       i.repo_ref, i.expires_at, i.body, i.trace, i.principal, i.key, i.fingerprint, i.barred,
                       c.at, i.expires_at <= c.at as past
                  from unnest($1::text[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[],
                              $8::text[], $9::timestamptz[], $10::text[], $11::text[], $12::text[], $13::text[],
                              $14::bytea[], $15::boolean[])
                       as i (tenant_id, request_id, submission_id, enforcer_id, form, artifact_type, artifact_hash,
                             repo_ref, expires_at, body, trace, principal, key, fingerprint, barred)
                 cross join (select clock_timestamp() + $16::interval as at) c
            ),
            pick as materialized (
                select j.tenant_id, j.request_id, j.submission_id, j.enforcer_id, j.form, j.artifact_type,
                       j.artifact_hash, j.repo_ref, j.expires_at, j.body, j.trace, j.principal, j.key, j.fingerprint,
                       j.at
                  from judged j
                 where not j.past and not j.barred
                   -- Here and below the limit keeps this from being turned into a hash of all there is.
                   and (select true from idempotency_keys k
                         where k.tenant_id = j.tenant_id and k.principal = j.principal and k.key = j.key
                           and k.fingerprint <> j.fingerprint and k.expires_at > j.at
                         limit 1) is null
            ),
            written as (
                insert into exchanges (tenant_id, request_id, submission_id, operation_id, state, seq, enforcer_id, form,
                                       artifact_type, artifact_hash, repo_ref, accepted_at, expires_at)
                select p.tenant_id, p.request_id, p.submission_id, p.submission_id, 'pendingApproval', 1, p.enforcer_id,
                       p.form, p.artifact_type, p.artifact_hash, p.repo_ref, p.at, p.expires_at
                  from pick p
                 order by p.tenant_id collate "C", p.request_id collate "C"
                on conflict on constraint exchanges_pkey do nothing
                returning tenant_id, request_id, submission_id, enforcer_id, accepted_at, expires_at
            ),
            payload as (
                insert into exchange_payloads (tenant_id, request_id, part, body, trace)
                select p.tenant_id, p.request_id, 'artifact', p.body::json, p.trace::json
                  from pick p join written w on w.submission_id = p.submission_id
            ),
            items as (
                insert into inbox_items (tenant_id, request_id, approver_id, message_id, created_at, expires_at)
                select w.tenant_id, w.request_id, a.approver_id, a.message_id, w.accepted_at, w.expires_at
                  from written w
                  join unnest($17::uuid[], $18::text[], $19::uuid[]) as a (submission_id, approver_id, message_id)
                       on a.submission_id = w.submission_id
            ),
            history as (
                insert into exchange_events (tenant_id, request_id, at, event_id, from_state, to_state, actor, node)
                select w.tenant_id, w.request_id, w.accepted_at, w.submission_id, null, 'pendingApproval',
                       'enforcer:' || w.enforcer_id, $20
                  from written w
            ),
            keys as (
                insert into idempotency_keys
                       (tenant_id, principal, key, fingerprint, submission_id, request_id, expires_at)
                select p.tenant_id, p.principal, p.key, p.fingerprint, p.submission_id, p.request_id,
                       p.at + $21::interval
                  from pick p join written w on w.submission_id = p.submission_id
                 where p.key is not null
                 order by p.tenant_id collate "C", p.principal collate "C", p.key collate "C"
                on conflict on constraint idempotency_keys_pkey do update
                   -- Bound to other work a moment ago: the null fails the whole statement, and with it this work.
                   set fingerprint = case when idempotency_keys.expires_at <= clock_timestamp() + $16::interval
                                            or idempotency_keys.fingerprint = excluded.fingerprint
                                          then excluded.fingerprint end,
                       submission_id = excluded.submission_id,
                       request_id = excluded.request_id,
                       expires_at = excluded.expires_at
            ),
            heard as (
                select distinct a.submission_id
                  from unnest($17::uuid[], $18::text[], $22::text[]) as a (submission_id, approver_id, tenant_id)
                 cross join lateral (
                     select from channels c
                      where c.tenant_id = a.tenant_id and c.kind = 'approver' and c.identity = a.approver_id
                        and c.node_id <> $23
                      limit 1) c
            )
            select j.submission_id as "submission_id!", w.submission_id is not null as "written!", j.past as "past!",
                   h.submission_id is not null as "heard!"
              from judged j
              left join written w on w.submission_id = j.submission_id
              left join heard h on h.submission_id = j.submission_id
            "#,
            &rows::texts(rows, |row| row.tenant.as_str()) as _,
            &rows::texts(rows, |row| row.submission.request_id.as_str()) as _,
            &rows.iter().map(|row| row.operation.0).collect::<Vec<Uuid>>(),
            &rows::texts(rows, |row| row.enforcer.as_str()) as _,
            &rows::texts(rows, |row| row.submission.form.as_str()) as _,
            &rows::texts(rows, |row| row.submission.artifact_type.as_str()) as _,
            &rows.iter().map(|row| row.submission.artifact_hash.to_string()).collect::<Vec<_>>(),
            &rows::optional(rows, |row| row.submission.repo_ref.as_deref()) as _,
            &rows.iter().map(|row| row.submission.expires_at.inner()).collect::<Vec<OffsetDateTime>>(),
            &rows::texts(rows, |row| row.submission.stored.as_str()) as _,
            &rows::optional(rows, |row| row.submission.trace.as_deref()) as _,
            &rows::optional(&keys, |key| key.map(|key| key.principal.as_str())) as _,
            &rows::optional(&keys, |key| key.map(|key| key.key.as_str())) as _,
            &keys.iter().map(|key| key.map(|key| key.fingerprint.to_vec())).collect::<Vec<Option<Vec<u8>>>>() as _,
            &barred,
            self.clock.offset(),
            &asked.iter().map(|(row, _)| row.operation.0).collect::<Vec<Uuid>>(),
            &rows::texts(&asked, |(_, asked)| asked.approver.as_str()) as _,
            &asked.iter().map(|(_, asked)| asked.message.0).collect::<Vec<Uuid>>(),
            self.node.as_str(),
            self.key_lifetime,
            &rows::texts(&asked, |(row, _)| row.tenant.as_str()) as _,
            self.instance,
        )
        .fetch_all(connection)
        .await?;
        rows::in_order(
            rows.iter().map(|row| row.operation.0),
            written.into_iter().map(|fact| {
                let written = if fact.written {
                    Ok(Written {
                        heard_elsewhere: fact.heard,
                    })
                } else {
                    Err(Refused {
                        past: fact.past,
                        crowded: crowded.contains(&OperationId(fact.submission_id)),
                    })
                };
                (fact.submission_id, written)
            }),
        )
    }
}
