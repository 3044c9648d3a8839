//! Scans an approver's inbox for its channel: lists rows, reads their bodies, and schedules
//! redelivery. A request that a hint has named is read by its id, and one that this node has just
//! written is not read back. Rows commit out of order, so a scan starts a little before the last row
//! seen. The fallback poll finds rows that commit even later, or with a clock that has stepped back,
//! and says where to start.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use time::OffsetDateTime;
use tokio::time::Instant;
use uuid::Uuid;

use crate::gateway::channels::push::{PushService, for_approver};
use crate::gateway::context::GatewayContext;
use crate::gateway::error::Result;
use crate::jitter::jitter;
use crate::protocol::id::{ApproverId, MessageId, TenantId};
use crate::store::channels::approver_messages::{BodiesRow, ForApprover};
use crate::store::channels::unacked::{ListRow, UnackedMessage};
use crate::telemetry::Metrics;
use crate::wake::{MESSAGE_BYTES, NAMED_BYTES, NewMessage, WakeKey};

/// Ids listed at once.
const PER_LIST: i64 = 500;
/// Messages read at once: their bodies stay in memory until the client has taken them.
pub(in crate::gateway) const PER_PAGE: usize = 8;
/// The same of those that hints have named.
const NAMED_PER_PAGE: usize = 4;
/// Bytes read at once, unless a single message has more.
const PAGE_BYTES: usize = 1 << 20;
/// How far rows usually commit out of order: a scan starts this much before the last row seen.
pub(in crate::gateway) const OVERLAP_GRACE: time::Duration = time::Duration::seconds(60);
/// A scan starts at most this many rows back, which bounds the cost of a wake-up.
const LATE_ROWS: usize = 64;
/// How often everything unacknowledged is scanned.
const FULL_SCAN_INTERVAL: Duration = Duration::from_secs(300);

pub(in crate::gateway) struct InboxScan {
    tenant: TenantId,
    approver: ApproverId,
    /// When the channel was opened.
    since: Instant,
    withdrawals: bool,
    /// The row to continue after, while a scan is under way.
    position: Option<(OffsetDateTime, Uuid)>,
    /// When the last new row was created: the newest one, unless it came late.
    mark: OffsetDateTime,
    /// Whether everything older than the channel has been scanned.
    caught_up: bool,
    /// The last few rows seen, up to `mark`.
    recent: VecDeque<OffsetDateTime>,
    /// New messages that hints have named, to be sent once the scan under way has ended.
    named: Vec<MessageId>,
    /// Listed but not yet read, with their sizes.
    queue: VecDeque<(MessageId, usize)>,
    /// Sent and, as far as known, not acknowledged.
    sent: HashMap<MessageId, SentItem>,
    /// When each of them is due again, earliest first, so that a wake-up need not visit all of
    /// them.
    due: BTreeSet<(Instant, MessageId)>,
    scan_all_at: Instant,
    /// The pause before redelivery doubles from the first to the longest.
    first_pause: Duration,
    longest_pause: Duration,
}

/// A message that was sent, and when it is due again.
struct SentItem {
    bytes: usize,
    pause: Duration,
    due: Instant,
}

impl InboxScan {
    pub fn new(
        context: &GatewayContext,
        tenant: TenantId,
        approver: ApproverId,
        withdrawals: bool,
        start: OffsetDateTime,
    ) -> Self {
        let push = &context.config.push;
        Self {
            tenant,
            approver,
            since: Instant::now(),
            withdrawals,
            position: Some((start, Uuid::nil())),
            mark: OffsetDateTime::UNIX_EPOCH,
            caught_up: false,
            recent: VecDeque::new(),
            named: Vec::new(),
            queue: VecDeque::new(),
            sent: HashMap::new(),
            due: BTreeSet::new(),
            scan_all_at: Instant::now() + jitter(FULL_SCAN_INTERVAL),
            first_pause: Duration::from_secs(push.reoffer_seconds),
            longest_pause: Duration::from_secs(push.longest_reoffer()),
        }
    }

    /// Whether there is something to list or to read.
    pub fn has_more(&self) -> bool {
        self.position.is_some() || !self.queue.is_empty() || !self.named.is_empty()
    }

