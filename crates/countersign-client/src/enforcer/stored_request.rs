//! A request that outlives its process. Libraries of all languages store it alike. It needs
//! confidentiality, and no integrity: decisions sign the artifact's hash, and the artifact names the
//! outcome's key.

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::approval_request::ApprovalDenial;
use crate::error::ClientError;
use countersign_e2e::{OutcomeKey, PlainArtifact};
use countersign_protocol::id::{EnforcerId, TenantId};
use countersign_protocol::redacted;

pub(crate) struct StoredRequest {
    pub(crate) tenant: TenantId,
    pub(crate) enforcer: EnforcerId,
    pub(crate) artifact: PlainArtifact,
    pub(super) outcome_key: OutcomeKey,
}

redacted! { StoredRequest = "StoredRequest(redacted)" }

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct StoredText {
    artifact: String,
    enforcer_id: String,
    outcome_key: Zeroizing<String>,
    tenant_id: String,
    v: u8,
}

fn changed(problem: &str) -> ApprovalDenial {
    ApprovalDenial::Changed(format!("the stored request is {problem}"))
}

impl StoredRequest {
    pub(crate) fn to_json(&self) -> Result<String, ApprovalDenial> {
        let stored = StoredText {
            artifact: self.artifact.text().to_owned(),
            enforcer_id: self.enforcer.to_string(),
            outcome_key: self.outcome_key.to_text(),
            tenant_id: self.tenant.to_string(),
            v: 1,
        };
        Ok(serde_json::to_string(&stored).map_err(ClientError::answer)?)
    }

    pub(crate) fn parse(
        text: &str,
        enforcer: &EnforcerId,
        tenant: &TenantId,
    ) -> Result<Self, ApprovalDenial> {
        let stored = serde_json::from_str::<StoredText>(text).ok();
        let stored = stored.filter(|stored| stored.v == 1);
        let stored = stored.ok_or_else(|| changed("damaged, or of another version"))?;
        if stored.enforcer_id != enforcer.as_str() || stored.tenant_id != tenant.as_str() {
            return Err(changed("another enforcer's"));
        }
        let artifact = PlainArtifact::parse(stored.artifact.as_bytes());
        let key = OutcomeKey::parse(&stored.outcome_key);
        let (Ok(artifact), Ok(outcome_key)) = (artifact, key) else {
            return Err(changed("damaged"));
        };
        // Only the submitter has the key: an artifact from elsewhere does not suffice.
        if !outcome_key.is_of(&artifact) {
            return Err(changed("not one that was submitted with this key"));
        }
        Ok(Self {
            tenant: tenant.clone(),
            enforcer: enforcer.clone(),
            artifact,
            outcome_key,
        })
    }
}
