//! The status of prompts after they are queued: acknowledges them, which also ends redelivery; expires and reads them. No
//! statement waits for a lock: an acknowledgement that meets one is busy, and is tried again.

use std::sync::Arc;

use sqlx::PgConnection;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::config::Config;
use crate::protocol::canonical::Sha256Hex;
use crate::protocol::id::{
    ApproverId, EnforcerId, MessageId, OperationId, RequestId, SessionId, TenantId,
};
use crate::protocol::message::PromptDelivery;
use crate::protocol::prompt::{AckFact, PromptRecord, PromptStatus, SentAck};
use crate::protocol::timestamp::Timestamp;
use crate::store::database::batch::StatementBatcher;
use crate::store::database::batch_statement::{BatchResult, BatchStatement};
use crate::store::database::busy::RowLock;
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::interval::seconds;
use crate::store::database::pools::Database;
use crate::store::database::rows;
use crate::store::database::rows::column;
use crate::store::database::tenant_scope::TenantScope;
use crate::store::error::Result;
use crate::store::prompts::prompt::TakePrompts;

#[derive(Debug)]
pub struct PromptAckRow {
    pub operation: OperationId,
    pub tenant: TenantId,
    /// The sender; `None` for a caller that may be any enforcer and does not say which.
    pub enforcer: Option<EnforcerId>,
    pub ack: SentAck,
}

pub struct TakePromptAcks {
    pub clock: Clock,
}

impl BatchStatement for TakePromptAcks {
    const NAME: &'static str = "ack_prompt";
    type Row = PromptAckRow;
    /// The prompt's enforcer and what was found; `None` if there is no such prompt for the sender.
    type Fact = RowLock<Option<(EnforcerId, AckFact)>>;

