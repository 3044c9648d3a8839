//! Ends pending exchanges without a decision: withdrawn, cancelled or expired. No statement waits for a lock.

use uuid::Uuid;

use crate::protocol::exchange::{EndFact, ExchangeState};
use crate::protocol::id::{ApproverId, EnforcerId, MessageId, OperationId, RequestId, TenantId};
use crate::protocol::timestamp::Timestamp;
use crate::store::ExchangeStore;
use crate::store::audit::AuditSource;
use crate::store::database::busy::{LockTries, RowLock};
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::rows::column;
use crate::store::database::tenant_scope::TenantScope;
use crate::store::error::Result;

#[derive(Debug, Clone)]
pub enum ExchangeEnding {
    Withdrawn(EnforcerId),
    /// An administrator ends it; the credential is named in the history.
    Cancelled(String),
}

#[derive(Debug)]
pub struct EndRow<'a> {
    pub operation: OperationId,
    pub tenant: &'a TenantId,
    pub request_id: &'a RequestId,
    pub ending: &'a ExchangeEnding,
    pub source: &'a AuditSource,
    pub reason: Option<&'a str>,
    pub messages: &'a [(ApproverId, MessageId)],
}

#[derive(Debug)]
pub struct ExpiredExchange {
    pub tenant: TenantId,
    pub request_id: RequestId,
    /// How many seconds ago it was due.
    pub late: f64,
}

impl ExchangeStore {
    /// The approvers of an exchange, which never change once it exists.
    pub async fn approvers_of(
        &self,
        tenant: &TenantId,
        request: &RequestId,
    ) -> Result<Vec<ApproverId>> {
        let query = sqlx::query!(
            r#"
            select approver_id as "id: ApproverId"
              from inbox_items
             where tenant_id = $1 and request_id = $2
             order by approver_id
            "#,
            tenant.as_str(),
            request.as_str(),
        )
        .map(|row| row.id);
        self.database.pool.fetch_all(tenant, query).await
    }

    /// Ends an exchange if it is pending, and queues a message for each approver that still has it.
    pub async fn end(&self, row: &EndRow<'_>) -> Result<EndFact> {
        let (database, mut tries) = (&self.database, LockTries::new(self.database.lock_timeout));
        loop {
            let found = self.try_end(row).await?;
            let again = database.is_tried_again("end_exchange", &found, &mut tries);
            if !again.await {
                return found.locked();
            }
        }
    }

