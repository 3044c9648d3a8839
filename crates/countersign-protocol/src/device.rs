//! The devices of an approver, as they are listed and stored. The crate `countersign-e2e` judges
//! statements.

use std::time::Duration;

use serde::Serialize;
use serde_json::value::RawValue;

use super::id::{ApproverId, EnforcerId, InvitationId};
use super::timestamp::Timestamp;
use super::words::words;

/// Most bytes of a signed statement. In its shortest form it has about one KiB.
pub const MAX_STATEMENT_BYTES: usize = 8 << 10;
/// Most statements of an approver since its devices were last reset.
pub const MAX_STATEMENTS: usize = 256;
/// The same, if the statement revokes a device that was added: a full list must not protect a
/// stolen device.
pub const MAX_STATEMENTS_TO_REVOKE: usize = 2 * MAX_STATEMENTS;

/// Most bytes of a signed introduction. With short ids and no label it has about half a KiB.
pub const MAX_INTRODUCTION_BYTES: usize = 4 << 10;
/// Most introductions of an approver's devices: some hundred enforcers, by several devices each.
pub const MAX_INTRODUCTIONS: usize = 1_024;

/// How long a device's invitation for another device can be used.
pub const DEVICE_INVITATION_LIFETIME: Duration = Duration::from_secs(10 * 60);
/// Most invitations that an approver's devices make in that time.
pub const MAX_DEVICE_INVITATIONS: usize = 5;
/// Most characters of a new device's request. With one device in force it has about a thousand.
pub const MAX_DEVICE_REQUEST_CHARS: usize = 4_096;
pub const MAX_DEVICE_PROOF_CHARS: usize = 64;

words! {
    DeviceChange {
        Add = "add",
        Revoke = "revoke",
        /// By an administrator: all devices ended, and the next one is the first again.
        Reset = "reset",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceLine {
    pub device_id: String,
    pub name: String,
    pub bundle: String,
    pub added_at: Timestamp,
    /// The device that added it; the first one added itself.
    pub added_by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
    /// The device that revoked it; none if an administrator did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked_by: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RevokedDevice {
    pub device_id: String,
    pub revoked_at: Timestamp,
    /// None if an administrator revoked it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked_by: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceList {
    pub approver_id: ApproverId,
    pub devices: Vec<DeviceLine>,
    /// Byte for byte as they were received, in the order in which they were accepted.
    pub statements: Vec<Box<RawValue>>,
}

/// An invitation of a device for another one, without its code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceInvitationLine {
    pub invitation_id: InvitationId,
    pub expires_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_at: Option<Timestamp>,
    /// As the new device sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
}

/// An introduction that stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IntroductionLine {
    pub enforcer_id: EnforcerId,
    pub device_id: String,
    /// When the enforcer was paired, as the device says.
    pub at: Timestamp,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IntroductionList {
    pub approver_id: ApproverId,
    /// Byte for byte as they were received.
    pub introductions: Vec<Box<RawValue>>,
}
