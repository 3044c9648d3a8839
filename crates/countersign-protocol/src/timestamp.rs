//! RFC 3339 times, with the database's precision of one microsecond.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::{OffsetDateTime, UtcOffset, format_description::well_known::Rfc3339};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(OffsetDateTime);

impl Timestamp {
    pub fn parse(text: &str) -> Option<Self> {
        OffsetDateTime::parse(text, &Rfc3339).ok().and_then(|at| {
            // Near the ends of the calendar the conversion to UTC would overflow.
            (1..=9998).contains(&at.year()).then(|| Self::from(at))
        })
    }

    pub fn inner(self) -> OffsetDateTime {
        self.0
    }
}

impl From<OffsetDateTime> for Timestamp {
    fn from(at: OffsetDateTime) -> Self {
        let at = at.to_offset(UtcOffset::UTC);
        let micros = at.nanosecond() / 1_000 * 1_000;
        Self(at.replace_nanosecond(micros).unwrap_or(at))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.format(&Rfc3339).map_err(|_| fmt::Error)?)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("a time of RFC 3339"))
    }
}
