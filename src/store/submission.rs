//! A submission as the statements that write it see it.

use super::idempotency::IdempotencyKey;
use crate::protocol::artifact::Submission;
use crate::protocol::id::{ApproverId, EnforcerId, MessageId, OperationId, TenantId};

#[derive(Debug, Clone)]
pub struct Asked {
    pub approver: ApproverId,
    pub message: MessageId,
    /// Whether its inbox may be near its limit, so that it must be counted.
    pub count: bool,
}

#[derive(Debug)]
pub struct SubmissionRow {
    pub operation: OperationId,
    pub tenant: TenantId,
    pub enforcer: EnforcerId,
    pub submission: Submission,
    pub asked: Vec<Asked>,
    pub idempotency: Option<IdempotencyKey>,
}
