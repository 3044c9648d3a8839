//! What a report met, judged. Whatever refuses one stays so: an end is never undone, nor a start, nor a newer state; so a
//! look that comes after the writing says why nothing was written.

use super::{Event, Report, State};
use crate::protocol::canonical::Sha256Hex;
use crate::protocol::id::{EnforcerId, OperationId};
use crate::protocol::timestamp::Timestamp;

#[derive(Debug, Clone)]
pub struct Standing {
    pub operation_id: OperationId,
    pub enforcer_id: EnforcerId,
    pub state: State,
    /// As of when, if it ever said so.
    pub state_at: Option<Timestamp>,
    pub ended: bool,
    /// The hash that stands where this report's would: of its start, its state, its end, or that very snapshot.
    pub hash: Option<Sha256Hex>,
}

#[derive(Debug, Clone)]
pub enum ReportFact {
    /// It was written, and this is the session's state now.
    Written(State),
    /// It was not, because of what stood there.
    Unwritten(Option<Standing>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reported {
    pub state: State,
    /// Whether it had been accepted before.
    pub duplicate: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportRefusal {
    Foreign,
    Closed,
    Started,
    SnapshotExists,
    /// What stood in the way was gone when looked at.
    Unsettled,
}

pub fn judge_report(
    fact: ReportFact,
    operation: OperationId,
    enforcer: &EnforcerId,
    report: &Report,
) -> Result<Reported, ReportRefusal> {
    let standing = match fact {
        ReportFact::Written(state) => {
            return Ok(Reported {
                state,
                duplicate: false,
            });
        }
        ReportFact::Unwritten(standing) => standing.ok_or(ReportRefusal::Unsettled)?,
    };
    if standing.enforcer_id != *enforcer {
        return Err(ReportRefusal::Foreign);
    }
    let repeated = standing.hash == Some(report.hash);
    let outlives_the_end = matches!(report.event, Event::End { .. } | Event::Snapshot { .. });
    if repeated && (!standing.ended || outlives_the_end) {
        return Ok(Reported {
            state: standing.state,
            // A retry after a lost reply finds its own work: to the caller it is the first time.
            duplicate: standing.operation_id != operation,
        });
    }
    if standing.ended {
        return Err(ReportRefusal::Closed);
    }
    match report.event {
        Event::Start { .. } if standing.hash.is_some() => Err(ReportRefusal::Started),
        Event::Snapshot { .. } if standing.hash.is_some() => Err(ReportRefusal::SnapshotExists),
        Event::Status { .. } if standing.state_at > Some(report.at) => Ok(Reported {
            state: standing.state,
            duplicate: false,
        }),
        _ => Err(ReportRefusal::Unsettled),
    }
}
