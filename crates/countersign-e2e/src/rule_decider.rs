//! Whether a device may approve under a rule: its approver, its seats in teams, and what it knows of
//! the agent.

use super::comment_duty::has_comment;
use super::device_id::DeviceId;
use super::rule::{ApprovalRule, ArtifactRule, RuleTerms};
use super::rule_refusal::RuleRefusal;
use super::team_chain::TeamChain;
use super::team_seat::TeamSeat;
use countersign_protocol::id::{ApproverId, EnforcerId};
use countersign_protocol::timestamp::Timestamp;

#[derive(Debug, Clone, Copy)]
pub struct RuleDecider<'d> {
    pub approver: &'d ApproverId,
    pub device: DeviceId,
    /// The people who work with the agent, as far as the device knows.
    pub operators: &'d [ApproverId],
    /// The teams that it takes part in, without those that have a fork.
    pub teams: &'d [TeamChain],
    pub now: Timestamp,
}

impl RuleDecider<'_> {
    /// Whether the device decides on this seat of a team in the rule, as its member or stand-in. An
    /// error if one of the teams does not allow the rule, or the device does not know its state.
    pub(super) fn is_seated_in_teams(
        &self,
        terms: &RuleTerms,
        seat: &ApproverId,
    ) -> Result<bool, RuleRefusal> {
        let mut is_seated = false;
        for head in terms.teams() {
            let mut chains = self.teams.iter();
            // Teams of others are not known here.
            let Some(chain) = chains.find(|chain| chain.head().team == head.team) else {
                continue;
            };
            match chain.knows(head) {
                Ok(true) => {}
                Ok(false) => return Err(RuleRefusal::WithheldTeam),
                Err(_) => return Err(RuleRefusal::ForkedTeam),
            }
            let minimum = &chain.content().minimum;
            let is_separate = self.operators.iter().all(|it| terms.not_by.contains(it));
            let joined = terms.clone().join_minimum(head.team, minimum);
            if joined != *terms || minimum.separate && !is_separate {
                return Err(RuleRefusal::BelowMinimum);
            }
            if let Some(seat) = chain.content().seat(seat) {
                if !self.sits_on(seat) {
                    return Err(RuleRefusal::OtherSeat);
                }
                is_seated = true;
            }
        }
        Ok(is_seated)
    }

    fn sits_on(&self, seat: &TeamSeat) -> bool {
        if seat.approver == *self.approver {
            return seat.has_device(self.device);
        }
        let stand_in = seat.stand_in_at(self.now);
        stand_in.is_some_and(|it| {
            let mut devices = it.devices.iter();
            it.approver == *self.approver && devices.any(|device| device.id() == self.device)
        })
    }
}

impl ArtifactRule {
    /// The rule, if this program knows it and the enforcer that sealed the artifact made it.
    fn of(&self, enforcer: &EnforcerId) -> Result<&ApprovalRule, RuleRefusal> {
        match self {
            Self::Unknown => Err(RuleRefusal::UnknownVersion),
            Self::Known(rule) if rule.enforcer != *enforcer => Err(RuleRefusal::OtherEnforcer),
            Self::Known(rule) => Ok(rule),
        }
    }

    /// The checks of an approval that do not depend on the approver.
    pub(super) fn check_content(
        &self,
        enforcer: &EnforcerId,
        comment: Option<&str>,
    ) -> Result<(), RuleRefusal> {
        let needs_comment = self.of(enforcer)?.terms.comment.covers_approval();
        if needs_comment && !has_comment(comment) {
            return Err(RuleRefusal::MissingComment);
        }
        Ok(())
    }

    /// Whether a device may approve, with this comment. `enforcer` is the one whose key opened the
    /// artifact. Operators are excluded wherever the rule excludes anybody. The comment is checked
    /// last.
    pub fn check_approval(
        &self,
        enforcer: &EnforcerId,
        decider: &RuleDecider<'_>,
        comment: Option<&str>,
    ) -> Result<(), RuleRefusal> {
        let (rule, approver) = (self.of(enforcer)?, decider.approver);
        let seat = rule.seat.as_ref().unwrap_or(approver);
        let is_seated = decider.is_seated_in_teams(&rule.terms, seat)?;
        if !is_seated && seat != approver {
            return Err(RuleRefusal::OtherSeat);
        }
        if !is_seated && !rule.terms.people().contains(approver) {
            return Err(RuleRefusal::NotAsked);
        }
        let not_by = &rule.terms.not_by;
        let is_excluded = |person: &ApproverId| {
            let is_operator = !not_by.is_empty() && decider.operators.contains(person);
            is_operator || not_by.contains(person)
        };
        if is_excluded(approver) || is_excluded(seat) {
            return Err(RuleRefusal::NotBy);
        }
        self.check_content(enforcer, comment)
    }
}
