//! Writes prompts: one statement inserts prompt, payload, message and idempotency key, or nothing; the key first, as in
//! `submit`. It also finds the recipient: the enforcer named, the one of the session, or the one in the metadata.

use sqlx::PgConnection;
use sqlx::postgres::types::PgInterval;

use crate::clock::Clock;
use crate::protocol::canonical::Sha256Hex;
use crate::protocol::id::{ApproverId, EnforcerId, MessageId, OperationId, TenantId};
use crate::protocol::idempotent::{ExistingRow, KeyFact};
use crate::protocol::prompt::{
    Prompt, PromptFact, PromptNotWritten, PromptRecord, PromptStatus, QueuedPrompt,
};
use crate::protocol::timestamp::Timestamp;
use crate::store::database::batch_statement::{BatchResult, BatchStatement};
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::rows;
use crate::store::database::rows::column;
use crate::store::database::tenant_scope::TenantScope;
use crate::store::exchanges::idempotency::{
    IdempotencyKey, KeyedRow, conflict_keys, key_fact, settle_keys,
};

#[derive(Debug)]
pub struct PromptRow {
    pub operation: OperationId,
    pub message: MessageId,
    pub tenant: TenantId,
    /// The sender; `None` for an administrator.
    pub approver: Option<ApproverId>,
    pub recipient: Option<EnforcerId>,
    /// The recipient if neither the prompt nor its session names one.
    pub fallback: Option<EnforcerId>,
    pub prompt: Prompt,
    pub idempotency: Option<IdempotencyKey>,
}

pub struct TakePrompts {
    pub clock: Clock,
    /// Whether only paired approvers may prompt an enforcer, also one that is paired with nobody.
    pub pairing_required: bool,
    pub key_lifetime: PgInterval,
}

impl BatchStatement for TakePrompts {
    const NAME: &'static str = "submit_prompt";
    type Row = PromptRow;
    type Fact = PromptFact;

    fn tenant_scope(rows: &[PromptRow]) -> TenantScope<'_> {
        TenantScope::of(rows.iter().map(|row| &row.tenant))
    }

    fn conflict_keys(row: &PromptRow) -> Vec<String> {
        conflict_keys(
            &row.tenant,
            &row.prompt.request_id,
            row.idempotency.as_ref(),
        )
    }

    fn bytes(row: &PromptRow) -> usize {
        row.prompt.body.len() + row.prompt.trace.as_ref().map_or(0, String::len)
    }

    async fn run(&self, connection: &mut PgConnection, rows: &[Self::Row]) -> BatchResult<Self> {
        let mut facts = self.write(connection, rows).await?;
        // A second statement reads the conflicting rows: they may be newer than the first one's snapshot.
        let unwritten: Vec<_> = rows
            .iter()
            .zip(&mut facts)
            .filter(|(_, fact)| matches!(fact, PromptFact::Unwritten { .. }))
            .collect();
        self.read_existing(connection, unwritten).await?;
        let keyed = rows.iter().zip(&facts).filter_map(|(row, fact)| {
            Some(KeyedRow {
                operation: row.operation,
                tenant: &row.tenant,
                request_id: &row.prompt.request_id,
                key: row.idempotency.as_ref()?,
                fact,
            })
        });
        let keyed: Vec<_> = keyed.collect();
        settle_keys(connection, &keyed, &self.clock, &self.key_lifetime).await?;
        Ok(facts)
    }
}

