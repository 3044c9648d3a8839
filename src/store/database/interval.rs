//! Intervals as PostgreSQL takes them.

use sqlx::postgres::types::PgInterval;

/// Seconds as an interval.
pub fn seconds(seconds: u64) -> PgInterval {
    let microseconds = i64::try_from(seconds)
        .unwrap_or(i64::MAX)
        .saturating_mul(1_000_000);
    PgInterval {
        months: 0,
        days: 0,
        microseconds,
    }
}
