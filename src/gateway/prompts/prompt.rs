//! Prompts to agents: sent by an approver or administrator, queued for the enforcer, acknowledged
//! by it.

use std::sync::Arc;

use crate::gateway::channels::presence::EnforcerPresence;
use crate::gateway::context::GatewayContext;
use crate::gateway::error::{Error, Result};
use crate::gateway::exchanges::generic::{NAMELESS, metadata_enforcer};
use crate::gateway::identity::caller::{CallerIdentity, Enforcer, EnforcerOrAdmin, Member};
use crate::protocol::envelope::IncomingEnvelope;
use crate::protocol::framing::{FramedBody, Framing, FramingKinds};
use crate::protocol::id::{ApproverId, EnforcerId, RequestId, SessionId, TenantId};
use crate::protocol::json::JsonNode;
use crate::protocol::message::PromptDelivery;
use crate::protocol::prompt::{
    Prompt, PromptRecord, PromptRules, SentAck, judge_ack, judge_prompt,
};
use crate::store::PromptStore;
use crate::store::exchanges::idempotency::IdempotencyKey;
use crate::store::prompts::prompt::PromptRow;
use crate::store::prompts::status::PromptAckRow;
use crate::telemetry::trace;
use crate::wake::WakeKey;

const PROMPT: FramingKinds = FramingKinds {
    allowed: &["prompt.send", "prompt.ack"],
    bare: |object| {
        let has = |name| object.get(name).is_some();
        if !has("artifactType") && (has("status") || has("ackAt")) {
            "prompt.ack"
        } else {
            "prompt.send"
        }
    },
    about: "requestId",
};

/// Prompts that one call reads.
const PENDING_AT_ONCE: i64 = 16;
/// Bytes that one call reads, unless the first prompt has more.
const PENDING_BYTES: i64 = 256 << 10;

/// A prompt or an acknowledgement of one.
#[derive(Debug)]
pub enum PromptCommand {
    Send(Box<SendPrompt>),
    Ack(AckPrompt),
}

#[derive(Debug)]
pub struct SendPrompt {
    tenant: TenantId,
    /// None for an administrator.
    approver: Option<ApproverId>,
    recipient: Option<EnforcerId>,
    fallback: Option<EnforcerId>,
    prompt: Prompt,
    idempotency: Option<IdempotencyKey>,
}

#[derive(Debug)]
pub struct AckPrompt {
    tenant: TenantId,
    enforcer: Option<EnforcerId>,
    ack: SentAck,
}

pub struct PromptService {
    context: Arc<GatewayContext>,
    store: Arc<PromptStore>,
    presence: Arc<EnforcerPresence>,
}

impl PromptService {
    pub(in crate::gateway) fn new(
        context: &Arc<GatewayContext>,
        presence: &Arc<EnforcerPresence>,
    ) -> Self {
        Self {
            context: Arc::clone(context),
            store: Arc::clone(&context.store.prompts),
            presence: Arc::clone(presence),
        }
    }

