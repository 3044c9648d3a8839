//! Submitting an artifact.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

use crate::gateway::ExchangeService;
use crate::gateway::error::{Error, Result};
use crate::gateway::identity::caller::{CallerIdentity, Enforcer};
use crate::protocol::artifact::{self, ArtifactRules, Submission};
use crate::protocol::envelope::IncomingEnvelope;
use crate::protocol::exchange::{ExchangeState, JudgedSubmission, NewExchange, judge_submission};
use crate::protocol::id::{ApproverId, EnforcerId, MessageId, TenantId};
use crate::protocol::json::JsonNode;
use crate::protocol::message::RequestMessage;
use crate::protocol::routing::RoutingTarget;
use crate::store::exchanges::idempotency::IdempotencyKey;
use crate::store::exchanges::submit::{AskedApprover, SubmissionRow};
use crate::store::pairing::pairings::{PairedApprovers, TokenFact};
use crate::telemetry::trace;
use crate::wake::{NAMED_BYTES, NewMessage, WakeKey};

const RECIPIENT: &str = "/recipient/approverId";
const APPROVER_IDS: &str = "/body/metadata/approverIds";

#[derive(Debug)]
pub struct SubmitCommand {
    pub enforcer: EnforcerId,
    pub submission: Submission,
    pub idempotency: Option<IdempotencyKey>,
    /// A warning for the sender of an accepted submission.
    pub warning: Option<&'static str>,
}

impl ExchangeService {
    /// Reads a submission from a wire Envelope, with all checks that need no database.
    pub fn read_submission(
        &self,
        caller: &Enforcer,
        document: &JsonNode<'_>,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<SubmitCommand> {
        let envelope = IncomingEnvelope::parse(document, "artifact.submit")?;
        let enforcer = caller.named(&envelope.sender)?;
        let submission = self.read_artifact(&envelope)?;
        Ok(SubmitCommand {
            enforcer,
            submission,
            idempotency,
            warning: self.context.created_warning(envelope.created_at),
        })
    }

    pub(in crate::gateway) fn read_artifact(
        &self,
        envelope: &IncomingEnvelope<'_, '_>,
    ) -> Result<Submission> {
        let context = &self.context;
        context.check_created(envelope.created_at)?;
        let (limits, artifacts) = (&context.config.limits, &context.config.artifacts);
        if !artifacts.open && !artifact::is_sealed(envelope.body) {
            return Err(Error::OpenRefused);
        }
        let rules = ArtifactRules {
            max_payload: limits.artifact_bytes,
            requested_actions: context.names.requested_actions.clone(),
            latest_created: context.in_seconds(limits.clock_skew_seconds),
            latest_expiry: context.in_seconds(artifacts.max_lifetime_seconds),
        };
        artifact::parse(envelope, &rules)
    }

    /// Accepts a submission: at most one exchange per id, on any number of nodes and attempts.
    pub async fn submit(
        &self,
        caller: &Enforcer,
        command: SubmitCommand,
    ) -> Result<JudgedSubmission> {
        let tenant = &caller.origin.tenant;
        let (enforcer, mut submission) = (command.enforcer, command.submission);
        submission.trace = trace::carry(submission.trace);
        self.presence.seen(tenant, &enforcer);
        // A repeat must be recognised even if it can no longer be routed, so the store is asked
        // anyway. It never writes a submission without approvers.
        let route = submission.route.clone();
        let (approvers, unroutable) = self.approvers(tenant, &enforcer, &route).await?;
        let counted = self.loads.must_count(tenant, &enforcer, &approvers).await?;
        let bytes = submission.stored.len();
        let asked: Vec<_> = approvers
            .iter()
            .map(|approver| {
                let key = WakeKey::Approver(tenant.clone(), approver.clone());
                AskedApprover {
                    approver: approver.clone(),
                    message: self.context.clock.message_id(),
                    is_awaited: self.context.wake.is_awaited(&key, bytes),
                    count: counted.contains(approver),
                }
            })
            .collect();
        let operation = self.context.clock.operation_id();
        let expires_at = submission.expires_at;
        let is_awaited = asked.iter().any(|asked| asked.is_awaited);
        let kept = is_awaited.then(|| (submission.clone(), asked.clone()));
        let messages: Vec<_> = asked.iter().map(|asked| asked.message).collect();
        let row = SubmissionRow {
            operation,
            tenant: tenant.clone(),
            enforcer: enforcer.clone(),
            submission,
            asked,
            idempotency: command.idempotency,
            source: caller.origin.source(),
        };
        let fact = self.store.submissions.run(row).await?;
        let judged = judge_submission(fact, operation, expires_at);
        let submitted = match (judged, unroutable) {
            (Err(Error::Unavailable), Some(error)) => return Err(error),
            (Err(Error::NotPaired { .. }), _) => return Err(unpaired(&route)),
            (judged, _) => judged?,
        };
        if !submitted.duplicate {
            let mut requests = match (&submitted.new, kept) {
                (Some(new), Some((submission, asked))) => {
                    new_requests(&enforcer, &submission, &asked, new)
                }
                _ => HashMap::new(),
            };
            self.context
                .note_transition("none", ExchangeState::PendingApproval, 1);
            self.context.notices.leave(tenant, &approvers);
            for (approver, message) in approvers.into_iter().zip(messages) {
                let key = WakeKey::Approver(tenant.clone(), approver);
                let wake = &self.context.wake;
                match requests.remove(&message) {
                    Some(request) => wake.announce(key, NewMessage::Request(request)),
                    None if bytes < NAMED_BYTES => wake.wake_for(&key, message),
                    // Its size must be known before it is read.
                    None => wake.wake([key]),
                }
            }
        }
        Ok(submitted)
    }

