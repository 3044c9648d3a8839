//! The receipt of a request or of a set: its decisions, their devices and the outcome in one file.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout};

use super::approval_request::ApprovalDenial;
use super::approval_set::PendingSet;
use super::pending_request::{DecisionMessage, PendingRequest, SignedDenial, TimedApproval};
use super::receipt_folder::ReceiptFolder;
use super::role::Enforcer;
use super::set_part::{SetPart, signer_of};
use crate::error::{ClientError, Result};
use crate::team_reading::read_states;
use crate::wire;
use countersign_e2e::{
    ArtifactRule, DeviceId, DeviceTrust, MAX_STATEMENTS, OutcomeEffect, OwnRequest, PlainArtifact,
    Receipt, ReceiptPart, hints_key,
};
use countersign_protocol::id::ApproverId;

/// A receipt that is larger could not be read again.
const MAX_STATE_BYTES: usize = 6 * 1024 * 1024;
const STATEMENTS_TIMEOUT: Duration = Duration::from_secs(3);
/// A disk that is away may keep a program waiting for ever.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// The signer of a decision that passed every check, and the device.
type DecisionSigner = (ApproverId, DeviceId);

impl PendingSet<'_> {
    /// The receipt, once the set has an outcome. It has the decisions that passed every check; none
    /// of them, no receipt. It reads from the gateway, for up to three seconds.
    pub async fn receipt(&self) -> Result<Option<Receipt>> {
        match &self.outcome {
            Some(outcome) => self.receipt_with(outcome).await,
            None => Ok(None),
        }
    }

    pub(super) async fn keep_receipt(
        &mut self,
        outcome: &str,
        effect: OutcomeEffect,
    ) -> Result<(), ApprovalDenial> {
        if self.enforcer.receipts.is_none() {
            return Ok(());
        }
        let receipt = self.receipt_with(outcome).await;
        self.enforcer.write_receipt(receipt, effect).await
    }

    async fn receipt_with(&self, outcome: &str) -> Result<Option<Receipt>> {
        let (mut artifact, mut parts) = (None, Vec::new());
        for part in &self.parts {
            let Some(decided) = receipt_part(part)? else {
                continue;
            };
            artifact.get_or_insert(&part.artifact);
            parts.push(decided);
        }
        let Some(artifact) = artifact else {
            return Ok(None);
        };
        let receipt = self.enforcer.receipt(artifact, parts, Some(outcome)).await;
        Ok(Some(receipt))
    }
}

impl PendingRequest<'_> {
    pub(super) fn signer_of(
        judged: &Result<TimedApproval, SignedDenial>,
    ) -> Option<DecisionSigner> {
        match judged {
            Ok((approval, _)) => Some((approval.approver.clone(), approval.device)),
            Err((ApprovalDenial::Rejected(rejection), _)) => {
                Some((rejection.approver.clone(), rejection.device))
            }
            Err(_) => None,
        }
    }

    /// Without a signer no decision has passed every check, and there is no receipt.
    pub(super) async fn keep_receipt(
        &mut self,
        message: &DecisionMessage,
        signer: Option<DecisionSigner>,
        outcome: Option<&str>,
        effect: OutcomeEffect,
    ) -> Result<(), ApprovalDenial> {
        let (Some(signer), Some(_)) = (signer, &self.enforcer.receipts) else {
            return Ok(());
        };
        let part = decided_part(self.enforcer, &self.own, message, &signer, &self.devices);
        let receipt = match part {
            Ok(Some(part)) => {
                let receipt = self.enforcer.receipt(&self.artifact, vec![part], outcome);
                let receipt = receipt.await;
                Ok(Some(receipt))
            }
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        self.enforcer.write_receipt(receipt, effect).await
    }
}

impl Enforcer {
    /// Has a receipt of every request that is decided written there. None: nowhere.
    pub fn keep_receipts(&mut self, folder: Option<ReceiptFolder>) {
        self.receipts = folder;
    }

    /// Why the last receipt was not saved, if it was not.
    pub fn take_receipt_problem(&mut self) -> Option<String> {
        self.receipt_problem.take()
    }

