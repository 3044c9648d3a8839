//! Teams, as the gateway stores and lists them. The crate `countersign-e2e` judges their states.

use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

use super::id::ApproverId;
use super::timestamp::Timestamp;

/// Most bytes of a signed state: those of a state, and signatures.
pub const MAX_TEAM_STATE_BYTES: usize = 80 << 10;
/// Most bytes of a signed consent, with as many devices as an approver may have.
pub const MAX_CONSENT_BYTES: usize = 32 << 10;
/// Most teams that an approver who owns them may create.
pub const MAX_TEAMS: usize = 64;
/// Most invitations to a team by one person in their lifetime.
pub const MAX_TEAM_INVITATIONS: usize = 32;
/// How long an invitation to a team can be answered.
pub const TEAM_INVITATION_LIFETIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Names the newest state of a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TeamLine {
    pub team_id: String,
    pub seq: i32,
    pub digest: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TeamStateList {
    pub team_id: String,
    /// The newest one, whether it is in this list or not.
    pub head: TeamLine,
    /// Byte for byte as they were received, oldest first.
    pub states: Vec<Box<RawValue>>,
}

/// A team in the list of somebody who is in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberTeam {
    pub team_id: String,
    pub name: String,
    pub seq: i32,
    pub digest: String,
    pub owner: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TeamInvitationLine {
    pub invite_id: String,
    pub approver_id: ApproverId,
    pub expires_at: Timestamp,
}

/// Byte for byte as they were received.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TeamConsentList {
    pub team_id: String,
    pub consents: Vec<Box<RawValue>>,
}

/// Byte for byte as they were received.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TeamIntroductionList {
    pub team_id: String,
    pub introductions: Vec<Box<RawValue>>,
}
