//! The messages of a channel, read page by page as its client takes them. The rows are the queue;
//! only ids are kept in memory. No unacknowledged message is skipped. Each is sent again with
//! growing pauses until it is acknowledged.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use time::OffsetDateTime;
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use crate::gateway::channels::channel::{Channel, role_of};
use crate::gateway::channels::closing::ChannelCloseReason;
use crate::gateway::channels::inbox_scan::{InboxScan, OVERLAP_GRACE, PER_PAGE};
use crate::gateway::channels::offer_backlog::OfferBacklog;
use crate::gateway::channels::push::{PushService, for_enforcer};
use crate::gateway::context::GatewayContext;
use crate::gateway::error::{Error, Result};
use crate::protocol::id::{EnforcerId, MessageId, TenantId};
use crate::store::channels::claim;
use crate::store::channels::claim::{ClaimRow, TakeOver};
use crate::store::channels::enforcer_messages::{ClaimedMessage, ForEnforcer};
use crate::store::channels::read_decision::{DecisionRead, DecisionReadRow};
use crate::wake::{NewMessage, WakeCause, WakeKey, WakeNews};

/// Fewer than of a page that is weighed: decisions may be large.
const NAMED_PER_PAGE: usize = 4;
/// How long a channel counts as the newest without a look at the rows. A newer one sends a hint when it opens.
const NEWEST_LIFETIME: Duration = Duration::from_secs(1);

pub struct MessageFeed {
    source: FeedSource,
    channel: Channel,
    woken: WakeCause,
    context: Arc<GatewayContext>,
}

enum FeedSource {
    Approver(Box<InboxScan>),
    Enforcer {
        tenant: TenantId,
        enforcer: EnforcerId,
        /// When the channel was opened.
        since: Instant,
        /// Whether there may be something to claim.
        look: bool,
        /// Messages that hints have named, if there is nothing else to claim.
        named: VecDeque<MessageId>,
        /// When it was last seen to be the newest channel, if nothing has changed since.
        newest_at: Option<Instant>,
        /// The decisions that it has sent, until their offers are written.
        sent: Box<OfferBacklog>,
        /// How far it has taken over messages offered to other channels, as it does when channels
        /// open or close.
        take_over: Option<TakeOver>,
        /// A digest of the enforcer's channels, as last seen.
        channels: Option<Uuid>,
    },
}

impl MessageFeed {
    /// The feed of an approver's channel. It starts with all unacknowledged messages, or 60 s
    /// before `resume_after`.
    pub async fn approver(
        context: &Arc<GatewayContext>,
        channel: Channel,
        withdrawals: bool,
        resume_after: Option<Uuid>,
    ) -> Result<Self> {
        let WakeKey::Approver(tenant, approver) = channel.key.clone() else {
            return Err(Error::Internal);
        };
        let resumed = match resume_after {
            Some(message) => {
                let store = &context.store.channels;
                store.message_created(&tenant, &approver, message).await?
            }
            None => None,
        };
        let start = resumed
            .and_then(|at| at.checked_sub(OVERLAP_GRACE))
            .unwrap_or(OffsetDateTime::UNIX_EPOCH);
        let scan = InboxScan::new(context, tenant, approver, withdrawals, start);
        Ok(Self {
            source: FeedSource::Approver(Box::new(scan)),
            channel,
            woken: WakeCause::Hint,
            context: Arc::clone(context),
        })
    }

    pub fn enforcer(context: &Arc<GatewayContext>, channel: Channel) -> Result<Self> {
        let WakeKey::Enforcer(tenant, enforcer) = channel.key.clone() else {
            return Err(Error::Internal);
        };
        let source = FeedSource::Enforcer {
            tenant,
            enforcer,
            since: Instant::now(),
            look: true,
            named: VecDeque::new(),
            newest_at: None,
            sent: Box::default(),
            take_over: Some(TakeOver::START),
            channels: None,
        };
        Ok(Self {
            source,
            channel,
            woken: WakeCause::Hint,
            context: Arc::clone(context),
        })
    }

    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Waits until the channel is to be closed.
    pub fn closed(&self) -> impl Future<Output = ChannelCloseReason> {
        self.channel.closed()
    }

