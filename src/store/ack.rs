//! Acknowledgements of messages by either kind of recipient. An enforcer's ack of a decision makes its exchange delivered. The
//! statement waits for no lock: an ack that meets one is busy, and is tried again.

use sqlx::PgConnection;

use super::audit::AuditSource;
use super::batch::{BatchResult, BatchStatement};
use super::busy::RowLock;
use super::rows::{self, column};
use super::tenant_scope::TenantScope;
use crate::clock::Clock;
use crate::protocol::id::{
    ApproverId, EnforcerId, MessageId, NodeId, OperationId, RequestId, TenantId,
};
use crate::protocol::timestamp::Timestamp;
use crate::protocol::trace::TraceContext;
use crate::store::clock_offset::clock_offset;

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
            with input as (
                select operation_id, tenant_id, recipient_kind, recipient, message_id
                  from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::uuid[])
                       as i (operation_id, tenant_id, recipient_kind, recipient, message_id)
            ),
            mine as materialized (
                select i.operation_id, m.tenant_id, m.recipient_kind, m.recipient, m.message_id, m.kind, m.request_id,
                       m.expires_at
                  from input i
                  join messages m on m.tenant_id = i.tenant_id and m.recipient_kind = i.recipient_kind
                                 and m.recipient = i.recipient and m.message_id = i.message_id
            ),
            locked as materialized (
                select m.operation_id
                  from exchanges e
                  join mine m on m.tenant_id = e.tenant_id and m.request_id = e.request_id and m.kind = 'decision.deliver'
                   for no key update of e skip locked
            ),
            held as materialized (
                select i.operation_id
                  from messages m
                  join mine i on i.tenant_id = m.tenant_id and i.recipient_kind = m.recipient_kind
                             and i.recipient = m.recipient and i.message_id = m.message_id
                   for no key update of m skip locked
            ),
            items as materialized (
                select i.operation_id, x.tenant_id, x.request_id, x.approver_id
                  from input i
                  join inbox_items x on i.recipient_kind = 'approver' and x.tenant_id = i.tenant_id
                                    and (x.approver_id = i.recipient) is true and x.message_id = i.message_id
                   for no key update of x skip locked
            ),
            -- Read once everything is locked: the counts make this wait for it, and whatever joins it too.
            clock as materialized (
                select clock_timestamp() + $6::interval as at
                  from (select count(*) as locked from locked) l, (select count(*) as held from held) h,
                       (select count(*) as items from items) x
            ),
            ready as materialized (
                select m.operation_id, m.tenant_id, m.recipient_kind, m.recipient, m.message_id, m.kind, m.request_id, c.at
                  from mine m
                  join held h on h.operation_id = m.operation_id
                  left join locked l on l.operation_id = m.operation_id
                 cross join clock c
                 where m.kind <> 'decision.deliver' or l.operation_id is not null
            ),
            acked_items as (
                update inbox_items x
                   set acked_at = c.at
                  from items i, clock c
                 where x.tenant_id = i.tenant_id and x.request_id = i.request_id and x.approver_id = i.approver_id
                   and x.acked_at is null
            ),
            acked as (
                update messages m
                   set acked_at = r.at
                  from ready r
                 where m.tenant_id = r.tenant_id and m.recipient_kind = r.recipient_kind
                   and m.recipient = r.recipient and m.message_id = r.message_id
                   and coalesce(m.acked_at, 'infinity') = 'infinity'
            ),
            delivered as (
                update exchanges e
                   set state = 'delivered', delivered_at = r.at, ended_at = r.at
                  from ready r
                 where r.kind = 'decision.deliver'
                   and e.tenant_id = r.tenant_id and e.request_id = r.request_id and e.state = 'decided'
                returning r.operation_id, e.tenant_id, e.request_id, e.enforcer_id, e.delivered_at
            ),
            history as (
                insert into exchange_events (tenant_id, request_id, at, event_id, from_state, to_state, actor, principal,
                                             address, node)
                select d.tenant_id, d.request_id, d.delivered_at, d.operation_id, 'decided', 'delivered',
                       'enforcer:' || d.enforcer_id, s.principal, s.address, $7
                  from delivered d
                  join unnest($1::uuid[], $9::text[], $10::text[]) as s (operation_id, principal, address)
                    on s.operation_id = d.operation_id
            ),
            outcomes as (
                insert into exchange_payloads (tenant_id, request_id, part, body)
                select d.tenant_id, d.request_id, 'outcome', to_json(o.outcome)
                  from delivered d
                  join unnest($1::uuid[], $11::text[]) as o (operation_id, outcome) on o.operation_id = d.operation_id
                 where o.outcome is not null
            )
            select i.operation_id as "operation!: OperationId",
                   case when m.operation_id is not null then r.operation_id is null
                        when i.recipient_kind = 'approver' and x.operation_id is null
                        then (select true from inbox_items y
                               where y.tenant_id = i.tenant_id and (y.approver_id = i.recipient) is true
                                 and y.message_id = i.message_id) is not null
                        else false end as "busy!",
                   coalesce(m.request_id, x.request_id) as "request_id?: RequestId",
                   coalesce(m.expires_at, e.expires_at) as "expires_at?: Timestamp",
                   d.operation_id is not null as "delivered!",
                   case when $8 then (select y.trace ->> 'traceparent'
                                        from exchange_payloads y
                                       where y.tenant_id = e.tenant_id and y.request_id = e.request_id
                                         and y.part = 'artifact') end as "origin?"
              from input i
              left join mine m on m.operation_id = i.operation_id
              left join ready r on r.operation_id = i.operation_id
              left join delivered d on d.operation_id = i.operation_id
              left join items x on x.operation_id = i.operation_id
              left join exchanges e on e.tenant_id = i.tenant_id and e.request_id = coalesce(m.request_id, x.request_id)
                                   and m.kind is distinct from 'prompt.send'
            "#,
            column(rows, |row| row.operation) as _,
            column(rows, |row| &row.tenant) as _,
            column(rows, |row| row.recipient.parts().0) as _,
            column(rows, |row| row.recipient.parts().1) as _,
            column(rows, |row| row.message) as _,
            clock_offset(&self.clock),
            self.node.as_str(),
            self.traced,
            column(rows, |row| row.source.principal.as_deref()) as _,
            column(rows, |row| row.source.address()) as _,
            column(rows, |row| row.outcome.as_deref()) as _,
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
