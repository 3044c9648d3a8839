//! Deciding an exchange.

use crate::gateway::ExchangeService;
use crate::gateway::error::{Error, Result};
use crate::gateway::identity::caller::Approver;
use crate::protocol::decision::{CompactRule, Decision, DecisionForm, SignatureTrust};
use crate::protocol::envelope::IncomingEnvelope;
use crate::protocol::exchange::{ExchangeState, JudgedDecision, judge_decision};
use crate::protocol::id::ApproverId;
use crate::protocol::json::JsonNode;
use crate::protocol::timestamp::Timestamp;
use crate::store::exchanges::decide::DecisionRow;
use crate::telemetry::trace;
use crate::wake::{NewMessage, WakeKey};

/// How often the signature is judged if the approver's keys keep changing.
const TRIES: usize = 3;

impl ExchangeService {
    /// Reads a decision from a wire Envelope, with all checks that need no database.
    pub fn read_decision(
        &self,
        caller: &Approver,
        document: &JsonNode<'_>,
    ) -> Result<(ApproverId, Decision)> {
        let envelope = IncomingEnvelope::parse(document, "decision.submit")?;
        let approver = caller.named(&envelope.sender)?;
        Ok((approver, self.read_verdict(&envelope)?))
    }

    pub(in crate::gateway) fn read_verdict(
        &self,
        envelope: &IncomingEnvelope<'_, '_>,
    ) -> Result<Decision> {
        self.context.check_created(envelope.created_at)?;
        let decision = Decision::parse(envelope)?;
        let compact = self.context.config.decisions.compact;
        if decision.form == DecisionForm::Compact && compact == CompactRule::Refuse {
            return Err(Error::CompactRefused);
        }
        let now = self.context.clock.now();
        if decision.expires_at.is_some_and(|at| at <= now) {
            return Err(Error::DecisionExpired);
        }
        Ok(decision)
    }

    /// Accepts a decision, at most one per exchange, and queues its delivery. Also returns the
    /// exchange's expiry.
    pub async fn decide(
        &self,
        caller: &Approver,
        approver: ApproverId,
        decision: Decision,
    ) -> Result<(JudgedDecision, Option<Timestamp>)> {
        let tenant = &caller.origin.tenant;
        let request = decision.request_id.clone();
        let operation = self.context.clock.operation_id();
        let message = self.context.clock.message_id();
        trace::adopt_from(decision.trace.as_deref());
        for attempt in 0..TRIES {
            let keys = &self.keys;
            let trust = keys.trust(tenant, &approver, &decision, attempt > 0);
            let trust = trust.await?;
            let verified = matches!(trust, SignatureTrust::Verified(_));
            let row = DecisionRow {
                operation,
                tenant: tenant.clone(),
                approver: approver.clone(),
                decision: decision.clone(),
                counted: decision.counted_nonce(&trust, self.context.config.decisions.compact),
                trust,
                source: caller.origin.source(),
                message,
            };
            let outcome = self.store.decisions.run(row).await?.locked()?;
            trace::adopt(outcome.origin.as_ref());
            let Some(decided) = judge_decision(&outcome.fact, verified)? else {
                continue;
            };
            if let Some(waited) = outcome.waited {
                self.context.metrics.decision_latency.observe(waited);
                self.context.note_transition(
                    ExchangeState::PendingApproval.as_str(),
                    ExchangeState::Decided,
                    1,
                );
            }
            if !decided.duplicate {
                let wake = &self.context.wake;
                wake.wake([WakeKey::Exchange(tenant.clone(), request)]);
                if let Some(enforcer) = outcome.enforcer {
                    let enforcer = WakeKey::Enforcer(tenant.clone(), enforcer);
                    match (outcome.delivery, outcome.expires_at) {
                        (Some(delivery), Some(expires_at)) => wake.announce(
                            enforcer,
                            NewMessage::Decision {
                                request_id: decision.request_id,
                                expires_at,
                                delivery,
                            },
                        ),
                        _ => wake.wake_for(&enforcer, message),
                    }
                }
            }
            return Ok((decided, outcome.expires_at));
        }
        Err(Error::Unavailable)
    }
}
