//! Ends an exchange without a decision: withdrawal by the enforcer, cancellation by an
//! administrator.

use crate::gateway::ExchangeService;
use crate::gateway::error::{Error, Result};
use crate::gateway::identity::caller::{Admin, CallerIdentity, Enforcer};
use crate::protocol::envelope::IncomingEnvelope;
use crate::protocol::exchange::{ExchangeState, judge_end};
use crate::protocol::id::{EnforcerId, RequestId};
use crate::protocol::json;
use crate::protocol::refresh::parse_reason;
use crate::protocol::timestamp::Timestamp;
use crate::store::exchanges::end_exchange::{EndRow, ExchangeEnding};
use crate::wake::WakeKey;

#[derive(Debug)]
pub struct EndedExchange {
    pub at: Timestamp,
    /// When it would have expired.
    pub expires_at: Option<Timestamp>,
}

impl ExchangeService {
    /// Reads a withdrawal: an envelope, or nothing at all.
    pub fn read_withdrawal(
        &self,
        caller: &Enforcer,
        request: &RequestId,
        body: &[u8],
    ) -> Result<(Option<EnforcerId>, Option<String>)> {
        if body.is_empty() {
            // The sender is then the enforcer that the credential is bound to.
            return Ok((caller.bound.clone(), None));
        }
        let node = json::parse(body)?;
        let envelope = IncomingEnvelope::parse(&node, "exchange.withdrawn")?;
        envelope.expect_request(request)?;
        let enforcer = caller.named(&envelope.sender)?;
        self.context.check_created(envelope.created_at)?;
        Ok((Some(enforcer), parse_reason(envelope.body, "/body")?))
    }

    /// Withdraws a pending exchange of the enforcer's own.
    pub async fn withdraw(
        &self,
        caller: &Enforcer,
        request: &RequestId,
        enforcer: Option<EnforcerId>,
        reason: Option<&str>,
    ) -> Result<EndedExchange> {
        let enforcer = match enforcer {
            Some(enforcer) => enforcer,
            // An unbound credential that names nobody acts as the exchange's own enforcer.
            None => {
                self.store
                    .exchange(&caller.origin.tenant, request)
                    .await?
                    .ok_or(Error::NotFound)?
                    .enforcer_id
            }
        };
        self.presence.seen(&caller.origin.tenant, &enforcer);
        let ending = ExchangeEnding::Withdrawn(enforcer);
        self.end(&caller.origin, request, &ending, reason).await
    }

    pub async fn cancel(
        &self,
        caller: &Admin,
        request: &RequestId,
        reason: Option<&str>,
    ) -> Result<EndedExchange> {
        let origin = &caller.origin;
        let ending = ExchangeEnding::Cancelled(origin.principal.clone());
        let ended = self.end(origin, request, &ending, reason).await?;
        tracing::info!(%request, by = origin.principal, "an exchange was cancelled");
        Ok(ended)
    }

    async fn end(
        &self,
        origin: &CallerIdentity,
        request: &RequestId,
        ending: &ExchangeEnding,
        reason: Option<&str>,
    ) -> Result<EndedExchange> {
        let tenant = &origin.tenant;
        let approvers = self.store.approvers_of(tenant, request).await?;
        if approvers.is_empty() {
            return Err(Error::NotFound);
        }
        let operation = self.context.clock.operation_id();
        let messages: Vec<_> = approvers
            .into_iter()
            .map(|approver| (approver, self.context.clock.message_id()))
            .collect();
        let row = EndRow {
            operation,
            tenant,
            request_id: request,
            ending,
            source: &origin.source(),
            reason,
            messages: &messages,
        };
        let fact = self.store.end(&row).await?;
        let at = judge_end(&fact)?;
        let to = match ending {
            ExchangeEnding::Withdrawn(_) => ExchangeState::Withdrawn,
            ExchangeEnding::Cancelled(_) => ExchangeState::Cancelled,
        };
        self.context
            .note_transition(ExchangeState::PendingApproval.as_str(), to, 1);
        let approvers = messages
            .into_iter()
            .map(|(approver, _)| WakeKey::Approver(tenant.clone(), approver));
        let exchange = [WakeKey::Exchange(tenant.clone(), request.clone())];
        self.context
            .wake
            .wake(exchange.into_iter().chain(approvers));
        Ok(EndedExchange {
            at,
            expires_at: fact.expires_at,
        })
    }
}
