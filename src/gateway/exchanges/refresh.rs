//! Asks the enforcer to submit again.

use crate::gateway::ExchangeService;
use crate::gateway::error::{Error, Result};
use crate::gateway::identity::caller::ApproverOrAdmin;
use crate::protocol::envelope::IncomingEnvelope;
use crate::protocol::id::{ApproverId, RequestId, TenantId};
use crate::protocol::json;
use crate::protocol::message::RefreshRequest;
use crate::protocol::refresh::parse_reason;
use crate::store::exchanges::refresh::RefreshFact;
use crate::wake::WakeKey;

#[derive(Debug)]
pub struct RefreshCommand {
    tenant: TenantId,
    /// None for an administrator.
    approver: Option<ApproverId>,
    reason: Option<String>,
}

impl ExchangeService {
    pub fn read_refresh(
        &self,
        caller: &ApproverOrAdmin,
        request: &RequestId,
        body: &[u8],
    ) -> Result<RefreshCommand> {
        let node = json::parse(body)?;
        let envelope = IncomingEnvelope::parse(&node, "refresh.request")?;
        envelope.expect_request(request)?;
        let (tenant, approver) = match caller {
            ApproverOrAdmin::Approver(approver) => {
                let id = approver.sending(&envelope.sender)?;
                (approver.origin.tenant.clone(), Some(id))
            }
            ApproverOrAdmin::Admin(admin) => {
                admin.sending(&envelope.sender)?;
                (admin.origin.tenant.clone(), None)
            }
        };
        self.context.check_created(envelope.created_at)?;
        Ok(RefreshCommand {
            tenant,
            approver,
            reason: parse_reason(envelope.body, "/body")?,
        })
    }

    /// Queues a refresh for the enforcer, or returns the one that is already queued.
    pub async fn refresh(
        &self,
        request: &RequestId,
        command: RefreshCommand,
    ) -> Result<RefreshRequest> {
        let tenant = command.tenant;
        let (approver, reason) = (command.approver.as_ref(), command.reason.as_deref());
        // The queued one may be acknowledged between the two statements; then ours can be queued.
        for _ in 0..3 {
            let message = self.context.clock.message_id();
            let queued = self
                .store
                .queue_refresh(&tenant, request, approver, message, reason);
            match queued.await? {
                RefreshFact::Queued(queued) => {
                    let enforcer = queued.enforcer_id.clone();
                    self.context
                        .wake
                        .wake([WakeKey::Enforcer(tenant, enforcer)]);
                    return Ok(queued);
                }
                RefreshFact::Conflict(state) => return Err(Error::InvalidState(state.as_str())),
                RefreshFact::Missing => return Err(Error::NotFound),
                RefreshFact::Waiting => {
                    if let Some(waiting) = self.store.waiting_refresh(&tenant, request).await? {
                        return Ok(waiting);
                    }
                }
            }
        }
        Err(Error::Unavailable)
    }
}
