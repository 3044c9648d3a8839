//! Inboxes: pages, and removal of an item.

use std::time::Duration;

use time::OffsetDateTime;
use uuid::Uuid;

use super::Gateway;
use super::caller::Approver;
use super::error::Error;
use crate::protocol::cursor::{self, Position};
use crate::protocol::id::{ApproverId, RequestId};
use crate::protocol::listing::InboxKind;
use crate::protocol::message::ApprovalRequest;
use crate::protocol::timestamp::Timestamp;
use crate::store::inbox::After;

/// Which page is asked for, as the query says.
#[derive(Debug, Default, Clone)]
pub struct PageRequest {
    /// Where the page before ended.
    pub cursor: Option<String>,
    /// How many items at most.
    pub limit: Option<String>,
}

#[derive(Debug)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Where the next page starts, if there is one.
    pub next: Option<String>,
}

pub(super) const FOREIGN_CURSOR: Error = Error::Parameter {
    name: "cursor",
    expected: "a cursor from this listing",
};

/// A parameter that is an integer of at least 1. Digits that do not fit a word are merely a large one.
fn at_least_one(name: &'static str, text: &str) -> Result<i64, Error> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<i64>().unwrap_or(i64::MAX) {
        number @ 1.. if digits => Ok(number),
        _ => Err(Error::Parameter {
            name,
            expected: "an integer of at least 1",
        }),
    }
}

impl Gateway {
    /// How many items a page may hold: what was asked for, within the limits.
    pub(super) fn page_limit(&self, request: &PageRequest) -> Result<i64, Error> {
        let limits = &self.config.limits;
        match request.limit.as_deref() {
            None => Ok(i64::from(limits.page_default)),
            Some(text) => Ok(at_least_one("limit", text)?.min(i64::from(limits.page_max))),
        }
    }

    /// How long a wait may take: what was asked for, within the limits.
    pub fn time_limit(&self, asked: Option<&str>) -> Result<Duration, Error> {
        let limits = &self.config.limits;
        let seconds = match asked {
            None => limits.wait_default_seconds,
            Some(text) => {
                let seconds = at_least_one("timeout", text)?;
                u64::try_from(seconds)
                    .unwrap_or(u64::MAX)
                    .min(limits.wait_max_seconds)
            }
        };
        Ok(Duration::from_secs(seconds))
    }

    pub async fn inbox(
        &self,
        caller: &Approver,
        approver: &ApproverId,
        kind: InboxKind,
        request: &PageRequest,
    ) -> Result<Page<ApprovalRequest>, Error> {
        let tenant = &caller.origin.tenant;
        let listing = match kind {
            InboxKind::Active => format!("inbox\n{tenant}\n{approver}"),
            InboxKind::Expired => format!("expired\n{tenant}\n{approver}"),
        };
        let limit = self.page_limit(request)?;
        let after = match &request.cursor {
            None => None,
            Some(text) => {
                let Position { at, id } = cursor::decode(&listing, text).ok_or(FOREIGN_CURSOR)?;
                Some(After {
                    created_at: at,
                    message_id: Uuid::try_parse(&id).map_err(|_| FOREIGN_CURSOR)?,
                })
            }
        };
        let max_bytes = i64::from(self.config.limits.page_bytes);
        let page = self
            .store
            .inbox_page(tenant, approver, kind, after, limit, max_bytes)
            .await?;
        let next = page.items.last().filter(|_| page.more).map(|last| {
            let at: OffsetDateTime = last.created_at.inner();
            cursor::encode(
                &listing,
                &Position {
                    at,
                    id: last.message_id.to_string(),
                },
            )
        });
        Ok(Page {
            items: page.items,
            next,
        })
    }

    /// Hides an item from its approver; the exchange stays decidable until the time that is returned.
    pub async fn remove_item(
        &self,
        caller: &Approver,
        approver: &ApproverId,
        request: &RequestId,
    ) -> Result<Timestamp, Error> {
        let removed = self
            .store
            .remove_item(&caller.origin.tenant, approver, request)
            .await?;
        removed.ok_or(Error::NotFound)
    }
}
