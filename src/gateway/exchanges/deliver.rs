//! Reads an exchange, acknowledges messages.

use crate::gateway::ExchangeService;
use crate::gateway::error::{Error, Result};
use crate::gateway::identity::caller::{CallerIdentity, EnforcerOrApprover, Member};
use crate::protocol::envelope::IncomingEnvelope;
use crate::protocol::exchange::ExchangeState;
use crate::protocol::id::{MessageId, RequestId};
use crate::protocol::json::JsonNode;
use crate::protocol::refresh::{AckStatus, RefreshAck, parse_ack};
use crate::protocol::timestamp::Timestamp;
use crate::store::channels::ack::{AckRecipient, AckRow};
use crate::store::exchanges::exchange::Exchange;
use crate::telemetry::trace;

#[derive(Debug)]
pub struct AckCommand {
    pub origin: CallerIdentity,
    pub bound: bool,
    pub recipient: AckRecipient,
    ack: RefreshAck,
}

#[derive(Debug)]
pub struct AckOutcome {
    /// The exchange or prompt it is about.
    pub request_id: RequestId,
    pub expires_at: Option<Timestamp>,
    pub message_id: MessageId,
    pub status: AckStatus,
}

fn may_read(caller: &Member, exchange: &Exchange) -> bool {
    match caller {
        Member::Enforcer(enforcer) => enforcer.may_be(&exchange.enforcer_id),
        Member::Approver(approver) => exchange
            .approver_ids
            .iter()
            .any(|asked| approver.may_be(asked)),
        Member::Admin(_) => true,
    }
}

impl ExchangeService {
    pub async fn exchange(&self, caller: &Member, request: &RequestId) -> Result<Exchange> {
        let tenant = &caller.origin().tenant;
        let found = self.store.exchange(tenant, request).await?;
        if let Member::Enforcer(enforcer) = caller {
            let asked = found.as_ref().map(|exchange| &exchange.enforcer_id);
            if let Some(id) = enforcer.bound.as_ref().or(asked) {
                self.presence.seen(tenant, id);
            }
        }
        found
            .filter(|exchange| may_read(caller, exchange))
            .ok_or(Error::NotFound)
    }

    /// The outcome that the enforcer has signed, for those who may read the exchange.
    pub async fn outcome(&self, caller: &Member, request: &RequestId) -> Result<String> {
        self.exchange(caller, request).await?;
        let tenant = &caller.origin().tenant;
        let found = self.store.outcome(tenant, request).await?;
        found.ok_or(Error::NotFound)
    }

    pub fn read_ack(
        &self,
        caller: &EnforcerOrApprover,
        document: &JsonNode<'_>,
    ) -> Result<AckCommand> {
        let envelope = IncomingEnvelope::parse(document, "ack.submit")?;
        let sender = &envelope.sender;
        let recipient = match caller {
            EnforcerOrApprover::Enforcer(caller) => AckRecipient::Enforcer(caller.sending(sender)?),
            EnforcerOrApprover::Approver(caller) => AckRecipient::Approver(caller.sending(sender)?),
        };
        self.context.check_created(envelope.created_at)?;
        Ok(AckCommand {
            origin: caller.origin().clone(),
            bound: caller.bound().is_some(),
            recipient,
            ack: parse_ack(envelope.body)?,
        })
    }

    /// Accepts an ack: the message is not delivered again, and a decision counts as delivered.
    pub async fn acknowledge(&self, command: AckCommand) -> Result<AckOutcome> {
        let source = command.origin.source();
        let tenant = command.origin.tenant;
        if let AckRecipient::Enforcer(enforcer) = &command.recipient {
            self.presence.seen(&tenant, enforcer);
        }
        // Message ids are UUIDs.
        let message = command.ack.message_id.ok_or(Error::NotFound)?;
        let row = AckRow {
            operation: self.context.clock.operation_id(),
            tenant,
            recipient: command.recipient,
            message,
            outcome: command.ack.outcome,
            source,
        };
        let acked = self.store.acks.run(row).await?.locked()?;
        let acked = acked.ok_or(Error::NotFound)?;
        self.context.wake.forget(message);
        trace::adopt(acked.origin.as_ref());
        if acked.delivered {
            self.context.note_transition(
                ExchangeState::Decided.as_str(),
                ExchangeState::Delivered,
                1,
            );
        }
        Ok(AckOutcome {
            request_id: acked.request_id,
            expires_at: acked.expires_at,
            message_id: message,
            status: command.ack.status,
        })
    }
}