    /// Notes new messages, which a scan under way need not find.
    pub fn add_named(&mut self, messages: Vec<MessageId>) {
        let new = messages.into_iter().filter(|id| !self.named.contains(id));
        // Any role of the database may repeat a hint.
        self.named.extend(new.collect::<BTreeSet<_>>());
    }

    /// Starts a scan a little before the last row seen, or where rows may be unseen.
    pub fn start(&mut self, unseen_since: Option<OffsetDateTime>) {
        let overlap = self.overlap();
        let start = match self.recent.front() {
            Some(late) if self.recent.len() >= LATE_ROWS => overlap.max(*late),
            _ => overlap,
        };
        let start = unseen_since.map_or(start, |since| start.min(since));
        self.position.get_or_insert((start, Uuid::nil()));
    }

    fn overlap(&self) -> OffsetDateTime {
        let start = self.mark.checked_sub(OVERLAP_GRACE);
        start.unwrap_or(OffsetDateTime::UNIX_EPOCH)
    }

    /// When `take_due` is to be called, unless woken before.
    pub fn next_due(&self) -> Instant {
        let again = self.due.first().map(|(due, _)| *due);
        again.map_or(self.scan_all_at, |due| due.min(self.scan_all_at))
    }

    /// Queues what is due for redelivery, and starts the scans that are due.
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
        if self.scan_all_at <= now {
            self.scan_all_at = now + jitter(FULL_SCAN_INTERVAL);
            self.position = Some((OffsetDateTime::UNIX_EPOCH, Uuid::nil()));
        }
    }

    /// The next few messages; empty if there are none for now, or if only their ids were read.
    pub async fn next_page(
        &mut self,
        context: &GatewayContext,
        opened_at: OffsetDateTime,
    ) -> Result<Vec<PushService>> {
        loop {
            if self.position.is_none() && !self.caught_up {
                // Later scans need not start before the channel.
                self.caught_up = true;
                self.mark = self.mark.max(opened_at);
            }
            if !self.has_more() {
                return Ok(Vec::new());
            }
            let found = if !self.queue.is_empty() {
                self.read(context).await?
            } else if self.position.is_some() {
                self.list(context).await?
            } else {
                self.read_named(context).await?
            };
            let mut page = Vec::with_capacity(found.len());
            for (message, bytes) in found {
                if let ForApprover::Withdrawn(withdrawal) = &message {
                    let (tenant, request) = (self.tenant.clone(), withdrawal.request_id.clone());
                    context.wake.note_withdrawn(tenant, request);
                }
                let first = self.note_sent(message.message(), bytes, &context.metrics);
                // A message that cannot be serialised was logged, and must not hold up the others.
                page.extend(for_approver(context, &self.approver, message, first));
            }
            // The next call reads the messages that a list has queued, and knows their size.
            if page.is_empty() && self.queue.is_empty() {
                continue;
            }
            // Messages older than the channel say nothing about latency.
            for push in &mut page {
                push.first &= push.created_at.inner() >= opened_at;
            }
            return Ok(page);
        }
    }

    /// The messages that hints have named, those that this node does not keep from their rows. Whatever is not there was
    /// acknowledged or removed meanwhile.
    async fn read_named(&mut self, context: &GatewayContext) -> Result<Vec<(ForApprover, usize)>> {
        let key = WakeKey::Approver(self.tenant.clone(), self.approver.clone());
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        let (mut count, mut total) = (0, 0);
        for id in self.named.iter().take(NAMED_PER_PAGE) {
            // The others come with the next page.
            if total >= MESSAGE_BYTES {
                break;
            }
            count += 1;
            if self.sent.contains_key(id) {
                continue;
            }
            if let Some(NewMessage::Request(request)) = context.wake.take(&key, *id, self.since) {
                let message = ForApprover::Request(request);
                total += message.bytes();
                found.push(message);
            } else {
                total += NAMED_BYTES;
                missing.push(*id);
            }
        }
        if !missing.is_empty() {
            let row = BodiesRow {
                tenant: self.tenant.clone(),
                approver: self.approver.clone(),
                bytes: missing.len() * NAMED_BYTES,
                messages: missing,
            };
            found.extend(context.store.channels.bodies.run(row).await?);
        }
        self.named.drain(..count);
        found.sort_by_key(|message| (message.created_at(), message.message()));
        for message in &found {
            self.note_new(message.created_at().inner());
        }
        let sized = found.into_iter().map(|message| {
            let bytes = message.bytes();
            (message, bytes)
        });
        Ok(sized.collect())
    }

    /// Lists the rows after the scan's position. Those that come with their body are returned, the
    /// others queued.
    async fn list(&mut self, context: &GatewayContext) -> Result<Vec<(ForApprover, usize)>> {
        let Some(after) = self.position else {
            return Ok(Vec::new());
        };
        let row = ListRow {
            tenant: self.tenant.clone(),
            approver: self.approver.clone(),
            after,
            seen: self.mark,
            withdrawals: self.withdrawals,
            limit: PER_LIST,
        };
        let listed = context.store.channels.lists.run(row).await?;
        let complete = i64::try_from(listed.len()).unwrap_or(i64::MAX) < PER_LIST;
        self.position = listed
            .last()
            .filter(|_| !complete)
            .map(|last| (last.created_at, last.message.0));
        let mut found = Vec::new();
        for line in listed {
            let UnackedMessage {
                message,
                created_at,
                bytes,
                body,
            } = line;
            if self.sent.contains_key(&message) {
                continue;
            }
            self.note_new(created_at);
            match body {
                // To keep the order, once one is queued, all later ones are.
                Some(body) if self.queue.is_empty() => found.push((body, bytes)),
                _ => self.queue.push_back((message, bytes)),
            }
        }
        Ok(found)
    }

    /// How many of the queued messages make the next page, and their bytes.
    fn next_in_queue(&self) -> (usize, usize) {
        let (mut count, mut total) = (0, 0);
        for (_, bytes) in self.queue.iter().take(PER_PAGE) {
            if count > 0 && total + bytes > PAGE_BYTES {
                break;
            }
            total += bytes;
            count += 1;
        }
        (count, total)
    }

    /// About how many bytes the next page has; 0 if it is only listed then, and small.
    pub fn next_page_bytes(&self) -> usize {
        self.next_in_queue().1
    }

    async fn read(&mut self, context: &GatewayContext) -> Result<Vec<(ForApprover, usize)>> {
        let (count, total) = self.next_in_queue();
        let mut wanted: Vec<_> = self.queue.iter().take(count).copied().collect();
        let row = BodiesRow {
            tenant: self.tenant.clone(),
            approver: self.approver.clone(),
            messages: wanted.iter().map(|(id, _)| *id).collect(),
            bytes: total,
        };
        let bodies = context.store.channels.bodies.run(row).await?;
        self.queue.drain(..wanted.len());
        let mut found = Vec::with_capacity(bodies.len());
        for body in bodies {
            let place = wanted.iter().position(|(id, _)| *id == body.message());
            let bytes = place.map_or(0, |place| wanted.swap_remove(place).1);
            found.push((body, bytes));
        }
        // Messages that were not returned are acknowledged, removed, or outdated.
        for (id, _) in &wanted {
            self.forget(*id);
        }
        Ok(found)
    }

    fn note_new(&mut self, at: OffsetDateTime) {
        if at < self.overlap() {
            // Late, or the clock has stepped back: then the next rows follow right after this one.
            self.recent.clear();
        } else if at <= self.mark {
            return;
        }
        self.mark = at;
        if self.recent.len() >= LATE_ROWS {
            self.recent.pop_front();
        }
        self.recent.push_back(at);
    }

    /// Notes that a message is being sent; true if for the first time.
    fn note_sent(&mut self, id: MessageId, bytes: usize, metrics: &Metrics) -> bool {
        let now = Instant::now();
        let before = self.forget(id);
        if let Some(offer) = &before {
            let lag = metrics.sweep_lag.of(["redelivery"]);
            lag.took(now.saturating_duration_since(offer.due));
        }
        let pause = before.as_ref().map_or(self.first_pause, |offer| {
            (offer.pause * 2).min(self.longest_pause)
        });
        let due = now + pause;
        self.due.insert((due, id));
        self.sent.insert(id, SentItem { bytes, pause, due });
        before.is_none()
    }

    fn forget(&mut self, id: MessageId) -> Option<SentItem> {
        let offer = self.sent.remove(&id)?;
        self.due.remove(&(offer.due, id));
        Some(offer)
    }
}
