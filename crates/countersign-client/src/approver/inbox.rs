//! The requests that wait for a decision. A request is opened with the key of the enforcer that
//! this device has pinned. One that does not open, or contradicts the members beside it, is shown
//! as such and can only be rejected.

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

use super::open_failure::OpenFailure;
use super::role::Approver;
use crate::access::call_deadline;
use crate::error::{ClientError, Result};
use crate::gateway::{GatewayCall, page_path};
use crate::profile::EnforcerRecord;
use crate::visible::visible;
use crate::wire::{self, PushedMessage};
use countersign_e2e::{
    self as e2e, ArtifactContext, Ciphertext, DeviceId, OpenedArtifact, PinnedEnforcer,
    PlainArtifact, SealPurpose, open_artifact,
};
use countersign_protocol::canonical::Sha256Hex;
use countersign_protocol::id::{EnforcerId, RequestId};
use countersign_protocol::json::JsonNode;
use countersign_protocol::reader::{InvalidMember, MemberReader};
use countersign_protocol::timestamp::Timestamp;

/// Twice as many as the gateway keeps for an approver: one that pages for ever is stopped.
const MAX_REQUESTS: usize = 20_000;
const PAGE: usize = 50;
/// For all pages.
const INBOX_TIMEOUT: Duration = Duration::from_secs(120);
/// More matches are not kept: each may have megabytes.
const MAX_FOUND: usize = 16;

/// A request that waits. Everything but `content` is the gateway's word, and was compared with the
/// content if that opened.
#[derive(Debug)]
pub struct InboxRequest {
    pub request_id: RequestId,
    pub msg_id: String,
    pub enforcer_id: Option<EnforcerId>,
    /// Of a paired enforcer: as this device stored it. Otherwise as the gateway says.
    pub label: Option<String>,
    pub is_paired: bool,
    pub artifact_type: Option<String>,
    pub artifact_hash: Option<Sha256Hex>,
    pub repo_ref: String,
    pub expires_at: Option<Timestamp>,
    pub content: Result<OpenedArtifact, OpenFailure>,
    pub strangers: Vec<StrangeDevice>,
}

/// A device that the enforcer obeys as one of this approver's, and that this device does not know
/// to be in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StrangeDevice {
    pub id: DeviceId,
    pub is_revoked: bool,
}

impl fmt::Display for StrangeDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, is_revoked } = self;
        if *is_revoked {
            write!(
                f,
                "This agent's machine still accepts your revoked device {id}. It should learn of the revocation within a minute. If \
                 you still see this then, the gateway withholds the revocation, or the machine doesn't know the device that \
                 revoked it: end the pairing with countersign unpair."
            )
        } else {
            write!(
                f,
                "This agent's machine also accepts {id} as your device, but this device doesn't know it. Compare the id with those \
                 that your other devices show. If it isn't yours, someone has used the keys of one of your devices: \
                 countersign devices revoke {id}"
            )
        }
    }
}

impl InboxRequest {
    /// Whether an introduction by another device could change the result.
    fn wants_introduction(&self) -> bool {
        !self.strangers.is_empty()
            || matches!(
                self.content,
                Err(OpenFailure::NotPaired
                    | OpenFailure::EndedHere
                    | OpenFailure::Disagreement
                    | OpenFailure::OtherKey
                    | OpenFailure::NotAuthentic(e2e::Error::KeyNotOpened))
            )
    }
}

/// The members of an `approval.request`, not verified.
struct RequestMembers<'n, 'a> {
    enforcer_id: EnforcerId,
    artifact_type: String,
    artifact_hash: Sha256Hex,
    expires_at: &'n str,
    ciphertext: Option<&'n JsonNode<'a>>,
    repo_ref: &'n str,
}

impl<'n, 'a> RequestMembers<'n, 'a> {
    fn read(body: &'n JsonNode<'a>) -> Result<Self, InvalidMember> {
        let mut outer = MemberReader::new(body, "")?;
        let enforcer_id = outer.id("enforcerId")?;
        let open = outer.optional_nested("artifact")?;
        let mut artifact = match open {
            Some(artifact) => MemberReader::new(artifact, "/artifact")?,
            None => MemberReader::new(body, "")?,
        };
        Ok(Self {
            enforcer_id,
            artifact_type: artifact.str("artifactType")?.to_owned(),
            artifact_hash: artifact.hash("artifactHash")?,
            expires_at: artifact.str("expiresAt")?,
            ciphertext: match open {
                Some(_) => None,
                None => Some(outer.nested("ciphertext")?),
            },
            repo_ref: match open {
                Some(_) => artifact.str("repoRef")?,
                None => "",
            },
        })
    }
}

impl Approver {
    /// Reads the whole inbox, oldest first, one page at a time. For an enforcer that is not known
    /// here it looks, once, whether another device of this approver has introduced it.
    pub async fn inbox(&self, mut visit: impl FnMut(InboxRequest)) -> Result<()> {
        let base = self.path(&["inbox"]);
        let mut cursor: Option<String> = None;
        let (mut count, mut looked) = (0, false);
        let until = Instant::now() + INBOX_TIMEOUT;
        loop {
            let call = GatewayCall::get(page_path(&base, PAGE, cursor.as_deref()));
            let deadline = until.min(call_deadline());
            let answer = self.client().expect(&call, &[200], deadline).await?;
            let node = wire::parse(&answer.body)?;
            let page = PushedMessage::read(&node)?.body;
            let requests = wire::array(page, "items");
            let requests = requests.ok_or_else(|| ClientError::answer("a page of the inbox"))?;
            for request in requests {
                let mut read = self.read_request(request)?;
                let wants = read.wants_introduction() || self.rests_on_team(&read);
                if wants && !std::mem::replace(&mut looked, true) {
                    // Boxed, because it is rare and would make this future larger.
                    Box::pin(self.look_for_introductions()).await?;
                    read = self.read_request(request)?;
                }
                visit(read);
            }
            count += requests.len();
            let Some(next) = wire::text(page, "nextCursor") else {
                return Ok(());
            };
            if count > MAX_REQUESTS || requests.is_empty() || cursor.as_deref() == Some(next) {
                return Err(ClientError::answer("an inbox with an end"));
            }
            cursor = Some(next.to_owned());
        }
    }

