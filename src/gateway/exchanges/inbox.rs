//! Approvers' inboxes: lists items, and removes one.

use uuid::Uuid;

use crate::gateway::ExchangeService;
use crate::gateway::error::{Error, Result};
use crate::gateway::identity::caller::Approver;
use crate::gateway::page::{FOREIGN_CURSOR, ListPage, PageRequest};
use crate::protocol::cursor::PagePosition;
use crate::protocol::id::{ApproverId, RequestId};
use crate::protocol::listing::InboxKind;
use crate::protocol::message::RequestMessage;
use crate::protocol::timestamp::Timestamp;
use crate::store::exchanges::inbox::PageStart;

impl ExchangeService {
    pub async fn inbox(
        &self,
        caller: &Approver,
        approver: &ApproverId,
        kind: InboxKind,
        request: &PageRequest,
    ) -> Result<ListPage<RequestMessage>> {
        let tenant = &caller.origin.tenant;
        let listing = match kind {
            InboxKind::Active => format!("inbox\n{tenant}\n{approver}"),
            InboxKind::Expired => format!("expired\n{tenant}\n{approver}"),
        };
        let limit = self.context.page_limit(request)?;
        let after = match request.after(&listing)? {
            None => None,
            Some(PagePosition { at, id }) => Some(PageStart {
                created_at: at,
                message_id: Uuid::try_parse(&id).map_err(|_| FOREIGN_CURSOR)?,
            }),
        };
        let max_bytes = i64::from(self.context.config.limits.page_bytes);
        let page = self
            .store
            .inbox_page(tenant, approver, kind, after, limit, max_bytes)
            .await?;
        let last = page.items.last().filter(|_| page.more);
        let next = last.map(|last| PagePosition {
            at: last.created_at.inner(),
            id: last.message_id.to_string(),
        });
        Ok(ListPage::new(&listing, page.items, next.as_ref()))
    }

    /// Hides an item from its approver. The exchange can still be decided until the returned time.
    pub async fn remove_item(
        &self,
        caller: &Approver,
        approver: &ApproverId,
        request: &RequestId,
    ) -> Result<Timestamp> {
        let tenant = &caller.origin.tenant;
        let removed = self.store.remove_item(tenant, approver, request).await?;
        removed.ok_or(Error::NotFound)
    }
}
