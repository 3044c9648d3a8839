//! Waits for the end of exchanges. A wait holds no database connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::select_all;
use tokio::time::{Instant, sleep_until};

use super::ExchangeService;
use super::caller::{CallerIdentity, EnforcerOrAdmin, Member};
use super::error::{Error, Result};
use crate::jitter::jitter;
use crate::protocol::exchange::ExchangeState;
use crate::protocol::id::{EnforcerId, RequestId, TenantId};
use crate::store::exchange::Exchange;
use crate::telemetry::trace;
use crate::wake::{WakeCause, WakeKey};

/// Pause before a wait reads again after a failed read.
const RECHECK_INTERVAL: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub enum WaitOutcome {
    Decided(Box<Exchange>),
    /// Ended without a decision.
    Over(ExchangeState),
    Pending,
}

impl ExchangeService {
    /// Waits for an exchange's decision, at most `time_limit`. Each read counts as a call of the enforcer: at least when the
    /// wait begins and when it ends.
    pub async fn wait(
        &self,
        caller: EnforcerOrAdmin,
        request: &RequestId,
        time_limit: Duration,
    ) -> Result<WaitOutcome> {
        let caller = Member::from(caller);
        let origin = caller.origin();
        let deadline = Instant::now() + time_limit;
        let mut turn = None;
        let mut cause = WakeCause::Hint;
        // Register before reading, so that a decision in between is not missed.
        let key = WakeKey::Exchange(origin.tenant.clone(), request.clone());
        let mut waiter = self.context.wake.register(key);
        loop {
            let exchange = match self.exchange(&caller, request).await {
                // Once begun, a wait survives a short outage or overload of the database.
                Err(Error::Unavailable) if turn.is_some() && Instant::now() < deadline => {
                    let again = deadline.min(Instant::now() + jitter(RECHECK_INTERVAL));
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
                    return Ok(WaitOutcome::Decided(Box::new(exchange)));
                }
                ExchangeState::Expired | ExchangeState::Withdrawn | ExchangeState::Cancelled => {
                    return Ok(WaitOutcome::Over(exchange.state));
                }
                ExchangeState::PendingApproval => {}
            }
            if Instant::now() >= deadline {
                return Ok(WaitOutcome::Pending);
            }
            if turn.is_none() {
                let most = self.context.config.limits.waits_per_identity;
                turn = Some(
                    self.waits
                        .enter(origin, Some(&exchange.enforcer_id), 1, most)?,
                );
            }
            // The exchange's expiry ends the wait, whether or not the sweep has written it.
            let look_again =
                deadline.min(Instant::now() + exchange.expires_in + Duration::from_millis(1));
            tokio::select! {
                by = waiter.woken() => cause = by,
                () = sleep_until(look_again) => {}
                () = self.context.draining.cancelled() => return Ok(WaitOutcome::Pending),
            }
        }
    }

