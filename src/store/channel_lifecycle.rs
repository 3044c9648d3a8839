//! Registers and removes channels: one by one, in batches, or all those of a node at once. The statement that removes an
//! enforcer's channel also records its end for presence. Channels are locked first, then enforcers, each sorted by key.

use sqlx::PgConnection;
use uuid::Uuid;

use super::ChannelStore;
use super::batch::{BatchResult, BatchStatement};
use super::channel::{LEASE_SECONDS, key_of, owner};
use super::error::Result;
use super::rows::column;
use super::tenant_scope::TenantScope;
use crate::clock::Clock;
use crate::protocol::id::TenantId;
use crate::protocol::presence::Transport;
use crate::protocol::wake_key::Key;

#[derive(Debug)]
pub struct OpenRow {
    pub key: Key,
    pub channel: Uuid,
    pub transport: Transport,
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
            insert into channels (tenant_id, kind, identity, channel_id, node_id, transport, opened_at)
            select i.tenant_id, i.kind, i.identity, i.channel_id, $6, i.transport, clock_timestamp()
              from unnest($1::text[], $2::text[], $3::text[], $4::uuid[], $5::text[])
                   as i (tenant_id, kind, identity, channel_id, transport)
            on conflict on constraint channels_pkey do nothing
            "#,
            column(&owners, |(tenant, _, _)| *tenant) as _,
            column(&owners, |(_, kind, _)| *kind) as _,
            column(&owners, |(_, _, identity)| *identity) as _,
            &column(rows, |row| row.channel),
            column(rows, |row| row.transport) as _,
            self.instance,
        )
        .execute(connection)
        .await?;
        Ok(vec![(); rows.len()])
    }
}

#[derive(Debug)]
pub struct CloseRow {
    pub key: Key,
    pub channel: Uuid,
}

pub struct CloseChannels {
    pub clock: Clock,
}

impl BatchStatement for CloseChannels {
    const NAME: &'static str = "close_channel";
    type Row = CloseRow;
    type Fact = ();

    fn tenant_scope(rows: &[CloseRow]) -> TenantScope<'_> {
        TenantScope::of(rows.iter().map(|row| row.key.tenant()))
    }

    async fn run(&self, connection: &mut PgConnection, rows: &[Self::Row]) -> BatchResult<Self> {
        let owners: Vec<_> = rows.iter().filter_map(|row| owner(&row.key)).collect();
        sqlx::query!(
            r#"
            with to_delete as materialized (
                select c.tenant_id, c.kind, c.identity, c.channel_id
                  from channels c
                  join unnest($1::text[], $2::text[], $3::text[], $4::uuid[])
                       as i (tenant_id, kind, identity, channel_id)
                    on c.tenant_id = i.tenant_id and c.kind = i.kind and c.identity = i.identity
                   and c.channel_id = i.channel_id
                 order by c.tenant_id, c.kind, c.identity, c.channel_id
                   for update of c
            ),
            closed as (
                delete from channels c using to_delete d
                 where c.tenant_id = d.tenant_id and c.kind = d.kind and c.identity = d.identity
                   and c.channel_id = d.channel_id
                returning c.tenant_id, c.kind, c.identity, c.transport, c.opened_at
            )
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
            "#,
            column(&owners, |(tenant, _, _)| *tenant) as _,
            column(&owners, |(_, kind, _)| *kind) as _,
            column(&owners, |(_, _, identity)| *identity) as _,
            &column(rows, |row| row.channel),
            self.clock.offset(),
        )
        .execute(connection)
        .await?;
        Ok(vec![(); rows.len()])
    }
}

impl ChannelStore {
    pub async fn open_channel(&self, key: &Key, channel: Uuid, transport: Transport) -> Result<()> {
        if owner(key).is_none() {
            return Ok(());
        }
        let key = key.clone();
        self.openings
            .run(OpenRow {
                key,
                channel,
                transport,
            })
            .await
    }

    pub async fn close_channel(&self, key: &Key, channel: Uuid) -> Result<()> {
        if owner(key).is_none() {
            return Ok(());
        }
        let key = key.clone();
        self.closings.run(CloseRow { key, channel }).await
    }

    /// Removes rows of this node whose channel is not in `live`, because their removal was lost; returns whose they were.
    /// Rows younger than ten seconds are left for the next call: a channel may have opened since `live` was read.
    pub async fn remove_stale_channels(&self, live: &[Uuid]) -> Result<Vec<Key>> {
        let query = sqlx::query!(
            r#"
            select tenant_id as "tenant_id: TenantId", kind, identity, channel_id
              from channels
             where node_id = $1 and not channel_id = any($2)
               and opened_at < clock_timestamp() - interval '10 seconds'
            "#,
            self.database.instance,
            live,
        );
        let mut stale = Vec::new();
        // All: a node holds channels of every tenant.
        let scope = TenantScope::All;
        for row in self.database.background.fetch_all(scope, query).await? {
            stale.push(CloseRow {
                key: key_of(row.tenant_id, &row.kind, &row.identity)?,
                channel: row.channel_id,
            });
        }
        if !stale.is_empty() {
            let clock = self.database.clock.clone();
            let scope = CloseChannels::tenant_scope(&stale);
            let pool = &self.database.background;
            let mut lease = pool.lease(scope).await?;
            let statement = CloseChannels { clock };
            let closed = pool.within(statement.run(lease.connection()?, &stale));
            let closed = closed.await;
            lease.settle(closed)?;
        }
        Ok(stale.into_iter().map(|row| row.key).collect())
    }

    /// Removes this node and its channels; returns whose channels they were.
    pub async fn leave(&self) -> Result<Vec<Key>> {
        self.remove_nodes(Some(self.database.instance)).await
    }

    /// Removes nodes whose lease ended long ago, and their channels; returns whose channels they were.
    pub async fn reap_expired_nodes(&self) -> Result<Vec<Key>> {
        self.remove_nodes(None).await
    }

    async fn remove_nodes(&self, node: Option<Uuid>) -> Result<Vec<Key>> {
        // The channels of a node that leaves end now. Those of an expired node ended with its lease, which is what
        // presence has been showing since.
        let query = sqlx::query!(
            r#"
            with gone as (
                delete from nodes
                 where case when $1::uuid is null
                            then heartbeat_at <= clock_timestamp() - make_interval(secs => $2::float8 * 2)
                            else node_id = $1 end
                returning node_id, heartbeat_at
            ),
            to_delete as materialized (
                select c.tenant_id, c.kind, c.identity, c.channel_id, g.heartbeat_at
                  from channels c
                  join gone g on g.node_id = c.node_id
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
                                    then greatest(c.opened_at, c.heartbeat_at + make_interval(secs => $2::float8))
                                    else clock_timestamp() end as closed_at,
                               case when $1::uuid is null
                                    then greatest(c.opened_at, c.heartbeat_at)
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
            self.database.clock.offset(),
        );
        // All: a node holds channels of every tenant.
        let scope = TenantScope::All;
        let found = self.database.background.fetch_all(scope, query).await?;
        let found = found.into_iter();
        let keys = found.map(|row| key_of(row.tenant_id, &row.kind, &row.identity));
        Ok(keys.collect::<Result<_, _>>()?)
    }
}
