//! Prompts: messages of this approver to an agent, encrypted to its enforcer; and orders to the
//! enforcer itself.

use std::time::Duration;

use serde_json::{Value, json};

use super::role::{Approver, POLL_PAUSE};
use crate::error::{ClientError, Result};
use crate::gateway::GatewayCall;
use crate::random::random;
use crate::retry::poll;
use countersign_e2e::{
    ControlOrder, ControlParties, PinnedEnforcer, PlainPrompt, SignedControl, seal_prompt,
};
use countersign_protocol::envelope::EnvelopeRecipient;
use countersign_protocol::id::RequestId;
use countersign_protocol::prompt::PromptStatus;

/// Enforcers take no older prompts, so the gateway need not keep them.
const PROMPT_LIFETIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// An order that comes later has no effect.
const ORDER_LIFETIME: Duration = Duration::from_secs(2 * 24 * 60 * 60);

/// The state of a prompt, as the gateway says.
#[derive(Debug, Clone)]
pub struct SentPrompt {
    pub request_id: RequestId,
    pub status: PromptStatus,
    /// Why it was rejected.
    pub reason: Option<String>,
    /// Proves that the enforcer has read it.
    receipt: Option<String>,
}

/// An order to an enforcer, as it was sent.
#[derive(Debug, Clone)]
pub struct SentOrder {
    pub prompt: SentPrompt,
    receipt: String,
}

impl SentOrder {
    /// Whether the enforcer itself says that it has obeyed.
    pub fn is_confirmed(&self) -> bool {
        self.prompt.status == PromptStatus::Delivered
            && self.prompt.receipt.as_deref() == Some(&self.receipt)
    }
}

impl Approver {
    /// Sends a prompt to an enforcer that this device is paired with: for one session of its agent,
    /// or for any.
    pub async fn prompt(
        &self,
        enforcer: &str,
        session: Option<&str>,
        text: &str,
    ) -> Result<SentPrompt> {
        let enforcer = self.paired(enforcer)?;
        let content = json!({ "text": text });
        let sent = self.send(&enforcer, session, content, PROMPT_LIFETIME);
        Ok(sent.await?.prompt)
    }

    /// Sends an order to an enforcer, signed. The gateway cannot tell it from a prompt.
    pub async fn order(&self, enforcer: &str, order: &ControlOrder) -> Result<SentOrder> {
        let enforcer = self.paired(enforcer)?;
        let parties = ControlParties {
            tenant: self.tenant.clone(),
            approver: self.id.clone(),
            enforcer: enforcer.id().clone(),
            at: self.now(),
        };
        let control = SignedControl::sign(order, &parties, &self.keys)?.to_text();
        let control: Value = serde_json::from_str(&control).map_err(ClientError::answer)?;
        let content = json!({ "control": control });
        self.send(&enforcer, None, content, ORDER_LIFETIME).await
    }

    fn paired(&self, enforcer: &str) -> Result<PinnedEnforcer> {
        let record = self.enforcer(enforcer).ok_or(ClientError::Choice(
            "this device is not paired with that machine; see: countersign pairings",
        ))?;
        Ok(record.pinned()?)
    }

    async fn send(
        &self,
        enforcer: &PinnedEnforcer,
        session: Option<&str>,
        mut content: Value,
        lifetime: Duration,
    ) -> Result<SentOrder> {
        let mut body = json!({
            "requestId": self.access.clock.operation_id(),
            "artifactType": "prompt.send",
            "createdAt": self.now(),
            "target": "agentChat",
            "promptHashAlg": "SHA-256",
        });
        if let Some(session) = session {
            body["sessionId"] = session.into();
        }
        if let (Some(content), Some(body)) = (content.as_object_mut(), body.as_object()) {
            content.extend(body.clone());
        }
        let prompt = PlainPrompt::complete(&content.to_string(), &mut random)?;
        let sealed = seal_prompt(&self.keys, &self.id, enforcer, &prompt, &mut random)?;
        body["promptHash"] = prompt.hash().to_string().into();
        body["ciphertext"] =
            serde_json::from_str(&sealed.to_text()?).map_err(ClientError::answer)?;
        let recipient = EnvelopeRecipient {
            enforcer_id: Some(enforcer.id().clone()),
            approver_id: None,
        };
        let envelope = self.access.addressed(
            "prompt.send",
            prompt.request_id(),
            Some(recipient),
            Some(self.access.after(lifetime)),
            &body.to_string(),
        )?;
        let call = GatewayCall::post("/v1/prompt", envelope);
        let answer = self.access.call(&call, &[202]).await?;
        Ok(SentOrder {
            prompt: read(prompt.request_id(), &answer.json()?)?,
            receipt: prompt.receipt(),
        })
    }

    /// Waits until the enforcer has obeyed or rejected an order, for up to `time`.
    pub async fn order_obeyed(&self, mut sent: SentOrder, time: Duration) -> Result<SentOrder> {
        sent.prompt = self.prompt_taken(&sent.prompt.request_id, time).await?;
        Ok(sent)
    }

    /// Waits until the enforcer has taken or rejected a prompt, for up to `time`. Returns the state
    /// at the end.
    pub async fn prompt_taken(&self, request_id: &RequestId, time: Duration) -> Result<SentPrompt> {
        let is_final = |sent: &SentPrompt| sent.status != PromptStatus::Queued;
        let sent = poll(POLL_PAUSE, time, is_final, async || {
            let parts = ["v1", "prompt", request_id.as_str()];
            read(request_id, &self.access.get(&parts).await?.json()?)
        });
        sent.await
    }
}

fn read(request_id: &RequestId, ack: &Value) -> Result<SentPrompt> {
    let status = ack["status"].as_str().and_then(PromptStatus::parse);
    let same = ack["requestId"] == request_id.as_str();
    let status = status.filter(|_| same);
    Ok(SentPrompt {
        request_id: request_id.clone(),
        status: status.ok_or_else(|| ClientError::answer("the state of this prompt"))?,
        reason: ack["details"]["reason"].as_str().map(str::to_owned),
        receipt: ack["details"]["receipt"].as_str().map(str::to_owned),
    })
}
