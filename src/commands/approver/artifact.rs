//! The members of an artifact, for all that is shown of it.

use countersign::e2e::PlainArtifact;
use serde_json::Value;

pub fn members_of(artifact: &PlainArtifact) -> Value {
    serde_json::from_str(artifact.text()).unwrap_or_default()
}