    /// Writes a receipt. If that fails, a call that would be allowed is denied where the policy says
    /// so. Otherwise the failure is only told.
    pub(super) async fn write_receipt(
        &mut self,
        receipt: Result<Option<Receipt>>,
        effect: OutcomeEffect,
    ) -> Result<(), ApprovalDenial> {
        let Some(folder) = self.receipts.clone() else {
            return Ok(());
        };
        let (is_required, directory) = (folder.is_required, folder.directory.clone());
        let written = match receipt {
            Ok(Some(receipt)) => {
                let writing = spawn_blocking(move || folder.write(receipt));
                match timeout(WRITE_TIMEOUT, writing).await {
                    Ok(Ok(written)) => written,
                    Ok(Err(_)) | Err(_) => Err(io::ErrorKind::TimedOut.into()),
                }
            }
            Ok(None) => Ok(()),
            Err(error) => Err(io::Error::other(error)),
        };
        let Err(error) = written else { return Ok(()) };
        let problem = ClientError::NoReceipt {
            directory,
            problem: error.to_string(),
        };
        if is_required && effect == OutcomeEffect::Allowed {
            return Err(ApprovalDenial::NoReceipt(problem.to_string()));
        }
        self.receipt_problem = Some(problem.to_string());
        Ok(())
    }

    async fn receipt(
        &self,
        artifact: &PlainArtifact,
        parts: Vec<ReceiptPart>,
        outcome: Option<&str>,
    ) -> Receipt {
        Receipt {
            tenant: self.tenant.clone(),
            enforcer: self.id.clone(),
            artifact: Some(artifact.text().to_owned()),
            devices: self.statements(&parts).await,
            teams: self.rule_states(artifact).await.unwrap_or_default(),
            parts,
            outcome: outcome.map(str::to_owned),
            log: Vec::new(),
        }
    }

    /// The states of the teams in the rule, until the last one that is known here. None if the gateway
    /// does not have them all: then nobody can count by the receipt, until the rest is known.
    async fn rule_states(&self, artifact: &PlainArtifact) -> Option<Vec<String>> {
        let Some(ArtifactRule::Known(rule)) = artifact.rule() else {
            return None;
        };
        let teams: BTreeSet<_> = rule.terms.teams().map(|head| head.team).collect();
        let deadline = Instant::now() + STATEMENTS_TIMEOUT;
        let mut states = Vec::new();
        for team in teams {
            let chain = self.team_file().find(team).ok()??.chain().ok()?;
            states.extend(read_states(&self.access, &chain, deadline).await.ok()?);
        }
        let size: usize = states.iter().map(String::len).sum();
        (states.len() <= MAX_STATEMENTS && size <= MAX_STATE_BYTES).then_some(states)
    }

    /// For those who know another device of an approver. The file is complete without, so a list
    /// that is missing or too long is left out.
    async fn statements(&self, parts: &[ReceiptPart]) -> Vec<String> {
        let deadline = Instant::now() + STATEMENTS_TIMEOUT;
        let reading = (parts.iter()).map(|it| self.statements_of(&it.approver, deadline));
        let lists = join_all(reading).await.into_iter().flatten();
        let most = MAX_STATEMENTS / parts.len().max(1);
        lists.filter(|list| list.len() <= most).flatten().collect()
    }
}

fn receipt_part(part: &SetPart) -> Result<Option<ReceiptPart>> {
    let (Some(decision), Some(verified)) = (&part.decision, part.verified()) else {
        return Ok(None);
    };
    let (approver, device) = signer_of(verified);
    let signer = (approver.clone(), device);
    let (message, enforcer) = (&decision.message, &part.enforcer);
    let decided = decided_part(enforcer, &part.own, message, &signer, &part.devices)?;
    Ok(decided.map(|decided| ReceiptPart {
        seat: part.seat.clone(),
        ..decided
    }))
}

fn decided_part(
    enforcer: &Enforcer,
    own: &OwnRequest,
    message: &DecisionMessage,
    (approver, device): &DecisionSigner,
    devices: &[DeviceTrust],
) -> Result<Option<ReceiptPart>> {
    let mut known = devices.iter();
    let Some(device) = known.find_map(|trust| trust.device(*device).ok()) else {
        return Ok(None);
    };
    let device = device.bundle();
    let node = wire::parse(message.body.as_bytes())?;
    Ok(Some(ReceiptPart {
        request_id: own.request_id.clone(),
        seat: None,
        approver: approver.clone(),
        decision: message.body.clone(),
        device: device.clone(),
        // A rejection counts even if its comment cannot be read.
        hints_key: hints_key(&node, own, &enforcer.keys, device).unwrap_or_default(),
    }))
}