    /// Approximate bytes of the next page, known beforehand for pages that may be large, else 0.
    pub fn next_page_bytes(&self) -> usize {
        match &self.source {
            FeedSource::Approver(scan) => scan.next_page_bytes(),
            FeedSource::Enforcer { .. } => 0,
        }
    }

    /// Notes that a message was written to the client.
    pub fn note_written(&self, push: &PushService) {
        let labels = [push.msg_type, self.channel.transport.as_str()];
        let metrics = &self.context.metrics;
        metrics.sent.of(labels).increment();
        if push.first {
            let latency = self.context.seconds_since(push.created_at);
            metrics.push_latency.of(labels).observe(latency);
            let role = role_of(&self.channel.key);
            self.context.note_missed(self.woken, role, push.created_at);
        }
        if let Some(context) = &push.context {
            // The age of a message is not the latency of its redelivery.
            let now = self.context.clock.now();
            let began = if push.first { push.created_at } else { now };
            let [msg_type, transport] = labels;
            let tracer = &self.context.tracer;
            tracer.sent(context, msg_type, transport, began.inner());
        }
    }

    /// Two cancel-safe futures: the channel is to be closed, and there is something to send.
    pub fn closed_or_ready(
        &mut self,
    ) -> (
        impl Future<Output = ChannelCloseReason>,
        impl Future<Output = ()>,
    ) {
        let Self {
            source,
            channel,
            woken,
            ..
        } = self;
        let (handle, waiter) = channel.parts();
        let ready = async move {
            match source {
                FeedSource::Approver(scan) => {
                    if scan.has_more() {
                        return;
                    }
                    tokio::select! {
                        cause = waiter.woken() => {
                            *woken = cause;
                            match waiter.news() {
                                WakeNews::Messages(messages) => scan.add_named(messages),
                                WakeNews::Everything => scan.start(waiter.unseen_since()),
                            }
                        }
                        () = sleep_until(scan.next_due()) => scan.take_due(),
                    }
                }
                FeedSource::Enforcer {
                    look,
                    named,
                    newest_at,
                    sent,
                    take_over,
                    ..
                } => {
                    if *look || !named.is_empty() {
                        return;
                    }
                    *woken = tokio::select! {
                        cause = waiter.woken() => cause,
                        () = sent.due() => return,
                    };
                    match waiter.news() {
                        WakeNews::Messages(messages) if take_over.is_none() => {
                            // Any role of the database may repeat a hint.
                            for message in messages {
                                if !named.contains(&message) {
                                    named.push_back(message);
                                }
                            }
                        }
                        // Messages to take over are older.
                        _ => (*look, *newest_at) = (true, None),
                    }
                }
            }
        };
        (handle.closed(), ready)
    }

