//! Artifacts and decisions in any framing: finds the sender of a bare object, then proceeds as for
//! wire Envelopes.

use crate::gateway::ExchangeService;
use crate::gateway::error::{Error, Result};
use crate::gateway::exchanges::submit::SubmitCommand;
use crate::gateway::identity::caller::{Approver, Enforcer};
use crate::protocol::artifact;
use crate::protocol::decision::Decision;
use crate::protocol::framing::{FramedBody, Framing, FramingKinds};
use crate::protocol::id::{ApproverId, EnforcerId, RequestId, TextId};
use crate::protocol::json::JsonNode;
use crate::protocol::reader::InvalidMember;
use crate::store::exchanges::idempotency::IdempotencyKey;

pub(in crate::gateway) const NAMELESS: &str =
    "an Envelope that names its sender, or a credential that is bound to one id";

const ARTIFACT: FramingKinds = FramingKinds {
    allowed: &["artifact.submit"],
    bare: |_| "artifact.submit",
    about: "requestId",
};

const DECISION: FramingKinds = FramingKinds {
    allowed: &["decision.submit"],
    bare: |_| "decision.submit",
    about: "requestId",
};

impl ExchangeService {
    pub fn read_any_submission(
        &self,
        caller: &Enforcer,
        document: &JsonNode<'_>,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<SubmitCommand> {
        let framed = FramedBody::parse(document, &ARTIFACT, self.context.clock.now())
            .map_err(|invalid| in_artifact(document, invalid))?;
        let enforcer = sending_enforcer(caller, &framed)?;
        Ok(SubmitCommand {
            enforcer,
            submission: self.read_artifact(&framed.envelope)?,
            idempotency,
            warning: self.context.created_warning(framed.envelope.created_at),
        })
    }

    /// Reads a decision in any framing, with its approver if it names one.
    pub fn read_any_decision(
        &self,
        caller: &Approver,
        document: &JsonNode<'_>,
    ) -> Result<(Option<ApproverId>, Decision)> {
        let framed = FramedBody::parse(document, &DECISION, self.context.clock.now())?;
        let approver = match framed.framing {
            Framing::Bare => caller.bound.clone(),
            Framing::Core | Framing::Wire => Some(caller.sending(&framed.envelope.sender)?),
        };
        Ok((approver, self.read_verdict(&framed.envelope)?))
    }

    /// The approver of a decision that names none: an unbound credential acts as the one that was
    /// asked.
    pub async fn decider(&self, caller: &Approver, request: &RequestId) -> Result<ApproverId> {
        let tenant = &caller.origin.tenant;
        let mut asked = self.store.approvers_of(tenant, request).await?;
        match (asked.pop(), asked.is_empty()) {
            (None, _) => Err(Error::NotFound),
            (Some(approver), true) => Ok(approver),
            (Some(_), false) => Err(Error::invalid("/sender/approverId", NAMELESS)),
        }
    }
}

/// The enforcer that sent a message in any framing. If the credential is bound to none, a bare
/// object names it in
/// `metadata.enforcerId`.
pub(in crate::gateway) fn sending_enforcer(
    caller: &Enforcer,
    framed: &FramedBody<'_, '_>,
) -> Result<EnforcerId> {
    match (framed.framing, &caller.bound) {
        (Framing::Core | Framing::Wire, _) => caller.sending(&framed.envelope.sender),
        (Framing::Bare, Some(bound)) => Ok(bound.clone()),
        (Framing::Bare, None) => metadata_enforcer(framed.envelope.body)?
            .ok_or_else(|| Error::invalid("/sender/enforcerId", NAMELESS)),
    }
}

pub(in crate::gateway) fn metadata_enforcer(
    body: &JsonNode<'_>,
) -> Result<Option<EnforcerId>, InvalidMember> {
    let named = body
        .as_object()
        .and_then(|body| body.get("metadata")?.as_object()?.get("enforcerId"));
    named
        .map(|node| {
            let id = node.as_str().and_then(EnforcerId::parse);
            id.ok_or_else(|| {
                InvalidMember::shape(
                    "/body/metadata/enforcerId",
                    crate::protocol::id::ID_EXPECTED,
                )
            })
        })
        .transpose()
}

/// An invalid id inside an open artifact makes the artifact invalid, not the envelope.
fn in_artifact(node: &JsonNode<'_>, invalid: InvalidMember) -> Error {
    let artifact = node
        .as_object()
        .and_then(|object| match Framing::of(object) {
            Framing::Bare => Some(node),
            Framing::Core => object.get("body"),
            Framing::Wire => None,
        });
    match artifact {
        Some(body) if invalid.pointer == "/body/requestId" && !artifact::is_sealed(body) => {
            Error::InvalidArtifact(invalid)
        }
        _ => invalid.into(),
    }
}
