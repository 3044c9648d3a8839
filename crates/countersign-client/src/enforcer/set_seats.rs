//! The people of a set who can be asked now, with the devices that may decide for each.

use std::collections::BTreeSet;

use tokio::time::Instant;

use super::approval_request::{ApprovalDenial, ApprovalRequest};
use super::role::Enforcer;
use super::set_count::too_few;
use crate::error::{ClientError, Result};
use countersign_e2e::{DeviceTrust, RuleTerms, SeatSource, VoteCount, VoteState};
use countersign_protocol::id::ApproverId;

/// Somebody who is asked. On a seat of a team, also the devices of a stand-in decide.
pub(super) struct SetSeat {
    pub(super) person: ApproverId,
    pub(super) devices: Vec<DeviceTrust>,
}

impl Enforcer {
    /// Denies at once if too few can be asked, whatever they decide.
    pub(super) async fn set_seats(
        &mut self,
        request: &ApprovalRequest,
        terms: &RuleTerms,
        deadline: Instant,
    ) -> Result<Vec<SetSeat>, ApprovalDenial> {
        if request.approver.is_some() {
            let problem = "a rule says who is asked, so no approver can be named beside it";
            return Err(ClientError::Choice(problem).into());
        }
        self.reload()?;
        let people = terms.people().into_iter();
        let people = people.filter(|id| !terms.not_by.contains(id));
        let sources = people.map(|id| (id, SeatSource::of(id, terms)));
        let sources: Vec<_> = sources
            .filter(|(id, source)| source.is_some() || self.approver(id.as_str()).is_some())
            .collect();
        check_people(terms, sources.iter().map(|(id, _)| *id))?;
        let direct = sources.iter().filter(|(_, source)| source.is_none());
        let direct: Vec<_> = direct.map(|(id, _)| id.to_string()).collect();
        let listed = self.devices_of(&direct, true, deadline).await?;
        let mut seats = Vec::new();
        for (person, source) in sources {
            let own = listed.iter().filter(|it| it.approver() == person);
            let mut devices: Vec<_> = own.cloned().collect();
            if let Some(source) = source {
                devices = self.seat_devices(&source, false, deadline).await?;
            }
            devices.retain(|trust| !trust.in_force().is_empty());
            if !devices.is_empty() {
                let person = person.clone();
                seats.push(SetSeat { person, devices });
            }
        }
        check_people(terms, seats.iter().map(|it| &it.person))?;
        match self.pause_of(request, deadline).await {
            Some(pause) => Err(ApprovalDenial::Paused(pause)),
            None => Ok(seats),
        }
    }
}

fn check_people<'p>(
    terms: &RuleTerms,
    people: impl Iterator<Item = &'p ApproverId>,
) -> Result<(), ApprovalDenial> {
    let asked: BTreeSet<_> = people.collect();
    let mut count = VoteCount::new(terms.clone());
    for person in terms.people() {
        if !asked.contains(person) {
            count.drop_out(person);
        }
    }
    match count.state() {
        VoteState::Open(_) => Ok(()),
        VoteState::Impossible(gaps) => Err(too_few(&gaps, terms, &[])),
        VoteState::Satisfied(_) | VoteState::Rejected(_) => Err(too_few(&[], terms, &[])),
    }
}
