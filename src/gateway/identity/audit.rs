//! The audit log: the names of callers in it, and its listing. The statements that act write it.

use uuid::Uuid;

use crate::gateway::PlatformService;
use crate::gateway::error::Result;
use crate::gateway::identity::caller::{ActingCaller, ActingId, Admin, CallerIdentity, Operator};
use crate::gateway::page::{FOREIGN_CURSOR, ListPage, PageRequest};
use crate::protocol::listing::AuditLine;
use crate::store::audit::{AuditActor, AuditSource};

impl CallerIdentity {
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

impl<Id: ActingId> ActingCaller<Id> {
    pub(in crate::gateway) fn actor(&self, id: &Id) -> AuditActor {
        AuditActor {
            name: format!("{}:{id}", Id::ROLE),
            source: self.origin.source(),
        }
    }
}

impl Admin {
    pub fn actor(&self) -> AuditActor {
        AuditActor {
            name: format!("admin:{}", self.origin.principal),
            source: self.origin.source(),
        }
    }
}

impl Operator {
    pub fn actor(&self) -> AuditActor {
        AuditActor {
            name: "operator".into(),
            source: AuditSource {
                principal: None,
                address: self.from,
            },
        }
    }
}

impl PlatformService {
    pub async fn audit(
        &self,
        caller: &Admin,
        request: &PageRequest,
    ) -> Result<ListPage<AuditLine>> {
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
        Ok(ListPage::new(&listing, items, next.as_ref()))
    }
}
