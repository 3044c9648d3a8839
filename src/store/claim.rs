//! Messages for an enforcer's channel. They are claimed, so that no two channels send the same one at the same time: by the
//! newest live channel first and, while unacknowledged, by the next.

use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use super::batch::{BatchResult, BatchStatement};
use super::channel::{LEASE_SECONDS, PUSHED_FOR_SECONDS};
use super::rows::{self, by_row, column};
use super::tenant_scope::TenantScope;
use crate::clock::Clock;
use crate::protocol::id::{ApproverId, EnforcerId, MessageId, RequestId, TenantId};
use crate::protocol::message::{DecisionDelivery, PromptDelivery, RefreshRequest};
use crate::protocol::timestamp::Timestamp;

/// Offers on one channel before the next most recent one gets its turn.
const OFFERS_PER_CHANNEL: i32 = 3;
/// Bytes after which a page of an enforcer's messages ends.
pub const PAGE_BYTES: usize = 256 << 10;

#[derive(Debug)]
pub enum ForEnforcer {
    Decision {
        request_id: RequestId,
        expires_at: Timestamp,
        delivery: DecisionDelivery,
    },
    Refresh(RefreshRequest),
    Prompt(PromptDelivery),
}

#[derive(Debug)]
pub struct Claimed {
    pub message: ForEnforcer,
    pub created_at: OffsetDateTime,
    /// Whether it was never offered before.
    pub first: bool,
    /// How long after its time it is offered again on the same channel, in seconds.
    pub late: Option<f64>,
}

#[derive(Debug)]
pub struct ClaimRow {
    pub tenant: TenantId,
    pub enforcer: EnforcerId,
    pub channel: Uuid,
    pub limit: i64,
}

pub struct Claim {
    pub clock: Clock,
    /// First and longest pause before a message is offered again, in seconds.
    pub reoffer: (f64, f64),
}

impl BatchStatement for Claim {
    const NAME: &'static str = "claim";
    type Row = ClaimRow;
    type Fact = Vec<Claimed>;

