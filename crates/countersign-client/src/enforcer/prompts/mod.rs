//! Prompts: messages of an approver to an agent, and orders to the enforcer. Only a prompt that a pinned device encrypted for
//! this enforcer reaches the agent, and only once. All others are acknowledged as rejected, so that
//! the sender learns of it.

mod taken;

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tokio::time::Instant;

use self::taken::{PromptClaim, TakenFile};
use super::role::Enforcer;
use crate::error::{ClientError, Result};
use crate::gateway::{GatewayCall, encode, path};
use crate::wire;
use countersign_e2e::{
    self as e2e, Ciphertext, OpenedPrompt, PromptContext, SealPurpose, open_prompt,
};
use countersign_protocol::canonical::Sha256Hex;
use countersign_protocol::id::{ApproverId, RequestId, SessionId, TextId as _};
use countersign_protocol::json::JsonNode;

/// More than the gateway sends at once.
const MAX_PROMPTS: usize = 64;
/// More pages are not read: then it is unclear what approvers want.
const MAX_PAGES: usize = 16;

/// A prompt for the agent.
#[derive(Debug, Clone)]
pub struct TakenPrompt {
    pub approver: ApproverId,
    pub opened: OpenedPrompt,
}

/// A prompt as the gateway offers it.
struct OfferedPrompt<'n, 'a> {
    request_id: RequestId,
    hash: Sha256Hex,
    approver: Option<ApproverId>,
    ciphertext: Option<&'n JsonNode<'a>>,
}

impl<'n, 'a> OfferedPrompt<'n, 'a> {
    /// `None` if it cannot even be rejected.
    fn read(envelope: &'n JsonNode<'a>) -> Option<Self> {
        let message = wire::PushedMessage::read(envelope).ok()?;
        let sender = wire::member(envelope, "sender")?.as_object()?;
        let approver = sender.get("approverId").and_then(JsonNode::as_str);
        (message.msg_type == "prompt.send").then_some(())?;
        Some(Self {
            request_id: message.request_id,
            hash: Sha256Hex::parse(wire::text(message.body, "promptHash")?)?,
            approver: approver.and_then(ApproverId::parse),
            ciphertext: wire::member(message.body, "ciphertext"),
        })
    }
}

impl Enforcer {
    /// The prompts that wait for this session of the agent, or for any, oldest first. Each is given
    /// once, to one caller.
    pub async fn take_prompts(
        &mut self,
        session: Option<&SessionId>,
        deadline: Instant,
    ) -> Result<Vec<TakenPrompt>> {
        let waiting = self.authentic_prompts(session, deadline).await?;
        let mut taken = Vec::new();
        for prompt in waiting {
            if self.take_prompt(&prompt, deadline).await? {
                taken.push(prompt);
            }
        }
        Ok(taken)
    }

    /// Rejects the prompts that wait for this session of the agent, or for any, because the agent
    /// has no way to take them.
    pub async fn refuse_prompts(
        &mut self,
        session: Option<&SessionId>,
        reason: &str,
        deadline: Instant,
    ) -> Result<usize> {
        let waiting = self.authentic_prompts(session, deadline).await?;
        for TakenPrompt { opened, .. } in &waiting {
            let (id, hash) = (opened.prompt.request_id(), opened.prompt.hash());
            self.reject_prompt(id, hash, reason, deadline).await?;
        }
        Ok(waiting.len())
    }

    /// The texts that wait for this session of the agent, or for any. Orders are obeyed.
    pub(super) async fn authentic_prompts(
        &mut self,
        session: Option<&SessionId>,
        deadline: Instant,
    ) -> Result<Vec<TakenPrompt>> {
        let mut authentic = Vec::new();
        let mut seen = BTreeSet::new();
        let mut last = None;
        for _ in 0..MAX_PAGES {
            last = self
                .read_prompts(session, last.as_ref(), &mut seen, &mut authentic, deadline)
                .await?;
            if last.is_none() {
                return Ok(authentic);
            }
        }
        Err(ClientError::answer("fewer prompts that wait"))
    }

    /// Reads the prompts that came after `last`, and returns the last of those that were not seen
    /// before: a gateway that repeats itself has no more.
    async fn read_prompts(
        &mut self,
        session: Option<&SessionId>,
        last: Option<&RequestId>,
        seen: &mut BTreeSet<String>,
        authentic: &mut Vec<TakenPrompt>,
        deadline: Instant,
    ) -> Result<Option<RequestId>> {
        let call = path(&["v1", "enforcers", self.id.as_str(), "prompts"]);
        let wanted = [
            ("sessionId", session.map(SessionId::as_str)),
            ("after", last.map(RequestId::as_str)),
        ];
        let wanted = wanted.map(|(name, id)| Some(format!("{name}={}", encode(id?))));
        let wanted: Vec<_> = wanted.into_iter().flatten().collect();
        let call = GatewayCall::get(format!("{call}?{}", wanted.join("&")));
        let answer = self.access.client.expect(&call, &[200], deadline).await?;
        let node = wire::parse(&answer.body)?;
        let listed = wire::array(&node, "items");
        let listed = listed.ok_or_else(|| ClientError::answer("a list of prompts"))?;
        let offered = listed.iter().take(MAX_PROMPTS);
        let offered = offered.filter_map(OfferedPrompt::read);
        let offered = offered.filter(|offered| seen.insert(offered.request_id.to_string()));
        let offered: Vec<_> = offered.collect();
        for offered in &offered {
            match self.open_offered(offered, deadline).await? {
                Ok(prompt) if prompt.opened.prompt.control().is_some() => {
                    self.obey(&prompt, deadline).await?;
                }
                Ok(prompt) => {
                    let wanted = prompt.opened.prompt.session_id();
                    // A prompt for another session stays there for it.
                    if wanted.is_none() || wanted == session.map(SessionId::as_str) {
                        authentic.push(prompt);
                    }
                }
                Err(reason) => {
                    let (id, hash) = (&offered.request_id, offered.hash);
                    self.reject_prompt(id, hash, &reason, deadline).await?;
                }
            }
        }
        Ok(offered.last().map(|offered| offered.request_id.clone()))
    }