    async fn try_end(&self, row: &EndRow<'_>) -> Result<RowLock<EndFact>> {
        let (state, enforcer, actor) = match row.ending {
            ExchangeEnding::Withdrawn(id) => {
                ("withdrawn", Some(id.as_str()), format!("enforcer:{id}"))
            }
            ExchangeEnding::Cancelled(credential) => {
                ("cancelled", None, format!("admin:{credential}"))
            }
        };
        let query = || {
            sqlx::query!(
                r#"
            with input as materialized (
                select $1::text as tenant_id, $2::text as request_id, $3::text as enforcer_id, $4::interval as clock_offset,
                       $5::text as state, $6::uuid as operation_id, $7::text as reason, $8::text as actor,
                       $9::text as principal, $10::text as address, $11::text as node
            ),
            approver_messages as (
                select m.approver_id, m.message_id from unnest($12::text[], $13::uuid[]) as m (approver_id, message_id)
            ),
            existing_exchange as (
                select e.tenant_id, e.request_id
                  from exchanges e
                  join input i on i.tenant_id = e.tenant_id and i.request_id = e.request_id
                 where i.enforcer_id is null or e.enforcer_id = i.enforcer_id
            ),
            locked_exchange as materialized (
                select e.tenant_id, e.request_id, e.operation_id, e.state, e.seq, e.expires_at, e.ended_at, i.clock_offset
                  from exchanges e
                  join input i on i.tenant_id = e.tenant_id and i.request_id = e.request_id
                 where i.enforcer_id is null or e.enforcer_id = i.enforcer_id
                   for no key update of e skip locked
            ),
            -- Readers are told that its expiry is not settled before the clock is read.
            judged_exchange as materialized (
                select h.*, clock_timestamp() + h.clock_offset as at
                  from (select l.*, pg_try_advisory_xact_lock(
                                        hashtextextended(l.tenant_id || chr(10) || l.request_id, 1)) as guarded
                          from locked_exchange l) h
                 where h.guarded
            ),
            open_exchange as materialized (
                select j.tenant_id, j.request_id, j.seq + 1 as seq, j.at
                  from judged_exchange j
                 where j.state = 'pendingApproval' and j.expires_at > j.at
            ),
            locked_items as materialized (
                select x.tenant_id, x.request_id, x.approver_id, x.removed_at
                  from inbox_items x
                  join open_exchange o on o.tenant_id = x.tenant_id and o.request_id = x.request_id
                   for no key update of x skip locked
            ),
            ended_exchange as (
                update exchanges e
                   set state = i.state, operation_id = i.operation_id, seq = o.seq, ended_at = o.at, end_reason = i.reason
                  from open_exchange o
                 cross join input i
                 where e.tenant_id = o.tenant_id and e.request_id = o.request_id and e.state = 'pendingApproval'
                   and (select count(*) from locked_items) = (select count(*)
                                                                from inbox_items x
                                                                join input i on i.tenant_id = x.tenant_id
                                                                            and i.request_id = x.request_id)
                returning e.tenant_id, e.request_id, e.seq, e.ended_at as at
            ),
            closed_items as (
                update inbox_items x
                   set closed_at = w.at, closed_as = i.state
                  from ended_exchange w
                 cross join input i
                 where x.tenant_id = w.tenant_id and x.request_id = w.request_id
            ),
            inserted_messages as (
                insert into messages (tenant_id, recipient_kind, recipient, message_id, kind, request_id, seq, created_at)
                select l.tenant_id, 'approver', l.approver_id, m.message_id, 'exchange.withdrawn', l.request_id, w.seq, w.at
                  from ended_exchange w
                 cross join locked_items l
                  join approver_messages m on m.approver_id = l.approver_id
                 where l.removed_at is null
            ),
            inserted_events as (
                insert into exchange_events (tenant_id, request_id, at, event_id, from_state, to_state, actor, principal,
                                             address, node)
                select w.tenant_id, w.request_id, w.at, i.operation_id, 'pendingApproval', i.state, i.actor, i.principal,
                       i.address, i.node
                  from ended_exchange w
                 cross join input i
            ),
            inserted_audit as (
                insert into audit_events (tenant_id, at, event_id, actor, principal, action, subject, address, node)
                select w.tenant_id, w.at, i.operation_id, i.actor, i.principal, 'exchange.cancelled', w.request_id, i.address,
                       i.node
                  from ended_exchange w
                 cross join input i
                 where i.state = 'cancelled'
            )
            select j.state as "state?: ExchangeState", j.expires_at as "expires_at?: Timestamp",
                   coalesce(j.expires_at <= j.at, false) as "past!",
                   case when j.operation_id = i.operation_id then j.ended_at else w.at end as "ended_at?: Timestamp",
                   exists (select from open_exchange) and not exists (select from ended_exchange) as "items_busy!"
              from existing_exchange k
             cross join input i
              left join judged_exchange j on j.tenant_id = k.tenant_id and j.request_id = k.request_id
              left join ended_exchange w on w.tenant_id = k.tenant_id and w.request_id = k.request_id
            "#,
                row.tenant.as_str(),
                row.request_id.as_str(),
                enforcer,
                clock_offset(&self.database.clock),
                state,
                row.operation.0,
                row.reason,
                actor,
                row.source.principal.as_deref(),
                row.source.address(),
                self.database.node.as_str(),
                column(row.messages, |(approver, _)| approver) as _,
                column(row.messages, |(_, message)| message) as _,
            )
        };
        let pool = &self.database.pool;
        let found = pool.fetch_retried(row.tenant, "ending an exchange", query);
        let found = found.await?;
        Ok(match found {
            None => RowLock::Locked(EndFact {
                ended_at: None,
                state: None,
                expires_at: None,
            }),
            Some(row) if row.state.is_none() || row.items_busy => RowLock::Busy,
            Some(row) => RowLock::Locked(EndFact {
                ended_at: row.ended_at,
                state: row.state.map(|state| state.at(row.past)),
                expires_at: row.expires_at,
            }),
        })
    }