    fn tenant_scope(rows: &[ClaimRow]) -> TenantScope<'_> {
        TenantScope::of(rows.iter().map(|row| &row.tenant))
    }

    fn conflict_keys(row: &ClaimRow) -> Vec<String> {
        vec![format!("{}\n{}", row.tenant, row.enforcer)]
    }

    fn bytes(_: &ClaimRow) -> usize {
        // Few pages are full: this bounds a batch of full ones.
        PAGE_BYTES / 2
    }

    async fn run(&self, connection: &mut PgConnection, rows: &[Self::Row]) -> BatchResult<Self> {
        let claimed = sqlx::query!(
            r#"
            with input as (
                select n, tenant_id, enforcer_id, channel_id, most
                  from unnest($1::text[], $2::text[], $3::uuid[], $4::bigint[])
                       with ordinality as i (tenant_id, enforcer_id, channel_id, most, n)
                 -- For this transaction: a claim that a crash loses is made again, so the commit need not wait for the disk.
                 cross join (select set_config('synchronous_commit', 'off', true)) setting
            ),
            live as materialized (
                select i.n, c.channel_id, c.opened_at,
                       row_number() over (partition by i.n order by c.opened_at desc, c.channel_id desc) as rank
                  from input i
                  join channels c on c.tenant_id = i.tenant_id and c.kind = 'enforcer' and c.identity = i.enforcer_id
                  join nodes n on n.node_id = c.node_id
                 where c.active and n.heartbeat_at > clock_timestamp() - make_interval(secs => $6)
            ),
            due as materialized (
                select i.n, i.channel_id as mine, p.tenant_id, p.recipient, p.message_id
                  from input i
                 cross join (select clock_timestamp() + $5::interval as at) c
                  join live newest on newest.n = i.n and newest.rank = 1
                 cross join lateral (
                     select r.tenant_id, r.recipient, r.message_id
                       from (
                           -- The bytes before it on this page.
                           select q.tenant_id, q.recipient, q.message_id,
                                  sum(coalesce(pg_column_size(y.body), pg_column_size(z.body), 0))
                                      over (order by q.created_at, q.seq, q.message_id
                                            rows between unbounded preceding and 1 preceding) as before
                             from (
                                 select v.tenant_id, v.recipient, v.message_id, v.created_at, v.seq, v.kind, v.request_id
                                   -- A decision can still be fetched later; what only push delivers is pushed for as long
                                   -- as it is valid. Older rows are not read, however many were never acknowledged.
                                   from (values ('decision.deliver', c.at - make_interval(secs => $8)),
                                                ('refresh.request', '-infinity'),
                                                ('prompt.send', '-infinity')) as k (kind, since)
                                  cross join lateral (
                                      select w.tenant_id, w.recipient, w.message_id, w.created_at, w.seq, w.kind, w.request_id
                                        from (
                                            select m.tenant_id, m.recipient, m.message_id, m.created_at, m.seq, m.kind,
                                                   m.request_id,
                                                   case
                                                       -- Never offered, or its channel is closed: the newest.
                                                       when t.channel_id is null then newest.channel_id
                                                       -- A channel opened since the offer: that is the newest now.
                                                       when newest.opened_at > m.offered_at then newest.channel_id
                                                       when m.next_attempt_at > c.at then null
                                                       when m.offers < $7 then t.channel_id
                                                       -- Three offers unacknowledged: the next most recent channel, and
                                                       -- after the last one the first again.
                                                       else coalesce((select o.channel_id from live o
                                                                       where o.n = i.n
                                                                         and o.rank = t.rank + 1),
                                                                     newest.channel_id)
                                                   end as chosen
                                              from messages m
                                              left join live t on t.n = i.n
                                                              and t.channel_id = m.target_channel
                                             where m.tenant_id = i.tenant_id and m.recipient_kind = 'enforcer'
                                               and m.recipient = i.enforcer_id and m.acked_at is null
                                               and m.kind = k.kind and m.created_at > k.since
                                               and (m.expires_at is null or m.expires_at > c.at)
                                               and (m.target_channel is distinct from i.channel_id
                                                    or m.next_attempt_at <= c.at)
                                        ) w
                                       where w.chosen = i.channel_id
                                       order by w.created_at, w.seq, w.message_id
                                       limit i.most
                                  ) v
                                  order by v.created_at, v.seq, v.message_id
                                  limit i.most
                             ) q
                             left join exchange_payloads y on q.kind = 'decision.deliver' and y.tenant_id = q.tenant_id
                                                          and y.request_id = q.request_id and y.part = 'decision'
                             left join prompt_payloads z on q.kind = 'prompt.send' and z.tenant_id = q.tenant_id
                                                        and z.request_id = q.request_id
                       ) r
                      where coalesce(r.before, 0) < $11) p
            ),
            locked as materialized (
                select m.tenant_id, m.recipient, m.message_id, m.target_channel, m.offers, m.offered_at, m.next_attempt_at,
                       d.n, d.mine
                  from messages m
                  join due d on d.tenant_id = m.tenant_id and m.recipient_kind = 'enforcer'
                            and d.recipient = m.recipient and d.message_id = m.message_id
                 where coalesce(m.acked_at, 'infinity') = 'infinity'
                 order by m.tenant_id, m.recipient_kind, m.recipient, m.message_id
                   for no key update of m skip locked
            ),
            claimed as (
                update messages m
                   set target_channel = l.mine,
                       offers = case when l.target_channel = l.mine then l.offers + 1 else 1 end,
                       offered_at = clock_timestamp(),
                       -- Doubling over its offers on this channel.
                       next_attempt_at = clock_timestamp() + $5::interval
                           + make_interval(secs => least(
                                 $9 * power(2, case when l.target_channel = l.mine then least(l.offers, 16) else 0 end),
                                 $10))
                  from locked l
                 where m.tenant_id = l.tenant_id and m.recipient_kind = 'enforcer' and m.recipient = l.recipient
                   and m.message_id = l.message_id and coalesce(m.acked_at, 'infinity') = 'infinity'
                   and m.target_channel is not distinct from l.target_channel
                   and m.offered_at is not distinct from l.offered_at
                returning l.n, m.message_id, m.kind, m.tenant_id, m.recipient, m.request_id, m.created_at, m.seq, m.sender,
                          m.body, m.expires_at, l.offered_at is null as first,
                          -- Lateness counts on this channel alone: while another or none had the message, nothing was due.
                          case when l.target_channel = l.mine
                               then extract(epoch from clock_timestamp() + $5::interval - l.next_attempt_at)::float8
                           end as late
            )
            select q.n as "n!", q.message_id as "message_id!: MessageId", q.kind as "kind!",
                   q.request_id as "request_id!: RequestId", q.created_at as "created_at!",
                   q.recipient as "recipient!: EnforcerId", q.sender as "sender?: ApproverId", q.body ->> 'reason' as "reason?", q.first as "first!",
                   q.late as "late?", coalesce(q.expires_at, e.expires_at) as "expires_at?: Timestamp",
                   e.decided_at as "decided_at?: Timestamp", e.decided_by as "decided_by?: ApproverId",
                   coalesce(y.body, p.body)::text as "body?", coalesce(y.trace, p.trace)::text as "trace?",
                   o.traceparent as "traceparent?", o.tracestate as "tracestate?"
              from claimed q
              left join exchanges e on q.kind <> 'prompt.send' and e.tenant_id = q.tenant_id
                                   and e.request_id = q.request_id
              left join exchange_payloads y on q.kind = 'decision.deliver' and y.tenant_id = q.tenant_id
                                           and y.request_id = q.request_id and y.part = 'decision'
              -- The limit keeps the planner from hashing every artifact.
              left join lateral (select o.trace ->> 'traceparent' as traceparent, o.trace ->> 'tracestate' as tracestate
                                   from exchange_payloads o
                                  where q.kind = 'decision.deliver' and o.tenant_id = q.tenant_id
                                    and o.request_id = q.request_id and o.part = 'artifact'
                                  limit 1) o on true
              left join prompt_payloads p on q.kind = 'prompt.send' and p.tenant_id = q.tenant_id
                                         and p.request_id = q.request_id
             order by q.created_at, q.seq, q.message_id
            "#,
            column(rows, |row| &row.tenant) as _,
            column(rows, |row| &row.enforcer) as _,
            &column(rows, |row| row.channel),
            &column(rows, |row| row.limit),
            self.clock.offset(),
            LEASE_SECONDS,
            OFFERS_PER_CHANNEL,
            PUSHED_FOR_SECONDS,
            self.reoffer.0,
            self.reoffer.1,
            i64::try_from(PAGE_BYTES).unwrap_or(i64::MAX),
        )
        .fetch_all(connection)
        .await?;
        let mut found = Vec::with_capacity(claimed.len());
        for row in claimed {
            let created_at = Timestamp::from(row.created_at);
            let (message_id, request_id) = (row.message_id, row.request_id);
            let message = match (row.kind.as_str(), row.body, row.decided_by, row.expires_at) {
                ("decision.deliver", Some(body), Some(decided_by), Some(expires_at)) => {
                    let (parent, state) = (row.traceparent.as_deref(), row.tracestate.as_deref());
                    ForEnforcer::Decision {
                        request_id,
                        expires_at,
                        delivery: DecisionDelivery {
                            message_id,
                            decided_at: row.decided_at.unwrap_or(created_at),
                            decided_by,
                            body,
                            trace: rows::carrying(row.trace, parent, state),
                        },
                    }
                }
                ("prompt.send", Some(body), _, expires_at) => ForEnforcer::Prompt(PromptDelivery {
                    message_id,
                    request_id,
                    created_at,
                    expires_at,
                    approver_id: row.sender,
                    body,
                    trace: row.trace,
                }),
                ("refresh.request", ..) => ForEnforcer::Refresh(RefreshRequest {
                    message_id,
                    request_id,
                    created_at,
                    enforcer_id: row.recipient,
                    approver_id: row.sender,
                    reason: row.reason,
                }),
                _ => {
                    return Err(sqlx::Error::Decode(
                        "a message of a kind that enforcers do not get".into(),
                    ));
                }
            };
            let claimed = Claimed {
                message,
                created_at: row.created_at,
                first: row.first,
                late: row.late,
            };
            found.push((row.n, claimed));
        }
        by_row(rows.len(), found)
    }
}
