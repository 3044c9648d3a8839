//! Writes new submissions: one statement inserts exchange, payload, inbox items, history and idempotency key, or nothing. The
//! key comes first: a row whose key another request has just bound is not written, and its neighbours are.

use sqlx::PgConnection;
use sqlx::postgres::types::PgInterval;

use super::batch::{BatchResult, BatchStatement};
use super::idempotency::{KeyBinding, bind, conflict_keys, release};
use super::rows::{self, column};
pub use super::submission::{AskedApprover, InboxLimits, SubmissionRow};
use super::submission::{over_limit, read_existing};
use super::tenant_scope::TenantScope;
use crate::clock::Clock;
use crate::protocol::exchange::{NotWritten, SubmissionFact};
use crate::protocol::id::{NodeId, OperationId};
use crate::store::clock_offset::clock_offset;

pub struct TakeSubmissions {
    pub clock: Clock,
    pub node: NodeId,
    pub limits: InboxLimits,
    /// Whether an enforcer reaches only approvers that it is paired with.
    pub pairing_required: bool,
    pub key_lifetime: PgInterval,
}

impl BatchStatement for TakeSubmissions {
    const NAME: &'static str = "submit";
    type Row = SubmissionRow;
    type Fact = SubmissionFact;

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

    fn weight(row: &SubmissionRow) -> usize {
        row.asked.len().max(1)
    }

    async fn run(&self, connection: &mut PgConnection, rows: &[Self::Row]) -> BatchResult<Self> {
        let written = self.write(connection, rows).await?;
        // A second statement reads the conflicting rows: they may be newer than the first one's snapshot.
        let unwritten: Vec<_> = rows
            .iter()
            .zip(&written)
            .filter_map(|(row, written)| Some((row, *written.as_ref().err()?)))
            .collect();
        let found = read_existing(connection, &self.clock, &unwritten).await?;
        let mut found = found.into_iter();
        let mut outcomes = Vec::with_capacity(rows.len());
        for written in &written {
            outcomes.push(match written {
                Ok(()) => SubmissionFact::Written(()),
                Err(_) => found.next().ok_or(sqlx::Error::RowNotFound)?,
            });
        }
        let repeats = rows.iter().zip(&outcomes).filter_map(|(row, outcome)| {
            let (request, key) = (&row.submission.request_id, row.idempotency.as_ref());
            KeyBinding::of_repeat(&row.tenant, request, key, outcome)
        });
        let repeats: Vec<_> = repeats.collect();
        bind(connection, &repeats, &self.clock, &self.key_lifetime).await?;
        let refused = rows.iter().zip(&outcomes).filter_map(|(row, outcome)| {
            let (operation, key) = (row.operation, row.idempotency.as_ref());
            let refused = outcome.already_exists();
            refused.then(|| Some((&row.tenant, operation, key?)))?
        });
        release(connection, &refused.collect::<Vec<_>>()).await?;
        Ok(outcomes)
    }
}

