//! What a channel sends, pulled page by page as its client reads: rows are the queue, so nothing is queued here but ids.
//! No unacknowledged message is ever skipped, and what is sent once is offered again, later and later, until it is acked.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use time::OffsetDateTime;
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use super::Gateway;
use super::channel::{Channel, Closing, role_of};
use super::error::Error;
use super::push::{Push, for_approver, for_enforcer};
use crate::protocol::id::{ApproverId, EnforcerId, MessageId, TenantId};
use crate::store::claim::{self, ClaimRow, Claimed};
use crate::store::feed::{BodiesRow, ListRow};
use crate::telemetry::Metrics;
use crate::wake::{Cause, Key};

/// Ids listed at once.
const PER_LIST: i64 = 500;
/// Messages read at once: their bodies are held until the client has taken them.
const PER_PAGE: usize = 8;
/// Bytes read at once, unless a single message has more.
const PAGE_BYTES: usize = 1 << 20;
/// How far rows may commit out of order: a walk starts this much before the last row seen.
const OVERLAP: time::Duration = time::Duration::seconds(60);
/// How often everything unacknowledged is walked, whatever the marks say.
const WALK_ALL_EVERY: Duration = Duration::from_secs(300);

/// What a channel sends.
pub struct Feed {
    source: Source,
    channel: Channel,
    /// What it was last woken by.
    woken: Cause,
    gateway: Arc<Gateway>,
}

/// Where it comes from.
enum Source {
    /// An approver's inbox and withdrawals.
    Approver(Box<ApproverWalk>),
    /// An enforcer's messages.
    Enforcer {
        /// The tenant.
        tenant: TenantId,
        /// The enforcer.
        enforcer: EnforcerId,
        /// Whether there may be something to claim.
        look: bool,
    },
}

/// How far an approver's channel has got.
struct ApproverWalk {
    tenant: TenantId,
    approver: ApproverId,
    withdrawals: bool,
    /// Where the walk under way goes on.
    walk: Option<(OffsetDateTime, Uuid)>,
    /// The last row seen.
    mark: OffsetDateTime,
    /// To be read and sent.
    queue: VecDeque<(MessageId, usize)>,
    /// Sent and, as far as known, not acknowledged.
    sent: HashMap<MessageId, Offer>,
    /// When each of them is due again, the earliest first: a wake must not cost a look at all of them.
    due: BTreeSet<(Instant, MessageId)>,
    walk_all_at: Instant,
    /// First pause before a message is offered again; it doubles up to the last.
    reoffer: (Duration, Duration),
}

/// What was sent, and when it is due again.
struct Offer {
    bytes: usize,
    pause: Duration,
    due: Instant,
}

impl ApproverWalk {
    /// Starts a walk a little before the last row seen.
    fn look(&mut self) {
        let start = self
            .mark
            .checked_sub(OVERLAP)
            .unwrap_or(OffsetDateTime::UNIX_EPOCH);
        self.walk.get_or_insert((start, Uuid::nil()));
    }

    /// When something is to be done without being woken.
    fn next_due(&self) -> Instant {
        self.due
            .first()
            .map_or(self.walk_all_at, |(due, _)| self.walk_all_at.min(*due))
    }

    /// Puts what is due again into the queue.
    fn requeue_due(&mut self) {
        let now = Instant::now();
        let mut again = Vec::new();
        while let Some((due, id)) = self.due.first().copied()
            && due <= now
        {
            self.due.pop_first();
            again.extend(self.sent.get(&id).map(|offer| (id, offer.bytes)));
        }
        again.sort();
        self.queue.extend(again);
        if self.walk_all_at <= now {
            self.walk_all_at = now + crate::jitter::jitter(WALK_ALL_EVERY);
            self.walk = Some((OffsetDateTime::UNIX_EPOCH, Uuid::nil()));
        }
    }

    /// Notes that a message is being sent, and tells whether that is for the first time.
    fn note_sent(&mut self, id: MessageId, bytes: usize, metrics: &Metrics) -> bool {
        let now = Instant::now();
        let before = self.forget(id);
        if let Some(offer) = &before {
            let lag = metrics.sweep_lag.of(["redelivery"]);
            lag.took(now.saturating_duration_since(offer.due));
        }
        let pause = before.as_ref().map_or(self.reoffer.0, |offer| {
            (offer.pause * 2).min(self.reoffer.1)
        });
        let due = now + pause;
        self.due.insert((due, id));
        self.sent.insert(id, Offer { bytes, pause, due });
        before.is_none()
    }

