//! Orders of approvers to this enforcer: end a grant, pause the agent, let it go on. They come
//! among the prompts and never reach the agent. An order is obeyed before it is acknowledged, so
//! that none is lost.

mod file;

use std::fmt;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use self::file::{OrderFile, StoredOrder};
use super::prompts::TakenPrompt;
use super::role::Enforcer;
use crate::error::Result;
use crate::visible::visible;
use countersign_e2e::{ControlOrder, SignedControl};
use countersign_protocol::id::SessionId;
use countersign_protocol::timestamp::Timestamp;

/// Orders that were just read are not read again.
const READ_INTERVAL: Duration = Duration::from_secs(2);
/// An older order has no effect any more: grants and pauses end after a day.
const ORDER_LIFETIME: time::Duration = time::Duration::days(2);
/// The sender's clock may be ahead by this.
const CLOCK_SKEW_GRACE: time::Duration = time::Duration::minutes(5);

/// A pause in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentPause {
    pub approver: String,
    /// `None` for all sessions.
    pub session: Option<String>,
    pub until: Timestamp,
}

impl fmt::Display for AgentPause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (who, until) = (visible(&self.approver), self.until);
        write!(f, "paused by {who} until {until}")
    }
}

impl Enforcer {
    fn order_file(&self) -> OrderFile {
        OrderFile::beside(&self.file)
    }

    /// Obeys the orders that wait at the gateway. If it withholds one, that counts until it
    /// arrives, as with the revocation of a device.
    pub(super) async fn read_orders(&mut self, deadline: Instant) -> Result<()> {
        if (self.orders_read_at).is_some_and(|at| at.elapsed() < READ_INTERVAL) {
            return Ok(());
        }
        self.authentic_prompts(None, deadline).await?;
        self.orders_read_at = Some(Instant::now());
        Ok(())
    }

    /// Obeys an order and says so to its sender.
    pub(super) async fn obey(&self, prompt: &TakenPrompt, deadline: Instant) -> Result<()> {
        let plain = &prompt.opened.prompt;
        let Some(control) = plain.control() else {
            return Ok(());
        };
        let (id, hash) = (plain.request_id(), plain.hash());
        if let Err(reason) = self.apply(prompt.approver.as_str(), control)? {
            return self.reject_prompt(id, hash, reason, deadline).await;
        }
        let receipt = json!({ "receipt": plain.receipt() });
        let told = self.acknowledge_prompt(id, hash, "delivered", &receipt, deadline);
        told.await.map(drop)
    }

    /// The inner error is why it has no effect.
    fn apply(
        &self,
        approver: &str,
        control: &SignedControl,
    ) -> Result<std::result::Result<(), &'static str>> {
        let (now, at) = (self.access.now(), control.parties().at);
        let age = now.inner() - at.inner();
        if age > ORDER_LIFETIME {
            return Ok(Err("it is too old"));
        }
        if age < -CLOCK_SKEW_GRACE {
            return Ok(Err("it is from the future; set the clock of your device"));
        }
        let order = control.order();
        let stored = StoredOrder::new(approver.to_owned(), at, order);
        let orders = self.order_file().add(stored.clone(), now)?;
        match order {
            ControlOrder::EndGrant { request_id } => {
                self.delete_grant_of(approver, request_id.as_str())?;
                Ok(Ok(()))
            }
            ControlOrder::Pause { .. } => {
                let mut pauses = orders.pauses(now);
                let counts = pauses.any(|(pause, _)| *pause == stored);
                Ok(counts.then_some(()).ok_or("it is over already"))
            }
            ControlOrder::Resume { session } => {
                let session = session.as_ref().map(SessionId::as_str);
                let mut pauses = orders.pauses(now);
                let stays = pauses.any(|(pause, _)| {
                    pause.approver_id == approver
                        && (session.is_none() || pause.session() == session)
                });
                let reason = "a pause that was ordered later still counts";
                Ok((!stays).then_some(()).ok_or(reason))
            }
        }
    }

    /// The pause that concerns this session of the agent. A call outside sessions is stopped by
    /// pauses of the whole enforcer.
    pub fn pause(&self, session: Option<&SessionId>) -> Result<Option<AgentPause>> {
        let own = session.map(SessionId::as_str);
        let pauses = self.pauses()?;
        let concerns =
            |pause: &AgentPause| pause.session.is_none() || pause.session.as_deref() == own;
        Ok(pauses.into_iter().find(concerns))
    }

    /// Every pause in force that this enforcer knows of.
    pub fn pauses(&self) -> Result<Vec<AgentPause>> {
        let orders = self.order_file().load()?;
        let pauses = orders.pauses(self.access.now());
        let pauses = pauses.map(|(order, until)| AgentPause {
            approver: order.approver_id.clone(),
            session: order.session().map(str::to_owned),
            until,
        });
        Ok(pauses.collect())
    }

    /// Whether this approver has ended the grant.
    pub(super) fn is_ended(&self, approver: &str, request_id: &str) -> Result<bool> {
        Ok((self.order_file().load()?).has_ended(approver, request_id))
    }
}
