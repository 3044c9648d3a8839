//! Why the gateway refuses something about a team.

use serde_json::json;

use super::code::Code;
use super::description::ErrorDescription;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TeamError {
    #[error("the state is not the next one; the newest is number {seq}")]
    StateTaken {
        team: String,
        seq: i32,
        digest: String,
    },
    #[error("the state does not follow from the one before it: {reason}")]
    Broken { reason: String },
    #[error("this approver is no owner of the team")]
    NotOwner { pointer: &'static str },
    #[error("{approver} has not consented to be in this team")]
    NoConsent { approver: String },
    #[error("the team is not paired with the enforcer")]
    NotPaired,
    #[error("an approver can create at most {limit} teams")]
    TooMany { limit: usize },
    #[error("a person can make at most {limit} invitations to a team in 7 days")]
    TooManyInvitations { limit: usize },
    #[error("a team's owners may introduce at most {limit} times")]
    TooManyIntroductions { limit: usize },
}

impl TeamError {
    pub(super) fn describe(&self) -> ErrorDescription {
        let refusal = |status, code| ErrorDescription::new(status, code, self.to_string());
        match self {
            Self::StateTaken { team, seq, digest } => refusal(409, Code::TeamStateTaken)
                .at("/statement/seq")
                .expecting("the number after that of the newest state")
                .with(
                    "head",
                    json!({ "teamId": team, "seq": seq, "digest": digest }),
                ),
            Self::Broken { .. } => refusal(403, Code::PolicyDeny)
                .at("/statement")
                .expecting("a state that those who signed it may make of the newest one"),
            Self::NotOwner { pointer } => refusal(403, Code::PolicyDeny)
                .at(pointer)
                .expecting("an owner in the team's newest state"),
            Self::NoConsent { approver } => refusal(403, Code::PolicyDeny)
                .at("/statement/seats")
                .expecting("people who have answered an invitation of the last 7 days")
                .with("approverId", approver.as_str()),
            Self::NotPaired => refusal(403, Code::PolicyDeny)
                .at("/statement/enforcerId")
                .expecting("an enforcer that the team is paired with"),
            Self::TooMany { limit } => refusal(422, Code::TooLarge)
                .expecting("a team that is there already, or another approver who creates it")
                .with("limit", *limit),
            Self::TooManyInvitations { limit } => refusal(422, Code::TooLarge)
                .expecting("fewer invitations: wait until some have expired")
                .with("limit", *limit),
            Self::TooManyIntroductions { limit } => refusal(422, Code::TooLarge)
                .expecting("fewer introductions: end pairings of the team first")
                .with("limit", *limit),
        }
    }
}
