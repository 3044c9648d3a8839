//! The receipt of a set: its decisions, their devices and the outcome in one file.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;

use super::approval_set::PendingSet;
use super::set_part::{SetPart, device_of};
use crate::error::Result;
use crate::wire;
use countersign_e2e::{MAX_STATEMENTS, Receipt, ReceiptPart, hints_key};

const STATEMENTS_TIMEOUT: Duration = Duration::from_secs(3);

impl PendingSet<'_> {
    /// The receipt, once the set has an outcome. It has the decisions that passed every check; none
    /// of them, no receipt. It reads from the gateway, for up to three seconds.
    pub async fn receipt(&self) -> Result<Option<Receipt>> {
        let (mut artifact, mut parts) = (None, Vec::new());
        for part in &self.parts {
            let Some(decided) = receipt_part(part)? else {
                continue;
            };
            artifact.get_or_insert_with(|| part.artifact.text().to_owned());
            parts.push(decided);
        }
        if self.outcome.is_none() || parts.is_empty() {
            return Ok(None);
        }
        Ok(Some(Receipt {
            tenant: self.enforcer.tenant.clone(),
            enforcer: self.enforcer.id.clone(),
            artifact,
            devices: self.statements(&parts).await,
            parts,
            outcome: self.outcome.clone(),
            log: Vec::new(),
        }))
    }

    /// For those who know another device of an approver. The file is complete without, so a list
    /// that is missing or too long is left out.
    async fn statements(&self, parts: &[ReceiptPart]) -> Vec<String> {
        let deadline = Instant::now() + STATEMENTS_TIMEOUT;
        let reading = (parts.iter()).map(|it| self.enforcer.statements_of(&it.approver, deadline));
        let lists = join_all(reading).await.into_iter().flatten();
        let most = MAX_STATEMENTS / parts.len().max(1);
        lists.filter(|list| list.len() <= most).flatten().collect()
    }
}

fn receipt_part(part: &SetPart) -> Result<Option<ReceiptPart>> {
    let (Some(decision), Some(verified)) = (&part.decision, part.verified()) else {
        return Ok(None);
    };
    let Some(device) = part.bundle(device_of(verified)) else {
        return Ok(None);
    };
    let body = &decision.message.body;
    let node = wire::parse(body.as_bytes())?;
    Ok(Some(ReceiptPart {
        request_id: part.own.request_id.clone(),
        seat: Some(part.seat.clone()),
        approver: part.seat.clone(),
        decision: body.clone(),
        device: device.clone(),
        // A rejection counts even if its comment cannot be read.
        hints_key: hints_key(&node, &part.own, &part.enforcer.keys, device).unwrap_or_default(),
    }))
}
