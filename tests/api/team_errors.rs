//! The errors of the catalogue that are about teams.

use countersign::e2e;
use countersign::protocol::device::MAX_INTRODUCTIONS;
use countersign::protocol::error::{Error, TeamError};
use countersign::protocol::team::{MAX_TEAM_INVITATIONS, MAX_TEAMS};

pub fn team_errors() -> Vec<(&'static str, Error)> {
    vec![
        (
            "boundToNobody",
            Error::Forbidden {
                pointer: None,
                expected: "a credential that is bound to one approver",
            },
        ),
        (
            "teamBroken",
            TeamError::Broken {
                reason: e2e::Error::Team("its signers may not make this change").to_string(),
            }
            .into(),
        ),
        (
            "notTeamOwner",
            TeamError::NotOwner { pointer: "/here" }.into(),
        ),
        (
            "noTeamConsent",
            TeamError::NoConsent {
                approver: "bob".into(),
            }
            .into(),
        ),
        ("notPairedTeam", TeamError::NotPaired.into()),
        (
            "teamStateTaken",
            TeamError::StateTaken {
                team: "AAECAwQFBgcICQoLDA0ODw".into(),
                seq: 7,
                digest: "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b".into(),
            }
            .into(),
        ),
        (
            "tooManyTeams",
            TeamError::TooMany { limit: MAX_TEAMS }.into(),
        ),
        (
            "tooManyTeamInvitations",
            TeamError::TooManyInvitations {
                limit: MAX_TEAM_INVITATIONS,
            }
            .into(),
        ),
        (
            "tooManyTeamIntroductions",
            TeamError::TooManyIntroductions {
                limit: MAX_INTRODUCTIONS,
            }
            .into(),
        ),
    ]
}
