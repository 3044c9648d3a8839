//! The hot path of a claim: decisions that a hint has named, which nobody was offered yet. The newest live channel takes them.
//! Everything else, such as a message that was locked just now, is left to the claim of what is due.

use sqlx::PgConnection;
use uuid::Uuid;

use crate::clock::Clock;
use crate::protocol::decision::Verification;
use crate::protocol::id::{ApproverId, EnforcerId, MessageId, RequestId, TenantId};
use crate::protocol::message::DecisionDelivery;
use crate::protocol::timestamp::Timestamp;
use crate::store::channels::enforcer_messages::{ClaimedMessage, ForEnforcer};
use crate::store::channels::terms::LEASE_SECONDS;
use crate::store::database::batch_statement::{BatchResult, BatchStatement};
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::rows;
use crate::store::database::rows::{column, row_mut};
use crate::store::database::tenant_scope::TenantScope;

#[derive(Debug)]
pub struct DecisionClaimRow {
    pub tenant: TenantId,
    pub enforcer: EnforcerId,
    pub channel: Uuid,
    pub message: MessageId,
}

#[derive(Debug)]
pub enum DecisionClaim {
    Claimed(Box<ClaimedMessage>),
    /// Another channel takes it, or has taken it, or it was acknowledged.
    Elsewhere,
    /// It is for this channel, but another transaction has locked it, or another message goes first.
    Busy,
}

pub struct ClaimDecisions {
    pub clock: Clock,
    /// Pause before a message is offered again, in seconds.
    pub reoffer: f64,
}

impl BatchStatement for ClaimDecisions {
    const NAME: &'static str = "claim_decision";
    type Row = DecisionClaimRow;
    type Fact = DecisionClaim;