    /// Waits until one of these exchanges is no longer pending, at most `time_limit`. Returns all of which that is known
    /// then; those that the caller may not read are among them.
    pub async fn wait_for_any(
        &self,
        caller: &Member,
        requests: Vec<RequestId>,
        time_limit: Duration,
    ) -> Result<Vec<RequestId>> {
        let origin = caller.origin();
        let deadline = Instant::now() + time_limit;
        let most = self.context.config.limits.waits_per_identity;
        let _turn = self.waits.enter(origin, None, requests.len(), most)?;
        // Registered before the first read, so that an end in between is not missed.
        let mut waiters: Vec<_> = requests
            .iter()
            .map(|request| WakeKey::Exchange(origin.tenant.clone(), request.clone()))
            .map(|key| self.context.wake.register(key))
            .collect();
        let requests = Arc::new(requests);
        let mut has_read = false;
        loop {
            let pending = match self.pending_of(caller, &requests).await {
                // Once begun, a wait survives a short outage or overload of the database.
                Err(Error::Unavailable) if has_read && Instant::now() < deadline => {
                    let again = deadline.min(Instant::now() + jitter(RECHECK_INTERVAL));
                    sleep_until(again).await;
                    continue;
                }
                pending => pending?,
            };
            has_read = true;
            let ended = requests.iter().filter(|id| !pending.contains_key(*id));
            let ended: Vec<_> = ended.cloned().collect();
            if !ended.is_empty() || Instant::now() >= deadline {
                return Ok(ended);
            }
            let first = pending.values().min().copied().unwrap_or_default();
            let look_again = deadline.min(Instant::now() + first + Duration::from_millis(1));
            let woken = waiters.iter_mut().map(|waiter| Box::pin(waiter.woken()));
            tokio::select! {
                _ = select_all(woken) => {}
                () = sleep_until(look_again) => {}
                () = self.context.draining.cancelled() => return Ok(Vec::new()),
            }
            // Whatever woke the others too is seen by the next read.
            for waiter in &mut waiters {
                let _woken = waiter.woken().now_or_never();
            }
        }
    }

    /// Those of these exchanges that are pending, as far as the caller may read them. Read to the end also if the client
    /// hangs up: a database call that is dropped halfway costs its connection.
    async fn pending_of(
        &self,
        caller: &Member,
        requests: &Arc<Vec<RequestId>>,
    ) -> Result<HashMap<RequestId, Duration>> {
        let tenant = caller.origin().tenant.clone();
        let (enforcer, approver) = match caller {
            Member::Enforcer(caller) => (caller.bound.clone(), None),
            Member::Approver(caller) => (None, caller.bound.clone()),
            Member::Admin(_) => (None, None),
        };
        if let Some(enforcer) = &enforcer {
            self.presence.seen(&tenant, enforcer);
        }
        let (store, requests) = (Arc::clone(&self.store), Arc::clone(requests));
        let read = self.context.tasks.spawn(async move {
            store
                .pending_of(&tenant, &requests, enforcer.as_ref(), approver.as_ref())
                .await
        });
        let read = read.await.map_err(|_| Error::Internal)?;
        Ok(read?)
    }

    pub fn waiting(&self) -> usize {
        self.waits.counts().values().sum()
    }
}

/// A principal of a tenant, and the enforcer it waits for, if it waits for one.
type WaiterIdentity = (TenantId, String, Option<EnforcerId>);

/// Counts the waits of each identity on this node.
#[derive(Clone, Default)]
pub(super) struct WaitCounter {
    /// Held for a few instructions, never across an await.
    counts: Arc<Mutex<HashMap<WaiterIdentity, usize>>>,
}

/// Counted waits. Dropping it ends the count.
struct WaitPermit {
    identity: WaiterIdentity,
    count: usize,
    counter: WaitCounter,
}

impl WaitCounter {
    fn counts(&self) -> MutexGuard<'_, HashMap<WaiterIdentity, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(
        &self,
        origin: &CallerIdentity,
        enforcer: Option<&EnforcerId>,
        count: usize,
        most: usize,
    ) -> Result<WaitPermit> {
        // A token's issuer may use the same subject in several tenants.
        let identity = (
            origin.tenant.clone(),
            origin.principal.clone(),
            enforcer.cloned(),
        );
        let mut counts = self.counts();
        let before = counts.get(&identity).copied().unwrap_or_default();
        if before + count > most {
            return Err(Error::TooManyWaits);
        }
        counts.insert(identity.clone(), before + count);
        Ok(WaitPermit {
            identity,
            count,
            counter: self.clone(),
        })
    }
}

impl Drop for WaitPermit {
    fn drop(&mut self) {
        let mut counts = self.counter.counts();
        if let Some(count) = counts.get_mut(&self.identity) {
            *count -= self.count;
            if *count == 0 {
                counts.remove(&self.identity);
            }
        }
    }
}
