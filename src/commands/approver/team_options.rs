//! The options of `team`.

use clap::{Args, ValueEnum};
use countersign::client::{ClientError, visible};
use countersign::e2e::{CommentDuty, TeamMinimum};
use countersign::protocol::id::{ApproverId, TextId as _};
use countersign::protocol::timestamp::Timestamp;

use crate::commands::terminal::parse_duration;

/// The least that rules with the team demand.
#[derive(Args)]
pub struct MinimumArgs {
    /// Approvals that every call needs at least.
    #[arg(long, value_name = "N")]
    approvals: Option<u32>,
    /// Rejections after which a call is denied at the latest.
    #[arg(long, value_name = "N")]
    rejections: Option<u32>,
    /// The decisions that need a comment.
    #[arg(long, value_name = "WHEN", value_parser = comment_duty)]
    comment: Option<CommentDuty>,
    /// Whether the people who work with the agent may not approve.
    #[arg(long, value_name = "YES|NO")]
    separate: Option<YesNo>,
}

#[derive(Args)]
pub struct StandInArgs {
    pub team: String,
    /// An approver who has answered your invitation: `team invite`, `team join`.
    #[arg(long, value_name = "ID", value_parser = approver_id, required_unless_present = "end")]
    pub to: Option<ApproverId>,
    /// A time such as 2026-12-24T18:00:00Z, or a duration from now such as 2d. Otherwise, at once.
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// When it ends: a time or a duration as for --from, at most 30 days after it begins.
    #[arg(long, value_name = "TIME", required_unless_present = "end")]
    pub until: Option<String>,
    /// End it: nobody stands in for you any more.
    #[arg(long, conflicts_with_all = ["to", "from", "until"])]
    pub end: bool,
    #[arg(long)]
    pub yes: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum YesNo {
    Yes,
    No,
}

impl MinimumArgs {
    pub fn change(&self, minimum: &mut TeamMinimum) {
        minimum.approvals = self.approvals.unwrap_or(minimum.approvals);
        minimum.rejections = self.rejections.unwrap_or(minimum.rejections);
        minimum.comment = self.comment.unwrap_or(minimum.comment);
        minimum.separate = self
            .separate
            .map_or(minimum.separate, |it| it == YesNo::Yes);
    }
}

/// The changes of a minimum, as a person reads them.
pub fn changed_minimum(before: &TeamMinimum, after: &TeamMinimum) -> Vec<String> {
    let numbers = [
        ("approvals", before.approvals, after.approvals),
        ("rejections", before.rejections, after.rejections),
    ];
    let numbers = numbers.into_iter().filter(|(_, old, new)| old != new);
    let mut changes: Vec<_> = numbers
        .map(|(name, old, new)| format!("{name} from {old} to {new}"))
        .collect();
    if before.comment != after.comment {
        changes.push(format!("comment to {}", after.comment.as_str()));
    }
    if before.separate != after.separate {
        let word = if after.separate { "yes" } else { "no" };
        changes.push(format!("separate to {word}"));
    }
    changes
}

pub fn set_question(team: &str, changes: &[String], owner: Option<&ApproverId>) -> String {
    let team = visible(team);
    let changed = match changes {
        [] => String::new(),
        changes => format!(
            "For every machine that asks {team}, this changes {}. ",
            changes.join(", ")
        ),
    };
    match owner.map(|id| visible(id.as_str())) {
        Some(id) => format!(
            "{changed}Make {id} an owner of {team}? {id} can then add and remove everybody, you too. It ends only if {id} leaves or is removed."
        ),
        None => format!("{changed}Change it?"),
    }
}

pub fn approver_id(text: &str) -> Result<ApproverId, &'static str> {
    ApproverId::parse(text).ok_or("expected the id of an approver")
}

fn comment_duty(text: &str) -> Result<CommentDuty, &'static str> {
    CommentDuty::parse(text).ok_or("expected none, reject, approve or always")
}

/// A time, or a duration from now.
pub fn moment(text: &str, now: Timestamp) -> anyhow::Result<Timestamp> {
    if let Some(at) = Timestamp::parse(text) {
        return Ok(at);
    }
    let problem = "expected a time such as 2026-12-24T18:00:00Z, or a duration such as 14d";
    let after = parse_duration(text).map_err(|_| ClientError::Choice(problem))?;
    Ok(Timestamp::from(now.inner() + after))
}
