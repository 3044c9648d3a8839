//! Options of `run` and `ask` that demand the approval of several people, or of somebody else.

use std::collections::BTreeSet;

use clap::Args;
use countersign::client::ClientError;
use countersign::client::enforcer::Enforcer;
use countersign::client::profile::ApproverRecord;
use countersign::e2e::{CommentDuty, RuleAsk, RuleTerms};
use countersign::protocol::id::{ApproverId, TextId as _};

use crate::commands::complete;

#[derive(Args)]
pub struct RuleOptions {
    /// Ask everyone, and go on only if this many different people approve. One rejection denies.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=56),
        conflicts_with = "approver"
    )]
    approvals: Option<u32>,
    /// Ask only these approvers, with commas between them.
    #[arg(
        long,
        value_name = "IDS",
        value_delimiter = ',',
        requires = "approvals",
        add = complete::approvers()
    )]
    from: Vec<String>,
    /// Do not ask the people who work with this agent, and do not count them. At pairing an
    /// approver said who they are: `countersign pair LINK --operator ID`.
    #[arg(long, conflicts_with = "approver")]
    separate: bool,
    /// The approver who has started this call, for instance in CI; may be repeated. Neither they nor
    /// the people who work with this agent count.
    #[arg(long, value_name = "ID", conflicts_with = "approver")]
    started_by: Vec<String>,
}

impl RuleOptions {
    /// Whether there is a rule.
    pub fn is_given(&self) -> bool {
        self.approvals.is_some() || self.separate || !self.started_by.is_empty()
    }

    /// The rule, if the options demand one.
    pub fn terms(&self, enforcer: &Enforcer) -> anyhow::Result<Option<RuleTerms>> {
        if !self.is_given() {
            return Ok(None);
        }
        let not_by = self.excluded(enforcer)?;
        let people = match self.from.as_slice() {
            [] => {
                let paired = enforcer.approvers().iter().map(ApproverRecord::id);
                &paired.collect::<Result<BTreeSet<_>, _>>()? - &not_by
            }
            named => read_ids(named, "--from takes the ids of approvers")?,
        };
        Ok(Some(RuleTerms {
            asks: vec![RuleAsk {
                approvals: self.approvals.unwrap_or(1),
                from: people,
                escalate: Vec::new(),
            }],
            rejections: 1,
            comment: CommentDuty::None,
            not_by,
        }))
    }

    /// The people whose approvals do not count. With anybody excluded, devices refuse an approval
    /// by an operator that they know, so operators are named here too.
    fn excluded(&self, enforcer: &Enforcer) -> anyhow::Result<BTreeSet<ApproverId>> {
        let mut excluded = read_ids(&self.started_by, "--started-by takes the id of an approver")?;
        let operators = enforcer.operators();
        if self.separate && operators.is_none() {
            let problem = "nobody has said who works with this agent; pair again with --operator";
            return Err(ClientError::Choice(problem).into());
        }
        if self.separate || !excluded.is_empty() {
            excluded.extend(operators.unwrap_or_default().iter().cloned());
        }
        Ok(excluded)
    }
}

fn read_ids(texts: &[String], problem: &'static str) -> anyhow::Result<BTreeSet<ApproverId>> {
    let ids = texts.iter().map(|id| ApproverId::parse(id.trim()));
    let ids: Option<_> = ids.collect();
    Ok(ids.ok_or(ClientError::Choice(problem))?)
}
