//! Prompts from a device to an enforcer. The enforcer uses only the encrypted prompt; the plain
//! members beside it are for routing. A prompt has a text for the agent, or an order to the
//! enforcer itself, which clients that know no orders refuse.

use std::fmt;

use serde_json::json;
use zeroize::Zeroizing;

use super::control::SignedControl;
use super::device_id::DeviceId;
use super::encoding::{self, agree, hash_without, parse_canonical};
use super::error::{Error, Result};
use super::keys::{DeviceKeys, EnforcerKeys};
use super::pairing::PinnedEnforcer;
use super::random::RandomSource;
use super::seal::{self, Ciphertext, SealPurpose};
use super::trust::DeviceTrust;
use countersign_protocol::canonical::Sha256Hex;
use countersign_protocol::id::{ApproverId, EnforcerId, RequestId, is_uuid_or_ulid};
use countersign_protocol::json::JsonNode;
use countersign_protocol::prompt::{MAX_REPO_CHARS, TARGETS};
use countersign_protocol::reader::MemberReader;
use countersign_protocol::timestamp::Timestamp;

const PROMPT: &str = "the prompt";
const KIND: &str = "prompt.send";

/// A complete prompt in canonical form, whose hash is right.
#[derive(Clone, PartialEq, Eq)]
pub struct PlainPrompt {
    request_id: RequestId,
    session_id: Option<String>,
    created_at: Timestamp,
    target: &'static str,
    words: Zeroizing<String>,
    control: Option<Box<SignedControl>>,
    hash: Sha256Hex,
    text: Zeroizing<String>,
}

impl PlainPrompt {
    /// From the prompt's JSON without `promptHash`, in any spelling. Adds the salt and the hash.
    pub fn complete(text: &str, random: &mut impl RandomSource) -> Result<Self> {
        Self::parse(encoding::complete(PROMPT, text, "promptHash", random)?.as_bytes())
    }

    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let node = parse_canonical(PROMPT, bytes)?;
        let prompt = Self::read(&node)?;
        if hash_without(PROMPT, &node, "promptHash")? == prompt.hash {
            Ok(prompt)
        } else {
            Err(Error::ContentHash)
        }
    }

    fn read(node: &JsonNode<'_>) -> Result<Self> {
        let mut body = MemberReader::named(PROMPT, node)?;
        let request_id: RequestId = body.id("requestId")?;
        if !is_uuid_or_ulid(request_id.as_str()) {
            return Err(body.refusal("requestId", "a UUID or ULID").into());
        }
        let session_id = body.optional_str("sessionId")?.map(str::to_owned);
        body.optional_bounded_str("repoRef", MAX_REPO_CHARS)?;
        body.one_of("artifactType", &[KIND])?;
        let created_at = body.timestamp("createdAt")?;
        body.optional_nested("metadata")?;
        body.optional_nested("extensions")?;
        body.constant("promptHashAlg", "SHA-256")?;
        let control = body.optional("control").map(SignedControl::parse);
        let words = match &control {
            Some(_) => "",
            None => body.nonempty_str("text")?,
        };
        let prompt = Self {
            request_id,
            session_id,
            created_at,
            target: body.one_of("target", &TARGETS)?,
            words: Zeroizing::new(words.to_owned()),
            control: control.transpose()?.map(Box::new),
            hash: body.hash("promptHash")?,
            text: Zeroizing::new(node.raw.to_owned()),
        };
        body.finish()?;
        Ok(prompt)
    }

    pub fn request_id(&self) -> &RequestId {
        &self.request_id
    }

    /// The agent's session that it is for; any, if it names none.
    pub fn session_id(&self) -> Option<&str> {
        self.session_id.as_deref()
    }

    getters! {
        /// By the sender's clock.
        pub copy created_at: Timestamp;
        /// Where in the agent's interface it goes.
        pub copy target: &'static str;
        /// The text of the person; empty if it is an order.
        pub ref words: str;
        pub copy hash: Sha256Hex;
        /// The canonical text, hash included.
        pub ref text: str;
    }

    pub fn control(&self) -> Option<&SignedControl> {
        self.control.as_deref()
    }

    /// What the enforcer answers once it has obeyed an order. Only those who can read the prompt
    /// can tell it, so the gateway cannot.
    pub fn receipt(&self) -> String {
        let known = Zeroizing::new(format!("countersign receipt v1\n{}", self.text.as_str()));
        Sha256Hex::of(known.as_bytes()).to_string()
    }

    /// The members that travel beside the ciphertext.
    pub fn context(&self, approver_id: ApproverId, enforcer_id: EnforcerId) -> PromptContext {
        PromptContext {
            request_id: self.request_id.clone(),
            prompt_hash: self.hash,
            approver_id,
            enforcer_id,
        }
    }
}

impl fmt::Debug for PlainPrompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PlainPrompt({}, redacted)", self.request_id)
    }
}

/// The plain members of a `prompt.send` about a sealed prompt. They are believed only if the
/// content agrees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptContext {
    pub request_id: RequestId,
    pub prompt_hash: Sha256Hex,
    pub approver_id: ApproverId,
    pub enforcer_id: EnforcerId,
}

impl PromptContext {
    fn to_json(&self, sender: DeviceId) -> serde_json::Value {
        json!({
            "v": 1,
            "requestId": self.request_id.as_str(),
            "artifactType": KIND,
            "promptHash": self.prompt_hash.to_string(),
            "approverId": self.approver_id.as_str(),
            "enforcerId": self.enforcer_id.as_str(),
            "deviceId": sender.to_string(),
        })
    }
}

pub fn seal_prompt(
    keys: &DeviceKeys,
    approver_id: &ApproverId,
    enforcer: &PinnedEnforcer,
    prompt: &PlainPrompt,
    random: &mut impl RandomSource,
) -> Result<Ciphertext> {
    let sender = keys.id();
    let enforcer_id = enforcer.id().clone();
    let context = prompt.context(approver_id.clone(), enforcer_id);
    seal::seal(
        (SealPurpose::Prompt, Some(sender)),
        keys.decryption(),
        &[(enforcer.id().to_string(), *enforcer.encryption_key())],
        &context.to_json(sender),
        prompt.text().as_bytes(),
        random,
    )
}

/// A prompt that a device in force encrypted for this enforcer. An order in it is signed by the
/// same device.
#[derive(Debug, Clone)]
pub struct OpenedPrompt {
    pub prompt: PlainPrompt,
    pub device: DeviceId,
}

/// `enforcer_id` is this enforcer's own.
pub fn open_prompt(
    keys: &EnforcerKeys,
    enforcer_id: &EnforcerId,
    trust: &DeviceTrust,
    context: &PromptContext,
    ciphertext: &Ciphertext,
) -> Result<OpenedPrompt> {
    agree(context.enforcer_id == *enforcer_id, "enforcerId")?;
    agree(context.approver_id == *trust.approver(), "approverId")?;
    let sender = ciphertext.sender().ok_or(Error::NotARecipient)?;
    let device = trust.device(sender)?;
    let content = seal::open(
        ciphertext,
        enforcer_id.as_str(),
        keys.decryption(),
        device.bundle().encryption_key(),
        &context.to_json(sender),
    )?;
    let prompt = PlainPrompt::parse(&content)?;
    if prompt.hash != context.prompt_hash {
        return Err(Error::ContentHash);
    }
    agree(prompt.request_id == context.request_id, "requestId")?;
    if let Some(control) = prompt.control() {
        control.check(trust, enforcer_id, sender)?;
    }
    Ok(OpenedPrompt {
        prompt,
        device: sender,
    })
}
