//! Requests that outlive their process: submitted under a key, resumed from a stored text, and used
//! once.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::approval_request::{AcceptedApproval, ApprovalDenial, ApprovalRequest, MAX_TIMEOUT};
use super::pending_request::{DecisionMessage, PendingRequest, RequestSubmission};
use super::role::Enforcer;
use super::stored_request::StoredRequest;
use super::use_journal::keep_text;
use crate::error::{ClientError, Result};
use crate::private_file::PrivateFile;
use crate::profile::REQUESTS;
use crate::wire;
use countersign_e2e::{
    self as e2e, DeviceId, OutcomeEffect, OwnRequest, PlainArtifact, VerifiedDecision,
};
use countersign_protocol::canonical::Sha256Hex;
use countersign_protocol::id::ApproverId;

/// Of reading a list of devices while a decision is judged or used.
const JUDGE_TIMEOUT: Duration = Duration::from_secs(15);

/// A submission as it is kept under its key before it is sent.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredSubmission {
    v: u8,
    request: String,
    envelope: String,
    recipients: Vec<String>,
}

impl Enforcer {
    pub(crate) fn parse_request(&self, text: &str) -> Result<StoredRequest, ApprovalDenial> {
        StoredRequest::parse(text, &self.keys, &self.id, &self.tenant)
    }

    pub(crate) fn spell_request(&self, stored: &StoredRequest) -> Result<String, ApprovalDenial> {
        stored.to_json(&self.keys)
    }

    /// A request that this or another process has submitted.
    pub(crate) fn resume(&mut self, stored: &StoredRequest) -> PendingRequest<'_> {
        let artifact = stored.artifact.clone();
        let left = artifact.expires_at().inner() - self.access.now().inner();
        let left = Duration::try_from(left).unwrap_or_default();
        let until = Instant::now() + left.min(MAX_TIMEOUT);
        PendingRequest {
            own: OwnRequest::of(&artifact, self.id.clone()),
            seat: None,
            asked: (artifact.named_approvers().map(ApproverId::to_string)).collect(),
            artifact,
            outcome_key: stored.outcome_key.clone(),
            devices: Vec::new(),
            submission: None,
            submit_until: until,
            until,
            enforcer: self,
        }
    }

    /// Sends a request and returns once the gateway has it. With a key, a repeated submission is the
    /// same request, also after a crash; `is_same` tells whether the kept one is about the same.
    pub(crate) async fn submit(
        &mut self,
        request: ApprovalRequest,
        key: Option<&str>,
        is_same: impl Fn(&PlainArtifact) -> bool,
    ) -> Result<StoredRequest, ApprovalDenial> {
        let path = key.map(|key| self.key_path(key));
        let kept = path.as_ref().map(|path| self.kept(path)).transpose()?;
        let (stored, submission) = if let Some(kept) = kept.flatten() {
            kept
        } else {
            let (stored, submission) = self.prepare_stored(request).await?;
            match &path {
                Some(path) => self.keep_first(path, stored, submission)?,
                None => (stored, submission),
            }
        };
        if key.is_some() && !is_same(&stored.artifact) {
            return Err(ApprovalDenial::KeyReused);
        }
        let mut pending = self.resume(&stored);
        pending.submission = Some(submission);
        pending.submit().await?;
        Ok(stored)
    }

    async fn prepare_stored(
        &mut self,
        request: ApprovalRequest,
    ) -> Result<(StoredRequest, RequestSubmission), ApprovalDenial> {
        let (tenant, enforcer) = (self.tenant.clone(), self.id.clone());
        let pending = self.prepare(request).await?;
        let stored = StoredRequest {
            tenant,
            enforcer,
            artifact: pending.artifact,
            outcome_key: pending.outcome_key,
        };
        let submission = pending.submission.ok_or(ApprovalDenial::NotPaired)?;
        Ok((stored, submission))
    }

    fn key_path(&self, key: &str) -> PathBuf {
        let name = format!("{}.json", Sha256Hex::of(key.as_bytes()));
        self.file.beside(REQUESTS).path().join(name)
    }

    fn kept(
        &self,
        path: &Path,
    ) -> Result<Option<(StoredRequest, RequestSubmission)>, ApprovalDenial> {
        let problem = |problem: String| ClientError::Kept {
            path: path.to_owned(),
            problem,
        };
        let text = PrivateFile::at(path.to_owned()).read();
        let Some(text) = text.map_err(|error| problem(error.to_string()))? else {
            return Ok(None);
        };
        let stored = serde_json::from_str::<StoredSubmission>(&text).ok();
        let stored = stored.filter(|stored| stored.v == 1);
        let stored = stored.ok_or_else(|| problem("it is damaged".to_owned()))?;
        let recipients = stored.recipients.iter().map(|id| DeviceId::parse(id));
        let recipients: BTreeSet<_> = recipients.collect::<Result<_, e2e::Error>>()?;
        let submission = RequestSubmission {
            envelope: stored.envelope,
            recipients,
        };
        Ok(Some((self.parse_request(&stored.request)?, submission)))
    }

    /// Keeps a submission before it is sent. If another process was faster, returns its own.
    fn keep_first(
        &self,
        path: &Path,
        stored: StoredRequest,
        submission: RequestSubmission,
    ) -> Result<(StoredRequest, RequestSubmission), ApprovalDenial> {
        let text = StoredSubmission {
            v: 1,
            request: self.spell_request(&stored)?,
            envelope: submission.envelope.clone(),
            recipients: (submission.recipients.iter())
                .map(DeviceId::to_string)
                .collect(),
        };
        let text = serde_json::to_string(&text).map_err(ClientError::answer)?;
        if keep_text(path, &text)? {
            return Ok((stored, submission));
        }
        let gone = || ClientError::Kept {
            path: path.to_owned(),
            problem: "it has disappeared".to_owned(),
        };
        Ok(self.kept(path)?.ok_or_else(gone)?)
    }
}

