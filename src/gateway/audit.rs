//! The audit log: how callers are named in it, and how it is read. The statements that act write it.

use uuid::Uuid;

use super::Platform;
use super::caller::{Admin, Approver, Enforcer, Operator, Origin};
use super::error::Result;
use super::page::{FOREIGN_CURSOR, Page, PageRequest};
use crate::protocol::id::{ApproverId, EnforcerId};
use crate::protocol::listing::AuditLine;
use crate::store::audit::{Actor, AuditSource};

impl Origin {
    pub fn source(&self) -> AuditSource {
        let principal = match &self.issuer {
            None => self.principal.clone(),
            Some(issuer) => format!("{} from {issuer}", self.principal),
        };
        AuditSource {
            principal: Some(principal),
            address: self.from,
        }
    }
}

impl Enforcer {
    pub(super) fn actor(&self, id: &EnforcerId) -> Actor {
        Actor {
            name: format!("enforcer:{id}"),
            source: self.origin.source(),
        }
    }
}

impl Approver {
    pub(super) fn actor(&self, id: &ApproverId) -> Actor {
        Actor {
            name: format!("approver:{id}"),
            source: self.origin.source(),
        }
    }
}

impl Admin {
    pub fn actor(&self) -> Actor {
        Actor {
            name: format!("admin:{}", self.origin.principal),
            source: self.origin.source(),
        }
    }
}

impl Operator {
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

impl Platform {
    pub async fn audit(&self, caller: &Admin, request: &PageRequest) -> Result<Page<AuditLine>> {
        let tenant = &caller.origin.tenant;
        let listing = format!("audit\n{tenant}");
        let limit = self.context.page_limit(request)?;
        let after = match request.after(&listing)? {
            None => None,
            Some(position) => {
                let id = Uuid::try_parse(&position.id).map_err(|_| FOREIGN_CURSOR)?;
                Some((position.at, id))
            }
        };
        let (items, next) = self.context.store.audit.audit(tenant, after, limit).await?;
        Ok(Page::new(&listing, items, next.as_ref()))
    }
}
