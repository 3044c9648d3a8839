//! Reads the audit.

use std::sync::Arc;

use time::OffsetDateTime;
use uuid::Uuid;

use crate::protocol::cursor::PagePosition;
use crate::protocol::id::TenantId;
use crate::protocol::listing::AuditLine;
use crate::store::database::listing::cut_page;
use crate::store::database::pools::Database;
use crate::store::error::Result;

pub struct AuditStore {
    pub(in crate::store) database: Arc<Database>,
}

impl AuditStore {
    /// One page of a tenant's audit, oldest first, and where the next one starts.
    pub async fn audit(
        &self,
        tenant: &TenantId,
        after: Option<(OffsetDateTime, Uuid)>,
        limit: i64,
    ) -> Result<(Vec<AuditLine>, Option<PagePosition>)> {
        let (at, id) = after.unwrap_or((OffsetDateTime::UNIX_EPOCH, Uuid::nil()));
        let query = sqlx::query!(
            r#"
            select a.at, a.event_id, a.actor, a.action, a.subject, a.address as "address?", a.principal as "principal?",
                   a.detail as "detail?"
              from audit_events a
             where a.tenant_id = $1 and (a.at, a.event_id) > ($2, $3)
             order by a.at, a.event_id
             limit $4::bigint + 1
            "#,
            tenant.as_str(),
            at,
            id,
            limit,
        );
        let found = self.database.pool.fetch_all(tenant, query).await?;
        let (found, next) = cut_page(found, limit, |last| PagePosition {
            at: last.at,
            id: last.event_id.to_string(),
        });
        let lines = found.into_iter().map(|row| AuditLine {
            at: row.at.into(),
            actor: row.actor,
            action: row.action,
            subject: row.subject,
            address: row.address,
            principal: row.principal,
            detail: row.detail,
        });
        Ok((lines.collect(), next))
    }
}
