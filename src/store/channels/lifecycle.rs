//! Registers and removes channels: one by one, in batches, or all those of a node at once. The
//! statement that removes all those of a node waits for locks: it locks channels first, then
//! enforcers, each sorted by key.

use uuid::Uuid;

use crate::protocol::id::TenantId;
use crate::protocol::wake_key::WakeKey;
use crate::store::ChannelStore;
use crate::store::channels::close_statement::{CloseChannels, CloseRow};
use crate::store::channels::open_statement::{OpenChannels, OpenRow};
use crate::store::channels::terms::{LEASE_SECONDS, key_of, owner};
use crate::store::database::batch_statement::BatchStatement;
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::tenant_scope::TenantScope;
use crate::store::error::Result;

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

    /// How the rows of this node's channels differ from its live ones. Rows younger than ten
    /// seconds are not stale: their channel may have opened since `live` was read.
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

    /// Removes nodes whose lease ended long ago, and their channels, and those of nodes that are
    /// not registered; returns whose channels they were.
    pub async fn reap_expired_nodes(&self) -> Result<Vec<WakeKey>> {
        self.remove_nodes(None).await
    }

    async fn remove_nodes(&self, node: Option<Uuid>) -> Result<Vec<WakeKey>> {
        // The channels of a node that leaves end now. Those of an expired node ended with its
        // lease, which is what presence has been showing since.
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
