//! Writes new submissions: one statement inserts exchange, payload, inbox items, history and idempotency key, or nothing. The
//! key comes first: a row whose key another request has just bound is not written, and its neighbours are.

use std::collections::HashMap;

use sqlx::PgConnection;
use sqlx::postgres::types::PgInterval;

use crate::clock::Clock;
use crate::protocol::exchange::{NewExchange, NotWritten, SubmissionFact};
use crate::protocol::id::{MessageId, NodeId, OperationId};
use crate::protocol::timestamp::Timestamp;
use crate::store::database::batch_statement::{BatchResult, BatchStatement};
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::rows;
use crate::store::database::rows::column;
use crate::store::database::tenant_scope::TenantScope;
use crate::store::exchanges::idempotency::{KeyedRow, conflict_keys, settle_keys};
pub use crate::store::exchanges::submission::{AskedApprover, InboxLimits, SubmissionRow};
use crate::store::exchanges::submission::{over_limit, read_existing};

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
                Ok(new) => SubmissionFact::Written(new.clone()),
                Err(_) => found.next().ok_or(sqlx::Error::RowNotFound)?,
            });
        }
        let keyed = rows.iter().zip(&outcomes).filter_map(|(row, fact)| {
            Some(KeyedRow {
                operation: row.operation,
                tenant: &row.tenant,
                request_id: &row.submission.request_id,
                key: row.idempotency.as_ref()?,
                fact,
            })
        });
        let keyed: Vec<_> = keyed.collect();
        settle_keys(connection, &keyed, &self.clock, &self.key_lifetime).await?;
        Ok(outcomes)
    }
}

