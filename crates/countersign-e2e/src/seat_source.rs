//! The sources of a seat's devices under a rule with teams.

use std::collections::BTreeSet;

use super::rule::RuleTerms;
use super::team_chain::TeamChain;
use super::team_head::TeamHead;
use super::trust::{DeviceTrust, TrustedDevice};
use countersign_protocol::id::{ApproverId, TenantId};
use countersign_protocol::timestamp::Timestamp;

/// Everything in a rule that names a seat of a team. A device counts if it is in all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeatSource {
    pub seat: ApproverId,
    /// As the rule names them.
    pub teams: Vec<TeamHead>,
    /// Whether it is also named by its id.
    pub is_direct: bool,
    /// People who do not decide on it: those whom the rule excludes, and on the seat of somebody else
    /// those who have one of their own.
    excluded: BTreeSet<ApproverId>,
}

impl SeatSource {
    /// None for somebody whom the rule names by no team. The terms have the seats of their teams.
    pub fn of(seat: &ApproverId, terms: &RuleTerms) -> Option<Self> {
        let asks = terms.asks.iter().map(|ask| (&ask.from, ask.team));
        let steps = terms.asks.iter().flat_map(|ask| &ask.escalate);
        let sources = asks.chain(steps.map(|step| (&step.from, step.team)));
        let sources: Vec<_> = sources.filter(|(from, _)| from.contains(seat)).collect();
        let mut teams: Vec<_> = sources.iter().filter_map(|(_, team)| *team).collect();
        teams.sort_unstable_by_key(|head| head.team);
        teams.dedup_by_key(|head| head.team);
        if teams.is_empty() {
            return None;
        }
        let people = terms.people().into_iter().filter(|person| *person != seat);
        Some(Self {
            seat: seat.clone(),
            teams,
            is_direct: sources.iter().any(|(_, team)| team.is_none()),
            excluded: people.chain(&terms.not_by).cloned().collect(),
        })
    }

    /// The people who may decide on the seat at `at`, with the devices that count; without a time,
    /// its member alone. `direct` is what is known of the member from elsewhere, if the rule also
    /// names them by their id.
    pub fn devices(
        &self,
        chains: &[TeamChain],
        direct: Option<Vec<DeviceTrust>>,
        tenant: &TenantId,
        at: Option<Timestamp>,
    ) -> Vec<DeviceTrust> {
        let mut people = direct;
        for head in &self.teams {
            let mut chains = chains.iter();
            let chain = chains.find(|chain| chain.head().team == head.team);
            let seat = chain.and_then(|chain| chain.content().seat(&self.seat));
            let seated = seat.map(|seat| seat.people(tenant, at));
            let mut seated = seated.unwrap_or_default();
            seated.retain(|trust| self.admits(trust.approver()));
            people = Some(match people {
                Some(known) => common(&known, &seated),
                None => seated,
            });
        }
        people.unwrap_or_default()
    }

    /// Whether this person may decide on the seat, if a team has them there.
    pub fn admits(&self, person: &ApproverId) -> bool {
        !self.excluded.contains(person)
    }

    /// Whether these heads name each team for which the seat counts, by the state in the rule or a
    /// later one.
    pub fn is_named_by(&self, heads: &[TeamHead]) -> bool {
        let mut teams = self.teams.iter();
        teams.all(|own| {
            let mut heads = heads.iter();
            heads.any(|head| head.team == own.team && head.seq >= own.seq)
        })
    }
}

/// The devices that both lists have, for the same person.
fn common(one: &[DeviceTrust], other: &[DeviceTrust]) -> Vec<DeviceTrust> {
    let kept = one.iter().map(|trust| {
        let same = other.iter().find(|it| it.approver() == trust.approver());
        let is_in_both =
            |device: &&TrustedDevice| same.is_some_and(|same| same.device(device.id()).is_ok());
        let bundles = trust.in_force().iter().filter(is_in_both);
        let bundles = bundles.map(|device| device.bundle().clone()).collect();
        let (tenant, approver) = (trust.tenant().clone(), trust.approver().clone());
        DeviceTrust::from_own_records(tenant, approver, bundles, BTreeSet::new())
    });
    kept.filter(|trust| !trust.in_force().is_empty()).collect()
}
