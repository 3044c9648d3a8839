//! The wire Envelope: parsed strictly when received, built around unchanged texts when sent.

use serde::Serialize;
use serde_json::value::RawValue;

use super::id::{ApproverId, EnforcerId, MessageId, RequestId};
use super::json::JsonNode;
use super::reader::{InvalidMember, MemberReader, NONEMPTY_EXPECTED, ReadResult, nonempty};
use super::timestamp::Timestamp;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvelopeSender {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcer_id: Option<EnforcerId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approver_id: Option<ApproverId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway_id: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvelopeRecipient {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcer_id: Option<EnforcerId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approver_id: Option<ApproverId>,
}

#[derive(Debug)]
pub struct IncomingEnvelope<'n, 'a> {
    pub request_id: RequestId,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub sender: EnvelopeSender,
    pub recipient: EnvelopeRecipient,
    /// Text of the free-form trace, forwarded unchanged.
    pub trace: Option<&'a str>,
    pub body: &'n JsonNode<'a>,
    /// Whether the body itself names the exchange, because nothing around it does.
    pub about_itself: bool,
}

impl<'n, 'a> IncomingEnvelope<'n, 'a> {
    pub fn parse(node: &'n JsonNode<'a>, msg_type: &'static str) -> ReadResult<Self> {
        Self::parse_one_of(node, &[msg_type]).map(|(_, envelope)| envelope)
    }

    pub fn parse_one_of(
        node: &'n JsonNode<'a>,
        allowed: &[&'static str],
    ) -> ReadResult<(&'static str, Self)> {
        let mut reader = MemberReader::new(node, "")?;
        reader.optional_parsed("msgId", NONEMPTY_EXPECTED, nonempty)?;
        let msg_type = reader.one_of("msgType", allowed)?;
        let envelope = Self {
            request_id: reader.id("requestId")?,
            created_at: reader.timestamp("createdAt")?,
            expires_at: reader.optional_timestamp("expiresAt")?,
            sender: parse_sender(reader.inner("sender")?)?,
            recipient: match reader.optional_inner("recipient")? {
                Some(recipient) => parse_recipient(recipient)?,
                None => EnvelopeRecipient::default(),
            },
            trace: reader.optional_nested("trace")?.map(|node| node.raw),
            body: reader.nested("body")?,
            about_itself: false,
        };
        reader.finish()?;
        Ok((msg_type, envelope))
    }

    /// Checks that the envelope names the same exchange as the path or body.
    pub fn expect_request(&self, request_id: &RequestId) -> ReadResult<()> {
        if self.request_id == *request_id {
            return Ok(());
        }
        let expected = "the requestId of the path and the body";
        Err(InvalidMember::shape("/requestId", expected))
    }

    /// Checks that an `expiresAt` on the envelope is the body's.
    pub fn expect_expiry(&self, expires_at: Timestamp) -> ReadResult<()> {
        match self.expires_at {
            Some(at) if at != expires_at => Err(InvalidMember::shape(
                "/expiresAt",
                "the expiresAt of the body",
            )),
            _ => Ok(()),
        }
    }
}

fn parse_sender(mut reader: MemberReader<'_, '_>) -> ReadResult<EnvelopeSender> {
    let sender = EnvelopeSender {
        enforcer_id: reader.optional_id("enforcerId")?,
        approver_id: reader.optional_id("approverId")?,
        gateway_id: reader.optional_str("gatewayId")?.map(str::to_owned),
    };
    reader.finish()?;
    Ok(sender)
}

fn parse_recipient(mut reader: MemberReader<'_, '_>) -> ReadResult<EnvelopeRecipient> {
    let recipient = EnvelopeRecipient {
        enforcer_id: reader.optional_id("enforcerId")?,
        approver_id: reader.optional_id("approverId")?,
    };
    reader.finish()?;
    Ok(recipient)
}

/// An envelope that the gateway emits. Members print in this order.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OutgoingEnvelope<B> {
    /// Identifies the message for acknowledgement and deduplication.
    pub msg_id: MessageId,
    pub msg_type: &'static str,
    /// The exchange it is about, or the HTTP request if there is none.
    pub request_id: String,
    pub created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    pub sender: EnvelopeSender,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipient: Option<EnvelopeRecipient>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Box<RawValue>>,
    pub body: B,
}

impl<B> OutgoingEnvelope<B> {
    /// An envelope sent by the gateway itself, to no particular recipient.
    pub fn new(
        msg_type: &'static str,
        msg_id: MessageId,
        request_id: impl Into<String>,
        created_at: Timestamp,
        gateway_id: &str,
        body: B,
    ) -> Self {
        Self {
            msg_id,
            msg_type,
            request_id: request_id.into(),
            created_at,
            expires_at: None,
            sender: EnvelopeSender {
                gateway_id: Some(gateway_id.to_owned()),
                ..EnvelopeSender::default()
            },
            recipient: None,
            trace: None,
            body,
        }
    }

    #[must_use]
    pub fn expiring(mut self, at: Option<Timestamp>) -> Self {
        self.expires_at = at;
        self
    }

    #[must_use]
    pub fn sent_by_enforcer(mut self, id: EnforcerId) -> Self {
        self.sender.enforcer_id = Some(id);
        self
    }

    /// Sent on behalf of an approver, or of an administrator (`None`).
    #[must_use]
    pub fn sent_by_approver(mut self, id: Option<ApproverId>) -> Self {
        self.sender.approver_id = id;
        self
    }

    #[must_use]
    pub fn for_enforcer(mut self, id: EnforcerId) -> Self {
        self.recipient.get_or_insert_default().enforcer_id = Some(id);
        self
    }

    #[must_use]
    pub fn for_approver(mut self, id: ApproverId) -> Self {
        self.recipient.get_or_insert_default().approver_id = Some(id);
        self
    }

    #[must_use]
    pub fn traced(mut self, trace: Option<Box<RawValue>>) -> Self {
        self.trace = trace;
        self
    }

    /// The same envelope around another body.
    pub fn with_body<C>(self, body: C) -> OutgoingEnvelope<C> {
        OutgoingEnvelope {
            msg_id: self.msg_id,
            msg_type: self.msg_type,
            request_id: self.request_id,
            created_at: self.created_at,
            expires_at: self.expires_at,
            sender: self.sender,
            recipient: self.recipient,
            trace: self.trace,
            body,
        }
    }
}
