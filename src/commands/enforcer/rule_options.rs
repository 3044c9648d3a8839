//! Options of `run` and `ask` that demand the approval of several people, or of somebody else, and
//! the rules of the policy about a request. Each adds to the others.

use clap::Args;
use countersign::agent::{OwnPolicy, demands_here, own_policy};
use countersign::client::enforcer::{ApprovalRequest, RuleDemand};
use countersign::client::profile::ProfileFile;

use crate::commands::complete;
use crate::commands::guard::GuardAddress;

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
    /// Ask only these approvers, with commas between them; or a team, as team:NAME.
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
    /// The rule, if the options demand one.
    pub fn demand(&self) -> Option<RuleDemand> {
        let is_given = self.approvals.is_some() || self.separate || !self.started_by.is_empty();
        let ids = |ids: &[String]| ids.iter().map(|id| id.trim().to_owned()).collect();
        let from: Vec<String> = ids(&self.from);
        is_given.then(|| RuleDemand {
            not_by: ids(&self.started_by).into_iter().collect(),
            separate: self.separate,
            ..RuleDemand::new(self.approvals.unwrap_or(1), from)
        })
    }
}

/// The rules about a request: those of the policy, and the caller's own. An approver that is named
/// beside rules becomes one of them.
pub async fn demands(
    request: &mut ApprovalRequest,
    own: Option<RuleDemand>,
    file: &ProfileFile,
    guard: Option<&GuardAddress>,
) -> Result<Vec<RuleDemand>, String> {
    let policy = match guard {
        Some(guard) => OwnPolicy {
            source: "the policy of the guard".to_owned(),
            text: guard.policy().await?,
        },
        None => own_policy(file)?,
    };
    let here = std::env::current_dir().map_err(|error| error.to_string())?;
    let here = here.to_string_lossy();
    let mut demands = demands_here(&request.payload, &here, file, &policy)?;
    demands.extend(own);
    RuleDemand::add_approver(&mut demands, &mut request.approver);
    Ok(demands)
}
