//! Registers and removes channels: one by one, in batches, or all those of a node at once. The statement that removes an
//! enforcer's channel also records its end for presence; it waits for no lock. The statement that removes all those of a node does: it locks
//! channels first, then enforcers, each sorted by key.

use std::time::Duration;

use sqlx::PgConnection;
use uuid::Uuid;

use crate::clock::Clock;
use crate::protocol::id::TenantId;
use crate::protocol::presence::Transport;
use crate::protocol::wake_key::WakeKey;
use crate::store::ChannelStore;
use crate::store::channels::channel::{LEASE_SECONDS, key_of, owner};
use crate::store::database::batch_statement::{BatchResult, BatchStatement};
use crate::store::database::busy::RowLock;
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::rows::column;
use crate::store::database::tenant_scope::TenantScope;
use crate::store::error::Result;

#[derive(Debug)]
pub struct OpenRow {
    pub key: WakeKey,
    pub channel: Uuid,
    pub transport: Transport,
    /// How long ago it was opened.
    pub age: Duration,
    /// Whether its peer responds.
    pub active: bool,
}

pub struct OpenChannels {
    pub instance: Uuid,
}

impl BatchStatement for OpenChannels {
    const NAME: &'static str = "open_channel";
    type Row = OpenRow;
    type Fact = ();

    fn tenant_scope(rows: &[OpenRow]) -> TenantScope<'_> {
        TenantScope::of(rows.iter().map(|row| row.key.tenant()))
    }

    async fn run(&self, connection: &mut PgConnection, rows: &[Self::Row]) -> BatchResult<Self> {
        let owners: Vec<_> = rows.iter().filter_map(|row| owner(&row.key)).collect();
        // A retried batch finds its own rows.
        sqlx::query!(
            r#"
            insert into channels (tenant_id, kind, identity, channel_id, node_id, transport, opened_at, active)
            select i.tenant_id, i.kind, i.identity, i.channel_id, $1, i.transport,
                   clock_timestamp() - make_interval(secs => i.age), i.active
              from unnest($2::text[], $3::text[], $4::text[], $5::uuid[], $6::text[], $7::float8[], $8::boolean[])
                   as i (tenant_id, kind, identity, channel_id, transport, age, active)
             order by i.tenant_id collate "C", i.kind collate "C", i.identity collate "C", i.channel_id
            on conflict on constraint channels_pkey do nothing
            "#,
            self.instance,
            column(&owners, |(tenant, _, _)| *tenant) as _,
            column(&owners, |(_, kind, _)| *kind) as _,
            column(&owners, |(_, _, identity)| *identity) as _,
            &column(rows, |row| row.channel),
            column(rows, |row| row.transport) as _,
            &column(rows, |row| row.age.as_secs_f64()),
            &column(rows, |row| row.active),
        )
        .execute(connection)
        .await?;
        Ok(vec![(); rows.len()])
    }
}

#[derive(Debug)]
pub struct CloseRow {
    pub key: WakeKey,
    pub channel: Uuid,
}

/// How the rows of a node's channels differ from its live ones.
#[derive(Debug, Default)]
pub struct DifferingChannels {
    /// Live channels without a row.
    pub missing: Vec<Uuid>,
    /// Rows without a channel.
    pub stale: Vec<CloseRow>,
}

/// Rows of one statement that is not batched.
const ROWS_PER_STATEMENT: usize = 1_000;

pub struct CloseChannels {
    pub clock: Clock,
}

impl BatchStatement for CloseChannels {
    const NAME: &'static str = "close_channel";
    type Row = CloseRow;
    type Fact = RowLock<()>;

