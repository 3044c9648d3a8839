//! The offset of the node's clock, for statements that judge by the database's.

use sqlx::postgres::types::PgInterval;

use crate::clock::Clock;

pub fn clock_offset(clock: &Clock) -> PgInterval {
    PgInterval {
        months: 0,
        days: 0,
        microseconds: clock.offset_micros(),
    }
}
