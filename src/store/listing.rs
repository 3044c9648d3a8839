//! Tenants and credentials, listed by when they were made: whole for those who look after the database, page by page for
//! callers.

use time::OffsetDateTime;

use super::credential::{CredentialLine, RoleName, Tenant};
use super::error::StoreError;
use super::reach::Reach;
use super::{Store, rows};
use crate::protocol::cursor::Position;
use crate::protocol::id::TenantId;
use crate::protocol::timestamp::Timestamp;

/// Which part of a list; by default all of it.
#[derive(Debug, Default)]
pub struct Part {
    /// Behind which row.
    pub after: Option<Position>,
    /// How many at most.
    pub limit: Option<i64>,
}

impl Part {
    fn start(&self) -> (Option<OffsetDateTime>, Option<&str>) {
        match &self.after {
            Some(position) => (Some(position.at), Some(&position.id)),
            None => (None, None),
        }
    }

    /// One more than wanted, which tells whether there are more.
    fn count(&self) -> Option<i64> {
        self.limit.map(|limit| limit.saturating_add(1))
    }

    /// The rows that were wanted, and where the next page starts.
    fn cut<T>(
        &self,
        mut items: Vec<T>,
        position: impl Fn(&T) -> (Timestamp, String),
    ) -> (Vec<T>, Option<Position>) {
        let wanted = self.limit.and_then(|limit| usize::try_from(limit).ok());
        let wanted = wanted.unwrap_or(usize::MAX);
        let more = items.len() > wanted;
        items.truncate(wanted);
        let next = items.last().filter(|_| more).map(|last| {
            let (at, id) = position(last);
            Position { at: at.inner(), id }
        });
        (items, next)
    }
}

impl Store {
    /// Tenants, disabled ones included, and where the next page starts.
    pub async fn tenants(
        &self,
        part: &Part,
    ) -> Result<(Vec<Tenant>, Option<Position>), StoreError> {
        // All: the list of tenants is the operator's.
        let mut lease = self.quiet.lease(Reach::All).await?;
        let (at, id) = part.start();
        let found = sqlx::query!(
            r#"
            select tenant_id, name, created_at, disabled_at as "disabled_at?"
              from tenants
             where $1::timestamptz is null or (created_at, tenant_id) > ($1, $2::text)
             order by created_at, tenant_id
             limit $3::bigint
            "#,
            at,
            id,
            part.count(),
        )
        .fetch_all(lease.connection()?)
        .await;
        let tenants = lease.settle(found)?.into_iter().map(|row| {
            Ok(Tenant {
                tenant_id: rows::id(&row.tenant_id)?,
                name: row.name,
                created_at: row.created_at.into(),
                disabled_at: row.disabled_at.map(Into::into),
            })
        });
        let tenants = tenants.collect::<Result<Vec<_>, sqlx::Error>>()?;
        Ok(part.cut(tenants, |last| {
            (last.created_at, last.tenant_id.to_string())
        }))
    }

    /// Credentials of a tenant (any tenant: `None`), of one role where one is named, and where the next page starts.
    pub async fn credentials(
        &self,
        tenant: Option<&TenantId>,
        role: Option<RoleName>,
        part: &Part,
    ) -> Result<(Vec<CredentialLine>, Option<Position>), StoreError> {
        let mut lease = self.quiet.lease(Reach::of_any(tenant)).await?;
        let (at, id) = part.start();
        let found = sqlx::query!(
            r#"
            select credential_id, tenant_id, kind, role, bound_id as "bound_id?", created_at, expires_at as "expires_at?",
                   revoked_at as "revoked_at?", last_used_at as "last_used_at?"
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
        )
        .fetch_all(lease.connection()?)
        .await;
        let lines = lease.settle(found)?.into_iter().map(|row| CredentialLine {
            credential_id: row.credential_id,
            tenant_id: row.tenant_id,
            kind: row.kind,
            role: row.role,
            bound_id: row.bound_id,
            created_at: row.created_at.into(),
            expires_at: row.expires_at.map(Into::into),
            revoked_at: row.revoked_at.map(Into::into),
            last_used_at: row.last_used_at.map(Into::into),
        });
        Ok(part.cut(lines.collect(), |last| {
            (last.created_at, last.credential_id.clone())
        }))
    }
}
