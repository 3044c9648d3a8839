//! The reasons of a device not to approve.

use countersign_protocol::words;

words! {
    /// Why a device does not approve under a rule. It may reject all the same.
    #[derive(thiserror::Error)]
    RuleRefusal {
        #[error("the request has a rule that this client does not know; update this client")]
        UnknownVersion = "version",
        #[error("the rule was made by another enforcer")]
        OtherEnforcer = "enforcer",
        #[error("this request asks for the approval of another person")]
        OtherSeat = "seat",
        #[error("this approver is not among those who are asked")]
        NotAsked = "notAsked",
        #[error("this approver works with the agent, and so may not approve for it")]
        NotBy = "notBy",
        #[error("the rule demands less than its team does")]
        BelowMinimum = "minimum",
        #[error("the gateway withholds changes of a team; try again, and tell the gateway's operator if it stays so")]
        WithheldTeam = "teamWithheld",
        #[error("two states of a team contradict each other, so nothing of it counts; tell its owners")]
        ForkedTeam = "teamFork",
        #[error("the decision does not say which state of the team its device knows; update that device's program")]
        NoTeamHead = "teamHead",
        #[error("the same person has decided on another seat")]
        SecondSeat = "secondSeat",
        #[error("this approval needs a comment")]
        MissingComment = "comment",
    }
}
