//! Additions of a person to a decision: a reason, the chosen action, a grant, the answers to an
//! agent's questions. Our clients encrypt them to the enforcer, because the gateway reads decisions. The decision's signature covers them
//! either way.

use std::collections::BTreeSet;

use serde_json::json;
use zeroize::Zeroizing;

use super::device_id::DeviceId;
use super::encoding::{canonical_text, decode_array, encode, parse_canonical};
use super::error::{Error, Result};
use super::grant::{GrantMatch, WantedGrant};
use super::keys::{DeviceKeys, EncryptionKey, EnforcerKeys};
use super::pairing::PinnedEnforcer;
use super::random::RandomSource;
use super::seal::{self, Ciphertext, SealPurpose};
use super::team_head::TeamHead;
use countersign_protocol::canonical::Sha256Hex;
use countersign_protocol::id::{EnforcerId, RequestId};
use countersign_protocol::json::JsonNode;
use countersign_protocol::reader::MemberReader;
use countersign_protocol::redacted;
use countersign_protocol::text::is_longer;

const HINTS: &str = "policyHints";
const MAX_REASON_CHARS: usize = 4_000;
const MAX_ACTION_CHARS: usize = 1_024;
const MAX_QUESTIONS: usize = 16;
const MAX_ANSWER_TEXTS: usize = 64;
const MAX_ANSWER_CHARS: usize = 4_000;
const TEAMS: &str = "teams";
const MAX_HEADS: usize = 16;

#[derive(Clone, Default, PartialEq, Eq)]
pub struct ArtifactHints {
    pub reason: Option<String>,
    /// The id of a requested action.
    pub action_id: Option<String>,
    pub grant: Option<GrantMatch>,
    /// For each question of the request, in order, the texts that were chosen or written.
    pub answers: Option<Vec<Vec<String>>>,
    /// The newest heads of the rule's teams that the device knows.
    pub teams: Vec<TeamHead>,
}

redacted! { ArtifactHints = "Hints(redacted)" }

/// Hints as an enforcer reads them: a grant that is not understood is told apart from none.
#[derive(Debug, Default)]
pub(super) struct ReadHints {
    pub(super) hints: ArtifactHints,
    pub(super) grant: WantedGrant,
}

/// The context of hints: the associated data of their encryption.
pub(super) struct HintsContext<'c> {
    pub(super) request_id: &'c RequestId,
    pub(super) artifact_hash: Sha256Hex,
    pub(super) enforcer_id: &'c EnforcerId,
    pub(super) device: DeviceId,
}

impl HintsContext<'_> {
    fn to_json(&self) -> serde_json::Value {
        json!({
            "v": 1,
            "requestId": self.request_id.as_str(),
            "artifactHash": self.artifact_hash.to_string(),
            "enforcerId": self.enforcer_id.as_str(),
            "deviceId": self.device.to_string(),
        })
    }
}

impl ArtifactHints {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn seal(
        &self,
        context: &HintsContext<'_>,
        keys: &DeviceKeys,
        enforcer: &PinnedEnforcer,
        random: &mut impl RandomSource,
    ) -> Result<serde_json::Value> {
        let mut members = json!({});
        if let Some(reason) = self.reason.as_deref() {
            if is_longer(reason, MAX_REASON_CHARS) {
                let limit = MAX_REASON_CHARS;
                return Err(Error::LongReason { limit });
            }
            members["reason"] = reason.into();
        }
        if let Some(action) = self.action_id.as_deref() {
            if is_longer(action, MAX_ACTION_CHARS) {
                let limit = MAX_ACTION_CHARS;
                return Err(Error::LongAction { limit });
            }
            members["actionId"] = action.into();
        }
        if let Some(grant) = &self.grant {
            members["grant"] = grant.to_json();
        }
        if let Some(answers) = &self.answers {
            if !are_answers(answers) {
                return Err(Error::OddAnswers);
            }
            members["answers"] = json!(answers);
        }
        if !self.teams.is_empty() {
            members[TEAMS] = self.teams.iter().map(TeamHead::to_json).collect();
        }
        let sealed = seal::seal(
            (SealPurpose::Hints, None),
            keys.decryption(),
            &[(enforcer.id().to_string(), *enforcer.encryption_key())],
            &context.to_json(),
            Zeroizing::new(canonical_text(HINTS, &members)?).as_bytes(),
            random,
        )?;
        Ok(json!({"sealed": sealed.to_json()}))
    }

