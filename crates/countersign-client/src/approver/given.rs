//! The grants that this device gave, in a file beside the profile, until they end. Enforcers do not
//! read it: it only helps a person to see them and to end them.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::decide::{AcceptedDecision, ApproverChoice};
use super::role::Approver;
use crate::enforcer::sessions::session_name;
use crate::error::{ClientError, Result};
use crate::gateway::{GatewayCall, path};
use crate::private_file::PrivateFile;
use countersign_e2e::{DecisionScope, OpenedArtifact};
use countersign_protocol::id::{EnforcerId, TextId as _};
use countersign_protocol::timestamp::Timestamp;

/// More are not kept; the oldest go first.
const MAX_GIVEN: usize = 500;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GivenGrant {
    /// The request that it was given with.
    pub request_id: String,
    pub enforcer_id: String,
    /// What it permits, for people.
    pub permits: String,
    pub session_only: bool,
    pub until: String,
}

/// Uses of a grant, as the enforcer reported them and the gateway says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantUse {
    pub count: u64,
    pub last_at: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenContents {
    grants: Vec<GivenGrant>,
}

impl Approver {
    fn given_file(&self) -> PrivateFile {
        self.file.beside("given.json")
    }

    /// The grants of this device that have not ended yet, as far as it knows.
    pub fn given_grants(&self) -> Result<Vec<GivenGrant>> {
        let mut grants = self.read_given()?;
        let now = self.now();
        grants.retain(|it| Timestamp::parse(&it.until).is_some_and(|until| until > now));
        Ok(grants)
    }

    fn given_problem(&self, problem: impl std::fmt::Display) -> ClientError {
        ClientError::GivenGrants {
            path: self.given_file().path().to_owned(),
            problem: problem.to_string(),
        }
    }

    fn read_given(&self) -> Result<Vec<GivenGrant>> {
        let text = self.given_file().read();
        let Some(text) = text.map_err(|error| self.given_problem(error))? else {
            return Ok(Vec::new());
        };
        let contents = serde_json::from_str::<GivenContents>(&text);
        let contents = contents.map_err(|_| self.given_problem("it is damaged"))?;
        Ok(contents.grants)
    }

    fn update_given(&self, change: impl FnOnce(&mut Vec<GivenGrant>)) -> Result<()> {
        let file = self.given_file();
        let _lock = file.lock().map_err(|error| self.given_problem(error))?;
        let mut grants = self.given_grants()?;
        change(&mut grants);
        let excess = grants.len().saturating_sub(MAX_GIVEN);
        grants.drain(..excess);
        let text = json!({ "grants": grants }).to_string();
        file.write(&text).map_err(|error| self.given_problem(error))
    }

    /// Remembers a grant that was given. `permits` says what it permits.
    pub fn remember_grant(
        &self,
        opened: &OpenedArtifact,
        choice: &ApproverChoice,
        decided: &AcceptedDecision,
        permits: String,
    ) -> Result<()> {
        let given = GivenGrant {
            request_id: opened.artifact().request_id().to_string(),
            enforcer_id: opened.enforcer().id().to_string(),
            permits,
            session_only: choice.scope == DecisionScope::Session,
            until: decided.expires_at.to_string(),
        };
        self.update_given(|grants| grants.push(given))
    }

    pub fn forget_given(&self, request_id: &str) -> Result<()> {
        self.update_given(|grants| grants.retain(|it| it.request_id != request_id))
    }

    /// How often a grant was used; `None` if no use was reported.
    pub async fn grant_use(&self, given: &GivenGrant) -> Result<Option<GrantUse>> {
        let Some(enforcer) = EnforcerId::parse(&given.enforcer_id) else {
            return Ok(None);
        };
        let session = session_name(&enforcer, "grant", &given.request_id)?;
        let call = GatewayCall::get(path(&["v1", "session", session.as_str()]));
        let answer = self.access.call(&call, &[200, 404]).await?;
        if answer.status == 404 {
            return Ok(None);
        }
        let shown: Value = answer.json()?;
        let snapshots = shown["snapshots"].as_array().into_iter().flatten();
        let mut uses = snapshots.filter_map(|snapshot| {
            let payload = &snapshot["payload"];
            let is_own = payload["requestId"] == *given.request_id
                && shown["enforcerId"] == *given.enforcer_id;
            (payload["kind"] == "grant.use" && is_own).then_some(())?;
            Some(GrantUse {
                count: payload["uses"].as_u64()?,
                last_at: snapshot["createdAt"].as_str()?.to_owned(),
            })
        });
        // The newest comes first.
        Ok(uses.next())
    }
}