    /// The requests whose id begins or ends with `part`, which may be empty; at most 16. A whole id
    /// finds that request alone.
    pub async fn find(&self, part: &str) -> Result<Vec<InboxRequest>> {
        let (mut exact, mut found) = (None, Vec::new());
        self.inbox(|request| {
            let id = request.request_id.as_str();
            if id == part {
                exact = Some(request);
            } else if (id.starts_with(part) || id.ends_with(part)) && found.len() < MAX_FOUND {
                found.push(request);
            }
        })
        .await?;
        Ok(exact.map_or(found, |request| vec![request]))
    }

    /// Reads a pushed Envelope, if it asks for an approval.
    pub async fn read_pushed(&self, envelope: &str) -> Result<Option<InboxRequest>> {
        let node = wire::parse(envelope.as_bytes())?;
        if PushedMessage::read(&node)?.msg_type != "approval.request" {
            return Ok(None);
        }
        let request = self.read_request(&node)?;
        let wants = request.wants_introduction() || self.rests_on_team(&request);
        if wants && self.may_look() {
            Box::pin(self.look_for_introductions()).await?;
            return self.read_request(&node).map(Some);
        }
        Ok(Some(request))
    }

    /// Whether this device believes its enforcer only as long as a team does.
    fn rests_on_team(&self, request: &InboxRequest) -> bool {
        let id = request
            .enforcer_id
            .as_ref()
            .filter(|_| request.content.is_ok());
        let record = id.and_then(|id| self.enforcer(id.as_str()));
        record.is_some_and(|record| record.introduced_in.is_some())
    }

    fn read_request(&self, envelope: &JsonNode<'_>) -> Result<InboxRequest> {
        let message = PushedMessage::read(envelope)?;
        let body = message.body;
        let claimed = RequestMembers::read(body);
        let enforcer_id = claimed.as_ref().map(|claimed| claimed.enforcer_id.clone());
        let enforcer_id = enforcer_id.ok();
        let record = (enforcer_id.as_ref()).and_then(|id| self.enforcer(id.as_str()));
        let label = match &record {
            Some(record) => record.label.clone(),
            None => wire::text(body, "enforcerLabel").map(str::to_owned),
        };
        let pinned = record.as_ref().map(EnforcerRecord::pinned).transpose()?;
        let mut request = InboxRequest {
            request_id: message.request_id.clone(),
            msg_id: message.msg_id.to_owned(),
            enforcer_id,
            label,
            is_paired: record.is_some(),
            artifact_type: None,
            artifact_hash: None,
            repo_ref: String::new(),
            expires_at: None,
            content: Err(OpenFailure::NotPaired),
            strangers: Vec::new(),
        };
        match claimed {
            Err(invalid) => {
                request.content = Err(OpenFailure::Malformed(visible(&invalid.to_string())));
            }
            Ok(claimed) => {
                request.expires_at = Timestamp::parse(claimed.expires_at);
                request.artifact_type = Some(claimed.artifact_type.clone());
                request.artifact_hash = Some(claimed.artifact_hash);
                claimed.repo_ref.clone_into(&mut request.repo_ref);
                request.content = self.open_request(message.request_id, claimed, pinned.as_ref());
                if let Ok(opened) = &request.content {
                    request.strangers = self.strangers(opened.artifact())?;
                }
            }
        }
        Ok(request)
    }

    fn strangers(&self, artifact: &PlainArtifact) -> Result<Vec<StrangeDevice>> {
        let trust = self.own_trust()?;
        let named = artifact.devices_of(&self.id);
        let strangers = named.filter_map(|id| {
            let is_revoked = match trust.device(id) {
                Ok(_) => return None,
                Err(error) => matches!(error, e2e::Error::RevokedDevice(_)),
            };
            Some(StrangeDevice { id, is_revoked })
        });
        Ok(strangers.collect())
    }

    fn open_request(
        &self,
        request_id: RequestId,
        claimed: RequestMembers<'_, '_>,
        enforcer: Option<&PinnedEnforcer>,
    ) -> Result<OpenedArtifact, OpenFailure> {
        let ciphertext = claimed.ciphertext.ok_or(OpenFailure::NotEncrypted)?;
        let refused = self.refused_introduction(claimed.enforcer_id.as_str());
        let Some(enforcer) = enforcer else {
            return Err(refused.unwrap_or(OpenFailure::NotPaired));
        };
        let context = ArtifactContext {
            request_id,
            artifact_type: claimed.artifact_type,
            artifact_hash: claimed.artifact_hash,
            expires_at: claimed.expires_at.to_owned(),
            enforcer_id: claimed.enforcer_id,
        };
        Ciphertext::parse(SealPurpose::Artifact, ciphertext)
            .and_then(|ciphertext| open_artifact(&self.keys, enforcer, &context, &ciphertext))
            .map_err(|error| match (error, refused) {
                (e2e::Error::KeyNotOpened, Some(reason)) => reason,
                (error, _) => OpenFailure::NotAuthentic(error),
            })
    }
}
