//! The statements of the node that builds the log.
//!
//! An event carries a time that its transaction has read. So once no transaction of a node is older than
//! some time, every event before that time can be seen, however long a commit waited for a standby. Nodes
//! see the transactions of their own role only, so that all nodes must connect as the same role.

use time::OffsetDateTime;

use super::LogStore;
use super::read::StoredTile;
use crate::protocol::id::{RequestId, TenantId};
use crate::store::database::clock_offset::clock_offset;
use crate::store::database::rows::column;
use crate::store::database::tenant_scope::TenantScope;
use crate::store::error::Result;

const SWEEP: &str = "log";

/// How far the log has got, and how far it can go now.
#[derive(Debug)]
pub struct LogProgress {
    /// `None` before the first pass.
    pub reached: Option<OffsetDateTime>,
    /// Every event before this time can be seen.
    pub horizon: OffsetDateTime,
}

/// A decision or an outcome that is not in the log yet.
#[derive(Debug)]
pub struct UnloggedEvent {
    pub tenant: TenantId,
    pub request_id: RequestId,
    pub kind: String,
    pub at: OffsetDateTime,
    pub text: String,
}

/// A tree after entries were added.
#[derive(Debug)]
pub struct NewTree {
    pub epoch: i32,
    /// The size that it must have had before.
    pub old_size: i64,
    pub size: i64,
    pub root: Vec<u8>,
    pub note: String,
    pub tiles: Vec<StoredTile>,
    /// Those of the new entries that belong to exchanges.
    pub leaves: Vec<NewLeaf>,
}

#[derive(Debug)]
pub struct NewLeaf {
    pub request_id: RequestId,
    pub kind: String,
    /// The place of the entry.
    pub leaf: i64,
}

impl LogStore {
    pub async fn progress(&self) -> Result<LogProgress> {
        let query = sqlx::query_as!(
            LogProgress,
            r#"
            select (select l.reached from sweep_leases l where l.sweep = $1) as reached,
                   least(clock_timestamp(),
                         (select min(a.xact_start) from pg_stat_activity a
                           where a.datname = current_database() and a.usename = current_user
                             and a.pid <> pg_backend_pid())) + $2::interval as "horizon!"
            "#,
            SWEEP,
            clock_offset(&self.database.clock),
        );
        // All: the log of every tenant is built.
        let scope = TenantScope::All;
        self.database.background.fetch_one(scope, query).await
    }

    /// Notes how far the log has got, if this node still builds it.
    pub async fn reach(&self, reached: OffsetDateTime) -> Result<()> {
        let query = sqlx::query!(
            "update sweep_leases set reached = $1 where sweep = $2 and node_id = $3",
            reached,
            SWEEP,
            self.database.instance,
        );
        // All: the sweeps belong to no tenant.
        let scope = TenantScope::All;
        self.database.background.execute(scope, query).await?;
        Ok(())
    }

    /// The oldest events from `from` to before `until` that are not in the log, at most `limit`, but for
    /// those of some tenants.
    pub async fn unlogged(
        &self,
        from: OffsetDateTime,
        until: OffsetDateTime,
        except: &[TenantId],
        limit: i64,
    ) -> Result<Vec<UnloggedEvent>> {
        // The limits keep the planner from hashing whole tables.
        let query = sqlx::query_as!(
            UnloggedEvent,
            r#"
            with recent as materialized (
                select v.tenant_id, v.request_id, v.at,
                       case v.to_state when 'decided' then 'decision' else 'outcome' end as kind
                  from exchange_events v
                 where v.at >= $1 and v.at < $2 and v.to_state in ('decided', 'delivered')
                   and v.tenant_id <> all($3::text[])
            ),
            unlogged as materialized (
                select r.tenant_id, r.request_id, r.at, r.kind
                  from recent r
                 where (select true from log_leaves l
                         where l.tenant_id = r.tenant_id and l.request_id = r.request_id and l.kind = r.kind
                         limit 1) is null
                   and (select true from exchange_payloads y
                         where y.tenant_id = r.tenant_id and y.request_id = r.request_id and y.part = r.kind
                         limit 1) is not null
                 order by r.at
                 limit $4
            )
            select u.tenant_id as "tenant!: TenantId", u.request_id as "request_id!: RequestId", u.kind as "kind!",
                   u.at as "at!",
                   (select case u.kind when 'decision' then y.body::text else y.body #>> '{}' end
                      from exchange_payloads y
                     where y.tenant_id = u.tenant_id and y.request_id = u.request_id and y.part = u.kind
                     limit 1) as "text!"
              from unlogged u
             order by u.at
            "#,
            from,
            until,
            column(except, |tenant| tenant) as _,
            limit,
        );
        // All: the log of every tenant is built.
        let scope = TenantScope::All;
        self.database.background.fetch_all(scope, query).await
    }

