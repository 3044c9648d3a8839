//! Lists of tenants and credentials, in the order they were created: in pages for callers, whole
//! for the command line.

use crate::protocol::credential::{CredentialProfile, RoleName};
use crate::protocol::cursor::PagePosition;
use crate::protocol::id::{CredentialId, TenantId};
use crate::protocol::listing::{CredentialLine, Tenant};
use crate::protocol::timestamp::Timestamp;
use crate::store::CredentialStore;
use crate::store::database::listing::ListPart;
use crate::store::database::tenant_scope::TenantScope;
use crate::store::error::Result;

impl CredentialStore {
    /// Valid credentials that may act as any id of their role, oldest first.
    pub async fn unbound_credentials(&self) -> Result<Vec<CredentialId>> {
        let query = sqlx::query!(
            r#"
            select c.credential_id as "id: CredentialId"
              from credentials c
              join tenants t on t.tenant_id = c.tenant_id
             where c.role <> 'admin' and c.bound_id is null and c.revoked_at is null and t.disabled_at is null
               and coalesce(c.expires_at > clock_timestamp(), true)
             order by c.created_at, c.credential_id
            "#,
        )
        .map(|row| row.id);
        // All: the operator is told of every tenant's.
        let scope = TenantScope::All;
        self.database.background.fetch_all(scope, query).await
    }

    /// Tenants, disabled ones included, and where the next page starts.
    pub async fn tenants(&self, part: &ListPart) -> Result<(Vec<Tenant>, Option<PagePosition>)> {
        let (at, id) = part.start();
        let query = sqlx::query_as!(
            Tenant,
            r#"
            select tenant_id as "tenant_id: TenantId", name, created_at, disabled_at as "disabled_at: Timestamp"
              from tenants
             where $1::timestamptz is null or (created_at, tenant_id) > ($1, $2::text)
             order by created_at, tenant_id
             limit $3::bigint
            "#,
            at,
            id,
            part.count(),
        );
        // All: the list of tenants is the operator's.
        let scope = TenantScope::All;
        let found = self.database.background.fetch_all(scope, query).await?;
        Ok(part.cut(found, |last| PagePosition {
            at: last.created_at.inner(),
            id: last.tenant_id.to_string(),
        }))
    }

    /// Credentials of a tenant (any tenant: `None`), of one role where one is named, and where the
    /// next page starts.
    pub async fn credentials(
        &self,
        tenant: Option<&TenantId>,
        role: Option<RoleName>,
        part: &ListPart,
    ) -> Result<(Vec<CredentialLine>, Option<PagePosition>)> {
        let (at, id) = part.start();
        let query = sqlx::query_as!(
            CredentialLine,
            r#"
            select credential_id as "credential_id: CredentialId", tenant_id as "tenant_id: TenantId", kind,
                   role as "role: RoleName", profile as "profile: CredentialProfile", bound_id, created_at, expires_at as "expires_at: Timestamp",
                   revoked_at as "revoked_at: Timestamp", last_used_at as "last_used_at: Timestamp",
                   encode(thumbprint, 'hex') as thumbprint, bound_at as "bound_at: Timestamp"
              from credentials
             where ($1::text is null or tenant_id = $1) and ($2::text is null or role = $2)
               and ($3::timestamptz is null or (created_at, credential_id) > ($3, $4::text))
             order by created_at, credential_id
             limit $5::bigint
            "#,
            tenant.map(TenantId::as_str),
            role.map(RoleName::as_str),
            at,
            id,
            part.count(),
        );
        let found = self
            .database
            .background
            .fetch_all(TenantScope::one_or_all(tenant), query)
            .await?;
        Ok(part.cut(found, |last| PagePosition {
            at: last.created_at.inner(),
            id: last.credential_id.to_string(),
        }))
    }
}
