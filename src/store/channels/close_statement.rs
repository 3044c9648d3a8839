//! Removes channels, many in one statement. It also records the end of an enforcer's channel for
//! presence, and waits for no lock.

use sqlx::PgConnection;
use uuid::Uuid;

use crate::clock::Clock;
use crate::protocol::wake_key::WakeKey;
use crate::store::channels::terms::owner;
use crate::store::database::batch_statement::{BatchResult, BatchStatement};
use crate::store::database::busy::RowLock;
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::rows::column;
use crate::store::database::tenant_scope::TenantScope;

#[derive(Debug)]
pub struct CloseRow {
    pub key: WakeKey,
    pub channel: Uuid,
}

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