impl PendingRequest<'_> {
    /// The approval, if there is one within `wait`. A denial is final before anybody is told: no
    /// decision can be used later, whatever the gateway shows then.
    pub(crate) async fn outcome(
        &mut self,
        wait: Duration,
    ) -> Result<Option<(DecisionMessage, AcceptedApproval)>, ApprovalDenial> {
        let pause = Instant::now() + wait.min(MAX_TIMEOUT);
        let Some(answer) = self.wait(Some(pause)).await? else {
            return Ok(None);
        };
        let deadline = self.until.min(Instant::now() + JUDGE_TIMEOUT);
        let (message, judged) = match self.judge(&answer, deadline).await {
            Ok(judged) => judged,
            Err(denial) => {
                if matches!(denial, ApprovalDenial::Ended(_)) {
                    self.enforcer.take_once(self.request_id())?;
                }
                return Err(denial);
            }
        };
        match judged {
            Ok(approved) => {
                let accepted = self.accepted(&message, approved);
                Ok(Some((message, accepted)))
            }
            Err((denial, cause)) => {
                if self.enforcer.take_once(self.request_id())? {
                    let effect = OutcomeEffect::Denied(cause);
                    self.acknowledge(&message, effect).await;
                }
                Err(denial)
            }
        }
    }

    /// The steps before an approved call may run. A call that changed does not use the approval up.
    pub(crate) async fn take(
        &mut self,
        message: &DecisionMessage,
        is_same: impl FnOnce(&PlainArtifact) -> bool,
    ) -> Result<AcceptedApproval, ApprovalDenial> {
        if !is_same(&self.artifact) {
            let change = "the call is not the one that was approved".to_owned();
            return Err(ApprovalDenial::Changed(change));
        }
        if let Some(pause) = self.enforcer.current_pause(None, self.until).await {
            return Err(ApprovalDenial::Paused(pause));
        }
        // A device that was revoked since does not count any more.
        self.check_again(message).await?;
        if !self.enforcer.take_once(self.request_id())? {
            return Err(ApprovalDenial::AlreadyUsed);
        }
        self.acknowledge(message, OutcomeEffect::Allowed).await;
        self.check_again(message).await
    }

    async fn check_again(
        &mut self,
        message: &DecisionMessage,
    ) -> Result<AcceptedApproval, ApprovalDenial> {
        if self.time_left().is_zero() {
            return Err(ApprovalDenial::TimedOut);
        }
        let node = wire::parse(message.body.as_bytes())?;
        let deadline = self.until.min(Instant::now() + JUDGE_TIMEOUT);
        match self.accept_current(&node, deadline).await? {
            Ok((VerifiedDecision::Approved(approval), accepted_at)) => {
                Ok(self.accepted(message, (approval, accepted_at)))
            }
            Ok((VerifiedDecision::Rejected(rejection), _)) => {
                Err(ApprovalDenial::Rejected(Box::new(rejection)))
            }
            Err(error) => Err(ApprovalDenial::Untrusted(error)),
        }
    }

    /// Takes the request back. An approval that comes all the same cannot be used.
    pub(crate) async fn withdraw_for_good(&self, reason: &str) -> Result<()> {
        self.enforcer.take_once(self.request_id())?;
        self.withdraw(reason).await
    }
}
