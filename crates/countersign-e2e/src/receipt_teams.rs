//! The teams of the rule in a receipt: the chains of their states, and the devices on their seats.

use super::anchors::ReceiptAnchors;
use super::error::{Error, Result};
use super::hints::ArtifactHints;
use super::proof_gap::ProofGap;
use super::receipt::{Receipt, ReceiptPart};
use super::rule::RuleTerms;
use super::rule_refusal::RuleRefusal;
use super::seat_source::SeatSource;
use super::statement::SignedStatement;
use super::team::{TeamContent, TeamState};
use super::team_chain::{SignedTeamState, TeamChain};
use super::team_head::TeamHead;
use super::team_seat::TeamSeat;
use countersign_protocol::decision::Verdict;
use countersign_protocol::timestamp::Timestamp;

/// The teams of a rule, by chains that begin with the states which the anchors name.
pub(super) struct ReceiptTeams {
    /// With the seats of the states that the rule names.
    pub(super) terms: RuleTerms,
    /// As far as the enforcer knew them when it counted.
    chains: Vec<TeamChain>,
    /// All of them, from those that the rule names on.
    states: Vec<TeamState>,
}

impl ReceiptTeams {
    pub(super) fn prove(
        receipt: &Receipt,
        terms: &RuleTerms,
        anchors: &ReceiptAnchors,
    ) -> Result<Self, ProofGap> {
        let read = receipt.teams.iter();
        let read = read.map(|text| SignedTeamState::parse_text(text));
        let read: Vec<_> = read.collect::<Result<_>>()?;
        let (mut named, mut proven) = (Vec::<TeamChain>::new(), Self::empty(terms));
        for head in terms.teams() {
            let mut known = named.iter().map(TeamChain::head);
            match known.find(|known| known.team == head.team) {
                Some(known) if known == *head => continue,
                Some(_) => return Err(Error::Team("the rule names two states of it").into()),
                None => {}
            }
            anchors.knows_team(head.team)?;
            let own = read.iter().filter(|it| it.state().head().team == head.team);
            let (asked, newest) = proven.follow(head, own)?;
            if newest.state().tenant() != &receipt.tenant {
                return Err(Error::Team("it is another tenant's").into());
            }
            anchors.check_team(&newest)?;
            if !allows(asked.content(), head, terms) {
                return Err(Error::Rule(RuleRefusal::BelowMinimum).into());
            }
            named.push(asked);
            proven.chains.push(newest);
        }
        proven.terms = proven.terms.resolve(&named);
        Ok(proven)
    }

    fn empty(terms: &RuleTerms) -> Self {
        Self {
            terms: terms.clone(),
            chains: Vec::new(),
            states: Vec::new(),
        }
    }