    /// The approvers that a submission asks, or why there are none.
    async fn approvers(
        &self,
        tenant: &TenantId,
        enforcer: &EnforcerId,
        route: &RoutingTarget,
    ) -> Result<(Vec<ApproverId>, Option<Error>)> {
        let pairings = &self.context.store.pairings;
        let most = self.context.config.limits.approvers_per_exchange;
        let limit = usize::try_from(most).unwrap_or(usize::MAX);
        let asked = match route {
            RoutingTarget::Approver { id, .. } => Ok(vec![id.clone()]),
            RoutingTarget::Token(token) => {
                match pairings.token_of(tenant, enforcer, token).await? {
                    TokenFact::Good(approver) => Ok(vec![approver]),
                    TokenFact::Ended => Err(Error::PairingRevoked),
                    TokenFact::Unknown => Err(Error::NoApprover {
                        pointer: "/body/metadata/routingToken",
                    }),
                }
            }
            RoutingTarget::Approvers(ids) if ids.len() > limit => Err(Error::TooManyApprovers {
                pointer: APPROVER_IDS,
                count: ids.len(),
                limit,
            }),
            RoutingTarget::Approvers(ids) => Ok(ids.clone()),
            RoutingTarget::Paired => match pairings.paired_with(tenant, enforcer).await? {
                PairedApprovers { count: 0, .. } => Err(Error::NoApprover { pointer: RECIPIENT }),
                PairedApprovers { count, .. } if count > limit => Err(Error::TooManyApprovers {
                    pointer: RECIPIENT,
                    count,
                    limit,
                }),
                PairedApprovers { approvers, .. } => Ok(approvers),
            },
        };
        Ok(match asked {
            Ok(approvers) => (approvers, None),
            Err(error) => (Vec::new(), Some(error)),
        })
    }
}

/// The requests that channels take without reading their rows.
fn new_requests(
    enforcer: &EnforcerId,
    submission: &Submission,
    asked: &[AskedApprover],
    new: &NewExchange,
) -> HashMap<MessageId, RequestMessage> {
    let requests = new.labels.iter().filter_map(|(message_id, label)| {
        let asked = asked.iter().find(|asked| asked.message == *message_id)?;
        let request = RequestMessage {
            message_id: *message_id,
            request_id: submission.request_id.clone(),
            created_at: new.accepted_at,
            expires_at: submission.expires_at,
            enforcer_id: enforcer.clone(),
            enforcer_label: label.clone(),
            approver_id: asked.approver.clone(),
            form: submission.form,
            artifact_type: submission.artifact_type.clone(),
            artifact_hash: submission.artifact_hash.to_string(),
            stored: Some(submission.stored.clone()),
            trace: submission.trace.clone(),
            expired: false,
        };
        Some((*message_id, request))
    });
    requests.collect()
}

/// The refusal of a submission to approvers that the enforcer must be paired with.
fn unpaired(route: &RoutingTarget) -> Error {
    match route {
        RoutingTarget::Approver { pointer, .. } => Error::NotPaired { pointer },
        // It was in force a moment ago.
        RoutingTarget::Token(_) => Error::PairingRevoked,
        RoutingTarget::Approvers(_) => Error::NotPaired {
            pointer: APPROVER_IDS,
        },
        RoutingTarget::Paired => Error::NotPaired { pointer: RECIPIENT },
    }
}

/// Binds an idempotency key to its principal and to the request that it was sent with.
pub fn bind_key(
    origin: &CallerIdentity,
    key: Option<String>,
    path: &str,
    body: &[u8],
) -> Option<IdempotencyKey> {
    Some(IdempotencyKey {
        principal: origin.principal.clone(),
        key: key?,
        fingerprint: Sha256::new()
            .chain_update(path)
            .chain_update([b'\n'])
            .chain_update(body)
            .finalize()
            .into(),
    })
}