    /// Reads a prompt or an acknowledgement in any framing, from a body of `length` bytes.
    pub fn read_prompt(
        &self,
        caller: &Member,
        document: &JsonNode<'_>,
        length: usize,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<PromptCommand> {
        let framed = FramedBody::parse(document, &PROMPT, self.context.clock.now())?;
        let bare = framed.framing == Framing::Bare;
        // Only a prompt may be larger than other bodies.
        let limit = self.context.config.limits.body_bytes;
        if framed.msg_type == "prompt.ack" && length > limit {
            return Err(Error::BodyTooLarge { limit });
        }
        let envelope = &framed.envelope;
        match (framed.msg_type, caller) {
            ("prompt.send", Member::Approver(caller)) => {
                let approver = match (bare, &caller.bound) {
                    (true, Some(bound)) => bound.clone(),
                    (true, None) => return Err(Error::invalid("/sender/approverId", NAMELESS)),
                    (false, _) => caller.sending(&envelope.sender)?,
                };
                self.read_send(&caller.origin, Some(approver), envelope, idempotency)
            }
            ("prompt.send", Member::Admin(caller)) => {
                caller.sending(&envelope.sender)?;
                self.read_send(&caller.origin, None, envelope, idempotency)
            }
            ("prompt.ack", Member::Enforcer(caller)) => {
                let enforcer = if bare {
                    caller.bound.clone()
                } else {
                    Some(caller.sending(&envelope.sender)?)
                };
                let ack = self.read_ack_of(&caller.origin, enforcer, envelope)?;
                Ok(PromptCommand::Ack(ack))
            }
            (kind, _) => Err(Error::Forbidden {
                pointer: (!bare).then(|| "/msgType".into()),
                expected: if kind == "prompt.ack" {
                    "an enforcer, which alone acknowledges prompts"
                } else {
                    "an approver or an administrator, who alone send prompts"
                },
            }),
        }
    }

    /// Reads an acknowledgement from a wire Envelope.
    pub fn read_prompt_ack(&self, caller: &Enforcer, document: &JsonNode<'_>) -> Result<AckPrompt> {
        let envelope = IncomingEnvelope::parse(document, "prompt.ack")?;
        let enforcer = caller.sending(&envelope.sender)?;
        self.read_ack_of(&caller.origin, Some(enforcer), &envelope)
    }

    fn read_send(
        &self,
        origin: &CallerIdentity,
        approver: Option<ApproverId>,
        envelope: &IncomingEnvelope<'_, '_>,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<PromptCommand> {
        self.context.check_created(envelope.created_at)?;
        let context = &self.context;
        let (limits, artifacts) = (&context.config.limits, &context.config.artifacts);
        let rules = PromptRules {
            max_text: limits.prompt_bytes,
            extension: &context.names.prompt,
            latest_created: context.in_seconds(limits.clock_skew_seconds),
            latest_expiry: context.in_seconds(artifacts.max_lifetime_seconds),
        };
        let prompt = Prompt::parse(envelope, &rules)?;
        // Metadata is free-form, unless the prompt is addressed by it.
        let recipient = envelope.recipient.enforcer_id.clone();
        let fallback = match (&recipient, &prompt.session_id) {
            (None, None) => metadata_enforcer(envelope.body)?,
            _ => metadata_enforcer(envelope.body).unwrap_or_default(),
        };
        Ok(PromptCommand::Send(Box::new(SendPrompt {
            tenant: origin.tenant.clone(),
            approver,
            recipient,
            fallback,
            prompt,
            idempotency,
        })))
    }

    fn read_ack_of(
        &self,
        origin: &CallerIdentity,
        enforcer: Option<EnforcerId>,
        envelope: &IncomingEnvelope<'_, '_>,
    ) -> Result<AckPrompt> {
        self.context.check_created(envelope.created_at)?;
        Ok(AckPrompt {
            tenant: origin.tenant.clone(),
            enforcer,
            ack: SentAck::parse(envelope)?,
        })
    }

    /// Accepts a prompt, at most one per id. Also returns whether an idempotency key gave the
    /// answer.
    pub async fn send_prompt(&self, command: SendPrompt) -> Result<(PromptRecord, bool)> {
        let operation = self.context.clock.operation_id();
        let (tenant, mut prompt) = (command.tenant, command.prompt);
        prompt.trace = trace::carry(prompt.trace);
        let row = PromptRow {
            operation,
            message: self.context.clock.message_id(),
            tenant: tenant.clone(),
            approver: command.approver.clone(),
            recipient: command.recipient,
            fallback: command.fallback,
            prompt: prompt.clone(),
            idempotency: command.idempotency,
        };
        let fact = self.store.prompts.run(row).await?;
        let taken = judge_prompt(fact, operation, &prompt)?;
        if let Some(enforcer) = taken.queued_for {
            self.context
                .wake
                .wake([WakeKey::Enforcer(tenant, enforcer)]);
        }
        Ok((taken.standing, taken.replayed))
    }

    /// Accepts an acknowledgement: the prompt's status changes and it is not delivered again.
    pub async fn acknowledge_prompt(&self, command: AckPrompt) -> Result<PromptRecord> {
        let (tenant, ack) = (command.tenant, command.ack);
        let row = PromptAckRow {
            operation: self.context.clock.operation_id(),
            tenant: tenant.clone(),
            enforcer: command.enforcer,
            ack: ack.clone(),
        };
        let fact = self.store.acks.run(row).await?.locked()?;
        if let Some((enforcer, _)) = &fact {
            self.presence.seen(&tenant, enforcer);
        }
        judge_ack(fact.map(|(_, fact)| fact), &ack)
    }

    /// The state of a prompt, for its enforcer, its sender and administrators.
    pub async fn prompt(&self, caller: &Member, request: &RequestId) -> Result<PromptRecord> {
        let found = self.store.prompt(&caller.origin().tenant, request).await?;
        let readable = found.filter(|prompt| match caller {
            Member::Enforcer(caller) => caller.may_be(&prompt.enforcer_id),
            Member::Approver(caller) => prompt
                .approver_id
                .as_ref()
                .is_some_and(|sender| caller.may_be(sender)),
            Member::Admin(_) => true,
        });
        Ok(readable.ok_or(Error::NotFound)?.standing)
    }

    /// The oldest prompts without an acknowledgement of the enforcer, those that came later than
    /// `after`. Reading changes nothing: they are still pushed.
    pub async fn pending(
        &self,
        caller: &EnforcerOrAdmin,
        enforcer: &EnforcerId,
        session: Option<&SessionId>,
        after: Option<&RequestId>,
    ) -> Result<Vec<PromptDelivery>> {
        let tenant = match caller {
            EnforcerOrAdmin::Enforcer(caller) => {
                caller.acting(Some(enforcer.clone()), "enforcerId")?;
                self.presence.seen(&caller.origin.tenant, enforcer);
                &caller.origin.tenant
            }
            EnforcerOrAdmin::Admin(caller) => &caller.origin.tenant,
        };
        let (store, limit, bytes) = (&self.store, PENDING_AT_ONCE, PENDING_BYTES);
        let found = store.pending_prompts(tenant, enforcer, session, after, limit, bytes);
        Ok(found.await?)
    }
}

impl AckPrompt {
    pub fn request_id(&self) -> &RequestId {
        &self.ack.request_id
    }
}

impl SendPrompt {
    pub fn request_id(&self) -> &RequestId {
        &self.prompt.request_id
    }
}
