//! The hot path to an enforcer: decisions that a hint has named, which nobody was offered yet. The newest live channel reads and
//! sends them, and writes the offer only if it is not acknowledged soon (`write_offers`). Everything else, such as a decision
//! that has to wait for an earlier message, is left to the claim of what is due.

use sqlx::PgConnection;
use uuid::Uuid;

use crate::protocol::decision::Verification;
use crate::protocol::id::{ApproverId, EnforcerId, MessageId, RequestId, TenantId};
use crate::protocol::message::DecisionDelivery;
use crate::protocol::timestamp::Timestamp;
use crate::store::channels::enforcer_messages::{ClaimedMessage, ForEnforcer};
use crate::store::channels::terms::LEASE_SECONDS;
use crate::store::database::batch_statement::{BatchResult, BatchStatement};
use crate::store::database::rows;
use crate::store::database::rows::{column, row_mut};
use crate::store::database::tenant_scope::TenantScope;

#[derive(Debug)]
pub struct DecisionReadRow {
    pub tenant: TenantId,
    pub enforcer: EnforcerId,
    pub channel: Uuid,
    pub message: MessageId,
}

#[derive(Debug)]
pub enum DecisionRead {
    Message(Box<ClaimedMessage>),
    /// Another channel takes it, or was offered it, or it was acknowledged.
    Elsewhere,
    /// It is for this channel, but another message goes first.
    Waits,
}

pub struct ReadDecisions;

impl BatchStatement for ReadDecisions {
    const NAME: &'static str = "read_decision";
    const IS_READ: bool = true;
    type Row = DecisionReadRow;
    type Fact = DecisionRead;

    fn tenant_scope(rows: &[DecisionReadRow]) -> TenantScope<'_> {
        TenantScope::of(rows.iter().map(|row| &row.tenant))
    }

    fn bytes(_: &DecisionReadRow) -> usize {
        // Few decisions are larger: this bounds a batch of those that are.
        32 << 10
    }

    async fn run(&self, connection: &mut PgConnection, rows: &[Self::Row]) -> BatchResult<Self> {
        let found = sqlx::query!(
            r#"
            with input as materialized (
                select i.*
                  from unnest($1::text[], $2::text[], $3::uuid[], $4::uuid[]) with ordinality
                       as i (tenant_id, enforcer_id, channel_id, message_id, n)
                 where i.channel_id = (select c.channel_id
                                         from channels c
                                         join nodes n on n.node_id = c.node_id
                                        where c.tenant_id = i.tenant_id and c.kind = 'enforcer' and c.identity = i.enforcer_id
                                          and c.active and n.heartbeat_at > clock_timestamp() - make_interval(secs => $5)
                                        order by c.opened_at desc, c.channel_id desc
                                        limit 1)
            )
            -- The limits keep the planner from hashing whole tables.
            select i.n as "n!", m.waits as "waits!", m.request_id as "request_id!: RequestId",
                   m.message_id as "message_id!: MessageId", m.created_at as "created_at!",
                   e.expires_at as "expires_at!: Timestamp", e.decided_at as "decided_at?: Timestamp",
                   e.decided_by as "decided_by!: ApproverId",
                   coalesce(e.verification::text, case when e.verified then 'registered' end)
                       as "verification?: Verification",
                   y.body::text as "body!", y.trace::text as "trace?",
                   o.trace ->> 'traceparent' as "traceparent?", o.trace ->> 'tracestate' as "tracestate?"
              from input i
             cross join lateral (
                 select m.tenant_id, m.request_id, m.message_id, m.created_at,
                        -- Only a request to refresh can be an earlier message of the exchange.
                        (select true from messages r
                          where r.tenant_id = m.tenant_id and r.request_id = m.request_id and r.kind = 'refresh.request'
                            and r.acked_at is null and r.offered_at is null
                          limit 1) is not null as waits
                   from messages m
                  where m.tenant_id = i.tenant_id and m.recipient_kind = 'enforcer' and m.recipient = i.enforcer_id
                    and m.message_id = i.message_id and m.offered_at is null
                    and coalesce(m.acked_at, 'infinity') = 'infinity' and m.kind = 'decision.deliver'
                  limit 1) m
             cross join lateral (
                 select e.expires_at, e.decided_at, e.decided_by, e.verification, e.verified
                   from exchanges e
                  where e.tenant_id = m.tenant_id and e.request_id = m.request_id
                  limit 1) e
             cross join lateral (
                 select y.body, y.trace
                   from exchange_payloads y
                  where y.tenant_id = m.tenant_id and y.request_id = m.request_id and y.part = 'decision'
                  limit 1) y
              left join lateral (
                 select a.trace
                   from exchange_payloads a
                  where a.tenant_id = m.tenant_id and a.request_id = m.request_id and a.part = 'artifact'
                  limit 1) o on true
            "#,
            column(rows, |row| &row.tenant) as _,
            column(rows, |row| &row.enforcer) as _,
            &column(rows, |row| row.channel),
            column(rows, |row| row.message) as _,
            LEASE_SECONDS,
        )
        .fetch_all(connection)
        .await?;
        let mut facts: Vec<DecisionRead> = rows.iter().map(|_| DecisionRead::Elsewhere).collect();
        for row in found {
            let fact = row_mut(&mut facts, row.n)?;
            if row.waits {
                *fact = DecisionRead::Waits;
                continue;
            }
            let (parent, state) = (row.traceparent.as_deref(), row.tracestate.as_deref());
            let created_at = row.created_at;
            let delivery = DecisionDelivery {
                message_id: row.message_id,
                decided_at: (row.decided_at).unwrap_or_else(|| Timestamp::from(created_at)),
                decided_by: row.decided_by,
                verification: row.verification.unwrap_or(Verification::Unregistered),
                body: row.body,
                trace: rows::carrying(row.trace, parent, state),
            };
            *fact = DecisionRead::Message(Box::new(ClaimedMessage {
                message: ForEnforcer::Decision {
                    request_id: row.request_id,
                    expires_at: row.expires_at,
                    delivery,
                },
                created_at,
                first: true,
                late: None,
            }));
        }
        Ok(facts)
    }
}
