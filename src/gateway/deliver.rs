//! Reads an exchange, waits for its decision, acknowledges messages. A wait holds no database connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::Exchanges;
use super::caller::{EnforcerOrAdmin, EnforcerOrApprover, Member, Origin};
use super::error::{Error, Result};
use crate::jitter::jitter;
use crate::protocol::envelope::Incoming;
use crate::protocol::exchange::ExchangeState;
use crate::protocol::id::{EnforcerId, MessageId, RequestId, TenantId};
use crate::protocol::json::Node;
use crate::protocol::refresh::{Ack, AckStatus, parse_ack};
use crate::protocol::timestamp::Timestamp;
use crate::store::ack::{AckRecipient, AckRow};
use crate::store::exchange::Exchange;
use crate::telemetry::trace;
use crate::wake::{Cause, Key};

/// Pause before a wait reads again after a failed read.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub enum Waited {
    Decided(Box<Exchange>),
    /// Ended without a decision.
    Over(ExchangeState),
    Pending,
}

#[derive(Debug)]
pub struct AckCommand {
    pub origin: Origin,
    pub bound: bool,
    pub recipient: AckRecipient,
    ack: Ack,
}

#[derive(Debug)]
pub struct Acknowledged {
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

impl Exchanges {
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

    /// Waits for an exchange's decision, at most `time_limit`. Each read counts as a call of the enforcer: at least when the
    /// wait begins and when it ends.
    pub async fn wait(
        &self,
        caller: EnforcerOrAdmin,
        request: &RequestId,
        time_limit: Duration,
    ) -> Result<Waited> {
        let caller = Member::from(caller);
        let origin = caller.origin();
        let deadline = Instant::now() + time_limit;
        let mut turn = None;
        let mut cause = Cause::Hint;
        // Register before reading, so that a decision in between is not missed.
        let key = Key::Exchange(origin.tenant.clone(), request.clone());
        let mut waiter = self.context.wake.register(key);
        loop {
            let exchange = match self.exchange(&caller, request).await {
                // Once begun, a wait survives a short outage or overload of the database.
                Err(Error::Unavailable) if turn.is_some() && Instant::now() < deadline => {
                    let again = deadline.min(Instant::now() + jitter(LOOK_AGAIN));
                    sleep_until(again).await;
                    continue;
                }
                exchange => exchange?,
            };
            match exchange.state {
                ExchangeState::Decided | ExchangeState::Delivered => {
                    let decided = exchange.decision.as_ref();
                    if let Some(decision) = decided {
                        self.context
                            .note_missed(cause, "exchange", decision.decided_at);
                        trace::adopt_from(decision.trace.as_deref());
                    }
                    return Ok(Waited::Decided(Box::new(exchange)));
                }
                ExchangeState::Expired | ExchangeState::Withdrawn | ExchangeState::Cancelled => {
                    return Ok(Waited::Over(exchange.state));
                }
                ExchangeState::PendingApproval => {}
            }
            if Instant::now() >= deadline {
                return Ok(Waited::Pending);
            }
            if turn.is_none() {
                let most = self.context.config.limits.waits_per_identity;
                turn = Some(self.waits.enter(origin, &exchange.enforcer_id, most)?);
            }
            // The exchange's expiry ends the wait, whether or not the sweep has written it.
            let look_again =
                deadline.min(Instant::now() + exchange.expires_in + Duration::from_millis(1));
            tokio::select! {
                by = waiter.woken() => cause = by,
                () = sleep_until(look_again) => {}
                () = self.context.draining.cancelled() => return Ok(Waited::Pending),
            }
        }
    }

    pub fn waiting(&self) -> usize {
        self.waits.counts().values().sum()
    }

    pub fn read_ack(&self, caller: &EnforcerOrApprover, document: &Node<'_>) -> Result<AckCommand> {
        let envelope = Incoming::parse(document, "ack.submit")?;
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
    pub async fn acknowledge(&self, command: AckCommand) -> Result<Acknowledged> {
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
            source,
        };
        let acked = self.store.acks.run(row).await?.locked()?;
        let acked = acked.ok_or(Error::NotFound)?;
        trace::adopt(acked.origin.as_ref());
        if acked.delivered {
            self.context.note_transition(
                ExchangeState::Decided.as_str(),
                ExchangeState::Delivered,
                1,
            );
        }
        Ok(Acknowledged {
            request_id: acked.request_id,
            expires_at: acked.expires_at,
            message_id: message,
            status: command.ack.status,
        })
    }
}

/// A principal of a tenant, and the enforcer it waits for.
type Identity = (TenantId, String, EnforcerId);

/// Counts the waits of each identity on this node.
#[derive(Clone, Default)]
pub(super) struct WaitCounter {
    /// Held for a few instructions, never across an await.
    counts: Arc<Mutex<HashMap<Identity, usize>>>,
}

/// A counted wait. Dropping it ends the count.
struct Turn {
    identity: Identity,
    counter: WaitCounter,
}

impl WaitCounter {
    fn counts(&self) -> MutexGuard<'_, HashMap<Identity, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, origin: &Origin, enforcer: &EnforcerId, most: usize) -> Result<Turn> {
        // A token's issuer may use the same subject in several tenants.
        let identity = (
            origin.tenant.clone(),
            origin.principal.clone(),
            enforcer.clone(),
        );
        let mut counts = self.counts();
        let count = counts.entry(identity.clone()).or_default();
        if *count >= most {
            return Err(Error::TooManyWaits);
        }
        *count += 1;
        Ok(Turn {
            identity,
            counter: self.clone(),
        })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut counts = self.counter.counts();
        if let Some(count) = counts.get_mut(&self.identity) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.identity);
            }
        }
    }
}