    fn tenant_scope(rows: &[DecisionClaimRow]) -> TenantScope<'_> {
        TenantScope::of(rows.iter().map(|row| &row.tenant))
    }

    fn conflict_keys(row: &DecisionClaimRow) -> Vec<String> {
        vec![format!("{}\n{}", row.channel, row.message.0)]
    }

    fn bytes(_: &DecisionClaimRow) -> usize {
        // Few decisions are larger: this bounds a batch of those that are.
        32 << 10
    }

    async fn run(&self, connection: &mut PgConnection, rows: &[Self::Row]) -> BatchResult<Self> {
        let found = sqlx::query!(
            r#"
            with input as materialized (
                select i.*, o.clock_offset, make_interval(secs => $2) as reoffer
                  from unnest($3::text[], $4::text[], $5::uuid[], $6::uuid[]) with ordinality
                       as i (tenant_id, enforcer_id, channel_id, message_id, n)
                 cross join (select $1::interval as clock_offset) o
                 -- For this transaction: a claim that a crash loses is made again, so the commit need not wait for the disk.
                 cross join (select set_config('synchronous_commit', 'off', true)) setting
            ),
            mine as materialized (
                select i.*
                  from input i
                 where i.channel_id = (select c.channel_id
                                         from channels c
                                         join nodes n on n.node_id = c.node_id
                                        where c.tenant_id = i.tenant_id and c.kind = 'enforcer' and c.identity = i.enforcer_id
                                          and c.active and n.heartbeat_at > clock_timestamp() - make_interval(secs => $7)
                                        order by c.opened_at desc, c.channel_id desc
                                        limit 1)
            ),
            locked as materialized (
                select i.n, i.channel_id, i.clock_offset, i.reoffer, m.tenant_id, m.recipient, m.message_id
                  from messages m
                  join mine i on i.tenant_id = m.tenant_id and m.recipient_kind = 'enforcer' and i.enforcer_id = m.recipient
                             and i.message_id = m.message_id
                 where m.offered_at is null and coalesce(m.acked_at, 'infinity') = 'infinity'
                   and m.kind = 'decision.deliver'
                   -- An earlier message of the exchange goes first: the claim of what is due sends both in order. The limit
                   -- keeps the planner from hashing the whole table.
                   and (select true from messages o
                         where o.tenant_id = m.tenant_id and o.request_id = m.request_id
                           and o.recipient_kind = 'enforcer' and o.seq < m.seq and o.offered_at is null
                           and coalesce(o.acked_at, 'infinity') = 'infinity'
                         limit 1) is null
                   for no key update of m skip locked
            ),
            claimed as (
                update messages m
                   set target_channel = l.channel_id, offers = 1, offered_at = clock_timestamp(),
                       next_attempt_at = clock_timestamp() + l.clock_offset + l.reoffer
                  from locked l
                 where m.tenant_id = l.tenant_id and m.recipient_kind = 'enforcer' and m.recipient = l.recipient
                   and m.message_id = l.message_id and m.offered_at is null
                returning l.n, m.tenant_id, m.message_id, m.request_id, m.created_at
            )
            select i.n as "n!", q.n is null as "busy!", q.message_id as "message_id?: MessageId",
                   q.request_id as "request_id?: RequestId", q.created_at as "created_at?",
                   e.expires_at as "expires_at?: Timestamp", e.decided_at as "decided_at?: Timestamp",
                   e.decided_by as "decided_by?: ApproverId",
                   coalesce(e.verification::text, case when e.verified then 'registered' end)
                       as "verification?: Verification",
                   y.body::text as "body?", y.trace::text as "trace?",
                   o.traceparent as "traceparent?", o.tracestate as "tracestate?"
              from mine i
              left join claimed q on q.n = i.n
              left join exchanges e on e.tenant_id = q.tenant_id and e.request_id = q.request_id
              left join exchange_payloads y on y.tenant_id = q.tenant_id and y.request_id = q.request_id
                                           and y.part = 'decision'
              -- The limit keeps the planner from hashing every artifact.
              left join lateral (select o.trace ->> 'traceparent' as traceparent, o.trace ->> 'tracestate' as tracestate
                                   from exchange_payloads o
                                  where o.tenant_id = q.tenant_id and o.request_id = q.request_id and o.part = 'artifact'
                                  limit 1) o on true
             where q.n is not null
                or (select true from messages m
                     where m.tenant_id = i.tenant_id and m.recipient_kind = 'enforcer' and m.recipient = i.enforcer_id
                       and m.message_id = i.message_id and m.offered_at is null
                       and coalesce(m.acked_at, 'infinity') = 'infinity'
                     limit 1)
            "#,
            clock_offset(&self.clock),
            self.reoffer,
            column(rows, |row| &row.tenant) as _,
            column(rows, |row| &row.enforcer) as _,
            &column(rows, |row| row.channel),
            column(rows, |row| row.message) as _,
            LEASE_SECONDS,
        )
        .fetch_all(connection)
        .await?;
        let mut facts: Vec<DecisionClaim> = rows.iter().map(|_| DecisionClaim::Elsewhere).collect();
        for row in found {
            let fact = row_mut(&mut facts, row.n)?;
            *fact = match (
                row.message_id,
                row.request_id,
                row.created_at,
                row.body,
                row.decided_by,
                row.expires_at,
            ) {
                (
                    Some(message_id),
                    Some(request_id),
                    Some(created_at),
                    Some(body),
                    Some(decided_by),
                    Some(expires_at),
                ) => {
                    let (parent, state) = (row.traceparent.as_deref(), row.tracestate.as_deref());
                    let delivery = DecisionDelivery {
                        message_id,
                        decided_at: row
                            .decided_at
                            .unwrap_or_else(|| Timestamp::from(created_at)),
                        decided_by,
                        verification: row.verification.unwrap_or(Verification::Unregistered),
                        body,
                        trace: rows::carrying(row.trace, parent, state),
                    };
                    DecisionClaim::Claimed(Box::new(ClaimedMessage {
                        message: ForEnforcer::Decision {
                            request_id,
                            expires_at,
                            delivery,
                        },
                        created_at,
                        first: true,
                        late: None,
                    }))
                }
                _ if row.busy => DecisionClaim::Busy,
                _ => {
                    let problem = "a decision without its exchange or its body";
                    return Err(sqlx::Error::Decode(problem.into()));
                }
            };
        }
        Ok(facts)
    }
}
