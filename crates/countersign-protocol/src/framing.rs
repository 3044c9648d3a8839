//! The three framings of the generic endpoints: the bare object, the core Envelope, the wire
//! Envelope. All are parsed into the same type, so that one use case serves them all.

use super::envelope::{EnvelopeRecipient, EnvelopeSender, IncomingEnvelope};
use super::json::{JsonNode, JsonObject};
use super::reader::{InvalidMember, MemberReader, ReadResult};
use super::timestamp::Timestamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    Bare,
    Core,
    Wire,
}

impl Framing {
    pub fn of(object: &JsonObject<'_>) -> Self {
        if object.get("msgType").is_none() && object.get("body").is_none() {
            Self::Bare
        } else if object.get("envelopeId").is_some() {
            Self::Core
        } else {
            Self::Wire
        }
    }

    /// Translates a pointer into a wire Envelope to this framing.
    pub fn pointer(self, pointer: &str) -> &str {
        match (self, pointer) {
            (Self::Core, "/requestId") => "/body/requestId",
            (Self::Core, "/sender/enforcerId" | "/sender/approverId") => "/sender/deviceId",
            (Self::Core, "/recipient/enforcerId" | "/recipient/approverId") => {
                "/recipient/deviceId"
            }
            (Self::Core | Self::Wire, _) => pointer,
            (Self::Bare, _) => match pointer.strip_prefix("/body") {
                Some(rest) if rest.is_empty() || rest.starts_with('/') => rest,
                // A bare object has no sender or recipient: a missing one is a fault of the whole
                // object.
                _ if pointer.starts_with("/sender/") || pointer.starts_with("/recipient/") => "",
                _ => pointer,
            },
        }
    }
}

pub struct FramingKinds {
    pub allowed: &'static [&'static str],
    /// The type of a bare object.
    pub bare: fn(&JsonObject<'_>) -> &'static str,
    /// The member of the body that holds the id of the exchange or session.
    pub about: &'static str,
}

#[derive(Debug)]
pub struct FramedBody<'n, 'a> {
    pub framing: Framing,
    pub msg_type: &'static str,
    pub envelope: IncomingEnvelope<'n, 'a>,
}

impl<'n, 'a> FramedBody<'n, 'a> {
    /// Reads a message in any framing. A bare object has no `createdAt`; it counts as sent `now`.
    pub fn parse(node: &'n JsonNode<'a>, kinds: &FramingKinds, now: Timestamp) -> ReadResult<Self> {
        let object = MemberReader::new(node, "")?.object();
        let framing = Framing::of(object);
        let (msg_type, envelope) = match framing {
            Framing::Wire => IncomingEnvelope::parse_one_of(node, kinds.allowed)?,
            Framing::Core => parse_core(node, kinds)?,
            Framing::Bare => {
                let envelope = IncomingEnvelope {
                    request_id: MemberReader::new(node, "/body")?.id(kinds.about)?,
                    created_at: now,
                    expires_at: None,
                    sender: EnvelopeSender::default(),
                    recipient: EnvelopeRecipient::default(),
                    trace: None,
                    body: node,
                    about_itself: true,
                };
                ((kinds.bare)(object), envelope)
            }
        };
        Ok(Self {
            framing,
            msg_type,
            envelope,
        })
    }
}

fn parse_core<'n, 'a>(
    node: &'n JsonNode<'a>,
    kinds: &FramingKinds,
) -> ReadResult<(&'static str, IncomingEnvelope<'n, 'a>)> {
    let mut reader = MemberReader::new(node, "")?;
    reader.bounded_str("envelopeId", 1, 1_024)?;
    let msg_type = reader.one_of("msgType", kinds.allowed)?;
    let sender = parse_actor(reader.inner("sender")?)?;
    if sender.gateway_id.is_some() {
        let expected = "HE or MA: the gateway sends itself nothing";
        return Err(InvalidMember::shape("/sender/actor", expected));
    }
    let recipient = parse_actor(reader.inner("recipient")?)?;
    let created_at = reader.timestamp("createdAt")?;
    let trace = reader.optional_nested("trace")?.map(|node| node.raw);
    let body = reader.nested("body")?;
    reader.finish()?;
    let envelope = IncomingEnvelope {
        request_id: MemberReader::new(body, "/body")?.id(kinds.about)?,
        created_at,
        expires_at: None,
        sender,
        recipient: EnvelopeRecipient {
            enforcer_id: recipient.enforcer_id,
            approver_id: recipient.approver_id,
        },
        trace,
        body,
        about_itself: true,
    };
    Ok((msg_type, envelope))
}

/// An actor and its device: an enforcer, an approver, or the gateway.
fn parse_actor(mut reader: MemberReader<'_, '_>) -> ReadResult<EnvelopeSender> {
    let mut named = EnvelopeSender::default();
    match reader.one_of("actor", &["HE", "MA", "GW"])? {
        "HE" => named.enforcer_id = Some(reader.id("deviceId")?),
        "MA" => named.approver_id = Some(reader.id("deviceId")?),
        _ => named.gateway_id = Some(reader.str("deviceId")?.to_owned()),
    }
    reader.finish()?;
    Ok(named)
}
