//! Waits for the end of exchanges. A wait holds no database connection.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::select_all;
use tokio::time::{Instant, sleep_until};

use crate::gateway::ExchangeService;
use crate::gateway::admission::{CountLimit, CounterPermit};
use crate::gateway::error::{Error, Result};
use crate::gateway::exchanges::service::WaiterIdentity;
use crate::gateway::identity::caller::{EnforcerOrAdmin, Member};
use crate::jitter::jitter;
use crate::protocol::exchange::ExchangeState;
use crate::protocol::id::{EnforcerId, RequestId};
use crate::store::exchanges::exchange::Exchange;
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

/// A read that found nothing to end the wait.
struct PendingRead {
    /// Time until the first of the exchanges expires.
    expires_in: Duration,
    /// The enforcer that is waited for, if it is one.
    enforcer: Option<EnforcerId>,
}

impl ExchangeService {
    /// Waits for an exchange's decision, at most `time_limit`. Each read counts as a call of the
    /// enforcer: at least when the wait begins and when it ends.
    pub async fn wait(
        &self,
        caller: EnforcerOrAdmin,
        request: &RequestId,
        time_limit: Duration,
    ) -> Result<WaitOutcome> {
        let caller = Member::from(caller);
        let deadline = Instant::now() + time_limit;
        let requests = std::slice::from_ref(request);
        let read = |cause| self.read_decided(&caller, request, cause);
        let ended = self.wait_until(&caller, requests, deadline, None, read);
        Ok(ended.await?.unwrap_or(WaitOutcome::Pending))
    }

    async fn read_decided(
        &self,
        caller: &Member,
        request: &RequestId,
        cause: WakeCause,
    ) -> Result<ControlFlow<WaitOutcome, PendingRead>> {
        let exchange = self.exchange(caller, request).await?;
        Ok(match exchange.state {
            ExchangeState::Decided | ExchangeState::Delivered => {
                if let Some(decision) = &exchange.decision {
                    let at = decision.decided_at;
                    self.context.note_missed(cause, "exchange", at);
                    trace::adopt_from(decision.trace.as_deref());
                }
                ControlFlow::Break(WaitOutcome::Decided(Box::new(exchange)))
            }
            ExchangeState::Expired | ExchangeState::Withdrawn | ExchangeState::Cancelled => {
                ControlFlow::Break(WaitOutcome::Over(exchange.state))
            }
            ExchangeState::PendingApproval => ControlFlow::Continue(PendingRead {
                expires_in: exchange.expires_in,
                enforcer: Some(exchange.enforcer_id),
            }),
        })
    }

    /// Waits until one of these exchanges is no longer pending, at most `time_limit`. Returns all
    /// that are known to have ended by then, and those that the caller may not read.
    pub async fn wait_for_any(
        &self,
        caller: &Member,
        requests: Vec<RequestId>,
        time_limit: Duration,
    ) -> Result<Vec<RequestId>> {
        let deadline = Instant::now() + time_limit;
        let permit = self.count_waits(caller, None, requests.len())?;
        let requests = Arc::new(requests);
        let read = |_| self.read_ended(caller, &requests);
        let ended = self.wait_until(caller, &requests, deadline, Some(permit), read);
        Ok(ended.await?.unwrap_or_default())
    }

    async fn read_ended(
        &self,
        caller: &Member,
        requests: &Arc<Vec<RequestId>>,
    ) -> Result<ControlFlow<Vec<RequestId>, PendingRead>> {
        let pending = self.pending_of(caller, requests).await?;
        let ended = requests.iter().filter(|id| !pending.contains_key(*id));
        let ended: Vec<_> = ended.cloned().collect();
        Ok(if ended.is_empty() {
            ControlFlow::Continue(PendingRead {
                expires_in: pending.into_values().min().unwrap_or_default(),
                enforcer: None,
            })
        } else {
            ControlFlow::Break(ended)
        })
    }

    /// Reads now, and again whenever one of the exchanges may have changed, until `read` returns an
    /// answer. `None` at the deadline, or if the node drains. The wait is counted once it pauses,
    /// unless the caller has counted it.
    async fn wait_until<T, F>(
        &self,
        caller: &Member,
        requests: &[RequestId],
        deadline: Instant,
        mut permit: Option<CounterPermit<WaiterIdentity>>,
        read: impl Fn(WakeCause) -> F,
    ) -> Result<Option<T>>
    where
        F: Future<Output = Result<ControlFlow<T, PendingRead>>>,
    {
        // Register before reading, so that a decision in between is not missed.
        let tenant = &caller.origin().tenant;
        let keys = requests.iter().cloned();
        let mut waiters: Vec<_> = keys
            .map(|request| WakeKey::Exchange(tenant.clone(), request))
            .map(|key| self.context.wake.register(key))
            .collect();
        let mut cause = WakeCause::Hint;
        let mut has_read = false;
        loop {
            let pending = match read(cause).await {
                // Once begun, a wait survives a short outage or overload of the database.
                Err(Error::Unavailable) if has_read && Instant::now() < deadline => {
                    sleep_until(deadline.min(Instant::now() + jitter(RECHECK_INTERVAL))).await;
                    continue;
                }
                Err(error) => return Err(error),
                Ok(ControlFlow::Break(answer)) => return Ok(Some(answer)),
                Ok(ControlFlow::Continue(_)) if Instant::now() >= deadline => return Ok(None),
                Ok(ControlFlow::Continue(pending)) => pending,
            };
            has_read = true;
            if permit.is_none() {
                permit = Some(self.count_waits(caller, pending.enforcer, 1)?);
            }
            // The expiry ends the wait, whether or not the sweep has written it.
            let expiry = Instant::now() + pending.expires_in + Duration::from_millis(1);
            let woken = waiters.iter_mut().map(|waiter| Box::pin(waiter.woken()));
            tokio::select! {
                (by, ..) = select_all(woken) => cause = by,
                () = sleep_until(deadline.min(expiry)) => {}
                () = self.context.draining.cancelled() => return Ok(None),
            }
            // The next read sees everything that the other waiters were woken for.
            for waiter in &mut waiters {
                let _woken = waiter.woken().now_or_never();
            }
        }
    }

    /// Those of these exchanges that are pending, as far as the caller may read them. Read to the
    /// end also if the client hangs up: a database call that is dropped halfway costs its
    /// connection.
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

    fn count_waits(
        &self,
        caller: &Member,
        enforcer: Option<EnforcerId>,
        count: usize,
    ) -> Result<CounterPermit<WaiterIdentity>> {
        let origin = caller.origin();
        let identity = WaiterIdentity {
            tenant: origin.tenant.clone(),
            principal: origin.principal.clone(),
            enforcer,
        };
        let limit = CountLimit {
            per_key: self.context.config.limits.waits_per_identity,
            total: usize::MAX,
        };
        let entered = self.waits.enter(identity, count, limit);
        entered.ok_or(Error::TooManyWaits)
    }

    pub fn waiting(&self) -> usize {
        self.waits.total()
    }
}
