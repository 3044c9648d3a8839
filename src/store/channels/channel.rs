//! Nodes and the channels they hold. A node's heartbeat is the lease of all its channels: once it
//! is 15 s old, they count as closed.

use std::collections::HashSet;
use std::sync::Arc;

use time::OffsetDateTime;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::config;
use crate::protocol::id::{ApproverId, TenantId};
use crate::protocol::wake_key::WakeKey;
use crate::store::channels::approver_messages::ReadBodies;
use crate::store::channels::claim::ClaimMessages;
use crate::store::channels::close_statement::CloseChannels;
use crate::store::channels::hello_statement::TakeHellos;
use crate::store::channels::open_statement::OpenChannels;
use crate::store::channels::read_decision::ReadDecisions;
use crate::store::channels::terms::{LEASE_SECONDS, PUSHED_FOR_SECONDS, key_of, owner};
use crate::store::channels::unacked::ListUnacked;
use crate::store::channels::write_offers::WriteOffers;
use crate::store::database::batch::StatementBatcher;
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::pools::Database;
use crate::store::database::rows::column;
use crate::store::database::tenant_scope::TenantScope;
use crate::store::error::Result;

#[derive(Debug, Clone, Copy)]
pub struct ChannelHeartbeat {
    /// Whether another live node has another cluster secret.
    pub secrets_differ: bool,
}

#[derive(Debug, Default)]
pub struct RunningChannel {
    pub oldest: i64,
    pub all: HashSet<i64>,
}

/// Messages that committed long after they were created, or that a clock created which has stepped
/// back.
#[derive(Debug, Clone, Copy)]
pub struct LateMessages {
    /// They were written by this transaction or a later one.
    pub since: i64,
    /// How many open messages of each recipient are looked at.
    pub most: i64,
}

/// Someone with a message that may not have been sent.
#[derive(Debug)]
pub struct WaitingRecipient {
    pub key: WakeKey,
    /// Of an approver: when the oldest such message was created.
    pub unseen_since: Option<OffsetDateTime>,
}

pub struct ChannelStore {
    pub(in crate::store) database: Arc<Database>,
    pub(in crate::store) openings: StatementBatcher<OpenChannels>,
    pub(in crate::store) closings: StatementBatcher<CloseChannels>,
    pub(in crate::store) hellos: StatementBatcher<TakeHellos>,
    pub lists: StatementBatcher<ListUnacked>,
    pub bodies: StatementBatcher<ReadBodies>,
    pub claims: StatementBatcher<ClaimMessages>,
    pub decision_reads: StatementBatcher<ReadDecisions>,
    pub offers: StatementBatcher<WriteOffers>,
}

impl ChannelStore {
    pub(in crate::store) fn new(
        database: &Arc<Database>,
        push: &config::Push,
        tasks: &TaskTracker,
    ) -> Self {
        let (clock, instance) = (|| database.clock.clone(), database.instance);
        let as_seconds = |seconds| f64::from(u32::try_from(seconds).unwrap_or(u32::MAX));
        let claim = ClaimMessages {
            clock: clock(),
            reoffer: (
                as_seconds(push.reoffer_seconds),
                as_seconds(push.longest_reoffer()),
            ),
        };
        let offer = WriteOffers {
            clock: clock(),
            reoffer: claim.reoffer.0,
        };
        Self {
            openings: database.batch(OpenChannels { instance }, tasks),
            closings: database.batch(CloseChannels { clock: clock() }, tasks),
            hellos: database.batch(TakeHellos { clock: clock() }, tasks),
            lists: database.batch(ListUnacked { clock: clock() }, tasks),
            bodies: database.batch(ReadBodies { clock: clock() }, tasks),
            claims: database.batch(claim, tasks),
            decision_reads: database.batch(ReadDecisions, tasks),
            offers: database.batch(offer, tasks),
            database: Arc::clone(database),
        }
    }

