//! Stand-ins: a member names somebody who decides on the own seat for a time. The seat still counts
//! once.

use super::role::Approver;
use super::teams::TeamAnswer;
use crate::error::{ClientError, Result};
use countersign_e2e::{StandIn, TeamChain, TeamHead};
use countersign_protocol::timestamp::Timestamp;

impl Approver {
    /// The person who answered an invitation of this device stands in, at most for 30 days. The
    /// invitation is used up.
    pub async fn name_stand_in(
        &self,
        chain: &TeamChain,
        answer: &TeamAnswer,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<TeamHead> {
        let stand_in = StandIn {
            approver: answer.consent.approver().clone(),
            devices: answer.consent.devices().to_vec(),
            from: whole_second(from),
            until: whole_second(until),
        };
        let head = self.change_stand_in(chain, Some(stand_in)).await?;
        self.forget_invitation(answer)?;
        Ok(head)
    }

    /// Nobody stands in any more. Approvals that the stand-in has given for calls that are still open
    /// do not count.
    pub async fn end_stand_in(&self, chain: &TeamChain) -> Result<TeamHead> {
        self.change_stand_in(chain, None).await
    }

    async fn change_stand_in(
        &self,
        chain: &TeamChain,
        stand_in: Option<StandIn>,
    ) -> Result<TeamHead> {
        if stand_in.is_some() && !chain.content().stand_ins {
            let problem = "the team's owners allow no stand-ins";
            return Err(ClientError::Choice(problem));
        }
        let changed = self.change_team(chain, |content| {
            let seat = content.seat_mut(&self.id);
            let no_seat = "you have no seat in this team, so nobody can stand in for you";
            seat.ok_or(ClientError::Choice(no_seat))?.stand_in = stand_in;
            Ok(())
        });
        changed.await
    }
}

/// As a state has it.
fn whole_second(at: Timestamp) -> Timestamp {
    let at = at.inner();
    Timestamp::from(at - time::Duration::nanoseconds(at.nanosecond().into()))
}