impl TakeSubmissions {
    /// Writes the rows that nothing conflicts with.
    async fn write(
        &self,
        connection: &mut PgConnection,
        rows: &[SubmissionRow],
    ) -> sqlx::Result<Vec<Result<NewExchange, NotWritten>>> {
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
            with settings as materialized (
                select c.clock_offset, clock_timestamp() + c.clock_offset as at, $1::boolean as pairing_required,
                       $2::interval as key_lifetime, $3::text as node
                  from (select $4::interval as clock_offset) c
            ),
            input as materialized (
                select i.*
                  from unnest($5::text[], $6::text[], $7::uuid[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[],
                              $13::timestamptz[], $14::text[], $15::text[], $16::text[], $17::bytea[], $18::boolean[],
                              $19::text[], $20::text[])
                       with ordinality
                       as i (tenant_id, request_id, submission_id, enforcer_id, form, artifact_type, artifact_hash, repo_ref,
                             expires_at, trace, principal, key, fingerprint, skipped, source_principal, source_address, n)
            ),
            asked as materialized (
                select a.submission_id, a.approver_id, a.message_id, a.is_awaited, i.tenant_id, i.enforcer_id
                  from unnest($21::uuid[], $22::text[], $23::uuid[], $24::boolean[])
                       as a (submission_id, approver_id, message_id, is_awaited)
                  join input i on i.submission_id = a.submission_id
            ),
            -- Judged here, so that a revocation that has been answered is obeyed. The limit keeps the planner from hashing
            -- the whole table.
            unpaired_submissions as materialized (
                select distinct a.submission_id
                  from asked a
                 where (select s.pairing_required from settings s)
                   and (select true from pairings p
                         where p.tenant_id = a.tenant_id and p.enforcer_id = a.enforcer_id
                           and p.approver_id = a.approver_id and p.revoked_at is null
                         limit 1) is null
            ),
            judged_submissions as materialized (
                select i.submission_id, i.expires_at <= s.at as past, u.submission_id is not null as unpaired, s.at
                  from input i
                 cross join settings s
                  left join unpaired_submissions u on u.submission_id = i.submission_id
            ),
            writable_submissions as materialized (
                select i.submission_id, i.tenant_id, i.request_id, i.principal, i.key, i.fingerprint, j.at
                  from judged_submissions j
                  join input i on i.submission_id = j.submission_id
                 where not j.past and not i.skipped and not j.unpaired
                   -- Here and below the limit keeps the planner from hashing the whole table.
                   and (select true from idempotency_keys k
                         where k.tenant_id = i.tenant_id and k.principal = i.principal and k.key = i.key
                           and k.fingerprint <> i.fingerprint and k.expires_at > j.at
                         limit 1) is null
                   -- What is stored already binds no key, unless it proves to be a repeat.
                   and (i.key is null
                        or (select true from exchanges e
                             where e.tenant_id = i.tenant_id and e.request_id = i.request_id limit 1) is null)
            ),
            inserted_keys as (
                insert into idempotency_keys
                       (tenant_id, principal, key, fingerprint, submission_id, request_id, expires_at)
                select p.tenant_id, p.principal, p.key, p.fingerprint, p.submission_id, p.request_id, p.at + s.key_lifetime
                  from writable_submissions p
                 cross join settings s
                 where p.key is not null
                 order by p.tenant_id collate "C", p.principal collate "C", p.key collate "C"
                on conflict on constraint idempotency_keys_pkey do update
                   set fingerprint = excluded.fingerprint,
                       submission_id = case when idempotency_keys.expires_at
                                                 <= clock_timestamp() + (select s.clock_offset from settings s)
                                            then excluded.submission_id else idempotency_keys.submission_id end,
                       request_id = excluded.request_id,
                       expires_at = excluded.expires_at
                 where idempotency_keys.expires_at <= clock_timestamp() + (select s.clock_offset from settings s)
                    or idempotency_keys.fingerprint = excluded.fingerprint
                returning tenant_id, principal, key
            ),
            inserted_exchanges as (
                insert into exchanges (tenant_id, request_id, submission_id, operation_id, state, seq, enforcer_id, form,
                                       artifact_type, artifact_hash, repo_ref, accepted_at, expires_at)
                select i.tenant_id, i.request_id, i.submission_id, i.submission_id, 'pendingApproval', 1, i.enforcer_id,
                       i.form, i.artifact_type, i.artifact_hash, i.repo_ref, p.at, i.expires_at
                  from writable_submissions p
                  join input i on i.submission_id = p.submission_id
                 -- In a case this looks up a hash. As a join it would compare each with each.
                 where case when p.key is null then true
                            else (p.tenant_id, p.principal, p.key)
                                 in (select k.tenant_id, k.principal, k.key from inserted_keys k) end
                 order by i.tenant_id collate "C", i.request_id collate "C"
                on conflict on constraint exchanges_pkey do nothing
                returning tenant_id, request_id, submission_id, enforcer_id, accepted_at, expires_at
            ),
            -- Bodies are taken out of their parameter only here. As a column of the input they would be copied twice, and large
            -- ones through a file.
            inserted_payloads as (
                insert into exchange_payloads (tenant_id, request_id, part, body, trace)
                select i.tenant_id, i.request_id, 'artifact', ($25::text[])[i.n]::json, i.trace::json
                  from inserted_exchanges w
                  join input i on i.submission_id = w.submission_id
            ),
            inserted_items as (
                insert into inbox_items (tenant_id, request_id, approver_id, message_id, created_at, expires_at,
                                         enforcer_id)
                select w.tenant_id, w.request_id, a.approver_id, a.message_id, w.accepted_at, w.expires_at,
                       w.enforcer_id
                  from inserted_exchanges w
                  join asked a on a.submission_id = w.submission_id
            ),
            inserted_events as (
                insert into exchange_events (tenant_id, request_id, at, event_id, from_state, to_state, actor, principal,
                                             address, node)
                select w.tenant_id, w.request_id, w.accepted_at, w.submission_id, null, 'pendingApproval',
                       'enforcer:' || w.enforcer_id, i.source_principal, i.source_address, s.node
                  from inserted_exchanges w
                  join input i on i.submission_id = w.submission_id
                 cross join settings s
            ),
            -- The contacts decide who may read whose keys. One is written when it is new, and then once a day. This waits
            -- for no lock: a transaction that holds one writes or deletes the same contact, and the next submission tries
            -- again.
            due_contacts as materialized (
                select distinct on (w.tenant_id collate "C", a.approver_id collate "C", w.enforcer_id collate "C")
                       w.tenant_id, a.approver_id, w.enforcer_id, w.accepted_at, k.known
                  from inserted_exchanges w
                  join asked a on a.submission_id = w.submission_id
                  left join lateral (
                      select true as known, k.asked_at
                        from asked_approvers k
                       where k.tenant_id = w.tenant_id and k.approver_id = a.approver_id and k.enforcer_id = w.enforcer_id
                       limit 1) k on true
                 where (k.asked_at > w.accepted_at - interval '1 day') is not true
                 order by w.tenant_id collate "C", a.approver_id collate "C", w.enforcer_id collate "C"
            ),
            locked_contacts as materialized (
                select k.tenant_id, k.approver_id, k.enforcer_id, c.accepted_at
                  from due_contacts c
                 cross join lateral (
                     select k.tenant_id, k.approver_id, k.enforcer_id
                       from asked_approvers k
                      where k.tenant_id = c.tenant_id and k.approver_id = c.approver_id and k.enforcer_id = c.enforcer_id
                      limit 1
                        for no key update skip locked) k
                 where c.known
            ),
            renewed_contacts as (
                update asked_approvers k
                   set asked_at = l.accepted_at
                  from locked_contacts l
                 where k.tenant_id = l.tenant_id and k.approver_id = l.approver_id and k.enforcer_id = l.enforcer_id
            ),
            inserted_contacts as (
                insert into asked_approvers (tenant_id, approver_id, enforcer_id, asked_at)
                select c.tenant_id, c.approver_id, c.enforcer_id, c.accepted_at
                  from due_contacts c
                 where c.known is null
                   and pg_try_advisory_xact_lock(
                           hashtextextended(concat_ws(chr(10), c.tenant_id, c.approver_id, c.enforcer_id), 3))
                on conflict on constraint asked_approvers_pkey do nothing
            ),
            -- For channels that then need not read the request. As in `approver_messages`.
            enforcer_labels as materialized (
                select a.submission_id, a.message_id,
                       case when g.approver_id is null then n.label else g.enforcer_label end as label
                  from asked a
                  left join lateral (select g.approver_id, g.enforcer_label
                                       from pairings g
                                      where g.tenant_id = a.tenant_id and g.enforcer_id = a.enforcer_id
                                        and g.approver_id = a.approver_id
                                      limit 1) g on true
                  left join lateral (select n.label
                                       from enforcers n
                                      where n.tenant_id = a.tenant_id and n.enforcer_id = a.enforcer_id
                                      limit 1) n on true
                 where a.is_awaited
            )
            select j.submission_id as "operation!: OperationId", w.accepted_at as "accepted_at?: Timestamp",
                   j.past as "past!", j.unpaired as "unpaired!", l.message_id as "message?: MessageId",
                   l.label as "label?"
              from judged_submissions j
              left join inserted_exchanges w on w.submission_id = j.submission_id
              left join enforcer_labels l on l.submission_id = j.submission_id
            "#,
            self.pairing_required,
            self.key_lifetime,
            self.node.as_str(),
            clock_offset(&self.clock),
            column(rows, |row| &row.tenant) as _,
            column(rows, |row| &row.submission.request_id) as _,
            column(rows, |row| row.operation) as _,
            column(rows, |row| &row.enforcer) as _,
            column(rows, |row| row.submission.form) as _,
            column(rows, |row| &row.submission.artifact_type) as _,
            column(rows, |row| row.submission.artifact_hash) as _,
            column(rows, |row| row.submission.repo_ref.as_deref()) as _,
            column(rows, |row| row.submission.expires_at) as _,
            column(rows, |row| row.submission.trace.as_deref()) as _,
            column(&keys, |key| key.map(|key| &key.principal)) as _,
            column(&keys, |key| key.map(|key| &key.key)) as _,
            column(&keys, |key| key.map(|key| key.fingerprint)) as _,
            &column(rows, skipped),
            column(rows, |row| row.source.principal.as_deref()) as _,
            column(rows, |row| row.source.address()) as _,
            column(&asked, |(row, _)| row.operation) as _,
            column(&asked, |(_, asked)| &asked.approver) as _,
            column(&asked, |(_, asked)| asked.message) as _,
            &column(&asked, |(_, asked)| asked.is_awaited),
            column(rows, |row| &row.submission.stored) as _,
        )
        .fetch_all(connection)
        .await?;
        // A row for each approver that is awaited, or one if there is none.
        let mut facts: HashMap<_, Result<NewExchange, NotWritten>> = HashMap::new();
        for row in written {
            let fact = facts.entry(row.operation).or_insert_with(|| {
                let accepted_at = row
                    .accepted_at
                    .ok_or(match over_limit.get(&row.operation) {
                        _ if row.past => NotWritten::Expired,
                        _ if row.unpaired => NotWritten::Unpaired,
                        Some(full) => *full,
                        None => NotWritten::Other,
                    })?;
                Ok(NewExchange {
                    accepted_at,
                    labels: Vec::new(),
                })
            });
            if let (Ok(new), Some(message)) = (fact, row.message) {
                new.labels.push((message, row.label));
            }
        }
        rows::in_order(rows.iter().map(|row| row.operation), facts)
    }
}
