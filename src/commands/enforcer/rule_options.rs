//! Options of `run` and `ask` that demand the approval of several people.

use std::collections::BTreeSet;

use clap::Args;
use countersign::client::ClientError;
use countersign::client::enforcer::Enforcer;
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
}

impl RuleOptions {
    /// Whether several people are asked.
    pub fn is_given(&self) -> bool {
        self.approvals.is_some()
    }

    /// The rule, if the options demand one.
    pub fn terms(&self, enforcer: &Enforcer) -> anyhow::Result<Option<RuleTerms>> {
        let Some(approvals) = self.approvals else {
            return Ok(None);
        };
        let paired = enforcer.approvers().iter().map(|record| &record.id);
        let named: Vec<_> = match self.from.as_slice() {
            [] => paired.collect(),
            named => named.iter().collect(),
        };
        let people = named.into_iter().map(|id| ApproverId::parse(id.trim()));
        let people: Option<BTreeSet<_>> = people.collect();
        let people = people.ok_or(ClientError::Choice("--from takes the ids of approvers"))?;
        Ok(Some(RuleTerms {
            asks: vec![RuleAsk {
                approvals,
                from: people,
                escalate: Vec::new(),
            }],
            rejections: 1,
            comment: CommentDuty::None,
            not_by: BTreeSet::new(),
        }))
    }
}
