//! Approvers' signing keys that this node has seen. The statement that takes a decision judges the key again, so one that
//! was revoked or limited meanwhile is not trusted: what is remembered spares a look, and decides nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::Gateway;
use super::error::Error;
use crate::protocol::decision::{Decision, SigningKey, Trust, judge_signature};
use crate::protocol::id::{ApproverId, TenantId};

/// Most approvers remembered; past this the memory starts over.
const MAX_REMEMBERED: usize = 10_000;

/// Each approver's keys, revoked ones included.
type Known = HashMap<(TenantId, ApproverId), Arc<[SigningKey]>>;

#[derive(Default)]
pub(super) struct Keys {
    /// Held for a few instructions, never across an await.
    known: Mutex<Known>,
}

impl Gateway {
    /// How far a decision's signature is trusted. Only trust comes from memory, and only at first: whoever was told to judge
    /// again wants to know what is there now.
    pub(super) async fn trust(
        &self,
        tenant: &TenantId,
        approver: &ApproverId,
        decision: &Decision,
        again: bool,
    ) -> Result<Trust, Error> {
        let judge = |keys: &[SigningKey]| {
            judge_signature(
                decision,
                keys,
                self.config.decisions.verify,
                self.clock.now(),
            )
        };
        let whose = (tenant.clone(), approver.clone());
        let known = || {
            self.keys
                .known
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        let remembered = if again {
            None
        } else {
            known().get(&whose).cloned()
        };
        if let Some(keys) = remembered
            && let Ok(trust @ Trust::Verified(_)) = judge(&keys)
        {
            return Ok(trust);
        }
        let keys: Arc<[SigningKey]> = self.store.keys_of(tenant, approver).await?.into();
        let mut known = known();
        if known.len() >= MAX_REMEMBERED {
            known.clear();
        }
        known.insert(whose, Arc::clone(&keys));
        drop(known);
        Ok(judge(&keys)?)
    }
}