    /// Moves pending exchanges past their expiry to `expired`, at most `limit` of them.
    pub async fn expire(&self, limit: i64) -> Result<Vec<ExpiredExchange>> {
        // One id for each row there may be: ids come from the node, which does not know how many are due.
        let capacity = usize::try_from(limit).unwrap_or_default();
        let events: Vec<Uuid> = (0..capacity)
            .map(|_| self.database.clock.operation_id().0)
            .collect();
        let query = sqlx::query_as!(
            ExpiredExchange,
            r#"
            with settings as materialized (
                select clock_timestamp() + c.clock_offset as at, c.clock_offset, $1::text as node
                  from (select $2::interval as clock_offset) c
            ),
            event_ids as materialized (
                select v.event_id, v.n from unnest($3::uuid[]) with ordinality as v (event_id, n)
            ),
            -- By their inbox items, which are open as long as they are pending.
            found as materialized (
                select distinct i.expires_at, i.tenant_id, i.request_id
                  from inbox_items i
                 where coalesce(i.closed_at, 'infinity') = 'infinity' and i.expires_at <= (select s.at from settings s)
                 order by i.expires_at, i.tenant_id, i.request_id
                 limit $4
            ),
            due_exchanges as materialized (
                select d.tenant_id, d.request_id
                  from unnest(array(select tenant_id from found), array(select request_id from found))
                       as d (tenant_id, request_id)
            ),
            locked_exchanges as materialized (
                select e.tenant_id, e.request_id, e.state, e.expires_at
                  from exchanges e
                  join due_exchanges d on d.tenant_id = e.tenant_id and d.request_id = e.request_id
                   for no key update of e skip locked
            ),
            locked_items as materialized (
                select x.tenant_id, x.request_id
                  from inbox_items x
                  join locked_exchanges l on l.tenant_id = x.tenant_id and l.request_id = x.request_id
                   for no key update of x skip locked
            ),
            numbered_exchanges as materialized (
                select l.tenant_id, l.request_id, l.expires_at, row_number() over () as n
                  from locked_exchanges l
                  left join (select i.tenant_id, i.request_id, count(*) as locked
                               from locked_items i group by i.tenant_id, i.request_id) i
                         on i.tenant_id = l.tenant_id and i.request_id = l.request_id
                 where l.state = 'pendingApproval'
                   and coalesce(i.locked, 0) = (select count(*) from inbox_items x
                                                 where x.tenant_id = l.tenant_id and x.request_id = l.request_id)
            ),
            expired_exchanges as (
                update exchanges e
                   set state = 'expired', seq = e.seq + 1, ended_at = e.expires_at, operation_id = v.event_id
                  from numbered_exchanges l
                  join event_ids v on v.n = l.n
                 where e.tenant_id = l.tenant_id and e.request_id = l.request_id and e.state = 'pendingApproval'
                returning e.tenant_id, e.request_id, e.expires_at as at, e.operation_id
            ),
            closed_items as (
                update inbox_items x
                   set closed_at = w.at, closed_as = 'expired'
                  from expired_exchanges w
                 where x.tenant_id = w.tenant_id and x.request_id = w.request_id
            ),
            inserted_events as (
                insert into exchange_events (tenant_id, request_id, at, event_id, from_state, to_state, actor, node)
                select w.tenant_id, w.request_id, w.at, w.operation_id, 'pendingApproval', 'expired', 'gateway', s.node
                  from expired_exchanges w
                 cross join settings s
            )
            select w.tenant_id as "tenant!: TenantId", w.request_id as "request_id!: RequestId",
                   extract(epoch from clock_timestamp() + s.clock_offset - w.at)::float8 as "late!"
              from expired_exchanges w
             cross join settings s
            "#,
            self.database.node.as_str(),
            clock_offset(&self.database.clock),
            &events,
            limit,
        );
        // All: the sweep serves every tenant.
        let scope = TenantScope::All;
        self.database.background.fetch_all(scope, query).await
    }
}
