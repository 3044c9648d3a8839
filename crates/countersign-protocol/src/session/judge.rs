//! Judges session events by the facts of the store. Reading after the write is enough to tell why
//! nothing was written: an end, a start or a newer state is never undone.

use super::event::{SessionEvent, SessionReport, SessionState};
use crate::canonical::Sha256Hex;
use crate::error::{Error, Result};
use crate::id::{EnforcerId, OperationId};
use crate::timestamp::Timestamp;

#[derive(Debug, Clone)]
pub struct SessionRecord {
    pub operation_id: OperationId,
    pub enforcer_id: EnforcerId,
    pub state: SessionState,
    /// When that state was reported, if ever.
    pub state_at: Option<Timestamp>,
    pub ended: bool,
    /// The stored hash in place of this report's: of the start, the state, the end, or the snapshot
    /// of that id.
    pub hash: Option<Sha256Hex>,
}

#[derive(Debug, Clone)]
pub enum ReportFact {
    /// With the session's state now.
    Written(SessionState),
    Unwritten(Option<SessionRecord>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportOutcome {
    pub state: SessionState,
    /// Whether it had been accepted before.
    pub duplicate: bool,
}

pub fn judge_report(
    fact: ReportFact,
    operation: OperationId,
    enforcer: &EnforcerId,
    report: &SessionReport,
) -> Result<ReportOutcome> {
    let reported = |state, duplicate| Ok(ReportOutcome { state, duplicate });
    let standing = match fact {
        ReportFact::Written(state) => return reported(state, false),
        // The row that stood in the way is gone by now.
        ReportFact::Unwritten(standing) => standing.ok_or(Error::Unavailable)?,
    };
    if standing.enforcer_id != *enforcer {
        return Err(Error::Forbidden {
            pointer: Some("/body/sessionId".to_owned()),
            expected: "a session of the sender's own",
        });
    }
    let repeated = standing.hash == Some(report.hash);
    let outlives_the_end = matches!(
        report.event,
        SessionEvent::End { .. } | SessionEvent::Snapshot { .. }
    );
    if repeated && (!standing.ended || outlives_the_end) {
        // A retry after a lost reply finds its own row, which is no duplicate to the caller.
        return reported(standing.state, standing.operation_id != operation);
    }
    if standing.ended {
        return Err(Error::SessionClosed);
    }
    match report.event {
        SessionEvent::Start { .. } if standing.hash.is_some() => Err(Error::SessionStarted),
        SessionEvent::Snapshot { .. } if standing.hash.is_some() => Err(Error::SnapshotExists),
        SessionEvent::Status { .. } if standing.state_at > Some(report.at) => {
            reported(standing.state, false)
        }
        _ => Err(Error::Unavailable),
    }
}