impl TakeSubmissions {
    /// Writes the rows that nothing conflicts with.
    async fn write(
        &self,
        connection: &mut PgConnection,
        rows: &[SubmissionRow],
    ) -> sqlx::Result<Vec<Result<(), NotWritten>>> {
        let keys = column(rows, |row| row.idempotency.as_ref());
        let asked: Vec<_> = rows
            .iter()
            .flat_map(|row| row.asked.iter().map(move |asked| (row, asked)))
            .collect();
        let over_limit = over_limit(connection, &self.clock, self.limits, rows).await?;
        // A submission that asks nobody, or a full inbox, is not written; but it may still be found to be a repeat.
        let skipped =
            |row: &SubmissionRow| row.asked.is_empty() || over_limit.contains_key(&row.operation);
        let written = sqlx::query!(
            r#"
            with asked as materialized (
                select a.submission_id, a.approver_id, a.message_id, a.tenant_id, a.enforcer_id
                  from unnest($17::uuid[], $18::text[], $19::uuid[], $22::text[], $23::text[])
                       as a (submission_id, approver_id, message_id, tenant_id, enforcer_id)
            ),
            -- Judged here, so that a revocation that has been answered is obeyed. The limit keeps the planner from hashing
            -- the whole table.
            unpaired as materialized (
                select distinct a.submission_id
                  from asked a
                 where $24 and (select true from pairings p
                                 where p.tenant_id = a.tenant_id and p.enforcer_id = a.enforcer_id
                                   and p.approver_id = a.approver_id and p.revoked_at is null
                                 limit 1) is null
            ),
            judged as materialized (
                select i.tenant_id, i.request_id, i.submission_id, i.enforcer_id, i.form, i.artifact_type, i.artifact_hash,
                       i.repo_ref, i.expires_at, i.body, i.trace, i.principal, i.key, i.fingerprint, i.skipped,
                       c.at, i.expires_at <= c.at as past, u.submission_id is not null as unpaired
                  from unnest($1::text[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[],
                              $8::text[], $9::timestamptz[], $10::text[], $11::text[], $12::text[], $13::text[],
                              $14::bytea[], $15::boolean[])
                       as i (tenant_id, request_id, submission_id, enforcer_id, form, artifact_type, artifact_hash,
                             repo_ref, expires_at, body, trace, principal, key, fingerprint, skipped)
                 cross join (select clock_timestamp() + $16::interval as at) c
                  left join unpaired u on u.submission_id = i.submission_id
            ),
            pick as materialized (
                select j.tenant_id, j.request_id, j.submission_id, j.enforcer_id, j.form, j.artifact_type,
                       j.artifact_hash, j.repo_ref, j.expires_at, j.body, j.trace, j.principal, j.key, j.fingerprint,
                       j.at
                  from judged j
                 where not j.past and not j.skipped and not j.unpaired
                   -- Here and below the limit keeps the planner from hashing the whole table.
                   and (select true from idempotency_keys k
                         where k.tenant_id = j.tenant_id and k.principal = j.principal and k.key = j.key
                           and k.fingerprint <> j.fingerprint and k.expires_at > j.at
                         limit 1) is null
                   -- What is stored already binds no key, unless it proves to be a repeat.
                   and (j.key is null
                        or (select true from exchanges e
                             where e.tenant_id = j.tenant_id and e.request_id = j.request_id limit 1) is null)
            ),
            keys as (
                insert into idempotency_keys
                       (tenant_id, principal, key, fingerprint, submission_id, request_id, expires_at)
                select p.tenant_id, p.principal, p.key, p.fingerprint, p.submission_id, p.request_id,
                       p.at + $21::interval
                  from pick p
                 where p.key is not null
                 order by p.tenant_id collate "C", p.principal collate "C", p.key collate "C"
                on conflict on constraint idempotency_keys_pkey do update
                   set fingerprint = excluded.fingerprint,
                       submission_id = case when idempotency_keys.expires_at <= clock_timestamp() + $16::interval
                                            then excluded.submission_id else idempotency_keys.submission_id end,
                       request_id = excluded.request_id,
                       expires_at = excluded.expires_at
                 where idempotency_keys.expires_at <= clock_timestamp() + $16::interval
                    or idempotency_keys.fingerprint = excluded.fingerprint
                returning tenant_id, principal, key
            ),
            written as (
                insert into exchanges (tenant_id, request_id, submission_id, operation_id, state, seq, enforcer_id, form,
                                       artifact_type, artifact_hash, repo_ref, accepted_at, expires_at)
                select p.tenant_id, p.request_id, p.submission_id, p.submission_id, 'pendingApproval', 1, p.enforcer_id,
                       p.form, p.artifact_type, p.artifact_hash, p.repo_ref, p.at, p.expires_at
                  from pick p
                  left join keys k on k.tenant_id = p.tenant_id and k.principal = p.principal and k.key = p.key
                 where p.key is null or k.key is not null
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
                insert into inbox_items (tenant_id, request_id, approver_id, message_id, created_at, expires_at,
                                         enforcer_id)
                select w.tenant_id, w.request_id, a.approver_id, a.message_id, w.accepted_at, w.expires_at,
                       w.enforcer_id
                  from written w
                  join asked a on a.submission_id = w.submission_id
            ),
            history as (
                insert into exchange_events (tenant_id, request_id, at, event_id, from_state, to_state, actor, principal,
                                             address, node)
                select w.tenant_id, w.request_id, w.accepted_at, w.submission_id, null, 'pendingApproval',
                       'enforcer:' || w.enforcer_id, s.principal, s.address, $20
                  from written w
                  join unnest($3::uuid[], $25::text[], $26::text[]) as s (submission_id, principal, address)
                    on s.submission_id = w.submission_id
            ),
            -- Who may read whose keys: written where it is new, and then once a day. It waits for nobody: who has locked such a
            -- row, or is inserting it, is doing the same or forgetting it, and the next submission tries again.
            contacts as materialized (
                select distinct on (w.tenant_id collate "C", a.approver_id collate "C", w.enforcer_id collate "C")
                       w.tenant_id, a.approver_id, w.enforcer_id, w.accepted_at, k.known
                  from written w
                  join asked a on a.submission_id = w.submission_id
                  left join lateral (
                      select true as known, k.asked_at
                        from asked_approvers k
                       where k.tenant_id = w.tenant_id and k.approver_id = a.approver_id and k.enforcer_id = w.enforcer_id
                       limit 1) k on true
                 where (k.asked_at > w.accepted_at - interval '1 day') is not true
                 order by w.tenant_id collate "C", a.approver_id collate "C", w.enforcer_id collate "C"
            ),
            renewable as materialized (
                select k.tenant_id, k.approver_id, k.enforcer_id, c.accepted_at
                  from contacts c
                 cross join lateral (
                     select k.tenant_id, k.approver_id, k.enforcer_id
                       from asked_approvers k
                      where k.tenant_id = c.tenant_id and k.approver_id = c.approver_id and k.enforcer_id = c.enforcer_id
                      limit 1
                        for no key update skip locked) k
                 where c.known
            ),
            renewed as (
                update asked_approvers k
                   set asked_at = r.accepted_at
                  from renewable r
                 where k.tenant_id = r.tenant_id and k.approver_id = r.approver_id and k.enforcer_id = r.enforcer_id
            ),
            met as (
                insert into asked_approvers (tenant_id, approver_id, enforcer_id, asked_at)
                select c.tenant_id, c.approver_id, c.enforcer_id, c.accepted_at
                  from contacts c
                 where c.known is null
                   and pg_try_advisory_xact_lock(
                           hashtextextended(concat_ws(chr(10), c.tenant_id, c.approver_id, c.enforcer_id), 3))
                on conflict on constraint asked_approvers_pkey do nothing
            )
            select j.submission_id as "operation!: OperationId", w.submission_id is not null as "written!",
                   j.past as "past!", j.unpaired as "unpaired!"
              from judged j
              left join written w on w.submission_id = j.submission_id
            "#,
            column(rows, |row| &row.tenant) as _,
            column(rows, |row| &row.submission.request_id) as _,
            column(rows, |row| row.operation) as _,
            column(rows, |row| &row.enforcer) as _,
            column(rows, |row| row.submission.form) as _,
            column(rows, |row| &row.submission.artifact_type) as _,
            column(rows, |row| row.submission.artifact_hash) as _,
            column(rows, |row| row.submission.repo_ref.as_deref()) as _,
            column(rows, |row| row.submission.expires_at) as _,
            column(rows, |row| &row.submission.stored) as _,
            column(rows, |row| row.submission.trace.as_deref()) as _,
            column(&keys, |key| key.map(|key| &key.principal)) as _,
            column(&keys, |key| key.map(|key| &key.key)) as _,
            column(&keys, |key| key.map(|key| key.fingerprint)) as _,
            &column(rows, skipped),
            clock_offset(&self.clock),
            column(&asked, |(row, _)| row.operation) as _,
            column(&asked, |(_, asked)| &asked.approver) as _,
            column(&asked, |(_, asked)| asked.message) as _,
            self.node.as_str(),
            self.key_lifetime,
            column(&asked, |(row, _)| &row.tenant) as _,
            column(&asked, |(row, _)| &row.enforcer) as _,
            self.pairing_required,
            column(rows, |row| row.source.principal.as_deref()) as _,
            column(rows, |row| row.source.address()) as _,
        )
        .fetch_all(connection)
        .await?;
        let facts = written.into_iter().map(|row| {
            let fact = if row.written {
                Ok(())
            } else {
                Err(match over_limit.get(&row.operation) {
                    _ if row.past => NotWritten::Expired,
                    _ if row.unpaired => NotWritten::Unpaired,
                    Some(full) => *full,
                    None => NotWritten::Other,
                })
            };
            (row.operation, fact)
        });
        rows::in_order(rows.iter().map(|row| row.operation), facts)
    }
}