impl TakePrompts {
    async fn write(&self, connection: &mut PgConnection, rows: &[PromptRow]) -> BatchResult<Self> {
        let keys = column(rows, |row| row.idempotency.as_ref());
        let written = sqlx::query!(
            r#"
            with settings as materialized (
                select c.clock_offset, clock_timestamp() + c.clock_offset as at, $1::boolean as pairing_required,
                       $2::interval as key_lifetime
                  from (select $3::interval as clock_offset) c
            ),
            input as materialized (
                select i.*
                  from unnest($4::uuid[], $5::uuid[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[],
                              $11::text[], $12::text[], $13::text[], $14::timestamptz[], $15::text[], $16::text[],
                              $17::text[], $18::text[], $19::bytea[])
                       as i (submission_id, message_id, tenant_id, request_id, approver_id, recipient, fallback,
                             session_id, form, prompt_hash, expires_at, body, trace, principal, key, fingerprint)
            ),
            addressed_prompts as materialized (
                select i.submission_id, i.tenant_id, i.approver_id,
                       coalesce(i.recipient, s.enforcer_id, i.fallback) as enforcer_id
                  from input i
                  left join sessions s on s.tenant_id = i.tenant_id and s.session_id = i.session_id
            ),
            judged_prompts as materialized (
                select i.submission_id, a.enforcer_id, s.at,
                       coalesce(i.expires_at <= s.at, false) as past,
                       -- Only its own approvers and administrators may prompt an enforcer that is paired, or any at all.
                       a.approver_id is not null
                           and (s.pairing_required
                                or exists (select from pairings p
                                            where p.tenant_id = a.tenant_id and p.enforcer_id = a.enforcer_id
                                              and p.revoked_at is null))
                           and not exists (select from pairings p
                                            where p.tenant_id = a.tenant_id and p.enforcer_id = a.enforcer_id
                                              and p.approver_id = a.approver_id and p.revoked_at is null) as not_paired,
                       exists (select from idempotency_keys k
                                where k.tenant_id = i.tenant_id and k.principal = i.principal and k.key = i.key
                                  and k.fingerprint <> i.fingerprint and k.expires_at > s.at) as key_taken
                  from input i
                  join addressed_prompts a on a.submission_id = i.submission_id
                 cross join settings s
            ),
            writable_prompts as materialized (
                select i.submission_id, i.tenant_id, i.request_id, i.principal, i.key, i.fingerprint, j.enforcer_id, j.at
                  from input i
                  join judged_prompts j on j.submission_id = i.submission_id
                 where j.enforcer_id is not null and not j.past and not j.not_paired and not j.key_taken
                   and (i.key is null
                        or (select true from prompts p
                             where p.tenant_id = i.tenant_id and p.request_id = i.request_id limit 1) is null)
            ),
            inserted_keys as (
                insert into idempotency_keys
                       (tenant_id, principal, key, fingerprint, submission_id, request_id, expires_at)
                select p.tenant_id, p.principal, p.key, p.fingerprint, p.submission_id, p.request_id, p.at + s.key_lifetime
                  from writable_prompts p
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
            inserted_prompts as (
                insert into prompts (tenant_id, request_id, submission_id, operation_id, message_id, enforcer_id,
                                     approver_id, session_id, form, prompt_hash, status, ack_at, accepted_at, expires_at)
                select i.tenant_id, i.request_id, i.submission_id, i.submission_id, i.message_id, p.enforcer_id,
                       i.approver_id, i.session_id, i.form, i.prompt_hash, 'queued', p.at, p.at, i.expires_at
                  from writable_prompts p
                  join input i on i.submission_id = p.submission_id
                  left join inserted_keys k on k.tenant_id = p.tenant_id and k.principal = p.principal and k.key = p.key
                 where p.key is null or k.key is not null
                 order by i.tenant_id collate "C", i.request_id collate "C"
                on conflict on constraint prompts_pkey do nothing
                returning submission_id, enforcer_id, accepted_at
            ),
            inserted_payloads as (
                insert into prompt_payloads (tenant_id, request_id, body, trace)
                select i.tenant_id, i.request_id, i.body::json, i.trace::json
                  from inserted_prompts w
                  join input i on i.submission_id = w.submission_id
            ),
            inserted_messages as (
                insert into messages (tenant_id, recipient_kind, recipient, message_id, kind, request_id, seq, sender,
                                      created_at, expires_at)
                select i.tenant_id, 'enforcer', w.enforcer_id, i.message_id, 'prompt.send', i.request_id, 1,
                       i.approver_id, w.accepted_at, i.expires_at
                  from inserted_prompts w
                  join input i on i.submission_id = w.submission_id
            )
            select j.submission_id as "operation!: OperationId", w.submission_id is not null as "written!",
                   j.at as "at!: Timestamp", j.enforcer_id as "enforcer_id?: EnforcerId", j.past as "past!",
                   j.not_paired as "not_paired!"
              from judged_prompts j
              left join inserted_prompts w on w.submission_id = j.submission_id
            "#,
            self.pairing_required,
            self.key_lifetime,
            clock_offset(&self.clock),
            column(rows, |row| row.operation) as _,
            column(rows, |row| row.message) as _,
            column(rows, |row| &row.tenant) as _,
            column(rows, |row| &row.prompt.request_id) as _,
            column(rows, |row| row.approver.as_ref()) as _,
            column(rows, |row| row.recipient.as_ref()) as _,
            column(rows, |row| row.fallback.as_ref()) as _,
            column(rows, |row| row.prompt.session_id.as_ref()) as _,
            column(rows, |row| row.prompt.form) as _,
            column(rows, |row| row.prompt.hash) as _,
            column(rows, |row| row.prompt.expires_at) as _,
            column(rows, |row| &row.prompt.body) as _,
            column(rows, |row| row.prompt.trace.as_deref()) as _,
            column(&keys, |key| key.map(|key| &key.principal)) as _,
            column(&keys, |key| key.map(|key| &key.key)) as _,
            column(&keys, |key| key.map(|key| key.fingerprint)) as _,
        )
        .fetch_all(connection)
        .await?;
        let facts = written.into_iter().map(|row| {
            let fact = match row.enforcer_id {
                Some(enforcer_id) if row.written => PromptFact::Written(QueuedPrompt {
                    enforcer_id,
                    at: row.at,
                }),
                recipient => PromptFact::Unwritten {
                    existing: None,
                    key: KeyFact::Free,
                    reason: match recipient {
                        None => PromptNotWritten::NoRecipient,
                        Some(_) if row.not_paired => PromptNotWritten::NotPaired,
                        Some(_) if row.past => PromptNotWritten::Expired,
                        Some(_) => PromptNotWritten::Other,
                    },
                },
            };
            (row.operation, fact)
        });
        rows::in_order(rows.iter().map(|row| row.operation), facts)
    }

    /// Reads what stands in the way of rows that were not written.
    async fn read_existing(
        &self,
        connection: &mut PgConnection,
        mut unwritten: Vec<(&PromptRow, &mut PromptFact)>,
    ) -> sqlx::Result<()> {
        if unwritten.is_empty() {
            return Ok(());
        }
        let keys = column(&unwritten, |(row, _)| row.idempotency.as_ref());
        let found = sqlx::query!(
            r#"
            select i.submission_id as "operation!: OperationId", p.submission_id as "submission_id?: OperationId",
                   p.approver_id as "approver_id?: ApproverId", p.prompt_hash as "hash?: Sha256Hex",
                   p.status as "status?: PromptStatus", p.ack_at as "ack_at?: Timestamp", p.details::text as "details?",
                   p.expires_at as "expires_at?: Timestamp", p.expires_at <= c.at as "past?",
                   k.fingerprint as "fingerprint?"
              from unnest($1::text[], $2::text[], $3::uuid[], $4::text[], $5::text[])
                   as i (tenant_id, request_id, submission_id, principal, key)
             cross join (select clock_timestamp() + $6::interval as at) c
              left join prompts p on p.tenant_id = i.tenant_id and p.request_id = i.request_id
              -- A key that this attempt has bound itself tells nothing.
              left join idempotency_keys k
                     on k.tenant_id = i.tenant_id and k.principal = i.principal and k.key = i.key and k.expires_at > c.at
                    and k.submission_id <> i.submission_id
            "#,
            column(&unwritten, |(row, _)| &row.tenant) as _,
            column(&unwritten, |(row, _)| &row.prompt.request_id) as _,
            column(&unwritten, |(row, _)| row.operation) as _,
            column(&keys, |key| key.map(|key| &key.principal)) as _,
            column(&keys, |key| key.map(|key| &key.key)) as _,
            clock_offset(&self.clock),
        )
        .fetch_all(connection)
        .await?;
        for row in found {
            let Some((asked, PromptFact::Unwritten { existing, key, .. })) = unwritten
                .iter_mut()
                .find(|(asked, _)| asked.operation == row.operation)
                .map(|(asked, fact)| (&*asked, &mut **fact))
            else {
                return Err(sqlx::Error::RowNotFound);
            };
            *key = key_fact(asked.idempotency.as_ref(), row.fingerprint);
            if let (Some(submission_id), Some(hash), Some(status), Some(ack_at)) =
                (row.submission_id, row.hash, row.status, row.ack_at)
            {
                let standing = PromptRecord {
                    hash,
                    status,
                    ack_at,
                    details: row.details,
                    expires_at: row.expires_at,
                };
                *existing = Some(ExistingRow {
                    submission_id,
                    same: row.approver_id == asked.approver && hash == asked.prompt.hash,
                    value: standing.at(row.past.unwrap_or(false)),
                });
            }
        }
        Ok(())
    }
}
