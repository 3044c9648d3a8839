//! Submitting an artifact.

use sha2::{Digest, Sha256};

use super::Gateway;
use super::caller::Enforcer;
use super::error::Error;
use crate::protocol::artifact::{self, Rules, Submission};
use crate::protocol::envelope::Incoming;
use crate::protocol::exchange::{State, SubmissionRefusal, Submitted, judge_submission};
use crate::protocol::id::{ApproverId, EnforcerId, TenantId};
use crate::protocol::json;
use crate::protocol::reader::Invalid;
use crate::protocol::routing::Route;
use crate::protocol::timestamp::Timestamp;
use crate::store::idempotency::IdempotencyKey;
use crate::store::pairing::TokenFact;
use crate::store::submit::{Asked, SubmissionRow};
use crate::telemetry::trace;
use crate::wake::Key;

#[derive(Debug)]
pub struct SubmitCommand {
    pub enforcer: EnforcerId,
    pub submission: Submission,
    pub idempotency: Option<IdempotencyKey>,
}

impl Gateway {
    pub(super) fn check_created(&self, created_at: Timestamp) -> Result<(), Invalid> {
        if created_at > self.in_seconds(self.config.limits.clock_skew_seconds) {
            return Err(Invalid::timestamp(
                "/createdAt",
                "a time that is not in the future",
            ));
        }
        Ok(())
    }

    /// Reads a submission out of a wire Envelope's bytes: everything that needs no database.
    pub fn read_submission(
        &self,
        caller: &Enforcer,
        body: &[u8],
        path: &str,
        idempotency_key: Option<String>,
    ) -> Result<SubmitCommand, Error> {
        let node = json::parse(body)?;
        let envelope = Incoming::parse(&node, "artifact.submit")?;
        let enforcer = caller.named(&envelope.sender)?;
        let submission = self.read_artifact(&envelope)?;
        let idempotency =
            idempotency_key.map(|key| bind_key(&caller.origin.principal, key, path, body));
        Ok(SubmitCommand {
            enforcer,
            submission,
            idempotency,
        })
    }

    pub(super) fn read_artifact(&self, envelope: &Incoming<'_, '_>) -> Result<Submission, Error> {
        self.check_created(envelope.created_at)?;
        if !self.config.artifacts.open && !artifact::is_sealed(envelope.body) {
            return Err(Error::OpenRefused);
        }
        let rules = Rules {
            max_payload: self.config.limits.artifact_bytes,
            requested_actions: self.names.requested_actions.clone(),
            latest_created: self.in_seconds(self.config.limits.clock_skew_seconds),
            latest_expiry: self.in_seconds(self.config.artifacts.max_lifetime_seconds),
        };
        Ok(artifact::parse(envelope, &rules)?)
    }

    /// Takes a submission: at most one exchange per id, whoever tries how often on however many nodes.
    pub async fn submit(
        &self,
        caller: &Enforcer,
        command: SubmitCommand,
    ) -> Result<Submitted, Error> {
        let tenant = &caller.origin.tenant;
        let SubmitCommand {
            enforcer,
            mut submission,
            idempotency,
        } = command;
        submission.trace = trace::carry(submission.trace);
        self.seen(tenant, &enforcer);
        // A repeat is a repeat even if it names nobody any more, so the store is asked all the same: a submission that
        // asks nobody is never written.
        let (approvers, unroutable) = self.approvers(tenant, &enforcer, &submission.route).await?;
        let mut asked = Vec::with_capacity(approvers.len());
        for approver in &approvers {
            asked.push(Asked {
                approver: approver.clone(),
                message: self.clock.message_id(),
                count: self.must_count(tenant, approver).await?,
            });
        }
        let operation = self.clock.operation_id();
        let expires_at = submission.expires_at;
        let row = SubmissionRow {
            operation,
            tenant: tenant.clone(),
            enforcer: enforcer.clone(),
            submission,
            asked,
            idempotency,
        };
        let outcome = self.store.submit(row).await?;
        let judged = judge_submission(outcome.fact, operation, expires_at);
        let submitted = match (judged, unroutable) {
            (Err(SubmissionRefusal::Unsettled), Some(error)) => return Err(error),
            (judged, _) => judged?,
        };
        if !submitted.duplicate {
            self.note_transition("none", State::PendingApproval, 1);
            let asked = approvers
                .into_iter()
                .map(|approver| Key::Approver(tenant.clone(), approver));
            // Most of whom are asked have no channel open: every node would be told for nothing.
            if outcome.channel_elsewhere {
                self.wake.wake(asked);
            } else {
                self.wake.wake_here(asked);
            }
        }
        Ok(submitted)
    }

    /// Whom a submission asks, or why that is nobody.
    async fn approvers(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        route: &Route,
    ) -> Result<(Vec<ApproverId>, Option<Error>), Error> {
        let asked = match route {
            Route::Approver(approver) => Ok(vec![approver.clone()]),
            Route::Token(token) => match self.store.token_of(tenant, enforcer, token).await? {
                TokenFact::Good(approver) => Ok(vec![approver]),
                TokenFact::Ended => Err(Error::PairingRevoked),
                TokenFact::Unknown => Err(Error::NoApprover {
                    pointer: "/body/metadata/routingToken",
                }),
            },
            Route::Paired => match self.store.paired_with(tenant, enforcer).await? {
                nobody if nobody.is_empty() => Err(Error::NoApprover {
                    pointer: "/recipient/approverId",
                }),
                approvers => Ok(approvers),
            },
        };
        Ok(match asked {
            Ok(approvers) => (approvers, None),
            Err(error) => (Vec::new(), Some(error)),
        })
    }
}

/// A key as a principal sent it, with what it asked under it.
pub(super) fn bind_key(principal: &str, key: String, path: &str, body: &[u8]) -> IdempotencyKey {
    IdempotencyKey {
        principal: principal.to_owned(),
        key,
        fingerprint: Sha256::new()
            .chain_update(path)
            .chain_update([b'\n'])
            .chain_update(body)
            .finalize()
            .into(),
    }
}