    fn tenant_scope(rows: &[PromptAckRow]) -> TenantScope<'_> {
        TenantScope::of(rows.iter().map(|row| &row.tenant))
    }

    fn conflict_keys(row: &PromptAckRow) -> Vec<String> {
        vec![format!("{}\n{}", row.tenant, row.ack.request_id)]
    }

    fn bytes(row: &PromptAckRow) -> usize {
        row.ack.details.as_ref().map_or(0, String::len) + 512
    }

    fn is_busy(fact: &Self::Fact) -> bool {
        fact.is_busy()
    }

    async fn run(&self, connection: &mut PgConnection, rows: &[Self::Row]) -> BatchResult<Self> {
        let found = sqlx::query!(
            r#"
            with input as materialized (
                select i.*, $1::interval as clock_offset
                  from unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::timestamptz[],
                              $9::text[])
                       as i (operation_id, tenant_id, request_id, enforcer_id, prompt_hash, status, ack_at, details)
            ),
            locked_prompts as materialized (
                select i.operation_id, p.tenant_id, p.request_id, p.enforcer_id, p.message_id, p.prompt_hash, p.status,
                       p.ack_at, p.details, p.expires_at, p.operation_id as last_operation, i.clock_offset
                  from prompts p
                  join input i on i.tenant_id = p.tenant_id and i.request_id = p.request_id
                 where i.enforcer_id is null or i.enforcer_id = p.enforcer_id
                   for no key update of p skip locked
            ),
            -- The clock is read after the locks are held.
            judged_prompts as materialized (
                select l.*, coalesce(l.expires_at <= clock_timestamp() + l.clock_offset, false) as past
                  from locked_prompts l
            ),
            valid_acks as materialized (
                select j.operation_id, j.tenant_id, j.request_id, j.enforcer_id, j.message_id, j.clock_offset, i.status,
                       i.ack_at, i.details
                  from judged_prompts j
                  join input i on i.operation_id = j.operation_id
                 where j.status = 'queued' and not j.past and j.prompt_hash = i.prompt_hash
            ),
            locked_messages as materialized (
                select m.tenant_id, m.recipient, m.message_id, r.operation_id, r.clock_offset
                  from messages m
                  join valid_acks r on r.tenant_id = m.tenant_id and m.recipient_kind = 'enforcer'
                                   and r.enforcer_id = m.recipient and r.message_id = m.message_id
                   for no key update of m skip locked
            ),
            writable_acks as materialized (
                select r.operation_id, r.tenant_id, r.request_id, r.status, r.ack_at, r.details
                  from valid_acks r
                  left join locked_messages h on h.operation_id = r.operation_id
                 where h.operation_id is not null
                    or (select true from messages m
                         where m.tenant_id = r.tenant_id and m.recipient_kind = 'enforcer'
                           and m.recipient = r.enforcer_id and m.message_id = r.message_id limit 1) is null
            ),
            updated_prompts as (
                update prompts p
                   set status = k.status, ack_at = k.ack_at, details = k.details::json, operation_id = k.operation_id
                  from writable_acks k
                 where p.tenant_id = k.tenant_id and p.request_id = k.request_id
                returning k.operation_id
            ),
            acked_messages as (
                update messages m
                   set acked_at = clock_timestamp() + h.clock_offset
                  from locked_messages h
                  join updated_prompts v on v.operation_id = h.operation_id
                 where m.tenant_id = h.tenant_id and m.recipient_kind = 'enforcer' and m.recipient = h.recipient
                   and m.message_id = h.message_id
                   and coalesce(m.acked_at, 'infinity') = 'infinity'
            )
            select i.operation_id as "operation!: OperationId", v.operation_id is not null as "moved!",
                   case when j.operation_id is null
                        then (select true from prompts p
                               where p.tenant_id = i.tenant_id and p.request_id = i.request_id
                                 and (i.enforcer_id is null or (p.enforcer_id = i.enforcer_id) is true)
                               limit 1) is not null
                        else r.operation_id is not null and v.operation_id is null end as "busy!",
                   coalesce(j.last_operation = i.operation_id, false) as "own!",
                   j.enforcer_id as "enforcer_id?: EnforcerId", j.prompt_hash as "hash?: Sha256Hex",
                   j.status as "status?: PromptStatus", j.ack_at as "ack_at?: Timestamp", j.details::text as "details?",
                   j.expires_at as "expires_at?: Timestamp", j.past as "past?"
              from input i
              left join judged_prompts j on j.operation_id = i.operation_id
              left join valid_acks r on r.operation_id = i.operation_id
              left join updated_prompts v on v.operation_id = i.operation_id
            "#,
            clock_offset(&self.clock),
            column(rows, |row| row.operation) as _,
            column(rows, |row| &row.tenant) as _,
            column(rows, |row| &row.ack.request_id) as _,
            column(rows, |row| row.enforcer.as_ref()) as _,
            column(rows, |row| row.ack.hash) as _,
            column(rows, |row| row.ack.status) as _,
            column(rows, |row| row.ack.ack_at) as _,
            column(rows, |row| row.ack.details.as_deref()) as _,
        )
        .fetch_all(connection)
        .await?;
        let mut facts = Vec::with_capacity(found.len());
        for row in found {
            if row.busy {
                facts.push((row.operation, RowLock::Busy));
                continue;
            }
            let (Some(enforcer), Some(hash), Some(status), Some(ack_at)) =
                (row.enforcer_id, row.hash, row.status, row.ack_at)
            else {
                facts.push((row.operation, RowLock::Locked(None)));
                continue;
            };
            let standing = PromptRecord {
                hash,
                status,
                ack_at,
                details: row.details,
                expires_at: row.expires_at,
            };
            let mut standing = standing.at(row.past.unwrap_or(false));
            let sent = rows.iter().find(|sent| sent.operation == row.operation);
            if let Some(sent) = sent.filter(|_| row.moved) {
                standing.status = sent.ack.status;
                standing.ack_at = sent.ack.ack_at;
                standing.details.clone_from(&sent.ack.details);
            }
            let written = row.moved || row.own;
            let fact = AckFact { written, standing };
            facts.push((row.operation, RowLock::Locked(Some((enforcer, fact)))));
        }
        rows::in_order(rows.iter().map(|row| row.operation), facts)
    }
}

