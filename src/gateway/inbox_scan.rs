//! How an approver's channel walks its inbox: what is listed, what waits to be read, what was sent and is due again. Rows
//! commit out of order, so a walk begins a little before the last row seen; and what is never acknowledged is walked again.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use time::OffsetDateTime;
use tokio::time::Instant;
use uuid::Uuid;

use super::Gateway;
use super::error::Error;
use super::push::{Push, for_approver};
use crate::jitter::jitter;
use crate::protocol::id::{ApproverId, MessageId, TenantId};
use crate::store::approver_messages::{BodiesRow, ForApprover};
use crate::store::unacked::{ListRow, Listed};
use crate::telemetry::Metrics;

/// Ids listed at once.
const PER_LIST: i64 = 500;
/// Messages read at once: their bodies are held until the client has taken them.
pub(super) const PER_PAGE: usize = 8;
/// Bytes read at once, unless a single message has more.
const PAGE_BYTES: usize = 1 << 20;
/// How far rows may commit out of order: a walk starts this much before the last row seen.
pub(super) const OVERLAP: time::Duration = time::Duration::seconds(60);
/// But not before this many rows of the inbox, or a wake would cost as much as came in that time.
const LATE_ROWS: usize = 64;
/// When a walk that started later for it is made up for.
const LOOK_BACK_AFTER: Duration = Duration::from_secs(5);
/// When a channel that has opened looks once more: what was being submitted meanwhile did not see it, and woke nobody. And a
/// last time when no statement can be left that began before it.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// How often everything unacknowledged is walked, whatever the marks say.
const WALK_ALL_EVERY: Duration = Duration::from_secs(300);

pub(super) struct InboxScan {
    tenant: TenantId,
    approver: ApproverId,
    withdrawals: bool,
    walk: Option<(OffsetDateTime, Uuid)>,
    mark: OffsetDateTime,
    /// The rows seen before it, the last few.
    recent: VecDeque<OffsetDateTime>,
    queue: VecDeque<(MessageId, usize)>,
    /// Sent and, as far as known, not acknowledged.
    sent: HashMap<MessageId, Offer>,
    /// When each of them is due again, the earliest first: a wake must not cost a look at all of them.
    due: BTreeSet<(Instant, MessageId)>,
    look_back_at: Option<Instant>,
    /// When every statement that did not see the channel has ended.
    settled_at: Instant,
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

impl InboxScan {
    pub fn new(
        gateway: &Gateway,
        tenant: TenantId,
        approver: ApproverId,
        withdrawals: bool,
        start: OffsetDateTime,
    ) -> Self {
        let push = &gateway.config.push;
        let longest = Duration::from_millis(gateway.config.database.statement_timeout_ms);
        Self {
            tenant,
            approver,
            withdrawals,
            walk: Some((start, Uuid::nil())),
            mark: OffsetDateTime::UNIX_EPOCH,
            recent: VecDeque::new(),
            queue: VecDeque::new(),
            sent: HashMap::new(),
            due: BTreeSet::new(),
            look_back_at: Some(Instant::now() + jitter(LOOK_AGAIN_AFTER)),
            settled_at: Instant::now() + longest + jitter(LOOK_AGAIN_AFTER),
            walk_all_at: Instant::now() + jitter(WALK_ALL_EVERY),
            reoffer: (
                Duration::from_secs(push.reoffer_seconds),
                Duration::from_secs(push.reoffer_max_seconds),
            ),
        }
    }

    /// Whether there is something to list or to read.
    pub fn has_more(&self) -> bool {
        self.walk.is_some() || !self.queue.is_empty()
    }

    /// Starts a walk a little before the last row seen.
    pub fn look(&mut self) {
        let overlap = self.overlap();
        let start = match self.recent.front() {
            Some(late) if self.recent.len() >= LATE_ROWS && *late > overlap => {
                let soon = Instant::now() + jitter(LOOK_BACK_AFTER);
                self.look_back_at = Some(self.look_back_at.map_or(soon, |at| at.min(soon)));
                *late
            }
            _ => overlap,
        };
        self.walk.get_or_insert((start, Uuid::nil()));
    }

    fn overlap(&self) -> OffsetDateTime {
        let start = self.mark.checked_sub(OVERLAP);
        start.unwrap_or(OffsetDateTime::UNIX_EPOCH)
    }

    /// When something is to be done without being woken.
    pub fn next_due(&self) -> Instant {
        let again = self.due.first().map(|(due, _)| *due);
        [again, self.look_back_at]
            .into_iter()
            .flatten()
            .fold(self.walk_all_at, Instant::min)
    }

