//! What waits for a decision. An item is opened with the key of the enforcer that this device has pinned; whatever does not
//! open, or does not agree with what stands beside it, is shown as such and can only be rejected.

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

use super::{Approver, deadline};
use crate::error::ClientError;
use crate::gateway::{GatewayCall, path};
use crate::profile::EnforcerRecord;
use crate::visible::visible;
use crate::wire::{self, PushedMessage};
use countersign_e2e::{
    self as e2e, ArtifactContext, Ciphertext, DeviceId, OpenedArtifact, PinnedEnforcer,
    PlainArtifact, SealPurpose, open_artifact,
};
use countersign_protocol::canonical::Sha256Hex;
use countersign_protocol::id::{EnforcerId, RequestId};
use countersign_protocol::json::{JsonNode, JsonValue};
use countersign_protocol::reader::{InvalidMember, MemberReader};
use countersign_protocol::timestamp::Timestamp;

/// Twice what the gateway keeps for an approver: one that pages for ever is stopped.
const MAX_ITEMS: usize = 20_000;
const PAGE: usize = 50;
/// However many pages there are.
const INBOX_TIMEOUT: Duration = Duration::from_secs(120);
/// More matches of a prefix are not kept: each may have megabytes.
const MAX_FOUND: usize = 16;

/// Why an item cannot be approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenFailure {
    /// No enforcer of this id was ever authenticated by this device, and no other device has introduced one.
    NotPaired,
    /// It was, and the pairing was ended here.
    EndedHere,
    /// Devices of this approver have introduced it with different keys.
    Disagreement,
    /// It does not open with the key that is known here, and another device has introduced another key.
    OtherKey,
    /// Anyone at the gateway could have written or changed it.
    NotEncrypted,
    /// It does not open, or says something else than what stands beside it.
    NotAuthentic(e2e::Error),
    Malformed(String),
}

impl fmt::Display for OpenFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPaired => f.write_str(
                "this device is not paired with this enforcer; pair: countersign pair LINK",
            ),
            Self::EndedHere => f.write_str(
                "the pairing with this enforcer was ended on this device; pair again: countersign pair LINK",
            ),
            Self::Disagreement => f.write_str(
                "your devices know different keys of this enforcer, so someone may be interfering; pair this device with it: \
                 countersign pair LINK",
            ),
            Self::OtherKey => f.write_str(
                "it does not open with the key that this device knows of this enforcer, and another of your devices knows \
                 another one; if the enforcer was set up anew, pair this device with it: countersign pair LINK. If not, \
                 someone may be interfering",
            ),
            Self::NotEncrypted => {
                f.write_str("it is not encrypted, so the gateway could have written or changed it")
            }
            Self::NotAuthentic(error) => f.write_str(&visible(&error.to_string())),
            Self::Malformed(problem) => write!(f, "it is malformed: {}", visible(problem)),
        }
    }
}

/// A request that waits. Everything but `content` is what the gateway says, and was compared with the content if that opened.
#[derive(Debug)]
pub struct InboxItem {
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

/// A device that the enforcer obeys as one of this approver's, and that this device does not know to be in force.
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
                "This agent's machine still obeys your device {id}, which was revoked. It should learn that within a minute. If \
                 this is still shown then, the gateway keeps it from that machine, or the machine does not know the device that \
                 revoked it: countersign unpair it."
            )
        } else {
            write!(
                f,
                "This agent's machine also obeys {id} as your device, which this device does not know. Compare the id with those \
                 that your other devices show of themselves. If it is none of yours, someone has used the keys of a device of yours: \
                 countersign devices revoke {id}"
            )
        }
    }
}