    fn tenant_scope(rows: &[CloseRow]) -> TenantScope<'_> {
        TenantScope::of(rows.iter().map(|row| row.key.tenant()))
    }

    fn is_busy(fact: &Self::Fact) -> bool {
        fact.is_busy()
    }

    async fn run(&self, connection: &mut PgConnection, rows: &[Self::Row]) -> BatchResult<Self> {
        let owners: Vec<_> = rows.iter().filter_map(|row| owner(&row.key)).collect();
        let left = sqlx::query!(
            r#"
            with input as materialized (
                select i.tenant_id, i.kind, i.identity, i.channel_id, i.n
                  from unnest($1::text[], $2::text[], $3::text[], $4::uuid[])
                       with ordinality as i (tenant_id, kind, identity, channel_id, n)
            ),
            noted_before as materialized (
                select i.n
                  from enforcers e
                  join input i on i.kind = 'enforcer' and i.tenant_id = e.tenant_id and i.identity = e.enforcer_id
                   for no key update of e skip locked
            ),
            to_delete as materialized (
                select c.tenant_id, c.kind, c.identity, c.channel_id, i.n
                  from channels c
                  join input i on c.tenant_id = i.tenant_id and c.kind = i.kind and c.identity = i.identity
                              and c.channel_id = i.channel_id
                 where c.kind <> 'enforcer'
                    or exists (select from noted_before b where b.n = i.n)
                    or (select true from enforcers e
                         where e.tenant_id = c.tenant_id and e.enforcer_id = c.identity limit 1) is null
                   for update of c skip locked
            ),
            closed as (
                delete from channels c using to_delete d
                 where c.tenant_id = d.tenant_id and c.kind = d.kind and c.identity = d.identity
                   and c.channel_id = d.channel_id
                returning c.tenant_id, c.kind, c.identity, c.transport, c.opened_at
            ),
            noted as (
                insert into enforcers (tenant_id, enforcer_id, transport, closed_at, seen_at)
                select c.tenant_id, c.identity, (array_agg(c.transport order by c.opened_at desc))[1],
                       max(clock_timestamp() + $5::interval), max(clock_timestamp() + $5::interval)
                  from closed c
                 where c.kind = 'enforcer'
                 group by c.tenant_id, c.identity
                 order by c.tenant_id, c.identity
                on conflict on constraint enforcers_pkey do update
                   set closed_at = greatest(enforcers.closed_at, excluded.closed_at),
                       seen_at = greatest(enforcers.seen_at, excluded.seen_at),
                       transport = case when enforcers.called_at > excluded.closed_at then enforcers.transport
                                        else excluded.transport end
            )
            select i.n as "n!",
                   (select true from channels c
                     where c.tenant_id = i.tenant_id and c.kind = i.kind and c.identity = i.identity
                       and c.channel_id = i.channel_id limit 1) is not null
                   and not exists (select from to_delete d where d.n = i.n) as "left!"
              from input i
             order by i.n
            "#,
            column(&owners, |(tenant, _, _)| *tenant) as _,
            column(&owners, |(_, kind, _)| *kind) as _,
            column(&owners, |(_, _, identity)| *identity) as _,
            &column(rows, |row| row.channel),
            clock_offset(&self.clock),
        )
        .fetch_all(connection)
        .await?;
        let facts = left.into_iter().map(|row| RowLock::unless(row.left, ()));
        Ok(facts.collect())
    }
}

impl ChannelStore {
    pub async fn open_channel(&self, row: OpenRow) -> Result<()> {
        if owner(&row.key).is_none() {
            return Ok(());
        }
        self.openings.run(row).await
    }

    pub async fn close_channel(&self, key: &WakeKey, channel: Uuid) -> Result<()> {
        if owner(key).is_none() {
            return Ok(());
        }
        let key = key.clone();
        self.closings.run(CloseRow { key, channel }).await?.locked()
    }

    /// How the rows of this node's channels differ from its live ones. Rows younger than ten seconds are not stale: their
    /// channel may have opened since `live` was read.
    pub async fn compare_channels(&self, live: &[Uuid]) -> Result<DifferingChannels> {
        let query = sqlx::query!(
            r#"
            select l.channel_id as "missing?", c.tenant_id as "tenant_id?: TenantId", c.kind as "kind?",
                   c.identity as "identity?", c.channel_id as "stale?"
              from unnest($1::uuid[]) as l (channel_id)
              -- A full join is hashed or merged, never a loop in a loop, however many rows the planner expects.
              full join (select c.tenant_id, c.kind, c.identity, c.channel_id, c.opened_at
                           from channels c
                          where c.node_id = $2) c
                on c.channel_id = l.channel_id
             where c.channel_id is null
                or (l.channel_id is null and c.opened_at < clock_timestamp() - interval '10 seconds')
            "#,
            live,
            self.database.instance,
        );
        // All: a node holds channels of every tenant.
        let scope = TenantScope::All;
        let mut differing = DifferingChannels::default();
        for row in self.database.background.fetch_all(scope, query).await? {
            differing.missing.extend(row.missing);
            if let (Some(tenant), Some(kind), Some(identity), Some(channel)) =
                (row.tenant_id, row.kind, row.identity, row.stale)
            {
                let key = key_of(tenant, &kind, &identity)?;
                differing.stale.push(CloseRow { key, channel });
            }
        }
        Ok(differing)
    }

    /// Registers channels again whose row is gone.
    pub async fn register_channels(&self, rows: &[OpenRow]) -> Result<()> {
        let statement = OpenChannels {
            instance: self.database.instance,
        };
        for rows in rows.chunks(ROWS_PER_STATEMENT) {
            self.run_in_background(&statement, rows).await?;
        }
        Ok(())
    }

    /// Removes channels; returns whose they were.
    pub async fn remove_channels(&self, rows: Vec<CloseRow>) -> Result<Vec<WakeKey>> {
        let clock = self.database.clock.clone();
        let statement = CloseChannels { clock };
        for rows in rows.chunks(ROWS_PER_STATEMENT) {
            self.run_in_background(&statement, rows).await?;
        }
        Ok(rows.into_iter().map(|row| row.key).collect())
    }