#[derive(Debug)]
pub struct StoredPrompt {
    pub enforcer_id: EnforcerId,
    /// The sender; `None` for an administrator.
    pub approver_id: Option<ApproverId>,
    pub standing: PromptRecord,
}

pub struct PromptStore {
    pub(in crate::store) database: Arc<Database>,
    pub prompts: StatementBatcher<TakePrompts>,
    pub acks: StatementBatcher<TakePromptAcks>,
}

impl PromptStore {
    pub(in crate::store) fn new(
        database: &Arc<Database>,
        config: &Config,
        tasks: &TaskTracker,
    ) -> Self {
        let clock = || database.clock.clone();
        let take_prompts = TakePrompts {
            clock: clock(),
            pairing_required: config.pairing.required,
            key_lifetime: seconds(config.idempotency.lifetime_seconds),
        };
        Self {
            prompts: database.batch(take_prompts, tasks),
            acks: database.batch(TakePromptAcks { clock: clock() }, tasks),
            database: Arc::clone(database),
        }
    }

    pub async fn prompt(
        &self,
        tenant: &TenantId,
        request: &RequestId,
    ) -> Result<Option<StoredPrompt>> {
        let query = sqlx::query!(
            r#"
            select enforcer_id as "enforcer_id: EnforcerId", approver_id as "approver_id: ApproverId",
                   prompt_hash as "hash: Sha256Hex", status as "status: PromptStatus", ack_at as "ack_at: Timestamp",
                   details::text as "details?", expires_at as "expires_at: Timestamp",
                   expires_at <= clock_timestamp() + $1::interval as "past?"
              from prompts
             where tenant_id = $2 and request_id = $3
            "#,
            clock_offset(&self.database.clock),
            tenant.as_str(),
            request.as_str(),
        )
        .map(|row| {
            let standing = PromptRecord {
                hash: row.hash,
                status: row.status,
                ack_at: row.ack_at,
                details: row.details,
                expires_at: row.expires_at,
            };
            StoredPrompt {
                enforcer_id: row.enforcer_id,
                approver_id: row.approver_id,
                standing: standing.at(row.past.unwrap_or(false)),
            }
        });
        self.database.pool.fetch_optional(tenant, query).await
    }

    /// The oldest prompts of an enforcer that are not acknowledged: up to `limit`, and up to `max_bytes` unless the first has
    /// more. With a session, those of other sessions are left out.
    pub async fn pending_prompts(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        session: Option<&SessionId>,
        after: Option<&RequestId>,
        limit: i64,
        max_bytes: i64,
    ) -> Result<Vec<PromptDelivery>> {
        let query = sqlx::query_as!(
            PromptDelivery,
            r#"
            with page as materialized (
                select m.tenant_id, m.message_id, m.request_id, m.created_at, m.expires_at, m.sender
                  from messages m
                  join prompts p on p.tenant_id = m.tenant_id and p.request_id = m.request_id
                 where m.tenant_id = $1 and m.recipient_kind = 'enforcer' and m.recipient = $2
                   and m.kind = 'prompt.send' and m.acked_at is null
                   and (m.expires_at is null or m.expires_at > clock_timestamp() + $3::interval)
                   and ($4::text is null or p.session_id is null or p.session_id = $4)
                   and ($5::text is null or (m.created_at, m.message_id) > (
                       select l.created_at, l.message_id
                         from messages l
                        where l.tenant_id = $1 and l.recipient_kind = 'enforcer' and l.recipient = $2
                          and l.kind = 'prompt.send' and l.request_id = $5
                        limit 1))
                 order by m.created_at, m.message_id
                 limit $6
            ),
            weighed as (
                select g.tenant_id, g.message_id, g.request_id, g.created_at, g.expires_at, g.sender,
                       coalesce(sum(pg_column_size(y.body) + coalesce(pg_column_size(y.trace), 0))
                           over (order by g.created_at, g.message_id
                                  rows between unbounded preceding and 1 preceding), 0) as before
                  from page g
                  join prompt_payloads y on y.tenant_id = g.tenant_id and y.request_id = g.request_id
            )
            select w.message_id as "message_id!: MessageId", w.request_id as "request_id!: RequestId",
                   w.created_at as "created_at!: Timestamp", w.expires_at as "expires_at: Timestamp",
                   w.sender as "approver_id: ApproverId", y.body::text as "body!", y.trace::text as "trace?"
              from weighed w
              join prompt_payloads y on y.tenant_id = w.tenant_id and y.request_id = w.request_id
             where w.before < $7
             order by w.created_at, w.message_id
            "#,
            tenant.as_str(),
            enforcer.as_str(),
            clock_offset(&self.database.clock),
            session.map(SessionId::as_str),
            after.map(RequestId::as_str),
            limit,
            max_bytes,
        );
        self.database.pool.fetch_all(tenant, query).await
    }

