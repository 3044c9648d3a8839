//! The devices that client libraries learned of, `NAME.trust.json`. The libraries only read a
//! profile, which may be a secret that nobody can write, and keep this file beside it.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::enforcer::{ApproverRecord, EnforcerProfile};
use super::file::{LEARNED, ProfileFile};
use crate::error::ProfileError;

pub(crate) const ENFORCER: &str = "enforcer";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LearnedFile {
    v: u8,
    approvers: Vec<LearnedRecord>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LearnedRecord {
    id: String,
    routing_token: String,
    checked_at: String,
    devices: Vec<String>,
    revoked: Vec<String>,
    added_by: BTreeMap<String, String>,
}

impl ProfileFile {
    /// The enforcer, with the devices that client libraries learned of.
    pub fn load_enforcer(&self) -> Result<EnforcerProfile, ProfileError> {
        let mut profile = self.require(self.load()?.enforcer, ENFORCER)?;
        self.merge_learned(&mut profile.approvers)?;
        Ok(profile)
    }

    /// Takes over what client libraries learned. A damaged file is an error: it may say that a
    /// device was revoked.
    pub(crate) fn merge_learned(&self, records: &mut [ApproverRecord]) -> Result<(), ProfileError> {
        let file = self.beside(LEARNED);
        let problem = |problem: String| ProfileError::Learned {
            path: file.path().to_owned(),
            problem,
        };
        let Some(text) = file.read().map_err(|error| problem(error.to_string()))? else {
            return Ok(());
        };
        let learned = serde_json::from_str::<LearnedFile>(&text).ok();
        let learned = learned.filter(|learned| learned.v == 1);
        let learned = learned.ok_or_else(|| problem("it is damaged".to_owned()))?;
        for record in records {
            for other in &learned.approvers {
                other.merge_into(record);
            }
        }
        Ok(())
    }
}

impl LearnedRecord {
    /// Nothing is forgotten. Of a record from before the pairing was made anew, only the revocations
    /// count: its devices could bring back a lost one.
    fn merge_into(&self, record: &mut ApproverRecord) {
        if self.id != record.id {
            return;
        }
        let known = ApproverRecord {
            id: self.id.clone(),
            paired_at: record.paired_at.clone(),
            routing_token: self.routing_token.clone(),
            checked_at: (record.checked_at.clone()).max(self.checked_at.clone()),
            devices: self.devices.clone(),
            revoked: self.revoked.clone(),
            added_by: self.added_by.clone(),
        };
        record.merge(&known);
        record.add_revoked(&self.revoked);
    }
}