    /// Registers this node or renews its lease, looks for other nodes, and compares its cluster secret
    /// with theirs by their hashes.
    pub async fn heartbeat(&self, secret_check: &[u8]) -> Result<ChannelHeartbeat> {
        // All: nodes belong to no tenant.
        let mut lease = self.database.background.lease(TenantScope::All).await?;
        let before = self.database.clock.now();
        let query = sqlx::query!(
            r#"
            with renewed as (
                insert into nodes (node_id, name, started_at, heartbeat_at, secret_check)
                values ($1, $2, clock_timestamp(), clock_timestamp(), $3)
                on conflict on constraint nodes_pkey do update
                   set heartbeat_at = excluded.heartbeat_at, secret_check = excluded.secret_check
            )
            select clock_timestamp() + $4::interval as "now!", count(*) = 0 as "is_alone!",
                   coalesce(bool_or(n.secret_check <> $3), false) as "secrets_differ!"
              from nodes n
             where n.node_id <> $1 and n.heartbeat_at > clock_timestamp() - make_interval(secs => $5)
            "#,
            self.database.instance,
            self.database.node.as_str(),
            secret_check,
            clock_offset(&self.database.clock),
            LEASE_SECONDS,
        );
        let beat = query.fetch_one(lease.connection()?);
        let beat = self.database.background.within(beat).await;
        let beat = lease.settle(beat)?;
        self.database
            .compare_clocks(before, beat.now, self.database.clock.now());
        self.database.pool.gates().set_alone(beat.is_alone);
        Ok(ChannelHeartbeat {
            secrets_differ: beat.secrets_differ,
        })
    }

    /// Records whether a channel's peer still responds.
    pub async fn set_channel_active(
        &self,
        key: &WakeKey,
        channel: Uuid,
        active: bool,
    ) -> Result<()> {
        let Some((tenant, kind, identity)) = owner(key) else {
            return Ok(());
        };
        let query = sqlx::query!(
            r#"
            update channels set active = $1
             where tenant_id = $2 and kind = $3 and identity = $4 and channel_id = $5
            "#,
            active,
            tenant.as_str(),
            kind,
            identity,
            channel,
        );
        self.database.pool.execute(tenant, query).await?;
        Ok(())
    }

    /// The transactions that are under way.
    pub async fn running_transactions(&self) -> Result<RunningChannel> {
        let query = sqlx::query!(
            r#"
            select pg_snapshot_xmin(s)::text::bigint as "oldest!",
                   array(select x::text::bigint from pg_snapshot_xip(s) x) as "all!"
              from pg_current_snapshot() s
            "#,
        )
        .map(|row| RunningChannel {
            oldest: row.oldest,
            all: row.all.into_iter().collect(),
        });
        // All: transactions belong to no tenant.
        let scope = TenantScope::All;
        self.database.background.fetch_one(scope, query).await
    }

