//! The net under the wakes: which of the exchanges that someone waits for are no longer pending.

use super::error::StoreError;
use super::tenant_scope::TenantScope;
use super::{Store, rows};
use crate::protocol::id::{RequestId, TenantId};

impl Store {
    /// Of these exchanges, the ones that are no longer pending, or are gone.
    pub async fn settled_exchanges(
        &self,
        waited_for: &[(TenantId, RequestId)],
    ) -> Result<Vec<(TenantId, RequestId)>, StoreError> {
        let mut lease = self
            .background
            .lease(TenantScope::of(waited_for.iter().map(|(tenant, _)| tenant)))
            .await?;
        let found = sqlx::query!(
            r#"
            select i.tenant_id as "tenant_id!", i.request_id as "request_id!"
              from unnest($1::text[], $2::text[]) as i (tenant_id, request_id)
              left join exchanges e on e.tenant_id = i.tenant_id and e.request_id = i.request_id
             where e.request_id is null or e.state <> 'pendingApproval'
                or e.expires_at <= clock_timestamp() + $3::interval
            "#,
            &rows::texts(waited_for, |(tenant, _)| tenant.as_str()) as _,
            &rows::texts(waited_for, |(_, request)| request.as_str()) as _,
            self.clock.offset(),
        )
        .fetch_all(lease.connection()?)
        .await;
        lease
            .settle(found)?
            .into_iter()
            .map(|row| Ok((rows::id(&row.tenant_id)?, rows::id(&row.request_id)?)))
            .collect::<Result<_, sqlx::Error>>()
            .map_err(Into::into)
    }
}