    fn read(node: &JsonNode<'_>) -> Result<ReadHints> {
        let mut reader = MemberReader::named(HINTS, node)?;
        let reason = reader.optional_bounded_str("reason", MAX_REASON_CHARS)?;
        let action_id = reader.optional_bounded_str("actionId", MAX_ACTION_CHARS)?;
        let wanted = match reader.optional("grant").map(GrantMatch::read) {
            None => WantedGrant::Absent,
            Some(None) => WantedGrant::NotUnderstood,
            Some(Some(matches)) => WantedGrant::Matching(matches),
        };
        let answers = reader.optional_as("answers", ANSWERS, read_answers)?;
        let expected = "1 to 16 heads of different teams";
        let teams = reader.optional_as(TEAMS, expected, read_heads)?;
        // Something unknown could be a condition, so a decision that has it is not acted on.
        reader.finish()?;
        Ok(ReadHints {
            hints: Self {
                reason,
                action_id,
                answers,
                teams: teams.unwrap_or_default(),
                grant: match &wanted {
                    WantedGrant::Matching(matches) => Some(matches.clone()),
                    WantedGrant::Absent | WantedGrant::NotUnderstood => None,
                },
            },
            grant: wanted,
        })
    }

    /// Reads `policyHints`, encrypted or plain. Its signature must have been verified before.
    pub(super) fn open(
        node: &JsonNode<'_>,
        context: &HintsContext<'_>,
        keys: &EnforcerKeys,
        sender: &EncryptionKey,
    ) -> Result<ReadHints> {
        match HintsKey::open(node, context, keys, sender)? {
            Some(key) => Self::open_with(node, context, Some(&key))?.ok_or(Error::KeyNotOpened),
            None => Self::read(node),
        }
    }

    /// Reads `policyHints` with their content key. `None` if they are encrypted and there is no
    /// key.
    pub(super) fn open_with(
        node: &JsonNode<'_>,
        context: &HintsContext<'_>,
        key: Option<&HintsKey>,
    ) -> Result<Option<ReadHints>> {
        let read = match (sealed_hints(node)?, key) {
            (None, _) => Self::read(node)?,
            (Some(_), None) => return Ok(None),
            (Some(sealed), Some(key)) => {
                let content = seal::open_content(&sealed, &key.0, &context.to_json())?;
                Self::read(&parse_canonical(HINTS, &content)?)?
            }
        };
        Ok(Some(read))
    }
}

/// The ciphertext in `policyHints`, unless they are in plain.
fn sealed_hints(node: &JsonNode<'_>) -> Result<Option<Ciphertext>> {
    let mut reader = MemberReader::named(HINTS, node)?;
    let Some(sealed) = reader.optional("sealed") else {
        return Ok(None);
    };
    reader.finish()?;
    Ciphertext::parse(SealPurpose::Hints, sealed).map(Some)
}

/// The content key of encrypted hints. A receipt has it, so that a comment can be read, and shown to
/// be the signed one, without the enforcer's own key.
#[derive(Clone, PartialEq, Eq)]
pub struct HintsKey(Zeroizing<[u8; 32]>);

redacted! { HintsKey = "HintsKey(redacted)" }

impl HintsKey {
    /// `None` if the hints are in plain.
    pub(super) fn open(
        node: &JsonNode<'_>,
        context: &HintsContext<'_>,
        keys: &EnforcerKeys,
        sender: &EncryptionKey,
    ) -> Result<Option<Self>> {
        let Some(sealed) = sealed_hints(node)? else {
            return Ok(None);
        };
        let (own_name, own) = (context.enforcer_id.as_str(), keys.decryption());
        let key = seal::open_key(&sealed, own_name, own, sender, &context.to_json())?;
        Ok(Some(Self(key)))
    }

    pub(super) fn parse(text: &str) -> Result<Self> {
        decode_array("the key of the hints", text).map(|bytes| Self(Zeroizing::new(bytes)))
    }

    pub(super) fn to_text(&self) -> String {
        encode(self.0.as_slice())
    }
}

const ANSWERS: &str = "1 to 16 lists of 1 to 64 texts, each of 1 to 4000 characters";

fn are_answers(answers: &[Vec<String>]) -> bool {
    let is_text = |text: &String| !text.is_empty() && !is_longer(text, MAX_ANSWER_CHARS);
    let is_answer = |texts: &Vec<String>| {
        (1..=MAX_ANSWER_TEXTS).contains(&texts.len()) && texts.iter().all(is_text)
    };
    (1..=MAX_QUESTIONS).contains(&answers.len()) && answers.iter().all(is_answer)
}

fn read_heads(node: &JsonNode<'_>) -> Option<Vec<TeamHead>> {
    let heads: Option<Vec<_>> = node.as_array()?.iter().map(TeamHead::read).collect();
    heads.filter(|heads| {
        let teams: BTreeSet<_> = heads.iter().map(|head| head.team).collect();
        (1..=MAX_HEADS).contains(&heads.len()) && teams.len() == heads.len()
    })
}

fn read_answers(node: &JsonNode<'_>) -> Option<Vec<Vec<String>>> {
    let texts = |node: &JsonNode<'_>| -> Option<Vec<String>> {
        let texts = node.as_array()?.iter();
        texts.map(|text| text.as_str().map(str::to_owned)).collect()
    };
    let answers: Option<Vec<_>> = node.as_array()?.iter().map(texts).collect();
    answers.filter(|answers| are_answers(answers))
}
