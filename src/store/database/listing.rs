//! Pages of a list: where one starts, and where it is cut off.

use time::OffsetDateTime;

use crate::protocol::cursor::PagePosition;

/// Which part of a list; by default all of it.
#[derive(Debug, Default)]
pub struct ListPart {
    pub after: Option<PagePosition>,
    pub limit: Option<i64>,
}

impl ListPart {
    pub(in crate::store) fn start(&self) -> (Option<OffsetDateTime>, Option<&str>) {
        match &self.after {
            Some(position) => (Some(position.at), Some(&position.id)),
            None => (None, None),
        }
    }

    /// One more than wanted, to know whether there is another page.
    pub(in crate::store) fn count(&self) -> Option<i64> {
        self.limit.map(|limit| limit.saturating_add(1))
    }

    pub(in crate::store) fn cut<T>(
        &self,
        items: Vec<T>,
        position: impl Fn(&T) -> PagePosition,
    ) -> (Vec<T>, Option<PagePosition>) {
        cut_page(items, self.limit.unwrap_or(i64::MAX), position)
    }
}

/// Cuts off the row past `limit`; if there was one, also returns where the next page starts.
pub(in crate::store) fn cut_page<T>(
    mut items: Vec<T>,
    limit: i64,
    position: impl Fn(&T) -> PagePosition,
) -> (Vec<T>, Option<PagePosition>) {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(position);
    (items, next)
}
