//! Taking a request back, also when its caller is dropped while it waits.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::pending_request::PendingRequest;
use crate::access::GatewayAccess;
use crate::error::Result;
use crate::gateway::path;
use countersign_protocol::id::RequestId;

const WITHDRAW_TIMEOUT: Duration = Duration::from_secs(3);
const GONE: &str = "the caller no longer waits";

/// Takes a request back. It does not matter if it has ended meanwhile.
async fn withdraw(access: &GatewayAccess, id: &RequestId, reason: &str) -> Result<()> {
    let body = json!({ "reason": reason }).to_string();
    let call = path(&["v1", "exchanges", id.as_str(), "withdraw"]);
    let (expected, deadline) = ([200, 404, 409], Instant::now() + WITHDRAW_TIMEOUT);
    let sent = access.send(call, "exchange.withdrawn", id, &body, &expected, deadline);
    sent.await.map(drop)
}

/// Takes a request back by `deadline`, and says whether it was decided before. An error means that
/// it may have been decided, or may still be.
pub(super) async fn take_back(
    access: &GatewayAccess,
    id: &RequestId,
    reason: &str,
    deadline: Instant,
) -> Result<bool> {
    let body = json!({ "reason": reason }).to_string();
    let call = path(&["v1", "exchanges", id.as_str(), "withdraw"]);
    let sent = access.send(call, "exchange.withdrawn", id, &body, &[200], deadline);
    match sent.await.map(drop) {
        Err(error) if error.code() == Some("ALREADY_DECIDED") => Ok(true),
        // It has ended without a decision.
        Err(error) if matches!(error.code(), Some("EXPIRED" | "INVALID_STATE")) => Ok(false),
        sent => sent.map(|()| false),
    }
}

/// Like `take_back`, for a request that the gateway has perhaps never got.
pub(super) async fn take_back_unsent(
    access: &GatewayAccess,
    id: &RequestId,
    reason: &str,
    deadline: Instant,
) -> Result<bool> {
    match take_back(access, id, reason, deadline).await {
        Err(error) if error.is_refusal(404) || error.is_refusal(409) => Ok(false),
        taken => taken,
    }
}

/// Withdraws the request when it is dropped, unless it was disarmed.
pub(crate) struct WithdrawalGuard {
    access: Arc<GatewayAccess>,
    request: Option<RequestId>,
}

impl WithdrawalGuard {
    /// The request has ended.
    pub(crate) fn disarm(mut self) {
        self.request = None;
    }
}

impl Drop for WithdrawalGuard {
    fn drop(&mut self) {
        // Without a runtime, the request ends by its own deadline.
        if let (Some(id), Ok(runtime)) = (self.request.take(), Handle::try_current()) {
            let access = Arc::clone(&self.access);
            runtime.spawn(async move { withdraw(&access, &id, GONE).await });
        }
    }
}

impl PendingRequest<'_> {
    pub async fn withdraw(&self, reason: &str) -> Result<()> {
        withdraw(&self.enforcer.access, self.request_id(), reason).await
    }

    pub(crate) fn withdrawal_if_dropped(&self) -> WithdrawalGuard {
        WithdrawalGuard {
            access: Arc::clone(&self.enforcer.access),
            request: Some(self.request_id().clone()),
        }
    }
}