    /// Forgets that a message was sent.
    fn forget(&mut self, id: MessageId) -> Option<Offer> {
        let offer = self.sent.remove(&id)?;
        self.due.remove(&(offer.due, id));
        Some(offer)
    }
}

impl Feed {
    /// The feed of an approver's channel. It starts with everything unacknowledged, or 60 s before `resume_after`.
    pub async fn approver(
        gateway: &Arc<Gateway>,
        channel: Channel,
        withdrawals: bool,
        resume_after: Option<Uuid>,
    ) -> Result<Self, Error> {
        let Key::Approver(tenant, approver) = channel.key.clone() else {
            return Err(Error::Internal);
        };
        let resumed = match resume_after {
            Some(message) => {
                gateway
                    .store
                    .message_created(&tenant, &approver, message)
                    .await?
            }
            None => None,
        };
        let start = resumed
            .and_then(|at| at.checked_sub(OVERLAP))
            .unwrap_or(OffsetDateTime::UNIX_EPOCH);
        let walk = ApproverWalk {
            tenant,
            approver,
            withdrawals,
            walk: Some((start, Uuid::nil())),
            mark: OffsetDateTime::UNIX_EPOCH,
            queue: VecDeque::new(),
            sent: HashMap::new(),
            due: BTreeSet::new(),
            walk_all_at: Instant::now() + crate::jitter::jitter(WALK_ALL_EVERY),
            reoffer: (
                Duration::from_secs(gateway.config.push.reoffer_seconds),
                Duration::from_secs(gateway.config.push.reoffer_max_seconds),
            ),
        };
        Ok(Self {
            source: Source::Approver(Box::new(walk)),
            channel,
            woken: Cause::Hint,
            gateway: Arc::clone(gateway),
        })
    }

    /// The feed of an enforcer's channel.
    pub fn enforcer(gateway: &Arc<Gateway>, channel: Channel) -> Result<Self, Error> {
        let Key::Enforcer(tenant, enforcer) = channel.key.clone() else {
            return Err(Error::Internal);
        };
        let source = Source::Enforcer {
            tenant,
            enforcer,
            look: true,
        };
        Ok(Self {
            source,
            channel,
            woken: Cause::Hint,
            gateway: Arc::clone(gateway),
        })
    }

    /// The channel it feeds.
    #[must_use]
    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Notes that a message was written to the client.
    pub fn note_written(&self, push: &Push) {
        let labels = [push.msg_type, self.channel.transport.as_str()];
        let metrics = &self.gateway.metrics;
        metrics.sent.of(labels).increment();
        if push.first {
            let latency = self.gateway.seconds_since(push.created_at);
            metrics.push_latency.of(labels).observe(latency);
            let role = role_of(&self.channel.key);
            self.gateway.note_missed(self.woken, role, push.created_at);
        }
        if let Some(context) = &push.context {
            // A repeat did not take as long as its message is old.
            let now = self.gateway.clock.now();
            let began = if push.first { push.created_at } else { now };
            let [msg_type, transport] = labels;
            let tracer = &self.gateway.tracer;
            tracer.sent(context, msg_type, transport, began.inner());
        }
    }

    /// Two waits to choose between: for the gateway to want the channel closed, and for something to send. Nothing is lost
    /// if either is broken off.
    pub fn closed_or_ready(&mut self) -> (impl Future<Output = Closing>, impl Future<Output = ()>) {
        let Self {
            source,
            channel,
            woken,
            ..
        } = self;
        let (handle, waiter) = channel.parts();
        let ready = async move {
            match source {
                Source::Approver(walk) => {
                    if walk.walk.is_some() || !walk.queue.is_empty() {
                        return;
                    }
                    tokio::select! {
                        cause = waiter.woken() => {
                            *woken = cause;
                            walk.look();
                        }
                        () = sleep_until(walk.next_due()) => walk.requeue_due(),
                    }
                }
                Source::Enforcer { look, .. } => {
                    if !*look {
                        *woken = waiter.woken().await;
                        *look = true;
                    }
                }
            }
        };
        (handle.closed(), ready)
    }

