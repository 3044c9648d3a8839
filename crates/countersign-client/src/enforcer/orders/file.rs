//! The orders that were obeyed, in a file beside the profile. Their effect follows from all of them
//! by the times that were signed. So it does not matter in which order, how often or how late the
//! gateway delivers them.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::{ClientError, Result};
use crate::private_file::PrivateFile;
use crate::profile::ProfileFile;
use countersign_e2e::ControlOrder;
use countersign_protocol::id::SessionId;
use countersign_protocol::timestamp::Timestamp;

/// Longer than any grant or pause can last from then on: both end after a day.
const ORDER_LIFETIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);
const VERSION: u8 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct StoredOrder {
    pub(super) approver_id: String,
    order: String,
    at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OrderContents {
    v: u8,
    orders: Vec<StoredOrder>,
}

impl StoredOrder {
    pub(super) fn new(approver_id: String, at: Timestamp, order: &ControlOrder) -> Self {
        let (request_id, session, until) = match order {
            ControlOrder::EndGrant { request_id } => (Some(request_id.to_string()), None, None),
            ControlOrder::Pause { session, until } => (None, session.as_ref(), Some(until)),
            ControlOrder::Resume { session } => (None, session.as_ref(), None),
        };
        Self {
            approver_id,
            order: order.name().to_owned(),
            at: at.to_string(),
            request_id,
            session_id: session.map(SessionId::to_string),
            until: until.map(Timestamp::to_string),
        }
    }

    fn at(&self) -> Option<Timestamp> {
        Timestamp::parse(&self.at)
    }

    pub(super) fn session(&self) -> Option<&str> {
        self.session_id.as_deref()
    }

    /// Whether it ends this pause.
    fn ends(&self, pause: &Self) -> bool {
        self.order == "agent.resume"
            && self.approver_id == pause.approver_id
            && (self.session_id.is_none() || self.session_id == pause.session_id)
            && self.at() >= pause.at()
    }
}

/// Every order that counts.
#[derive(Debug, Default)]
pub(super) struct OrderLog(Vec<StoredOrder>);

impl OrderLog {
    /// The pauses in force, each with its end.
    pub(super) fn pauses(&self, now: Timestamp) -> impl Iterator<Item = (&StoredOrder, Timestamp)> {
        self.0.iter().filter_map(move |order| {
            let until = order.until.as_deref().and_then(Timestamp::parse)?;
            let is_over = until <= now || self.0.iter().any(|other| other.ends(order));
            (!is_over).then_some((order, until))
        })
    }

    pub(super) fn has_ended(&self, approver: &str, request_id: &str) -> bool {
        let mut orders = self.0.iter();
        orders.any(|order| {
            order.request_id.as_deref() == Some(request_id) && order.approver_id == approver
        })
    }
}

pub(super) struct OrderFile(PrivateFile);

impl OrderFile {
    pub(super) fn beside(profile: &ProfileFile) -> Self {
        Self(profile.beside("orders.json"))
    }

    fn problem(&self, problem: impl std::fmt::Display) -> ClientError {
        ClientError::Orders {
            path: self.0.path().to_owned(),
            problem: problem.to_string(),
        }
    }

    pub(super) fn load(&self) -> Result<OrderLog> {
        let text = self.0.read().map_err(|error| self.problem(error))?;
        let Some(text) = text else {
            return Ok(OrderLog::default());
        };
        let contents = serde_json::from_str::<OrderContents>(&text).ok();
        let contents = contents.filter(|contents| contents.v == VERSION);
        let contents = contents.ok_or_else(|| self.problem("it is damaged"))?;
        Ok(OrderLog(contents.orders))
    }

    /// Adds an order, and drops those that no longer have an effect.
    pub(super) fn add(&self, order: StoredOrder, now: Timestamp) -> Result<OrderLog> {
        let _lock = self.0.lock().map_err(|error| self.problem(error))?;
        let OrderLog(mut orders) = self.load()?;
        let lifetime = ORDER_LIFETIME.try_into().unwrap_or_default();
        let oldest = now.inner().checked_sub(lifetime).map(Timestamp::from);
        orders.retain(|known| known.at() >= oldest);
        if !orders.contains(&order) {
            orders.push(order);
            let text = json!({ "v": VERSION, "orders": orders }).to_string();
            self.0.write(&text).map_err(|error| self.problem(error))?;
        }
        Ok(OrderLog(orders))
    }
}