    /// The chain of a team until the state that the rule names, and until the last one in the file.
    fn follow<'s>(
        &mut self,
        head: &TeamHead,
        mut states: impl Iterator<Item = &'s SignedTeamState>,
    ) -> Result<(TeamChain, TeamChain), ProofGap> {
        let first = states.next().ok_or(ProofGap::Absent)?;
        let mut chain = TeamChain::begin(first.clone())?;
        let mut asked = None;
        loop {
            if chain.head() == *head {
                asked = Some(chain.clone());
            }
            if asked.is_some() {
                self.states.push(chain.state().clone());
            }
            let Some(state) = states.next() else { break };
            chain.follow(state.clone())?;
        }
        chain.knows(head)?;
        let missing = Error::Team("the state that the rule names is missing");
        Ok((asked.ok_or(missing)?, chain))
    }

    fn source(&self, part: &ReceiptPart) -> Option<SeatSource> {
        SeatSource::of(part.seat.as_ref()?, &self.terms)
    }

    /// Whether the part's device speaks for its seat. At no known time, nobody stands in.
    pub(super) fn check_device(
        &self,
        receipt: &Receipt,
        (part, verdict): (&ReceiptPart, Option<Verdict>),
        (anchors, statements): (&ReceiptAnchors, &[SignedStatement]),
        at: Option<Timestamp>,
    ) -> Result<(), ProofGap> {
        let is_own = part.seat.as_ref() == Some(&part.approver);
        let source = self.source(part);
        if source.as_ref().is_none_or(|source| source.is_direct) {
            let people = self.terms.people();
            let is_asked = part.seat.as_ref().is_some_and(|it| people.contains(it));
            if !is_own || !is_asked {
                return Err(Error::OtherSubject { what: "seat" }.into());
            }
            anchors.check_device(receipt, part, statements)?;
        }
        let Some(source) = source else { return Ok(()) };
        if !is_own && at.is_none() {
            return Err(ProofGap::Absent);
        }
        let id = part.device.id();
        let people = source.devices(&self.chains, None, &receipt.tenant, at);
        let mut people = people.iter().filter(|it| *it.approver() == part.approver);
        let known = people.find_map(|trust| trust.device(id).ok());
        if known.is_some_and(|device| device.bundle().same_keys(&part.device)) {
            return Ok(());
        }
        if !self.was_seated(&source, part) {
            return Err(Error::UnknownDevice(id).into());
        }
        // It has left the seat before the outcome. An enforcer judges approvals again, and leaves a
        // rejection as it is.
        let is_rejection = verdict == Some(Verdict::Reject);
        is_rejection.then_some(()).ok_or(ProofGap::Absent)
    }

    /// Whether the device was on the seat in some state since the one in the rule.
    fn was_seated(&self, source: &SeatSource, part: &ReceiptPart) -> bool {
        let was_in = |head: &TeamHead| {
            let states = self.states.iter();
            let mut states = states.filter(|state| state.head().team == head.team);
            states.any(|state| {
                let seat = state.content().seat(&source.seat);
                seat.is_some_and(|seat| is_on(seat, part))
            })
        };
        source.admits(&part.approver) && source.teams.iter().all(was_in)
    }

    /// Whether the device is still on the seat: in states that the anchors know and the file does not
    /// have, and by the time of a stand-in. None if there are no such states and nobody stood in.
    pub(super) fn check_current(
        &self,
        part: &ReceiptPart,
        anchors: &ReceiptAnchors,
    ) -> Option<Result<(), ProofGap>> {
        let source = self.source(part)?;
        let chains = self.chains.iter();
        let chains = chains.filter(|own| source.teams.iter().any(|it| it.team == own.head().team));
        let chains: Vec<_> = chains.collect();
        if !part.is_own()
            && chains
                .iter()
                .any(|own| is_over(own, &source, part, anchors))
        {
            return Some(Err(ProofGap::Absent));
        }
        let later = chains.into_iter().filter_map(|own| anchors.later(own));
        let later: Vec<_> = later.collect();
        let has_device = |chain: &&TeamChain| {
            let seat = chain.content().seat(&source.seat);
            seat.is_some_and(|seat| is_on(seat, part))
        };
        let is_current = later.iter().all(has_device);
        let current = is_current.then_some(()).ok_or(ProofGap::Absent);
        (!later.is_empty()).then_some(current)
    }

    /// Whether an approval names states of the seat's teams, none of which the file lacks or demands
    /// more than the rule: its device would have refused.
    pub(super) fn are_named(&self, part: &ReceiptPart, hints: &ArtifactHints) -> bool {
        let Some(source) = self.source(part) else {
            return true;
        };
        let is_fit = |head: &TeamHead| {
            let mut states = self.states.iter();
            let state = states.find(|state| state.head() == *head);
            state.is_some_and(|state| allows(state.content(), head, &self.terms))
        };
        let teams = self.chains.iter().map(|chain| chain.head().team);
        let teams: Vec<_> = teams.collect();
        let mut own = hints.teams.iter().filter(|head| teams.contains(&head.team));
        source.is_named_by(&hints.teams) && own.all(is_fit)
    }
}

/// Whether the terms demand no less than the team.
fn allows(content: &TeamContent, head: &TeamHead, terms: &RuleTerms) -> bool {
    terms.clone().join_minimum(head.team, &content.minimum) == *terms
}

/// Whether the time is over for which the part's approver stood in.
fn is_over(
    chain: &TeamChain,
    source: &SeatSource,
    part: &ReceiptPart,
    anchors: &ReceiptAnchors,
) -> bool {
    let seat = chain.content().seat(&source.seat);
    let stand_in = seat.and_then(|seat| seat.stand_in.as_ref());
    let own = stand_in.filter(|it| it.approver == part.approver);
    own.is_some_and(|it| anchors.is_past(it.until))
}

/// Whether the part's device is on the seat, at some time.
fn is_on(seat: &TeamSeat, part: &ReceiptPart) -> bool {
    let devices = if seat.approver == part.approver {
        Some(&seat.devices)
    } else {
        let stand_in = seat.stand_in.as_ref();
        let stand_in = stand_in.filter(|it| it.approver == part.approver);
        stand_in.map(|it| &it.devices)
    };
    let mut devices = devices.into_iter().flatten();
    devices.any(|device| device.same_keys(&part.device))
}
