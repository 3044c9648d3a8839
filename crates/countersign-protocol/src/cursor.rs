//! Page cursors: opaque to clients and bound to their listing. The checksum catches mistakes; it is
//! no secret.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use time::OffsetDateTime;

/// Where a page ended: the last row's time and the id that breaks ties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PagePosition {
    pub at: OffsetDateTime,
    pub id: String,
}

/// The end of the year 9999, in nanoseconds.
const MAX_NANOS: i128 = 253_402_300_800_000_000_000;

/// Enough to detect a cursor that is damaged or of another listing.
const CHECK_BYTES: usize = 8;

fn check(listing: &str, payload: &[u8]) -> [u8; CHECK_BYTES] {
    let mut hash = Sha256::new();
    hash.update((listing.len() as u64).to_be_bytes());
    hash.update(listing.as_bytes());
    hash.update(payload);
    let hash: [u8; 32] = hash.finalize().into();
    hash.first_chunk().copied().unwrap_or_default()
}

/// Prints a position. `listing` must name everything that distinguishes the listing from others.
pub fn encode(listing: &str, position: &PagePosition) -> String {
    let micros = position.at.unix_timestamp_nanos() / 1_000;
    let payload = format!("{micros}.{}", position.id);
    let mut bytes = check(listing, payload.as_bytes()).to_vec();
    bytes.extend_from_slice(payload.as_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Reads a cursor; `None` if it is damaged or of another listing.
pub fn decode(listing: &str, cursor: &str) -> Option<PagePosition> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    let (sum, payload) = bytes.split_at_checked(CHECK_BYTES)?;
    if sum != check(listing, payload) {
        return None;
    }
    let (micros, id) = std::str::from_utf8(payload).ok()?.split_once('.')?;
    let nanos = micros.parse::<i128>().ok()?.checked_mul(1_000)?;
    // Anyone can compute the checksum: the values must be safe to query the database with.
    if !(0..MAX_NANOS).contains(&nanos) || id.chars().any(char::is_control) {
        return None;
    }
    Some(PagePosition {
        at: OffsetDateTime::from_unix_timestamp_nanos(nanos).ok()?,
        id: id.to_owned(),
    })
}
