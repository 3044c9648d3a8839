//! A request that outlives its process. Libraries of all languages store it alike. It needs
//! confidentiality; its proof shows that this enforcer wrote it.

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::approval_request::ApprovalDenial;
use crate::error::ClientError;
use countersign_e2e::{EnforcerKeys, OutcomeKey, PlainArtifact};
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
    proof: String,
    tenant_id: String,
    v: u8,
}

fn changed(problem: &str) -> ApprovalDenial {
    ApprovalDenial::Changed(format!("the stored request is {problem}"))
}

impl StoredText {
    fn proven(&self) -> Zeroizing<String> {
        let parts: [&str; 4] = [
            &self.tenant_id,
            &self.enforcer_id,
            &self.outcome_key,
            &self.artifact,
        ];
        Zeroizing::new(parts.join("\n"))
    }
}

impl StoredRequest {
    pub(crate) fn to_json(&self, keys: &EnforcerKeys) -> Result<String, ApprovalDenial> {
        let mut stored = StoredText {
            artifact: self.artifact.text().to_owned(),
            enforcer_id: self.enforcer.to_string(),
            outcome_key: self.outcome_key.to_text(),
            proof: String::new(),
            tenant_id: self.tenant.to_string(),
            v: 1,
        };
        stored.proof = keys.prove_record(&stored.proven());
        Ok(serde_json::to_string(&stored).map_err(ClientError::answer)?)
    }

    pub(crate) fn parse(
        text: &str,
        keys: &EnforcerKeys,
        enforcer: &EnforcerId,
        tenant: &TenantId,
    ) -> Result<Self, ApprovalDenial> {
        let stored = serde_json::from_str::<StoredText>(text).ok();
        let stored = stored.filter(|stored| stored.v == 1);
        let stored = stored.ok_or_else(|| changed("damaged, or of another version"))?;
        if stored.enforcer_id != enforcer.as_str() || stored.tenant_id != tenant.as_str() {
            return Err(changed("another enforcer's"));
        }
        // An artifact, even with its outcome's key, does not suffice: with a gateway's help it could
        // be one that another enforcer had approved.
        if !keys.proves_record(&stored.proven(), &stored.proof) {
            return Err(changed("not as this enforcer has stored it"));
        }
        let artifact = PlainArtifact::parse(stored.artifact.as_bytes());
        let key = OutcomeKey::parse(&stored.outcome_key);
        let (Ok(artifact), Ok(outcome_key)) = (artifact, key) else {
            return Err(changed("damaged"));
        };
        // One approval would be taken for those of all.
        if artifact.rule().is_some() {
            return Err(changed("one part of a request to several people"));
        }
        Ok(Self {
            tenant: tenant.clone(),
            enforcer: enforcer.clone(),
            artifact,
            outcome_key,
        })
    }
}
