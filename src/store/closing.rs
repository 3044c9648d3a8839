//! How channels begin and end: one by one, in shared statements, so that a storm of either costs few; or all at once with
//! their node. The end of an enforcer's channel is noted for presence in the statement that takes it off the books: channels
//! are locked first, then enforcers, each sorted by key.

use sqlx::PgConnection;
use uuid::Uuid;

use super::batch::BatchStatement;
use super::channel::{LEASE_SECONDS, Transport, key_of, owner};
use super::error::StoreError;
use super::tenant_scope::TenantScope;
use super::{Store, rows};
use crate::clock::Clock;
use crate::wake::Key;

#[derive(Debug)]
pub struct OpenRow {
    pub key: Key,
    pub channel: Uuid,
    pub transport: Transport,
}

/// The statement that puts channels on the books.
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

    fn conflict_keys(_: &OpenRow) -> Vec<String> {
        Vec::new()
    }

    fn bytes(_: &OpenRow) -> usize {
        256
    }

    async fn run(
        &self,
        connection: &mut PgConnection,
        rows: &[OpenRow],
    ) -> Result<Vec<()>, sqlx::Error> {
        let owners: Vec<_> = rows.iter().filter_map(|row| owner(&row.key)).collect();
        // A batch that is tried again finds its own rows.
        sqlx::query!(
            r#"
            insert into channels (tenant_id, kind, identity, channel_id, node_id, transport, opened_at)
            select i.tenant_id, i.kind, i.identity, i.channel_id, $6, i.transport, clock_timestamp()
              from unnest($1::text[], $2::text[], $3::text[], $4::uuid[], $5::text[])
                   as i (tenant_id, kind, identity, channel_id, transport)
            on conflict on constraint channels_pkey do nothing
            "#,
            &rows::texts(&owners, |(tenant, _, _)| tenant.as_str()) as _,
            &rows::texts(&owners, |(_, kind, _)| *kind) as _,
            &rows::texts(&owners, |(_, _, identity)| *identity) as _,
            &rows.iter().map(|row| row.channel).collect::<Vec<Uuid>>(),
            &rows::texts(rows, |row| row.transport.as_str()) as _,
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

/// The statement that takes channels off the books.
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

    fn conflict_keys(_: &CloseRow) -> Vec<String> {
        Vec::new()
    }

    fn bytes(_: &CloseRow) -> usize {
        256
    }

    async fn run(
        &self,
        connection: &mut PgConnection,
        rows: &[CloseRow],
    ) -> Result<Vec<()>, sqlx::Error> {
        let owners: Vec<_> = rows.iter().filter_map(|row| owner(&row.key)).collect();
        sqlx::query!(
            r#"
            with doomed as materialized (
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
                delete from channels c using doomed d
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
            &rows::texts(&owners, |(tenant, _, _)| tenant.as_str()) as _,
            &rows::texts(&owners, |(_, kind, _)| *kind) as _,
            &rows::texts(&owners, |(_, _, identity)| *identity) as _,
            &rows.iter().map(|row| row.channel).collect::<Vec<Uuid>>(),
            self.clock.offset(),
        )
        .execute(connection)
        .await?;
        Ok(vec![(); rows.len()])
    }
}

impl Store {
    pub async fn open_channel(
        &self,
        key: &Key,
        channel: Uuid,
        transport: Transport,
    ) -> Result<(), StoreError> {
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

    pub async fn close_channel(&self, key: &Key, channel: Uuid) -> Result<(), StoreError> {
        if owner(key).is_none() {
            return Ok(());
        }
        let key = key.clone();
        self.closings.run(CloseRow { key, channel }).await
    }

    /// Takes channels off the books that are this node's by name but no longer in fact: their closing was lost. Tells whose
    /// they were. (A channel is registered here before its row is written, and the live ones are read before this runs,
    /// so very young rows are left for the next time.)
    pub async fn forget_ghosts(&self, live: &[Uuid]) -> Result<Vec<Key>, StoreError> {
        // All: a node holds channels of every tenant.
        let mut lease = self.background.lease(TenantScope::All).await?;
        let found = sqlx::query!(
            r#"
            select tenant_id, kind, identity, channel_id
              from channels
             where node_id = $1 and not channel_id = any($2)
               and opened_at < clock_timestamp() - interval '10 seconds'
            "#,
            self.instance,
            live,
        )
        .fetch_all(lease.connection()?)
        .await;
        let ghosts: Vec<_> = lease
            .settle(found)?
            .into_iter()
            .map(|row| {
                Ok(CloseRow {
                    key: key_of(&row.tenant_id, &row.kind, &row.identity)?,
                    channel: row.channel_id,
                })
            })
            .collect::<Result<_, sqlx::Error>>()?;
        if !ghosts.is_empty() {
            let close = CloseChannels {
                clock: self.clock.clone(),
            };
            let mut lease = self
                .background
                .lease(CloseChannels::tenant_scope(&ghosts))
                .await?;
            let closed = close.run(lease.connection()?, &ghosts).await;
            lease.settle(closed)?;
        }
        Ok(ghosts.into_iter().map(|row| row.key).collect())
    }

    /// Takes this node and its channels off the books; tells whose channels they were.
    pub async fn leave(&self) -> Result<Vec<Key>, StoreError> {
        self.remove_nodes(Some(self.instance)).await
    }

    /// Takes dead nodes and their channels off the books; tells whose channels they were.
    pub async fn reap_expired_nodes(&self) -> Result<Vec<Key>, StoreError> {
        self.remove_nodes(None).await
    }

    async fn remove_nodes(&self, node: Option<Uuid>) -> Result<Vec<Key>, StoreError> {
        // All: a node holds channels of every tenant.
        let mut lease = self.background.lease(TenantScope::All).await?;
        // The channels of a node that leaves end now; those of a dead one ended when its lease did, as readers have
        // been told since.
        let found = sqlx::query!(
            r#"
            with gone as (
                delete from nodes
                 where case when $1::uuid is null
                            then heartbeat_at <= clock_timestamp() - make_interval(secs => $2::float8 * 2)
                            else node_id = $1 end
                returning node_id, heartbeat_at
            ),
            doomed as materialized (
                select c.tenant_id, c.kind, c.identity, c.channel_id, g.heartbeat_at
                  from channels c
                  join gone g on g.node_id = c.node_id
                 order by c.tenant_id, c.kind, c.identity, c.channel_id
                   for update of c
            ),
            closed as (
                delete from channels c using doomed d
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
            select distinct tenant_id as "tenant_id!", kind as "kind!", identity as "identity!" from closed
            "#,
            node,
            LEASE_SECONDS,
            self.clock.offset(),
        )
        .fetch_all(lease.connection()?)
        .await;
        lease
            .settle(found)?
            .iter()
            .map(|row| key_of(&row.tenant_id, &row.kind, &row.identity))
            .collect::<Result<_, _>>()
            .map_err(Into::into)
    }
}
