//! Messages for an enforcer's channel. They are claimed, so that no two channels send the same one at the same time: by the
//! newest live channel first and, while unacknowledged, by the next. A claim reads what is due and nothing else; only when
//! channels open and close does the newest one read everything, once, to take over what others were offered.

use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::clock::Clock;
use crate::protocol::decision::Verification;
use crate::protocol::id::{ApproverId, EnforcerId, MessageId, RequestId, TenantId};
use crate::protocol::timestamp::Timestamp;
use crate::store::channels::enforcer_messages::{ClaimedMessage, ClaimedRow};
use crate::store::channels::terms::{LEASE_SECONDS, PUSHED_FOR_SECONDS};
use crate::store::database::batch_statement::{BatchResult, BatchStatement};
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::rows::{column, row_mut};
use crate::store::database::tenant_scope::TenantScope;

/// Offers on one channel before the next most recent one gets its turn.
const OFFERS_PER_CHANNEL: i32 = 3;
/// Messages that a channel reads at once to take over from others: few while there is something to take over, more the
/// longer there is not.
const READ_AT_ONCE: (i64, i64) = (16, 500);
/// Bytes after which a page of an enforcer's messages ends.
pub const PAGE_BYTES: usize = 256 << 10;

/// How far a channel has come that takes over what others were offered: the message, in the order in which they were
/// created, and how many to read next.
#[derive(Debug, Clone, Copy)]
pub struct TakeOver {
    created_at: OffsetDateTime,
    seq: i32,
    message: Uuid,
    read: i64,
}

impl TakeOver {
    pub const START: Self = Self {
        created_at: OffsetDateTime::UNIX_EPOCH,
        seq: 0,
        message: Uuid::nil(),
        read: READ_AT_ONCE.0,
    };
}

#[derive(Debug)]
pub struct ClaimRow {
    pub tenant: TenantId,
    pub enforcer: EnforcerId,
    pub channel: Uuid,
    pub limit: i64,
    /// To take over what other channels were offered; otherwise what is due is claimed.
    pub take_over: Option<TakeOver>,
}

#[derive(Debug, Default)]
pub struct ClaimedPage {
    pub messages: Vec<ClaimedMessage>,
    /// Whether the channel itself is live.
    pub live: bool,
    /// A digest of the enforcer's channels, which differs once one has opened, closed, fallen silent or come back.
    pub channels: Uuid,
    /// Where to go on taking over; `None` at the end.
    pub take_over: Option<TakeOver>,
}

pub struct ClaimMessages {
    pub clock: Clock,
    /// First and longest pause before a message is offered again, in seconds.
    pub reoffer: (f64, f64),
}

