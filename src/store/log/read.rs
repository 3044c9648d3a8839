//! Reads heads, tiles, and the entries of an exchange.

use super::LogStore;
use crate::protocol::id::{RequestId, TenantId};
use crate::store::database::rows::column;
use crate::store::error::Result;

/// The newest checkpoint of an epoch.
#[derive(Debug, Clone)]
pub struct StoredHead {
    pub epoch: i32,
    pub size: i64,
    pub root: Vec<u8>,
    /// The signed note.
    pub note: String,
}

/// The hashes of a tile, one after another.
#[derive(Debug, Clone)]
pub struct StoredTile {
    pub level: i32,
    pub index: i64,
    pub hashes: Vec<u8>,
}

/// An entry of an exchange.
#[derive(Debug)]
pub struct LoggedEntry {
    pub kind: String,
    pub epoch: i32,
    pub leaf: i64,
    /// The decision or the outcome as it is stored now. `None` if it, its exchange or its event is gone.
    pub text: Option<String>,
}

impl LogStore {
    /// The head of this epoch, or of the newest one.
    pub async fn head(&self, tenant: &TenantId, epoch: Option<i32>) -> Result<Option<StoredHead>> {
        let query = sqlx::query_as!(
            StoredHead,
            r#"
            select h.epoch, h.size, h.root, h.note
              from log_heads h
             where h.tenant_id = $1 and h.epoch <= $2
             order by h.epoch desc
             limit 1
            "#,
            tenant.as_str(),
            epoch.unwrap_or(i32::MAX),
        );
        let found = self.database.pool.fetch_optional(tenant, query).await?;
        Ok(found.filter(|head| epoch.is_none_or(|epoch| epoch == head.epoch)))
    }

    /// Those of these tiles (levels and indexes) that there are.
    pub async fn tiles(
        &self,
        tenant: &TenantId,
        epoch: i32,
        ids: &[(i32, i64)],
    ) -> Result<Vec<StoredTile>> {
        let query = sqlx::query_as!(
            StoredTile,
            r#"
            select t.level, t.tile_index as index, t.hashes
              from unnest($3::integer[], $4::bigint[]) as w (level, tile_index)
              join log_tiles t on t.tenant_id = $1 and t.epoch = $2 and t.level = w.level and t.tile_index = w.tile_index
            "#,
            tenant.as_str(),
            epoch,
            &column(ids, |(level, _)| *level),
            &column(ids, |(_, index)| *index),
        );
        self.database.pool.fetch_all(tenant, query).await
    }

    /// The entries of an exchange, with what the other tables say now.
    pub async fn entries(
        &self,
        tenant: &TenantId,
        request: &RequestId,
    ) -> Result<Vec<LoggedEntry>> {
        let query = sqlx::query_as!(
            LoggedEntry,
            r#"
            select l.kind, l.epoch, l.leaf,
                   (select case l.kind when 'decision' then y.body::text else y.body #>> '{}' end
                      from exchange_payloads y
                     where y.tenant_id = l.tenant_id and y.request_id = l.request_id and y.part = l.kind
                       and exists (select from exchanges e
                                    where e.tenant_id = l.tenant_id and e.request_id = l.request_id
                                      and e.state in ('decided', 'delivered'))
                       and exists (select from exchange_events v
                                    where v.tenant_id = l.tenant_id and v.request_id = l.request_id
                                      and v.to_state = case l.kind when 'decision' then 'decided' else 'delivered' end)
                     limit 1) as text
              from log_leaves l
             where l.tenant_id = $1 and l.request_id = $2
             order by l.kind
            "#,
            tenant.as_str(),
            request.as_str(),
        );
        self.database.pool.fetch_all(tenant, query).await
    }
}