impl InboxItem {
    /// Whether what other devices have signed since could change what is known of it.
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

/// The members of an `approval.request`, read and nothing more.
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
    /// Reads the whole inbox, oldest first, one page at a time. For an enforcer that is not known here it looks, once, whether
    /// another device of this approver has introduced it.
    pub async fn inbox(&self, mut visit: impl FnMut(InboxItem)) -> Result<(), ClientError> {
        let base = path(&["v1", "approvers", self.id.as_str(), "inbox"]);
        let mut cursor: Option<String> = None;
        let (mut count, mut looked) = (0, false);
        let until = Instant::now() + INBOX_TIMEOUT;
        loop {
            let from = cursor.iter().map(|cursor| {
                let set = percent_encoding::NON_ALPHANUMERIC;
                format!(
                    "&cursor={}",
                    percent_encoding::utf8_percent_encode(cursor, set)
                )
            });
            let call = GatewayCall::get(format!("{base}?limit={PAGE}{}", from.collect::<String>()));
            let answer = (self.client.expect(&call, &[200], until.min(deadline()))).await?;
            let node = wire::parse(&answer.body)?;
            let page = PushedMessage::read(&node)?;
            let page = page.body.as_object();
            let member = |name| page.and_then(|page| page.get(name)).map(|node| &node.value);
            let Some(JsonValue::Array(items)) = member("items") else {
                return Err(ClientError::answer("a page of the inbox"));
            };
            for item in items {
                let mut read = self.read_item(item)?;
                if read.wants_introduction() && !std::mem::replace(&mut looked, true) {
                    // Rare, and large: it does not make every reader's future larger.
                    Box::pin(self.look_for_introductions()).await?;
                    read = self.read_item(item)?;
                }
                visit(read);
            }
            count += items.len();
            let next = match member("nextCursor") {
                Some(JsonValue::String(next)) => next.as_ref().to_owned(),
                _ => return Ok(()),
            };
            if count > MAX_ITEMS || items.is_empty() || cursor.as_ref() == Some(&next) {
                return Err(ClientError::answer("an inbox with an end"));
            }
            cursor = Some(next);
        }
    }

    /// The items whose id begins with `prefix`, which may be empty; at most 16. A whole id finds that item alone.
    pub async fn find(&self, prefix: &str) -> Result<Vec<InboxItem>, ClientError> {
        let (mut exact, mut found) = (None, Vec::new());
        self.inbox(|item| {
            let id = item.request_id.as_str();
            if id == prefix {
                exact = Some(item);
            } else if id.starts_with(prefix) && found.len() < MAX_FOUND {
                found.push(item);
            }
        })
        .await?;
        Ok(exact.map_or(found, |item| vec![item]))
    }

    /// Reads a pushed Envelope, if it asks for an approval.
    pub async fn read_pushed(&self, envelope: &str) -> Result<Option<InboxItem>, ClientError> {
        let node = wire::parse(envelope.as_bytes())?;
        if PushedMessage::read(&node)?.msg_type != "approval.request" {
            return Ok(None);
        }
        let item = self.read_item(&node)?;
        if item.wants_introduction() && self.may_look() {
            Box::pin(self.look_for_introductions()).await?;
            return self.read_item(&node).map(Some);
        }
        Ok(Some(item))
    }

    pub(super) fn read_item(&self, envelope: &JsonNode<'_>) -> Result<InboxItem, ClientError> {
        let message = PushedMessage::read(envelope)?;
        let body = message.body;
        let claimed = RequestMembers::read(body);
        let enforcer_id = match &claimed {
            Ok(claimed) => Some(claimed.enforcer_id.clone()),
            Err(_) => None,
        };
        let record = (enforcer_id.as_ref()).and_then(|id| self.enforcer(id.as_str()));
        let label = if let Some(record) = &record {
            record.label.clone()
        } else {
            let label = body.as_object().and_then(|body| body.get("enforcerLabel"));
            label.and_then(JsonNode::as_str).map(str::to_owned)
        };
        let pinned = record.as_ref().map(EnforcerRecord::pinned).transpose()?;
        let mut item = InboxItem {
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
                item.content = Err(OpenFailure::Malformed(visible(&invalid.to_string())));
            }
            Ok(claimed) => {
                item.expires_at = Timestamp::parse(claimed.expires_at);
                item.artifact_type = Some(claimed.artifact_type.clone());
                item.artifact_hash = Some(claimed.artifact_hash);
                claimed.repo_ref.clone_into(&mut item.repo_ref);
                item.content = self.open_item(message.request_id, claimed, pinned.as_ref());
                if let Ok(opened) = &item.content {
                    item.strangers = self.strangers(opened.artifact())?;
                }
            }
        }
        Ok(item)
    }

    fn strangers(&self, artifact: &PlainArtifact) -> Result<Vec<StrangeDevice>, ClientError> {
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

    fn open_item(
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
