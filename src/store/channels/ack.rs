//! Acknowledgements of messages by either kind of recipient. An enforcer's ack of a decision makes its exchange delivered. The
//! statement waits for no lock: an ack that meets one is busy, and is tried again.

use sqlx::PgConnection;

use crate::clock::Clock;
use crate::protocol::id::{
    ApproverId, EnforcerId, MessageId, NodeId, OperationId, RequestId, TenantId,
};
use crate::protocol::timestamp::Timestamp;
use crate::protocol::trace::TraceContext;
use crate::store::audit::AuditSource;
use crate::store::database::batch_statement::{BatchResult, BatchStatement};
use crate::store::database::busy::RowLock;
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::rows;
use crate::store::database::rows::column;
use crate::store::database::tenant_scope::TenantScope;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AckRecipient {
    Enforcer(EnforcerId),
    Approver(ApproverId),
}

impl AckRecipient {
    pub fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::Enforcer(id) => ("enforcer", id.as_str()),
            Self::Approver(id) => ("approver", id.as_str()),
        }
    }
}

#[derive(Debug)]
pub struct AckRow {
    pub operation: OperationId,
    pub tenant: TenantId,
    pub recipient: AckRecipient,
    pub message: MessageId,
    /// Stored if this ack makes its exchange delivered.
    pub outcome: Option<String>,
    pub source: AuditSource,
}

#[derive(Debug)]
pub struct AckedMessage {
    /// The exchange or prompt it is about.
    pub request_id: RequestId,
    pub expires_at: Option<Timestamp>,
    pub delivered: bool,
    /// The trace in which the exchange was submitted.
    pub origin: Option<TraceContext>,
}

pub struct TakeAcks {
    pub clock: Clock,
    pub node: NodeId,
    /// Whether to read the trace in which an exchange was submitted.
    pub traced: bool,
}

impl BatchStatement for TakeAcks {
    const NAME: &'static str = "ack";
    type Row = AckRow;
    /// `None` if there is no such message for this recipient.
    type Fact = RowLock<Option<AckedMessage>>;