    /// Adds entries to a tree. False if it has another size by now, because another node has added some:
    /// then nothing is written.
    pub async fn append(&self, tenant: &TenantId, tree: &NewTree) -> Result<bool> {
        let query = sqlx::query!(
            r#"
            with input as materialized (
                select $1::text as tenant_id, $2::integer as epoch, $3::bigint as old_size, $4::bigint as size,
                       $5::bytea as root, $6::text as note, clock_timestamp() + $7::interval as built_at
            ),
            written_head as (
                insert into log_heads as h (tenant_id, epoch, size, root, note, built_at)
                select i.tenant_id, i.epoch, i.size, i.root, i.note, i.built_at
                  from input i
                on conflict on constraint log_heads_pkey do update
                   set size = excluded.size, root = excluded.root, note = excluded.note, built_at = excluded.built_at
                 where h.size = (select i.old_size from input i)
                returning h.tenant_id, h.epoch
            ),
            written_tiles as (
                insert into log_tiles (tenant_id, epoch, level, tile_index, hashes)
                select h.tenant_id, h.epoch, t.level, t.tile_index, t.hashes
                  from written_head h
                 cross join unnest($8::integer[], $9::bigint[], $10::bytea[]) as t (level, tile_index, hashes)
                on conflict on constraint log_tiles_pkey do update set hashes = excluded.hashes
            ),
            written_leaves as (
                insert into log_leaves (tenant_id, request_id, kind, epoch, leaf)
                select h.tenant_id, l.request_id, l.kind, h.epoch, l.leaf
                  from written_head h
                 cross join unnest($11::text[], $12::text[], $13::bigint[]) as l (request_id, kind, leaf)
            )
            select exists (select from written_head) as "written!"
            "#,
            tenant.as_str(),
            tree.epoch,
            tree.old_size,
            tree.size,
            tree.root,
            tree.note,
            clock_offset(&self.database.clock),
            &column(&tree.tiles, |tile| tile.level),
            &column(&tree.tiles, |tile| tile.index),
            column(&tree.tiles, |tile| tile.hashes.as_slice()) as _,
            column(&tree.leaves, |leaf| &leaf.request_id) as _,
            column(&tree.leaves, |leaf| &leaf.kind) as _,
            &column(&tree.leaves, |leaf| leaf.leaf),
        )
        .map(|row| row.written);
        self.database.background.fetch_one(tenant, query).await
    }

    /// Has the log read the events again from when entries of this tenant were last added: a log that
    /// was damaged has missed some.
    pub async fn go_back(&self, tenant: &TenantId) -> Result<()> {
        let query = sqlx::query!(
            r#"
            update sweep_leases s
               set reached = least(s.reached, (select max(h.built_at) from log_heads h where h.tenant_id = $1))
             where s.sweep = $2
            "#,
            tenant.as_str(),
            SWEEP,
        );
        self.database.background.execute(tenant, query).await?;
        Ok(())
    }
}
