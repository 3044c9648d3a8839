//! A cache of approvers' signing keys. The statement that accepts a decision checks the key again,
//! so a stale entry costs a retry but never trusts a revoked key.

use std::sync::Arc;

use quick_cache::sync::Cache;

use crate::gateway::context::GatewayContext;
use crate::gateway::error::Result;
use crate::protocol::decision::{Decision, SignatureTrust, SigningKey, judge_signature};
use crate::protocol::id::{ApproverId, TenantId};

/// Most approvers cached.
const CAPACITY: usize = 10_000;

pub(in crate::gateway) struct ApproverKeys {
    context: Arc<GatewayContext>,
    /// Each approver's keys, revoked ones included.
    cache: Cache<(TenantId, ApproverId), Arc<[SigningKey]>>,
}

impl ApproverKeys {
    pub fn new(context: &Arc<GatewayContext>) -> Self {
        Self {
            context: Arc::clone(context),
            cache: Cache::new(CAPACITY),
        }
    }

    /// How far a decision's signature is trusted. The cache is used for verified signatures only,
    /// and not when the signature is judged `again` because the keys have changed.
    pub async fn trust(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        decision: &Decision,
        again: bool,
    ) -> Result<SignatureTrust> {
        let verify = self.context.config.decisions.verify;
        let now = || self.context.clock.now();
        let judge = |keys: &[SigningKey]| judge_signature(decision, keys, verify, now());
        let owner = (tenant.clone(), approver.clone());
        if !again
            && let Some(keys) = self.cache.get(&owner)
            && let Ok(trust @ SignatureTrust::Verified(_)) = judge(&keys)
        {
            return Ok(trust);
        }
        let credentials = &self.context.store.credentials;
        let keys: Arc<[SigningKey]> = credentials.keys_of(tenant, approver).await?.into();
        self.cache.insert(owner, Arc::clone(&keys));
        judge(&keys)
    }
}