    pub async fn expire_prompts(&self, limit: i64) -> Result<u64> {
        let query = sqlx::query!(
            r#"
            with found as materialized (
                select p.tenant_id, p.request_id, p.enforcer_id, p.message_id
                  from prompts p
                 where p.status = 'queued' and p.expires_at <= (select clock_timestamp() + $1::interval)
                 order by p.expires_at
                 limit $2
                   for no key update of p skip locked
            ),
            due_prompts as materialized (
                select d.tenant_id, d.request_id, d.enforcer_id, d.message_id
                  from unnest(array(select tenant_id from found), array(select request_id from found),
                              array(select enforcer_id from found), array(select message_id from found))
                       as d (tenant_id, request_id, enforcer_id, message_id)
            ),
            locked_messages as materialized (
                select m.tenant_id, m.recipient, m.message_id
                  from messages m
                  join due_prompts d on d.tenant_id = m.tenant_id and m.recipient_kind = 'enforcer'
                            and d.enforcer_id = m.recipient and d.message_id = m.message_id
                   for no key update of m skip locked
            ),
            closable_prompts as materialized (
                select d.tenant_id, d.request_id
                  from due_prompts d
                  left join locked_messages h on h.message_id = d.message_id
                 where h.message_id is not null
                    or (select true from messages m
                         where m.tenant_id = d.tenant_id and m.recipient_kind = 'enforcer'
                           and m.recipient = d.enforcer_id and m.message_id = d.message_id limit 1) is null
            ),
            expired_prompts as (
                update prompts p
                   set status = 'expired', ack_at = p.expires_at
                  from closable_prompts k
                 where p.tenant_id = k.tenant_id and p.request_id = k.request_id and p.status = 'queued'
                returning p.tenant_id, p.enforcer_id, p.message_id, p.expires_at
            ),
            -- Acknowledged here, since it is never sent again.
            acked_messages as (
                update messages m
                   set acked_at = e.expires_at
                  from locked_messages h
                  join expired_prompts e on e.message_id = h.message_id
                 where m.tenant_id = h.tenant_id and m.recipient_kind = 'enforcer' and m.recipient = h.recipient
                   and m.message_id = h.message_id
                   and coalesce(m.acked_at, 'infinity') = 'infinity'
            )
            select count(*) as "count!" from expired_prompts
            "#,
            clock_offset(&self.database.clock),
            limit,
        )
        .map(|row| u64::try_from(row.count).unwrap_or_default());
        // All: the sweep serves every tenant.
        let scope = TenantScope::All;
        self.database.background.fetch_one(scope, query).await
    }
}
