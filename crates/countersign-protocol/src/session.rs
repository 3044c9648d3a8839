//! Session events: reports of an enforcer about its agent. Events may arrive in any order and more
//! than once; the latest state counts, and an end is final.

mod event;
mod judge;

pub use self::event::{
    EndReason, EventRules, MAX_WORD_CHARS, SessionEvent, SessionReport, SessionState, SnapshotType,
    is_snapshot, parse, unframe,
};
pub use self::judge::{ReportFact, ReportOutcome, SessionRecord, judge_report};
