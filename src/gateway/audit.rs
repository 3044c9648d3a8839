//! The audit of a tenant: how callers are named in it, and reading it. What is written is up to the statements that act.

use uuid::Uuid;

use super::Gateway;
use super::caller::{Admin, Approver, Enforcer, Operator, Origin};
use super::error::Error;
use super::inbox::{FOREIGN_CURSOR, Page, PageRequest};
use crate::protocol::cursor;
use crate::protocol::id::{ApproverId, EnforcerId};
use crate::protocol::listing::AuditLine;
use crate::store::audit::{Actor, AuditSource};

impl Origin {
    #[must_use]
    pub fn source(&self) -> AuditSource {
        AuditSource {
            principal: Some(self.principal.clone()),
            address: self.from,
        }
    }
}

impl Enforcer {
    /// Its name in the audit, acting as this enforcer.
    pub(super) fn actor(&self, id: &EnforcerId) -> Actor {
        Actor {
            name: format!("enforcer:{id}"),
            source: self.origin.source(),
        }
    }
}

impl Approver {
    /// Its name in the audit, acting as this approver.
    pub(super) fn actor(&self, id: &ApproverId) -> Actor {
        Actor {
            name: format!("approver:{id}"),
            source: self.origin.source(),
        }
    }
}

impl Admin {
    #[must_use]
    pub fn actor(&self) -> Actor {
        Actor {
            name: format!("admin:{}", self.origin.principal),
            source: self.origin.source(),
        }
    }
}

impl Operator {
    #[must_use]
    pub fn actor(&self) -> Actor {
        Actor {
            name: "operator".into(),
            source: AuditSource {
                principal: None,
                address: self.from,
            },
        }
    }
}

impl Gateway {
    pub async fn audit(
        &self,
        caller: &Admin,
        request: &PageRequest,
    ) -> Result<Page<AuditLine>, Error> {
        let tenant = &caller.origin.tenant;
        let listing = format!("audit\n{tenant}");
        let limit = self.page_limit(request)?;
        let after = match &request.cursor {
            None => None,
            Some(text) => {
                let position = cursor::decode(&listing, text).ok_or(FOREIGN_CURSOR)?;
                let id = Uuid::try_parse(&position.id).map_err(|_| FOREIGN_CURSOR)?;
                Some((position.at, id))
            }
        };
        let (items, next) = self.store.audit(tenant, after, limit).await?;
        Ok(Page {
            items,
            next: next.map(|position| cursor::encode(&listing, &position)),
        })
    }
}