    /// The next few messages; empty if there are none for now, or if only their ids were read.
    pub async fn next_page(&mut self) -> Result<Vec<PushService>> {
        if self.channel.is_cut_off() {
            return Err(Error::Unavailable);
        }
        match &mut self.source {
            FeedSource::Approver(scan) => {
                scan.next_page(&self.context, self.channel.opened_at).await
            }
            FeedSource::Enforcer {
                tenant,
                enforcer,
                since,
                look,
                named,
                newest_at,
                sent,
                take_over,
                channels,
            } => {
                let (opened_at, store) = (self.channel.opened_at, &self.context.store.channels);
                let owner = (&*tenant, &*enforcer, self.channel.id);
                if !*look {
                    // Decisions that wait go first.
                    if named.is_empty() || sent.are_many() {
                        sent.write_due(store, owner).await;
                    }
                    let count = named.len().min(NAMED_PER_PAGE);
                    let is_newest = newest_at.is_some_and(|at| at.elapsed() < NEWEST_LIFETIME);
                    let (mut page, mut reads) = (Vec::new(), Vec::new());
                    let looked_at = Instant::now();
                    for message in named.drain(..count).filter(|it| !sent.contain(*it)) {
                        let new = is_newest
                            .then(|| self.context.wake.take(&self.channel.key, message, *since));
                        if let Some(decision) = new.flatten().and_then(new_decision) {
                            page.push(decision);
                            continue;
                        }
                        reads.push(store.decision_reads.run(DecisionReadRow {
                            tenant: tenant.clone(),
                            enforcer: enforcer.clone(),
                            channel: self.channel.id,
                            message,
                        }));
                    }
                    for read in join_all(reads).await {
                        match read {
                            Ok(DecisionRead::Message(message)) => {
                                *newest_at = Some(looked_at);
                                page.push(*message);
                            }
                            Ok(DecisionRead::Elsewhere) => {}
                            // It is due, as is everything that was never offered.
                            Ok(DecisionRead::Waits) | Err(_) => *look = true,
                        }
                    }
                    page.sort_by_key(|message| message.created_at);
                    let page = serialised(&self.context, enforcer, opened_at, page);
                    for push in &page {
                        sent.add(push.message_id);
                    }
                    return Ok(page);
                }
                // It claims all that was never offered.
                sent.write(store, owner).await?;
                named.clear();
                let row = ClaimRow {
                    tenant: tenant.clone(),
                    enforcer: enforcer.clone(),
                    channel: self.channel.id,
                    limit: i64::try_from(PER_PAGE).unwrap_or(1),
                    take_over: *take_over,
                };
                let page = store.claims.run(row).await?;
                if !page.live {
                    // It is woken when it is registered again, or when its peer responds again.
                    *look = false;
                    return Ok(Vec::new());
                }
                let before = channels.replace(page.channels);
                let changed = before.is_some_and(|before| before != page.channels);
                *take_over = if changed {
                    Some(TakeOver::START)
                } else {
                    page.take_over
                };
                let claimed = page.messages;
                for message in &claimed {
                    // A copy of it may arrive later.
                    if let ForEnforcer::Decision { delivery, .. } = &message.message {
                        self.context.wake.forget(delivery.message_id);
                    }
                }
                let lag = self.context.metrics.sweep_lag.of(["redelivery"]);
                let late = claimed.iter().filter_map(|message| message.late);
                late.for_each(|late| lag.observe(late));
                let count = claimed.len();
                let page = serialised(&self.context, enforcer, opened_at, claimed);
                // A page that is not full is the last one; later messages wake the channel.
                let bytes: usize = page.iter().map(|push| push.text.len()).sum();
                *look = count >= PER_PAGE || bytes >= claim::PAGE_BYTES || take_over.is_some();
                Ok(page)
            }
        }
    }
}

fn new_decision(message: NewMessage) -> Option<ClaimedMessage> {
    let NewMessage::Decision {
        request_id,
        expires_at,
        delivery,
    } = message
    else {
        return None;
    };
    Some(ClaimedMessage {
        created_at: delivery.decided_at.inner(),
        message: ForEnforcer::Decision {
            request_id,
            expires_at,
            delivery,
        },
        first: true,
        late: None,
    })
}

/// A message that cannot be serialised was logged, and must not hold up the others.
fn serialised(
    context: &GatewayContext,
    enforcer: &EnforcerId,
    opened_at: OffsetDateTime,
    claimed: Vec<ClaimedMessage>,
) -> Vec<PushService> {
    let claimed = claimed.into_iter().map(|claimed| ClaimedMessage {
        first: claimed.first && claimed.created_at >= opened_at,
        ..claimed
    });
    let page = claimed.filter_map(|message| for_enforcer(context, enforcer, message).ok());
    page.collect()
}
