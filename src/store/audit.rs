//! The audit: who did what to tenants, credentials, keys, pairings and pending exchanges, and from where. Events are written
//! by the statements that act, and only if they take effect; here they are read and deleted.

use std::net::IpAddr;
use std::sync::Arc;

use time::OffsetDateTime;
use uuid::Uuid;

use super::error::Result;
use crate::protocol::cursor::PagePosition;
use crate::protocol::id::{CredentialId, TenantId};
use crate::protocol::listing::AuditLine;
use crate::store::database::listing::cut_page;
use crate::store::database::pools::Database;

#[derive(Debug, Clone, Default)]
pub struct AuditSource {
    /// The credential that was used; `None` for the operator's key and the command line.
    pub principal: Option<String>,
    pub address: Option<IpAddr>,
}

impl AuditSource {
    pub(super) fn address(&self) -> Option<String> {
        self.address.map(|address| address.to_string())
    }
}

#[derive(Debug, Clone)]
pub struct AuditActor {
    /// `enforcer:<id>`, `approver:<id>`, `admin:<credential>`, `operator`, `gateway`, `certificate holder`,
    /// `invitation holder` or `command line`.
    pub name: String,
    pub source: AuditSource,
}

impl AuditActor {
    /// A caller with a certificate that is not bound yet.
    pub fn certificate_holder(address: Option<IpAddr>) -> Self {
        Self::without_credential("certificate holder", address)
    }

    /// A caller with the code of an invitation.
    pub fn invitation_holder(address: Option<IpAddr>) -> Self {
        Self::without_credential("invitation holder", address)
    }

    /// A node that acts by itself.
    pub fn gateway() -> Self {
        Self::without_credential("gateway", None)
    }

    pub fn command_line() -> Self {
        Self::without_credential("command line", None)
    }

    fn without_credential(name: &str, address: Option<IpAddr>) -> Self {
        Self {
            name: name.into(),
            source: AuditSource {
                principal: None,
                address,
            },
        }
    }

    /// The same actor with the credential that it gets by this action.
    pub(super) fn with_credential(&self, id: &CredentialId) -> Self {
        let mut actor = self.clone();
        actor.source.principal = Some(id.to_string());
        actor
    }
}

pub struct AuditStore {
    pub(super) database: Arc<Database>,
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