    /// Runs a statement that is otherwise batched.
    async fn run_in_background<S: BatchStatement>(
        &self,
        statement: &S,
        rows: &[S::Row],
    ) -> Result<()> {
        let scope = S::tenant_scope(rows);
        let pool = &self.database.background;
        let mut lease = pool.lease(scope).await?;
        let ran = pool.within(statement.run(lease.connection()?, rows)).await;
        lease.settle(ran)?;
        Ok(())
    }

    /// Removes this node and its channels; returns whose channels they were.
    pub async fn leave(&self) -> Result<Vec<WakeKey>> {
        self.remove_nodes(Some(self.database.instance)).await
    }

    /// Removes nodes whose lease ended long ago, and their channels, and those of nodes that are not registered; returns
    /// whose channels they were.
    pub async fn reap_expired_nodes(&self) -> Result<Vec<WakeKey>> {
        self.remove_nodes(None).await
    }

    async fn remove_nodes(&self, node: Option<Uuid>) -> Result<Vec<WakeKey>> {
        // The channels of a node that leaves end now. Those of an expired node ended with its lease, which is what
        // presence has been showing since.
        let query = sqlx::query!(
            r#"
            with recursive gone as (
                delete from nodes
                 where case when $1::uuid is null
                            then heartbeat_at <= clock_timestamp() - make_interval(secs => $2::float8 * 2)
                                 -- The clock has stepped back. A node that lives registers itself again.
                                 or heartbeat_at > clock_timestamp() + make_interval(secs => $2::float8)
                            else node_id = $1 end
                returning node_id, heartbeat_at
            ),
            -- The nodes that have channels, one probe of the index for each.
            holding as (
                (select c.node_id from channels c where $1::uuid is null order by c.node_id limit 1)
                union all
                select (select c.node_id from channels c where c.node_id > h.node_id order by c.node_id limit 1)
                  from holding h
                 where h.node_id is not null
            ),
            ended as (
                select node_id, heartbeat_at from gone
                union all
                -- Of a node that is not registered nothing is known.
                select h.node_id, null
                  from holding h
                 where h.node_id is not null and not exists (select from nodes n where n.node_id = h.node_id)
            ),
            to_delete as materialized (
                select c.tenant_id, c.kind, c.identity, c.channel_id, e.heartbeat_at
                  from channels c
                  join ended e on e.node_id = c.node_id
                 order by c.tenant_id, c.kind, c.identity, c.channel_id
                   for update of c
            ),
            closed as (
                delete from channels c using to_delete d
                 where c.tenant_id = d.tenant_id and c.kind = d.kind and c.identity = d.identity
                   and c.channel_id = d.channel_id
                returning c.tenant_id, c.kind, c.identity, c.transport, c.opened_at, d.heartbeat_at
            ),
            noted as (
                insert into enforcers (tenant_id, enforcer_id, transport, closed_at, seen_at)
                select e.tenant_id, e.identity, (array_agg(e.transport order by e.opened_at desc))[1],
                       max(e.closed_at) + $3::interval, max(e.seen_at) + $3::interval
                  from (select c.tenant_id, c.identity, c.transport, c.opened_at,
                               case when $1::uuid is null
                                    then least(greatest(c.opened_at, c.heartbeat_at + make_interval(secs => $2::float8)),
                                               clock_timestamp())
                                    else clock_timestamp() end as closed_at,
                               case when $1::uuid is null
                                    then least(greatest(c.opened_at, c.heartbeat_at), clock_timestamp())
                                    else clock_timestamp() end as seen_at
                          from closed c
                         where c.kind = 'enforcer') e
                 group by e.tenant_id, e.identity
                 order by e.tenant_id, e.identity
                on conflict on constraint enforcers_pkey do update
                   set closed_at = greatest(enforcers.closed_at, excluded.closed_at),
                       seen_at = greatest(enforcers.seen_at, excluded.seen_at),
                       transport = case when greatest(enforcers.called_at, enforcers.closed_at) > excluded.closed_at
                                        then enforcers.transport else excluded.transport end
            )
            select distinct tenant_id as "tenant_id!: TenantId", kind as "kind!", identity as "identity!" from closed
            "#,
            node,
            LEASE_SECONDS,
            clock_offset(&self.database.clock),
        );
        // All: a node holds channels of every tenant.
        let scope = TenantScope::All;
        let found = self.database.background.fetch_all(scope, query).await?;
        let found = found.into_iter();
        let keys = found.map(|row| key_of(row.tenant_id, &row.kind, &row.identity));
        Ok(keys.collect::<Result<_, _>>()?)
    }
}