    /// The next few messages; none once there is nothing more for now.
    pub async fn next_page(&mut self) -> Result<Vec<Push>, Error> {
        match &mut self.source {
            Source::Approver(walk) => {
                next_for_approver(&self.gateway, walk, self.channel.opened_at).await
            }
            Source::Enforcer {
                tenant,
                enforcer,
                look,
            } => {
                let row = ClaimRow {
                    operation: self.gateway.clock.operation_id(),
                    tenant: tenant.clone(),
                    enforcer: enforcer.clone(),
                    channel: self.channel.id,
                    limit: i64::try_from(PER_PAGE).unwrap_or(1),
                };
                let claimed = self.gateway.store.claim(row).await?;
                let lag = self.gateway.metrics.sweep_lag.of(["redelivery"]);
                let late = claimed.iter().filter_map(|message| message.late);
                late.for_each(|late| lag.observe(late));
                let opened_at = self.channel.opened_at;
                let page: Vec<_> = claimed
                    .into_iter()
                    .map(|claimed| Claimed {
                        first: claimed.first && claimed.created_at >= opened_at,
                        ..claimed
                    })
                    .map(|message| for_enforcer(&self.gateway, enforcer, message))
                    .collect::<Result<_, _>>()?;
                // A page with room left has everything; what comes meanwhile wakes the channel.
                let bytes: usize = page.iter().map(|push| push.text.len()).sum();
                *look = page.len() >= PER_PAGE || bytes >= claim::PAGE_BYTES;
                Ok(page)
            }
        }
    }
}

async fn next_for_approver(
    gateway: &Gateway,
    walk: &mut ApproverWalk,
    opened_at: OffsetDateTime,
) -> Result<Vec<Push>, Error> {
    loop {
        if !walk.queue.is_empty() {
            let mut wanted: Vec<(MessageId, usize)> = Vec::with_capacity(PER_PAGE);
            let mut total = 0;
            for (id, bytes) in walk.queue.iter().take(PER_PAGE) {
                if !wanted.is_empty() && total + bytes > PAGE_BYTES {
                    break;
                }
                total += bytes;
                wanted.push((*id, *bytes));
            }
            let row = BodiesRow {
                operation: gateway.clock.operation_id(),
                tenant: walk.tenant.clone(),
                approver: walk.approver.clone(),
                messages: wanted.iter().map(|(id, _)| *id).collect(),
                bytes: total,
            };
            let found = gateway.store.bodies(row).await?;
            walk.queue.drain(..wanted.len());
            let mut page = Vec::with_capacity(found.len());
            for message in found {
                let id = message.message();
                let bytes = wanted
                    .iter()
                    .find(|(wanted, _)| *wanted == id)
                    .map_or(0, |(_, bytes)| *bytes);
                wanted.retain(|(wanted, _)| *wanted != id);
                let first = walk.note_sent(id, bytes, &gateway.metrics);
                // One that cannot be printed is logged where that was found, and must not keep its neighbours.
                page.extend(for_approver(gateway, &walk.approver, message, first));
            }
            // What did not come back was acknowledged, removed, or is no longer current.
            for (id, _) in &wanted {
                walk.forget(*id);
            }
            if page.is_empty() {
                continue;
            }
            // What was there before the channel says nothing of how fast news travel.
            for push in &mut page {
                push.first &= push.created_at.inner() >= opened_at;
            }
            return Ok(page);
        }
        let Some(after) = walk.walk else {
            return Ok(Vec::new());
        };
        let row = ListRow {
            operation: gateway.clock.operation_id(),
            tenant: walk.tenant.clone(),
            approver: walk.approver.clone(),
            after,
            withdrawals: walk.withdrawals,
            limit: PER_LIST,
        };
        let listed = gateway.store.list_unacked(row).await?;
        let complete = i64::try_from(listed.len()).unwrap_or(i64::MAX) < PER_LIST;
        walk.walk = listed
            .last()
            .filter(|_| !complete)
            .map(|last| (last.created_at, last.message.0));
        for line in listed {
            walk.mark = walk.mark.max(line.created_at);
            if !walk.sent.contains_key(&line.message) {
                walk.queue.push_back((line.message, line.bytes));
            }
        }
    }
}