impl BatchStatement for ClaimMessages {
    const NAME: &'static str = "claim";
    type Row = ClaimRow;
    type Fact = ClaimedPage;

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
        let claimed = sqlx::query_as!(
            ClaimedRow,
            r#"
            with clock as materialized (
                select c.clock_offset, c.at, c.at - make_interval(secs => $1) as pushed_since
                  from (select o.clock_offset, clock_timestamp() + o.clock_offset as at
                          from (select $2::interval as clock_offset) o) c
            ),
            input as materialized (
                select i.*
                  from unnest($3::text[], $4::text[], $5::uuid[], $6::bigint[], $7::timestamptz[], $8::int[], $9::uuid[],
                              $10::bigint[])
                       with ordinality
                       as i (tenant_id, enforcer_id, channel_id, most, after_at, after_seq, after_id, to_read, n)
                 -- For this transaction: a claim that a crash loses is made again, so the commit need not wait for the disk.
                 cross join (select set_config('synchronous_commit', 'off', true)) setting
            ),
            open as materialized (
                select i.n, c.channel_id, c.opened_at,
                       c.active and n.heartbeat_at > clock_timestamp() - make_interval(secs => $11) as live
                  from input i
                  join channels c on c.tenant_id = i.tenant_id and c.kind = 'enforcer' and c.identity = i.enforcer_id
                  join nodes n on n.node_id = c.node_id
            ),
            live as materialized (
                select n, channel_id, opened_at,
                       row_number() over (partition by n order by opened_at desc, channel_id desc) as rank
                  from open
                 where live
            ),
            found as materialized (
                select i.n, i.most, i.channel_id as mine, f.tenant_id, f.recipient, f.message_id, f.created_at, f.seq,
                       f.kind, f.request_id, f.chosen
                  from input i
                 cross join clock c
                  join live newest on newest.n = i.n and newest.rank = 1
                 cross join lateral (
                     -- What is due, read by the time it is due: what was never offered first, and only by the newest channel.
                     (select v.tenant_id, v.recipient, v.message_id, v.created_at, v.seq, v.kind, v.request_id,
                             true as chosen
                        -- A decision can still be fetched later; what only push delivers is pushed for as long as it is
                        -- valid. Older rows are not read, however many were never acknowledged.
                        from (values ('decision.deliver', true, timestamptz '-infinity', c.pushed_since, c.pushed_since),
                                     ('decision.deliver', false, c.pushed_since, '-infinity', c.pushed_since),
                                     ('refresh.request', true, '-infinity', '-infinity', '-infinity'),
                                     ('refresh.request', false, '-infinity', 'infinity', '-infinity'),
                                     ('prompt.send', true, '-infinity', '-infinity', '-infinity'),
                                     ('prompt.send', false, '-infinity', 'infinity', '-infinity'))
                             as k (kind, first, due_from, created_from, since)
                       cross join lateral (
                           select w.tenant_id, w.recipient, w.message_id, w.created_at, w.seq, w.kind, w.request_id, w.due
                             from (
                                 select m.tenant_id, m.recipient, m.message_id, m.created_at, m.seq, m.kind, m.request_id,
                                        coalesce(m.next_attempt_at, '-infinity') as due,
                                        case
                                            -- Never offered, or its channel is closed: the newest.
                                            when t.channel_id is null then newest.channel_id
                                            -- A channel opened since the offer: that is the newest now.
                                            when newest.opened_at > m.offered_at then newest.channel_id
                                            when m.offers < $12 then t.channel_id
                                            -- Three offers unacknowledged: the next most recent channel, and after the
                                            -- last one the first again.
                                            else coalesce((select o.channel_id from live o
                                                            where o.n = i.n and o.rank = t.rank + 1),
                                                          newest.channel_id)
                                        end as chosen
                                   from messages m
                                   left join live t on t.n = i.n and t.channel_id = m.target_channel
                                  where m.tenant_id = i.tenant_id and m.recipient_kind = 'enforcer'
                                    and m.recipient = i.enforcer_id and m.kind = k.kind and m.acked_at is null
                                    and (coalesce(m.next_attempt_at, '-infinity'), m.created_at)
                                        > (k.due_from, k.created_from)
                                    and coalesce(m.next_attempt_at, '-infinity')
                                        <= case when k.first then '-infinity' else c.at end
                                    and m.created_at > k.since and (m.expires_at is null or m.expires_at > c.at)
                             ) w
                            where w.chosen = i.channel_id
                            order by w.due, w.created_at, w.seq, w.message_id
                            limit i.most
                       ) v
                       where i.after_at is null and (not k.first or newest.channel_id = i.channel_id)
                       order by v.due, v.created_at, v.seq, v.message_id
                       limit i.most)
                     union all
                     -- What the newest channel takes over, read in the order it was created, some rows at a time.
                     (select v.tenant_id, v.recipient, v.message_id, v.created_at, v.seq, v.kind, v.request_id,
                             (v.expires_at is null or v.expires_at > c.at)
                             and v.target_channel is distinct from i.channel_id
                             and (newest.opened_at > v.offered_at
                                  or not exists (select from live t
                                                  where t.n = i.n and t.channel_id = v.target_channel))
                        from (values ('decision.deliver', c.pushed_since),
                                     ('refresh.request', '-infinity'),
                                     ('prompt.send', '-infinity')) as k (kind, since)
                       cross join lateral (
                           select m.tenant_id, m.recipient, m.message_id, m.created_at, m.seq, m.kind, m.request_id,
                                  m.expires_at, m.target_channel, m.offered_at
                             from messages m
                            where m.tenant_id = i.tenant_id and m.recipient_kind = 'enforcer'
                              and m.recipient = i.enforcer_id and m.kind = k.kind and m.acked_at is null
                              and m.created_at > k.since and m.created_at >= i.after_at
                              and (m.created_at, m.seq, m.message_id) > (i.after_at, i.after_seq, i.after_id)
                            order by m.created_at, m.seq, m.message_id
                            limit i.to_read
                       ) v
                       where i.after_at is not null and newest.channel_id = i.channel_id
                       order by v.created_at, v.seq, v.message_id
                       limit i.to_read)
                 ) f
            ),
            counted as materialized (
                select f.*,
                       count(*) filter (where f.chosen)
                           over (partition by f.n order by f.created_at, f.seq, f.message_id) as nth
                  from found f
            ),
            -- The page ends with its last message, or before one with too many bytes before it.
            page as materialized (
                select d.n, d.mine, d.tenant_id, d.recipient, d.message_id, d.created_at, d.seq, d.chosen,
                       d.nth <= d.most and coalesce(d.before, 0) < $13 as within
                  from (
                      select f.*,
                             sum(coalesce(pg_column_size(y.body), pg_column_size(z.body), 0))
                                 over (partition by f.n order by f.created_at, f.seq, f.message_id
                                       rows between unbounded preceding and 1 preceding) as before
                        from counted f
                        left join exchange_payloads y on f.chosen and f.nth <= f.most and f.kind = 'decision.deliver'
                                                     and y.tenant_id = f.tenant_id and y.request_id = f.request_id
                                                     and y.part = 'decision'
                        left join prompt_payloads z on f.chosen and f.nth <= f.most and f.kind = 'prompt.send'
                                                   and z.tenant_id = f.tenant_id and z.request_id = f.request_id
                  ) d
            ),
            -- Where a channel that takes over goes on, unless it has come to the end.
            walked as materialized (
                select distinct on (d.n) d.n, d.created_at, d.seq, d.message_id
                  from page d
                  join input i on i.n = d.n and i.after_at is not null
                  join (select n, count(*) as read, bool_and(within) as whole from page group by n) e
                    on e.n = d.n and (e.read >= i.to_read or not e.whole)
                 where d.within
                 order by d.n, d.created_at desc, d.seq desc, d.message_id desc
            ),
            locked as materialized (
                select m.tenant_id, m.recipient, m.message_id, m.target_channel, m.offers, m.offered_at, m.next_attempt_at,
                       d.n, d.mine
                  from messages m
                  join page d on d.chosen and d.within and d.tenant_id = m.tenant_id and m.recipient_kind = 'enforcer'
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
                       next_attempt_at = clock_timestamp() + (select c.clock_offset from clock c)
                           + make_interval(secs => least(
                                 $14 * power(2, case when l.target_channel = l.mine then least(l.offers, 16) else 0 end),
                                 $15))
                  from locked l
                 where m.tenant_id = l.tenant_id and m.recipient_kind = 'enforcer' and m.recipient = l.recipient
                   and m.message_id = l.message_id and coalesce(m.acked_at, 'infinity') = 'infinity'
                   and m.target_channel is not distinct from l.target_channel
                   and m.offered_at is not distinct from l.offered_at
                returning l.n, m.message_id, m.kind, m.tenant_id, m.recipient, m.request_id, m.created_at, m.seq, m.sender,
                          m.body, m.expires_at, l.offered_at is null as first,
                          -- Lateness counts on this channel alone: while another or none had the message, nothing was due.
                          case when l.target_channel = l.mine
                               then extract(epoch from clock_timestamp() + (select c.clock_offset from clock c)
                                                   - l.next_attempt_at)::float8
                           end as late
            )
            select i.n as "n!", exists (select from live o where o.n = i.n and o.channel_id = i.channel_id) as "live!",
                   md5(concat((select string_agg(concat(o.channel_id, o.live), ',' order by o.channel_id)
                                 from open o where o.n = i.n),
                              (select a.closed_at from enforcers a
                                where a.tenant_id = i.tenant_id and a.enforcer_id = i.enforcer_id)))::uuid as "channels!",
                   w.created_at as "walked_at?", w.seq as "walked_seq?", w.message_id as "walked_id?",
                   q.message_id as "message_id?: MessageId", q.kind as "kind?",
                   q.request_id as "request_id?: RequestId", q.created_at as "created_at?",
                   q.recipient as "recipient?: EnforcerId", q.sender as "sender?: ApproverId",
                   q.body ->> 'reason' as "reason?", q.first as "first?",
                   q.late as "late?", coalesce(q.expires_at, e.expires_at) as "expires_at?: Timestamp",
                   e.decided_at as "decided_at?: Timestamp", e.decided_by as "decided_by?: ApproverId",
                   coalesce(e.verification::text, case when e.verified then 'registered' end)
                       as "verification?: Verification",
                   coalesce(y.body, p.body)::text as "body?", coalesce(y.trace, p.trace)::text as "trace?",
                   o.traceparent as "traceparent?", o.tracestate as "tracestate?"
              from input i
              left join walked w on w.n = i.n
              left join claimed q on q.n = i.n
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
            PUSHED_FOR_SECONDS,
            clock_offset(&self.clock),
            column(rows, |row| &row.tenant) as _,
            column(rows, |row| &row.enforcer) as _,
            &column(rows, |row| row.channel),
            &column(rows, |row| row.limit),
            column(rows, |row| row.take_over.map(|after| after.created_at)) as _,
            column(rows, |row| row.take_over.map(|after| after.seq)) as _,
            column(rows, |row| row.take_over.map(|after| after.message)) as _,
            column(rows, |row| row.take_over.map(|after| after.read)) as _,
            LEASE_SECONDS,
            OFFERS_PER_CHANNEL,
            i64::try_from(PAGE_BYTES).unwrap_or(i64::MAX),
            self.reoffer.0,
            self.reoffer.1,
        )
        .fetch_all(connection)
        .await?;
        let mut pages: Vec<ClaimedPage> = rows.iter().map(|_| ClaimedPage::default()).collect();
        for row in claimed {
            let page = row_mut(&mut pages, row.n)?;
            page.live = row.live;
            page.channels = row.channels;
            page.take_over = match (row.walked_at, row.walked_seq, row.walked_id) {
                (Some(created_at), Some(seq), Some(message)) => Some(TakeOver {
                    created_at,
                    seq,
                    message,
                    read: READ_AT_ONCE.0,
                }),
                _ => None,
            };
            page.messages.extend(row.message()?);
        }
        for (row, page) in rows.iter().zip(&mut pages) {
            if let (Some(before), Some(next)) = (&row.take_over, &mut page.take_over)
                && page.messages.is_empty()
            {
                next.read = (before.read * 4).min(READ_AT_ONCE.1);
            }
        }
        Ok(pages)
    }
}
