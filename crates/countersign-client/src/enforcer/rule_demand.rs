//! The demand of a policy's rule, and the terms that follow from it for this enforcer.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::role::Enforcer;
use super::teams::team_name;
use crate::error::{ClientError, Result};
use countersign_e2e::{CommentDuty, EscalationStep, RuleAsk, RuleTerms, TeamHead};
use countersign_protocol::id::{ApproverId, TextId as _};

pub const MAX_PARK_SECONDS: u32 = 24 * 60 * 60;

/// The demand of one rule. Further rules only add to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RuleDemand {
    /// By different people.
    pub approvals: u32,
    /// Ids of approvers, or one team, as `team_name` reads it. If it is empty: everyone who is
    /// paired directly, otherwise the only team that is paired.
    pub from: BTreeSet<String>,
    /// As many end it.
    pub rejections: u32,
    pub comment: CommentDuty,
    /// Whether people who work with the agent neither count nor are asked.
    pub separate: bool,
    /// Ids of approvers who neither count nor are asked, and neither are those of `separate`.
    #[serde(default)]
    pub not_by: BTreeSet<String>,
    pub escalate: Vec<EscalationDemand>,
    /// Its requests stay open for this time, also when the call has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub park_seconds: Option<u32>,
}

/// People who are asked later, if the call is still open then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EscalationDemand {
    pub after_seconds: u32,
    pub from: BTreeSet<String>,
}

impl RuleDemand {
    /// Approvals by so many different people among these.
    pub fn new(approvals: u32, from: impl IntoIterator<Item = String>) -> Self {
        Self {
            approvals,
            from: from.into_iter().collect(),
            rejections: 1,
            comment: CommentDuty::None,
            separate: false,
            not_by: BTreeSet::new(),
            escalate: Vec::new(),
            park_seconds: None,
        }
    }

    /// The shortest time for which any of the rules has the requests stay open.
    pub fn park_time(demands: &[Self]) -> Option<Duration> {
        let seconds = demands.iter().filter_map(|demand| demand.park_seconds);
        let seconds = seconds.min()?.min(MAX_PARK_SECONDS);
        Some(Duration::from_secs(u64::from(seconds)))
    }

    /// Beside rules, "only this approver" is one more rule.
    pub fn add_approver(demands: &mut Vec<Self>, approver: &mut Option<String>) {
        if !demands.is_empty() {
            demands.extend(approver.take().map(|id| Self::new(1, [id])));
        }
    }
}

impl Enforcer {
    /// The terms that satisfy every demand at once. `None` without any demand.
    pub fn terms_of(&self, demands: &[RuleDemand]) -> Result<Option<RuleTerms>> {
        let terms = demands.iter().map(|demand| self.terms(demand));
        let mut terms: Vec<_> = terms.collect::<Result<_>>()?;
        // A machine that is paired with a team only has nobody to ask without its rule.
        if terms.is_empty() && self.approvers.is_empty() && !self.teams()?.is_empty() {
            terms.push(self.terms(&RuleDemand::new(1, []))?);
        }
        Ok(terms.into_iter().reduce(RuleTerms::join))
    }

    fn terms(&self, demand: &RuleDemand) -> Result<RuleTerms> {
        let mut not_by = people(&demand.not_by)?;
        let operators = self.operators();
        if demand.separate && operators.is_none() {
            let problem = "nobody has said who works with this agent; pair again with --operator";
            return Err(ClientError::Choice(problem));
        }
        // With anybody excluded, devices refuse an approval by an operator that they know.
        if demand.separate || !not_by.is_empty() {
            not_by.extend(operators.unwrap_or_default().iter().cloned());
        }
        let (from, team) = match &demand.from {
            from if !from.is_empty() => self.source(from)?,
            _ => {
                let team = self.only_team()?;
                // Nobody else, if there is a team.
                let everyone = self.approvers.iter().map(|record| record.id.clone());
                (&people(&everyone.collect())? - &not_by, team)
            }
        };
        let steps = demand.escalate.iter().map(|step| {
            let (from, team) = self.source(&step.from)?;
            Ok(EscalationStep {
                after_seconds: step.after_seconds,
                from,
                team,
            })
        });
        Ok(RuleTerms {
            asks: vec![RuleAsk {
                approvals: demand.approvals,
                from,
                team,
                escalate: steps.collect::<Result<_>>()?,
            }],
            rejections: demand.rejections,
            comment: demand.comment,
            not_by,
        })
    }

    /// People, or a team.
    fn source(&self, from: &BTreeSet<String>) -> Result<(BTreeSet<ApproverId>, Option<TeamHead>)> {
        let teams = from.iter().filter_map(|id| team_name(id));
        match teams.collect::<Vec<_>>().as_slice() {
            [] => Ok((people(from)?, None)),
            [name] if from.len() == 1 => Ok((BTreeSet::new(), Some(self.named_team(name)?))),
            _ => {
                let problem =
                    "`from` of a rule names either people or one team; write a rule for each";
                Err(ClientError::Choice(problem))
            }
        }
    }

    /// The team to ask by default. None if somebody is paired directly.
    fn only_team(&self) -> Result<Option<TeamHead>> {
        if !self.approvers.is_empty() {
            return Ok(None);
        }
        match self.teams()?.as_slice() {
            [] => Ok(None),
            [only] => Ok(Some(only.chain()?.head())),
            _ => {
                let problem = "several teams are paired with this machine, so a rule must name those that are asked";
                Err(ClientError::Choice(problem))
            }
        }
    }
}

fn people(ids: &BTreeSet<String>) -> Result<BTreeSet<ApproverId>> {
    let people = ids.iter().map(|id| ApproverId::parse(id));
    let people: Option<_> = people.collect();
    people.ok_or(ClientError::Choice("a rule needs the ids of approvers"))
}