    fn tenant_scope(rows: &[AckRow]) -> TenantScope<'_> {
        TenantScope::of(rows.iter().map(|row| &row.tenant))
    }

    fn conflict_keys(row: &AckRow) -> Vec<String> {
        vec![row.message.to_string()]
    }

    fn bytes(row: &AckRow) -> usize {
        256 + row.outcome.as_ref().map_or(0, String::len)
    }

    fn is_busy(fact: &Self::Fact) -> bool {
        fact.is_busy()
    }

    async fn run(&self, connection: &mut PgConnection, rows: &[Self::Row]) -> BatchResult<Self> {
        let found = sqlx::query!(
            r#"
            with input as materialized (
                select i.*, $1::interval as clock_offset, $2::text as node, $3::boolean as traced
                  from unnest($4::uuid[], $5::text[], $6::text[], $7::text[], $8::uuid[], $9::text[], $10::text[], $11::text[])
                       as i (operation_id, tenant_id, recipient_kind, recipient, message_id, outcome, principal, address)
            ),
            found_messages as materialized (
                select i.operation_id, m.tenant_id, m.recipient_kind, m.recipient, m.message_id, m.kind, m.request_id,
                       m.expires_at
                  from input i
                  join messages m on m.tenant_id = i.tenant_id and m.recipient_kind = i.recipient_kind
                                 and m.recipient = i.recipient and m.message_id = i.message_id
            ),
            locked_exchanges as materialized (
                select m.operation_id
                  from exchanges e
                  join found_messages m on m.tenant_id = e.tenant_id and m.request_id = e.request_id
                                       and m.kind = 'decision.deliver'
                   for no key update of e skip locked
            ),
            locked_messages as materialized (
                select f.operation_id
                  from messages m
                  join found_messages f on f.tenant_id = m.tenant_id and f.recipient_kind = m.recipient_kind
                                       and f.recipient = m.recipient and f.message_id = m.message_id
                   for no key update of m skip locked
            ),
            locked_items as materialized (
                select i.operation_id, x.tenant_id, x.request_id, x.approver_id
                  from input i
                  join inbox_items x on i.recipient_kind = 'approver' and x.tenant_id = i.tenant_id
                                    and (x.approver_id = i.recipient) is true and x.message_id = i.message_id
                   for no key update of x skip locked
            ),
            -- Read once everything is locked: the counts make this wait for it, and whatever joins it too.
            clock as materialized (
                select clock_timestamp() + (select i.clock_offset from input i limit 1) as at
                  from (select count(*) from locked_exchanges) e, (select count(*) from locked_messages) m,
                       (select count(*) from locked_items) x
            ),
            writable_acks as materialized (
                select f.operation_id, f.tenant_id, f.recipient_kind, f.recipient, f.message_id, f.kind, f.request_id, c.at
                  from found_messages f
                  join locked_messages m on m.operation_id = f.operation_id
                  left join locked_exchanges e on e.operation_id = f.operation_id
                 cross join clock c
                 where f.kind <> 'decision.deliver' or e.operation_id is not null
            ),
            acked_items as (
                update inbox_items x
                   set acked_at = c.at
                  from locked_items l, clock c
                 where x.tenant_id = l.tenant_id and x.request_id = l.request_id and x.approver_id = l.approver_id
                   and x.acked_at is null
            ),
            acked_messages as (
                update messages m
                   set acked_at = a.at
                  from writable_acks a
                 where m.tenant_id = a.tenant_id and m.recipient_kind = a.recipient_kind
                   and m.recipient = a.recipient and m.message_id = a.message_id
                   and coalesce(m.acked_at, 'infinity') = 'infinity'
            ),
            delivered_exchanges as (
                update exchanges e
                   set state = 'delivered', delivered_at = a.at, ended_at = a.at
                  from writable_acks a
                 where a.kind = 'decision.deliver'
                   and e.tenant_id = a.tenant_id and e.request_id = a.request_id and e.state = 'decided'
                returning a.operation_id, e.tenant_id, e.request_id, e.enforcer_id, e.delivered_at
            ),
            inserted_events as (
                insert into exchange_events (tenant_id, request_id, at, event_id, from_state, to_state, actor, principal,
                                             address, node)
                select d.tenant_id, d.request_id, d.delivered_at, d.operation_id, 'decided', 'delivered',
                       'enforcer:' || d.enforcer_id, i.principal, i.address, i.node
                  from delivered_exchanges d
                  join input i on i.operation_id = d.operation_id
            ),
            inserted_outcomes as (
                insert into exchange_payloads (tenant_id, request_id, part, body)
                select d.tenant_id, d.request_id, 'outcome', to_json(i.outcome)
                  from delivered_exchanges d
                  join input i on i.operation_id = d.operation_id
                 where i.outcome is not null
            )
            select i.operation_id as "operation!: OperationId",
                   case when f.operation_id is not null then a.operation_id is null
                        when i.recipient_kind = 'approver' and x.operation_id is null
                        then (select true from inbox_items y
                               where y.tenant_id = i.tenant_id and (y.approver_id = i.recipient) is true
                                 and y.message_id = i.message_id) is not null
                        else false end as "busy!",
                   coalesce(f.request_id, x.request_id) as "request_id?: RequestId",
                   coalesce(f.expires_at, e.expires_at) as "expires_at?: Timestamp",
                   d.operation_id is not null as "delivered!",
                   case when i.traced then (select y.trace ->> 'traceparent'
                                              from exchange_payloads y
                                             where y.tenant_id = e.tenant_id and y.request_id = e.request_id
                                               and y.part = 'artifact') end as "origin?"
              from input i
              left join found_messages f on f.operation_id = i.operation_id
              left join writable_acks a on a.operation_id = i.operation_id
              left join delivered_exchanges d on d.operation_id = i.operation_id
              left join locked_items x on x.operation_id = i.operation_id
              -- The limit keeps the planner from reading all exchanges of the tenant.
              left join lateral (select e.tenant_id, e.request_id, e.expires_at
                                   from exchanges e
                                  where e.tenant_id = i.tenant_id and e.request_id = coalesce(f.request_id, x.request_id)
                                    and f.kind is distinct from 'prompt.send'
                                  limit 1) e on true
            "#,
            clock_offset(&self.clock),
            self.node.as_str(),
            self.traced,
            column(rows, |row| row.operation) as _,
            column(rows, |row| &row.tenant) as _,
            column(rows, |row| row.recipient.parts().0) as _,
            column(rows, |row| row.recipient.parts().1) as _,
            column(rows, |row| row.message) as _,
            column(rows, |row| row.outcome.as_deref()) as _,
            column(rows, |row| row.source.principal.as_deref()) as _,
            column(rows, |row| row.source.address()) as _,
        )
        .fetch_all(connection)
        .await?;
        let facts = found.into_iter().map(|row| {
            if row.busy {
                return (row.operation, RowLock::Busy);
            }
            let acked = row.request_id.map(|request_id| AckedMessage {
                request_id,
                expires_at: row.expires_at,
                delivered: row.delivered,
                origin: rows::context(row.origin.as_deref(), None),
            });
            (row.operation, RowLock::Locked(acked))
        });
        rows::in_order(rows.iter().map(|row| row.operation), facts)
    }
}
