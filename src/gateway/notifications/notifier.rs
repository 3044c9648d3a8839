//! Tells approvers that something waits. After its commit, a submission hands over the approvers
//! that it asked, in memory and without waiting. Hints are lost if there are too many or the node
//! dies; the sweep finds those approvers. No exchange waits for a notification.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::load::DeliveryPermit;
use super::send::{DeliveryOutcome, NotificationMessage, SEND_TIMEOUT};
use super::service::NotificationService;
use crate::config::MAX_RETRY_SECONDS;
use crate::gateway::error::Result;
use crate::gateway::notifications::hints::NotificationHint;
use crate::jitter::jitter;
use crate::protocol::notification::{NotificationKind, NotificationNotice};
use crate::store::audit::AuditActor;
use crate::store::error::StoreError;
use crate::store::notifications::delivery::{ClaimTerms, ClaimedNotification};

/// Approvers that one statement looks at.
const HINTS_PER_ROUND: usize = 512;
/// Pause between rounds, so that a busy node does not ask the database for every submission.
const ROUND_INTERVAL: Duration = Duration::from_millis(50);
/// Targets that one statement claims.
const CLAIMS: usize = 64;
/// How long a claim lasts. A node that dies is replaced after that.
const CLAIM_SECONDS: u64 = 30;
/// A claim that could not be sent by then is given back. The rest of its time is for sending and
/// for writing the outcome.
const START_TIMEOUT: Duration = Duration::from_secs(CLAIM_SECONDS - SEND_TIMEOUT.as_secs() - 5);
/// How long a notification has its turn. After that it goes on and the next one begins, so a silent
/// target delays no other.
const TURN_TIMEOUT: Duration = Duration::from_secs(1);
/// Targets that one statement of the sweep looks at.
const SWEEP_PAGE: i64 = 500;

impl NotificationService {
    /// Sends what submissions ask for, until the node stops.
    pub(in crate::gateway) fn start(
        self: &Arc<Self>,
        asked: mpsc::Receiver<NotificationHint>,
        stop: &CancellationToken,
    ) {
        if self.off().is_none() {
            let running = Arc::clone(self).run(asked, stop.clone());
            self.context.tasks.spawn(running);
        }
    }

    async fn run(
        self: Arc<Self>,
        mut hints: mpsc::Receiver<NotificationHint>,
        stop: CancellationToken,
    ) {
        let mut asked = Vec::new();
        loop {
            let next = hints.recv_many(&mut asked, HINTS_PER_ROUND);
            if !matches!(stop.run_until_cancelled(next).await, Some(1..)) {
                return;
            }
            let round: BTreeSet<_> = asked.drain(..).collect();
            let round: Vec<_> = round.into_iter().collect();
            if let Err(error) = self.claim(&round, &stop).await {
                tracing::debug!(%error, "notifications are left to the sweep");
            }
            sleep(ROUND_INTERVAL).await;
        }
    }

    /// Claims what is due of these approvers, and sends it.
    async fn claim(
        self: &Arc<Self>,
        asked: &[NotificationHint],
        stop: &CancellationToken,
    ) -> Result<(), StoreError> {
        loop {
            let room = self.load.room();
            let limit = room.targets.min(CLAIMS);
            if limit == 0 || stop.is_cancelled() {
                return Ok(());
            }
            let claim = self.context.clock.operation_id().0;
            let store = &self.context.store.notifications;
            let terms = ClaimTerms {
                secret_check: self.keys.check,
                busy: &room.busy,
                failing: &room.failing,
                claim,
                lease_seconds: CLAIM_SECONDS,
                limit: i64::try_from(limit).unwrap_or(i64::MAX),
            };
            let found = store.claim_notifications(asked, &terms).await?;
            let full = found.len() >= limit;
            for claimed in found {
                let slot = self.load.enter(&claimed.tenant, claimed.attempts > 0);
                let (this, stop) = (Arc::clone(self), stop.clone());
                let delivery = async move { this.deliver(claimed, claim, slot, stop).await };
                self.context.tasks.spawn(delivery);
            }
            if !full {
                return Ok(());
            }
        }
    }

    async fn deliver(
        self: Arc<Self>,
        claimed: ClaimedNotification,
        claim: Uuid,
        slot: DeliveryPermit,
        stop: CancellationToken,
    ) {
        let outcome = self.send_in_turn(&claimed, &slot, &stop).await;
        let noted = if let Some(outcome) = outcome {
            self.note(&claimed, claim, &outcome).await
        } else {
            let store = &self.context.store.notifications;
            let released = store.release_notification(&claimed, claim).await;
            released.map(|_| None)
        };
        drop(slot);
        match noted {
            Ok(Some(delay)) => {
                let again = stop.run_until_cancelled(sleep(delay));
                // Looks for new items, or retries. After a longer delay the sweep does it.
                if delay <= self.sweep_period() && again.await.is_some() {
                    let notices = &self.context.notices;
                    notices.leave(&claimed.tenant, [&claimed.approver]);
                }
            }
            Ok(None) => {}
            // It is claimed again when the claim has ended.
            Err(error) => {
                tracing::warn!(%error, "what came of a notification could not be written");
            }
        }
    }

