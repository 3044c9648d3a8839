//! Pages of listings, and the query parameters that are numbers.

use std::time::Duration;

use super::GatewayContext;
use super::error::{Error, Result};
use crate::protocol::cursor::{self, PagePosition};

/// The query parameters of a listing, unchecked.
#[derive(Debug, Default, Clone)]
pub struct PageRequest {
    pub cursor: Option<String>,
    pub limit: Option<String>,
}

#[derive(Debug)]
pub struct ListPage<T> {
    pub items: Vec<T>,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}

pub(super) const FOREIGN_CURSOR: Error = Error::Parameter {
    name: "cursor",
    expected: "a cursor from this listing",
};

impl PageRequest {
    /// Where the page starts: after the last row of the page before.
    pub(super) fn after(&self, listing: &str) -> Result<Option<PagePosition>> {
        let cursor = self.cursor.as_deref();
        cursor
            .map(|text| cursor::decode(listing, text).ok_or(FOREIGN_CURSOR))
            .transpose()
    }
}

impl<T> ListPage<T> {
    pub(super) fn new(listing: &str, items: Vec<T>, next: Option<&PagePosition>) -> Self {
        Self {
            items,
            next: next.map(|position| cursor::encode(listing, position)),
        }
    }
}

/// A parameter that is an integer of at least 1. Digits that overflow count as the largest number.
fn at_least_one(name: &'static str, text: &str) -> Result<i64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<i64>().unwrap_or(i64::MAX) {
        number @ 1.. if digits => Ok(number),
        _ => Err(Error::Parameter {
            name,
            expected: "an integer of at least 1",
        }),
    }
}

impl GatewayContext {
    /// The page size: as requested, within the limits.
    pub fn page_limit(&self, request: &PageRequest) -> Result<i64> {
        let limits = &self.config.limits;
        match request.limit.as_deref() {
            None => Ok(i64::from(limits.default_page())),
            Some(text) => Ok(at_least_one("limit", text)?.min(i64::from(limits.page_max))),
        }
    }

    /// The length of a wait: as requested, within the limits.
    pub fn time_limit(&self, requested: Option<&str>) -> Result<Duration> {
        let limits = &self.config.limits;
        let seconds = match requested {
            None => limits.default_wait(),
            Some(text) => {
                let seconds = at_least_one("timeout", text)?;
                u64::try_from(seconds)
                    .unwrap_or(u64::MAX)
                    .min(limits.wait_max_seconds)
            }
        };
        Ok(Duration::from_secs(seconds))
    }
}
