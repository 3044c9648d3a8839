//! Deletes pairings that were revoked and routing tokens that were replaced long ago.

use sqlx::postgres::types::PgInterval;

use super::PairingStore;
use super::error::Result;
use crate::protocol::id::TenantId;
use crate::store::clock_offset::clock_offset;

impl PairingStore {
    /// Deletes pairings of a tenant that were revoked longer ago than `keep`, with their last token.
    pub async fn delete_expired_pairings(
        &self,
        tenant: &TenantId,
        keep: PgInterval,
        limit: i64,
    ) -> Result<u64> {
        let query = sqlx::query!(
            r#"
            with found as materialized (
                select p.enforcer_id, p.approver_id, p.token_hash
                  from pairings p
                 where p.tenant_id = $1 and p.revoked_at < (select clock_timestamp() + $2::interval - $3::interval)
                 order by p.revoked_at
                 limit $4
                   for update of p skip locked
            ),
            to_delete as materialized (
                select d.enforcer_id, d.approver_id, d.token_hash
                  from unnest(array(select enforcer_id from found), array(select approver_id from found),
                              array(select token_hash from found)) as d (enforcer_id, approver_id, token_hash)
            ),
            tokens as (
                delete from routing_tokens t using to_delete d
                 where t.tenant_id = $1 and t.token_hash = d.token_hash
            ),
            -- One that was written in the moment of the revocation.
            forgotten as (
                delete from introductions i using to_delete d
                 where i.tenant_id = $1 and i.approver_id = d.approver_id and i.enforcer_id = d.enforcer_id
            )
            delete from pairings p using to_delete d
             where p.tenant_id = $1 and p.enforcer_id = d.enforcer_id and p.approver_id = d.approver_id
            "#,
            tenant.as_str(),
            clock_offset(&self.database.clock),
            keep,
            limit,
        );
        self.database.background.execute(tenant, query).await
    }

    /// Deletes routing tokens of a tenant that were replaced longer ago than `keep`.
    pub async fn delete_expired_tokens(
        &self,
        tenant: &TenantId,
        keep: PgInterval,
        limit: i64,
    ) -> Result<u64> {
        let query = sqlx::query!(
            r#"
            with found as materialized (
                select t.token_hash
                  from routing_tokens t
                 where t.tenant_id = $1 and t.replaced_at < (select clock_timestamp() + $2::interval - $3::interval)
                 order by t.replaced_at
                 limit $4
                   for update of t skip locked
            ),
            to_delete as materialized (
                select d.token_hash from unnest(array(select token_hash from found)) as d (token_hash)
            )
            delete from routing_tokens t using to_delete d
             where t.tenant_id = $1 and t.token_hash = d.token_hash
            "#,
            tenant.as_str(),
            clock_offset(&self.database.clock),
            keep,
            limit,
        );
        self.database.background.execute(tenant, query).await
    }
}
