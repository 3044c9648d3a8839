//! Stored things as the API lists them: tenants, credentials, exchanges, the audit, sessions. No
//! secret is among them, and no payload but short ones of sessions' summaries.

use serde::Serialize;
use serde_json::value::RawValue;

use super::credential::{CredentialProfile, RoleName};
use super::exchange;
use super::id::{
    ApproverId, CredentialId, EnforcerId, InvitationId, RequestId, SessionId, SnapshotId, TenantId,
};
use super::session::{self, EndReason, SnapshotType};
use super::timestamp::Timestamp;

/// Which items of an inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InboxKind {
    Active,
    /// Items that nobody decided in time.
    Expired,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tenant {
    pub tenant_id: TenantId,
    pub name: String,
    pub created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled_at: Option<Timestamp>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CredentialLine {
    pub credential_id: CredentialId,
    pub tenant_id: TenantId,
    /// `apiKey` or `certificate`.
    pub kind: String,
    pub role: RoleName,
    #[serde(skip_serializing_if = "CredentialProfile::is_strict")]
    pub profile: CredentialProfile,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_id: Option<String>,
    pub created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Timestamp>,
    /// To the minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<Timestamp>,
    /// SHA-256 of the certificate in hexadecimal; a certificate credential without one waits for
    /// its holder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thumbprint: Option<String>,
    /// When the holder of the certificate bound it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_at: Option<Timestamp>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InvitationLine {
    pub invitation_id: InvitationId,
    pub tenant_id: TenantId,
    pub role: RoleName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub created_at: Timestamp,
    /// As the audit names who made it.
    pub created_by: String,
    pub expires_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_at: Option<Timestamp>,
    /// The credential that it gave to its user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential_id: Option<CredentialId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub withdrawn_at: Option<Timestamp>,
}

/// The credential that a certificate was bound to, as its holder is told.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BoundCredential {
    pub credential_id: CredentialId,
    pub tenant_id: TenantId,
    pub role: RoleName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExchangeLine {
    pub request_id: RequestId,
    pub state: exchange::ExchangeState,
    pub enforcer_id: EnforcerId,
    pub approver_ids: Vec<ApproverId>,
    pub artifact_type: String,
    pub artifact_hash: String,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered_at: Option<Timestamp>,
}

#[derive(Debug, Serialize)]
pub struct AuditLine {
    pub at: Timestamp,
    pub actor: String,
    pub action: String,
    /// To whom or what.
    pub subject: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The role of a new credential and the id it is bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionDetails {
    pub session_id: SessionId,
    pub enforcer_id: EnforcerId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo_ref: Option<String>,
    pub state: session::SessionState,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    pub updated_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<EndReason>,
    /// The metadata of its start, else of its end, verbatim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Box<RawValue>>,
    pub snapshots: Vec<SnapshotLine>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotLine {
    pub snapshot_id: SnapshotId,
    pub snapshot_type: SnapshotType,
    pub snapshot_hash: String,
    pub created_at: Timestamp,
    /// Of a summary, if it is short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Box<RawValue>>,
}
