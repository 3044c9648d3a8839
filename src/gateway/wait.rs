//! Waits for the end of exchanges. A wait holds no database connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::{Instant, sleep_until};

use super::Exchanges;
use super::caller::{EnforcerOrAdmin, Member, Origin};
use super::error::{Error, Result};
use crate::jitter::jitter;
use crate::protocol::exchange::ExchangeState;
use crate::protocol::id::{EnforcerId, RequestId, TenantId};
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

impl Exchanges {
    /// Waits for an exchange's decision, at most `time_limit`. Each read counts as a call of the enforcer: at least when the
    /// wait begins and when it ends.
    pub async fn wait(
        &self,
        caller: EnforcerOrAdmin,
        request: &RequestId,
        time_limit: Duration,
    ) -> Result<Waited> {
        let deadline = Instant::now() + time_limit;
        self.wait_until(&Member::from(caller), request, deadline)
            .await
    }

    /// Waits until one of these exchanges is no longer pending, at most `time_limit`. Returns all of which that is known
    /// then; those that the caller may not read are among them.
    pub async fn wait_for_any(
        &self,
        caller: &Member,
        requests: &[RequestId],
        time_limit: Duration,
    ) -> Result<Vec<RequestId>> {
        let deadline = Instant::now() + time_limit;
        let mut waits: FuturesUnordered<_> = requests
            .iter()
            .map(async |request| (request, self.wait_until(caller, request, deadline).await))
            .collect();
        let mut ended = Vec::new();
        let mut next = waits.next().await;
        while let Some((request, waited)) = next {
            match waited {
                Ok(Waited::Decided(_) | Waited::Over(_)) | Err(Error::NotFound) => {
                    ended.push(request.clone());
                }
                Ok(Waited::Pending) => {}
                Err(error) => return Err(error),
            }
            // The time of all of them is over at once.
            next = waits.next().now_or_never().flatten();
        }
        Ok(ended)
    }

    async fn wait_until(
        &self,
        caller: &Member,
        request: &RequestId,
        deadline: Instant,
    ) -> Result<Waited> {
        let origin = caller.origin();
        let mut turn = None;
        let mut cause = Cause::Hint;
        // Register before reading, so that a decision in between is not missed.
        let key = Key::Exchange(origin.tenant.clone(), request.clone());
        let mut waiter = self.context.wake.register(key);
        loop {
            let exchange = match self.exchange(caller, request).await {
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