    /// The prompt, or why it is not one for this agent.
    async fn open_offered(
        &mut self,
        offered: &OfferedPrompt<'_, '_>,
        deadline: Instant,
    ) -> Result<Result<TakenPrompt, String>> {
        let (Some(ciphertext), Some(approver)) = (offered.ciphertext, &offered.approver) else {
            return Ok(Err(
                "this enforcer accepts only encrypted prompts from approvers".to_owned(),
            ));
        };
        let ciphertext = match Ciphertext::parse(SealPurpose::Prompt, ciphertext) {
            Ok(ciphertext) => ciphertext,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let context = PromptContext {
            request_id: offered.request_id.clone(),
            prompt_hash: offered.hash,
            approver_id: approver.clone(),
            enforcer_id: self.id.clone(),
        };
        let asked = [approver.to_string()];
        let mut opened = Err(e2e::Error::OtherApprover);
        for again in [false, true] {
            let devices = match self.devices_of(&asked, again, deadline).await {
                Err(ClientError::Unpaired { .. }) => Vec::new(),
                devices => devices?,
            };
            let Some(trust) = devices.first() else {
                return Ok(Err("this enforcer is not paired with its sender".to_owned()));
            };
            opened = open_prompt(&self.keys, &self.id, trust, &context, &ciphertext);
            // The device may have been added since the list was read.
            if !matches!(opened, Err(e2e::Error::UnknownDevice(_))) {
                break;
            }
        }
        let approver = approver.clone();
        Ok(match opened {
            Ok(opened) => Ok(TakenPrompt { approver, opened }),
            Err(error) => Err(error.to_string()),
        })
    }

    /// Whether this program is the one that passes it on.
    async fn take_prompt(&self, taken: &TakenPrompt, deadline: Instant) -> Result<bool> {
        let prompt = &taken.opened.prompt;
        let (id, hash) = (prompt.request_id(), prompt.hash());
        let own = self.access.clock.operation_id().to_string();
        let claimed = TakenFile::beside(&self.file).claim(prompt, &own, self.access.now())?;
        let (claim, is_own) = match claimed {
            PromptClaim::Taken => (own, true),
            // Acknowledged for the program that took it, which may have been stopped in between.
            PromptClaim::Again(claim) => (claim, false),
            PromptClaim::Refused(reason) => {
                let rejected = self.reject_prompt(id, hash, reason, deadline);
                return rejected.await.map(|()| false);
            }
        };
        // The first acknowledgement stands, and the answer shows it: an enforcer on another machine
        // may have been faster.
        let claim = json!({ "claim": claim });
        let told = self.acknowledge_prompt(id, hash, "delivered", &claim, deadline);
        match told.await {
            Ok(standing) => {
                let first = standing["status"] == "delivered" && standing["details"] == claim;
                Ok(is_own && first)
            }
            // The prompt is authentic, and taken here: the next call acknowledges it.
            Err(error) if error.is_unavailable() => Ok(is_own),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn reject_prompt(
        &self,
        id: &RequestId,
        hash: Sha256Hex,
        reason: &str,
        deadline: Instant,
    ) -> Result<()> {
        let details = json!({ "reason": reason });
        let told = self.acknowledge_prompt(id, hash, "rejected", &details, deadline);
        told.await.map(drop)
    }

    /// The acknowledgement that stands then; null if the prompt has ended otherwise.
    pub(super) async fn acknowledge_prompt(
        &self,
        id: &RequestId,
        hash: Sha256Hex,
        status: &str,
        details: &Value,
        deadline: Instant,
    ) -> Result<Value> {
        let body = json!({
            "requestId": id,
            "promptHash": hash.to_string(),
            "status": status,
            "ackAt": self.access.now(),
            "details": details,
        });
        let (body, expected) = (body.to_string(), [200, 404, 409]);
        let sent = (self.access).send("/v1/prompt", "prompt.ack", id, &body, &expected, deadline);
        let answer = sent.await?;
        match answer.status {
            200 => answer.json(),
            _ => Ok(Value::Null),
        }
    }
}
