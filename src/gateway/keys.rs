//! A cache of approvers' signing keys. The statement that accepts a decision checks the key again, so a stale entry costs
//! a retry but never trusts a revoked key.

use std::sync::Arc;

use quick_cache::sync::Cache;

use super::ExchangeService;
use super::error::Result;
use crate::protocol::decision::{Decision, SignatureTrust, SigningKey, judge_signature};
use crate::protocol::id::{ApproverId, TenantId};

/// Most approvers cached.
const CAPACITY: usize = 10_000;

/// Each approver's keys, revoked ones included.
pub(super) struct ApproverKeys(Cache<(TenantId, ApproverId), Arc<[SigningKey]>>);

impl Default for ApproverKeys {
    fn default() -> Self {
        Self(Cache::new(CAPACITY))
    }
}

impl ExchangeService {
    /// How far a decision's signature is trusted. The cache is used for verified signatures only, and not when the signature
    /// is judged `again` because the keys have changed.
    pub(super) async fn trust(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        decision: &Decision,
        again: bool,
    ) -> Result<SignatureTrust> {
        let verify = self.context.config.decisions.verify;
        let now = || self.context.clock.now();
        let judge = |keys: &[SigningKey]| judge_signature(decision, keys, verify, now());
        let whose = (tenant.clone(), approver.clone());
        if !again
            && let Some(keys) = self.keys.0.get(&whose)
            && let Ok(trust @ SignatureTrust::Verified(_)) = judge(&keys)
        {
            return Ok(trust);
        }
        let credentials = &self.context.store.credentials;
        let keys: Arc<[SigningKey]> = credentials.keys_of(tenant, approver).await?.into();
        self.keys.0.insert(whose, Arc::clone(&keys));
        judge(&keys)
    }
}