    /// Does what is due: puts what is to be offered again into the queue, and walks.
    pub fn take_due(&mut self) {
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
        if self.look_back_at.is_some_and(|at| at <= now) {
            self.look_back_at = (now < self.settled_at).then_some(self.settled_at);
            self.walk = Some((self.overlap(), Uuid::nil()));
        }
        if self.walk_all_at <= now {
            self.walk_all_at = now + jitter(WALK_ALL_EVERY);
            self.walk = Some((OffsetDateTime::UNIX_EPOCH, Uuid::nil()));
        }
    }

    /// The next few messages; none once there is nothing more for now.
    pub async fn next_page(
        &mut self,
        gateway: &Gateway,
        opened_at: OffsetDateTime,
    ) -> Result<Vec<Push>, Error> {
        loop {
            if self.walk.is_none() {
                // What was there when the channel opened has been walked: not again for every wake, if nothing came since.
                self.mark = self.mark.max(opened_at);
            }
            let found = if self.queue.is_empty() {
                let Some(after) = self.walk else {
                    return Ok(Vec::new());
                };
                self.list(gateway, after).await?
            } else {
                self.read(gateway).await?
            };
            let mut page = Vec::with_capacity(found.len());
            for (message, bytes) in found {
                let first = self.note_sent(message.message(), bytes, &gateway.metrics);
                // One that cannot be printed is logged where that was found, and must not keep its neighbours.
                page.extend(for_approver(gateway, &self.approver, message, first));
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
    }

    /// Lists on from a row: what comes with its body is to be sent, the rest is queued.
    async fn list(
        &mut self,
        gateway: &Gateway,
        after: (OffsetDateTime, Uuid),
    ) -> Result<Vec<(ForApprover, usize)>, Error> {
        let row = ListRow {
            tenant: self.tenant.clone(),
            approver: self.approver.clone(),
            after,
            seen: self.mark,
            withdrawals: self.withdrawals,
            limit: PER_LIST,
        };
        let listed = gateway.store.list_unacked(row).await?;
        let complete = i64::try_from(listed.len()).unwrap_or(i64::MAX) < PER_LIST;
        self.walk = listed
            .last()
            .filter(|_| !complete)
            .map(|last| (last.created_at, last.message.0));
        let mut found = Vec::new();
        for line in listed {
            self.note_seen(line.created_at);
            let Listed {
                message,
                bytes,
                body,
                ..
            } = line;
            match body {
                _ if self.sent.contains_key(&message) => {}
                // In order: behind one that has yet to be read, all have.
                Some(body) if self.queue.is_empty() => found.push((body, bytes)),
                _ => self.queue.push_back((message, bytes)),
            }
        }
        Ok(found)
    }

    async fn read(&mut self, gateway: &Gateway) -> Result<Vec<(ForApprover, usize)>, Error> {
        let mut wanted: Vec<(MessageId, usize)> = Vec::with_capacity(PER_PAGE);
        let mut total = 0;
        for (id, bytes) in self.queue.iter().take(PER_PAGE) {
            if !wanted.is_empty() && total + bytes > PAGE_BYTES {
                break;
            }
            total += bytes;
            wanted.push((*id, *bytes));
        }
        let row = BodiesRow {
            tenant: self.tenant.clone(),
            approver: self.approver.clone(),
            messages: wanted.iter().map(|(id, _)| *id).collect(),
            bytes: total,
        };
        let bodies = gateway.store.bodies(row).await?;
        self.queue.drain(..wanted.len());
        let mut found = Vec::with_capacity(bodies.len());
        for body in bodies {
            let place = wanted.iter().position(|(id, _)| *id == body.message());
            let bytes = place.map_or(0, |place| wanted.swap_remove(place).1);
            found.push((body, bytes));
        }
        // What did not come back was acknowledged, removed, or is no longer current.
        for (id, _) in &wanted {
            self.forget(*id);
        }
        Ok(found)
    }

    fn note_seen(&mut self, at: OffsetDateTime) {
        if at <= self.mark {
            return;
        }
        self.mark = at;
        if self.recent.len() >= LATE_ROWS {
            self.recent.pop_front();
        }
        self.recent.push_back(at);
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

    fn forget(&mut self, id: MessageId) -> Option<Offer> {
        let offer = self.sent.remove(&id)?;
        self.due.remove(&(offer.due, id));
        Some(offer)
    }
}
