//! Requests that outlive their process: submit now, exit, and resume hours later.

use std::sync::Arc;
use std::time::Duration;

use super::subject::ReviewSubject;
use crate::enforcer::{AcceptedApproval, ApprovalDenial, DecisionMessage, Enforcer, StoredRequest};
use crate::error::Result;
use countersign_protocol::id::RequestId;

/// A submitted request. Dropping it does not withdraw it.
pub struct PendingApproval {
    enforcer: Enforcer,
    request: Arc<StoredRequest>,
}

pub enum RequestOutcome {
    Approved(Box<UnusedApproval>),
    Denied(ApprovalDenial),
    /// Nobody has decided yet, as far as the gateway says.
    StillWaiting,
}

/// An approval that has not been used yet.
pub struct UnusedApproval {
    enforcer: Enforcer,
    request: Arc<StoredRequest>,
    message: DecisionMessage,
    accepted: AcceptedApproval,
}

impl PendingApproval {
    pub(super) fn new(enforcer: Enforcer, request: Arc<StoredRequest>) -> Self {
        Self { enforcer, request }
    }

    pub fn request_id(&self) -> &RequestId {
        self.request.artifact.request_id()
    }

    /// The request for another process. It has the arguments in plain: protect it as them.
    pub fn to_json(&self) -> Result<String, ApprovalDenial> {
        self.enforcer.spell_request(&self.request)
    }

    /// Waits for up to `wait`, and at least for one look at the gateway, about a second. An error
    /// means that it cannot be found out now: look again later.
    pub async fn outcome(&self, wait: Duration) -> Result<RequestOutcome> {
        let mut enforcer = self.enforcer.another();
        let outcome = enforcer.resume(&self.request).outcome(wait).await;
        match outcome {
            Ok(None) => Ok(RequestOutcome::StillWaiting),
            Err(ApprovalDenial::Unavailable(error) | ApprovalDenial::Refused(error)) => Err(error),
            Err(denial) => Ok(RequestOutcome::Denied(denial)),
            Ok(Some((message, accepted))) => {
                let request = Arc::clone(&self.request);
                Ok(RequestOutcome::Approved(Box::new(UnusedApproval {
                    enforcer,
                    request,
                    message,
                    accepted,
                })))
            }
        }
    }

    /// Takes the request back. An approval that comes all the same cannot be used.
    pub async fn withdraw(&self, reason: &str) -> Result<()> {
        let mut enforcer = self.enforcer.another();
        let pending = enforcer.resume(&self.request);
        pending.withdraw_for_good(reason).await
    }
}

impl UnusedApproval {
    pub fn approval(&self) -> &AcceptedApproval {
        &self.accepted
    }

    /// Runs `action` if the subject is exactly the approved one, and the approval was never used.
    /// The approval is taken first: a process that dies afterwards has used it.
    pub async fn use_once<T>(
        &self,
        subject: impl Into<ReviewSubject>,
        action: impl AsyncFnOnce(&AcceptedApproval) -> T,
    ) -> Result<T, ApprovalDenial> {
        let mut enforcer = self.enforcer.another();
        let subject = subject.into();
        let mut pending = enforcer.resume(&self.request);
        let is_same = |artifact: &_| subject.is_in(artifact);
        let accepted = pending.take(&self.message, is_same).await?;
        Ok(action(&accepted).await)
    }
}