    /// Sends when it is this claim's turn. `None` if that takes too long, or the node stops.
    async fn send_in_turn(
        &self,
        claimed: &ClaimedNotification,
        slot: &DeliveryPermit,
        stop: &CancellationToken,
    ) -> Option<DeliveryOutcome> {
        let latest = Instant::now() + START_TIMEOUT;
        let turn = stop.run_until_cancelled(slot.turn(latest));
        let turn = turn.await??;
        let mut sending = pin!(stop.run_until_cancelled(self.send_claimed(claimed)));
        if let Ok(outcome) = timeout(TURN_TIMEOUT, &mut sending).await {
            return outcome;
        }
        drop(turn);
        sending.await
    }

    async fn send_claimed(&self, claimed: &ClaimedNotification) -> DeliveryOutcome {
        let target = self.keys.open(
            &claimed.tenant,
            &claimed.approver,
            &claimed.url_hash,
            &claimed.target,
        );
        let Some(target) = target else {
            return DeliveryOutcome::failed("what was stored of it cannot be read");
        };
        let letter = NotificationMessage {
            approver: &claimed.approver,
            notice: NotificationNotice::Waiting(claimed.waiting),
            id: format!("{}-{}", claimed.id, claimed.delivered),
            until: claimed.latest_expiry,
        };
        self.sender.send(&self.keys, &target, &letter).await
    }

    /// Writes the outcome, and returns the delay after which to look again.
    async fn note(
        &self,
        claimed: &ClaimedNotification,
        claim: Uuid,
        outcome: &DeliveryOutcome,
    ) -> Result<Option<Duration>, StoreError> {
        let store = &self.context.store.notifications;
        let (config, metrics) = (&self.context.config.notifications, &self.context.metrics);
        let (kind, id) = (claimed.kind.as_str(), claimed.id);
        let (tenant, approver) = (&claimed.tenant, &claimed.approver);
        let count = |outcome| metrics.notifications.of([kind, outcome]).increment();
        let (failure, retry_after, gone) = match outcome {
            DeliveryOutcome::Delivered(_) => {
                count("delivered");
                let age = self.context.store.database.database_now() - claimed.oldest;
                let times = metrics.notification_delay.of([kind]);
                times.observe(age.as_seconds_f64().max(0.0));
                let pause = config.pause_seconds;
                store.note_delivered(claimed, claim, pause).await?;
                return Ok(Some(Duration::from_secs(pause)));
            }
            // A browser that has unsubscribed does not come back under this URL.
            DeliveryOutcome::Gone(status) if claimed.kind == NotificationKind::WebPush => {
                count("gone");
                let why = format!("the push service answers {}", status.as_u16());
                store
                    .remove_notification(&AuditActor::gateway(), tenant, approver, id, Some(&why))
                    .await?;
                tracing::info!(%tenant, %approver, notification = %id, "a browser is no longer notified: its subscription has ended");
                return Ok(None);
            }
            DeliveryOutcome::Gone(status) => (
                format!("the answer is {}", status.as_u16()),
                None,
                status.as_u16() == 410,
            ),
            DeliveryOutcome::Failed {
                failure,
                retry_after,
                ..
            } => (failure.clone(), *retry_after, false),
        };
        count("failed");
        let backoff = self.backoff(claimed.attempts);
        let delay = backoff.max(retry_after.unwrap_or_default());
        let give_up = if gone { 0 } else { config.give_up_seconds };
        let disabled = store
            .note_failed(claimed, claim, &failure, delay.as_secs_f64(), give_up)
            .await?;
        if disabled {
            count("disabled");
            tracing::warn!(%tenant, %approver, notification = %id, %failure, "a notification is disabled: it failed for too long");
            return Ok(None);
        }
        tracing::debug!(%tenant, %approver, notification = %id, %failure, "a notification failed and will be sent again");
        Ok(Some(delay))
    }

    fn backoff(&self, attempts: i32) -> Duration {
        let config = &self.context.config.notifications;
        let doubled = 2_u64.saturating_pow(u32::try_from(attempts).unwrap_or_default().min(32));
        let seconds = config.retry_seconds.saturating_mul(doubled);
        jitter(Duration::from_secs(seconds.min(MAX_RETRY_SECONDS)))
    }

    fn sweep_period(&self) -> Duration {
        Duration::from_millis(self.context.config.notifications.sweep_ms)
    }

    /// Finds approvers that no hint named. One node does it for all.
    pub(in crate::gateway) async fn sweep(&self) -> Result<()> {
        if self.off().is_some() {
            return Ok(());
        }
        let store = &self.context.store;
        let period = self.sweep_period();
        // Shorter than the period, which varies, so that each of them is taken by some node.
        let turn = (store.database).take_sweep("notifications", period * 3 / 4, period);
        if !turn.await? {
            return Ok(());
        }
        let mut after = None;
        loop {
            let notifications = &store.notifications;
            let due = notifications.due_approvers(self.keys.check, after.as_ref(), SWEEP_PAGE);
            let (due, last) = due.await?;
            for (tenant, approver) in &due {
                self.context.notices.leave(tenant, [approver]);
            }
            if last.is_none() || self.context.draining.is_cancelled() {
                return Ok(());
            }
            after = last;
        }
    }
}