    /// Of these recipients, the ones with a message that may not have been sent: a recent one, or
    /// one due again. With `late` also older ones, by the transaction that wrote them.
    pub async fn recipients_with_messages(
        &self,
        keys: &[WakeKey],
        recent_seconds: f64,
        late: Option<LateMessages>,
    ) -> Result<Vec<WaitingRecipient>> {
        let owners: Vec<_> = keys.iter().filter_map(owner).collect();
        let query = sqlx::query!(
            r#"
            select i.tenant_id as "tenant_id!: TenantId", i.kind as "kind!", i.identity as "identity!",
                   f.since as "since?"
              from unnest($1::text[], $2::text[], $3::text[]) as i (tenant_id, kind, identity)
             cross join (select w.at, w.at - make_interval(secs => $4) as recent,
                                w.at - make_interval(secs => $5) as pushed_since,
                                -- How many transactions ago. Of another server, or of none, all are later.
                                case when w.age < 0 then 2147483647 else w.age end as age
                           from (select clock_timestamp() + $6::interval as at,
                                        age(($7::bigint % 4294967296)::text::xid) as age) w) c
             cross join lateral (
                 select min(u.created_at) as since
                   from (select min(x.created_at) as created_at
                           from inbox_items x
                          where x.tenant_id = i.tenant_id and x.approver_id = i.identity
                            and x.closed_at is null and x.removed_at is null and x.acked_at is null
                            and x.created_at > c.recent
                         union all
                         select min(m.created_at)
                           from messages m
                          where m.tenant_id = i.tenant_id and m.recipient_kind = 'approver' and m.recipient = i.identity
                            and m.kind = 'exchange.withdrawn' and m.acked_at is null and m.created_at > c.recent
                         union all
                         -- The limit counts what the index has, acknowledged or not: that many rows are read at most.
                         select min(l.created_at)
                           from (select x.created_at, x.acked_at, age(x.xmin) as age
                                   from inbox_items x
                                  where x.tenant_id = i.tenant_id and x.approver_id = i.identity
                                    and x.closed_at is null and x.removed_at is null and x.created_at <= c.recent
                                  order by x.created_at
                                  limit $8) l
                          where l.acked_at is null and l.age <= c.age
                         union all
                         select min(l.created_at)
                           from (select m.created_at, age(m.xmin) as age
                                   from messages m
                                  where m.tenant_id = i.tenant_id and m.recipient_kind = 'approver'
                                    and m.recipient = i.identity and m.kind = 'exchange.withdrawn' and m.acked_at is null
                                    and m.created_at > c.pushed_since and m.created_at <= c.recent
                                  order by m.created_at
                                  limit $8) l
                          where l.age <= c.age) u
                  where i.kind = 'approver') f
             where case i.kind
                       when 'approver' then f.since is not null
                       else exists (
                           -- Never offered, or due again. Older decisions are not pushed, and not read.
                           select from (values ('decision.deliver', timestamptz '-infinity', c.pushed_since,
                                                timestamptz '-infinity'),
                                               ('decision.deliver', c.pushed_since, '-infinity', c.at),
                                               ('refresh.request', '-infinity', '-infinity', c.at),
                                               ('prompt.send', '-infinity', '-infinity', c.at))
                                       as k (kind, due_from, created_from, due_to)
                            -- One index scan per kind: the limit keeps the planner from joining the other way around.
                            cross join lateral (
                                select from messages m
                                 where m.tenant_id = i.tenant_id and m.recipient_kind = 'enforcer'
                                   and m.recipient = i.identity and m.kind = k.kind and m.acked_at is null
                                   and (coalesce(m.next_attempt_at, '-infinity'), m.created_at)
                                       > (k.due_from, k.created_from)
                                   and coalesce(m.next_attempt_at, '-infinity') <= k.due_to
                                   and (m.kind <> 'decision.deliver' or m.created_at > c.pushed_since)
                                   and (m.expires_at is null or m.expires_at > c.at)
                                 limit 1) m)
                   end
            "#,
            column(&owners, |(tenant, _, _)| *tenant) as _,
            column(&owners, |(_, kind, _)| *kind) as _,
            column(&owners, |(_, _, identity)| *identity) as _,
            recent_seconds,
            PUSHED_FOR_SECONDS,
            clock_offset(&self.database.clock),
            late.as_ref().map_or(0, |late| late.since),
            late.as_ref().map_or(0, |late| late.most),
        );
        let scope = TenantScope::of(owners.iter().map(|(tenant, ..)| *tenant));
        let found = self.database.background.fetch_all(scope, query).await?;
        let recipients = found.into_iter().map(|row| {
            let key = key_of(row.tenant_id, &row.kind, &row.identity)?;
            let unseen_since = row.since;
            Ok(WaitingRecipient { key, unseen_since })
        });
        recipients.collect()
    }

    /// When a message of this approver was created; `None` if it has no such message.
    pub async fn message_created(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        message: Uuid,
    ) -> Result<Option<OffsetDateTime>> {
        let query = sqlx::query!(
            "select created_at from inbox_items where tenant_id = $1 and approver_id = $2 and message_id = $3",
            tenant.as_str(),
            approver.as_str(),
            message,
        )
        .map(|row| row.created_at);
        self.database.pool.fetch_optional(tenant, query).await
    }
}
