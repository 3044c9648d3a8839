//! The gateway's wire Envelope: parsed strictly on the way in, put together around untouched texts on the way out.

use serde::Serialize;
use serde_json::value::RawValue;

use super::id::{ApproverId, EnforcerId, MessageId, RequestId};
use super::json::Node;
use super::reader::{Invalid, Reader};
use super::timestamp::Timestamp;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sender {
    /// The enforcer, if it names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcer_id: Option<EnforcerId>,
    /// The approver, if it names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approver_id: Option<ApproverId>,
    /// The gateway, if it names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway_id: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Recipient {
    /// The enforcer, if it names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcer_id: Option<EnforcerId>,
    /// The approver, if it names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approver_id: Option<ApproverId>,
}

#[derive(Debug)]
pub struct Incoming<'n, 'a> {
    pub request_id: RequestId,
    /// When the client made it.
    pub created_at: Timestamp,
    /// When it ends, if it says so.
    pub expires_at: Option<Timestamp>,
    pub sender: Sender,
    pub recipient: Recipient,
    /// Text of the free-form trace, passed on untouched.
    pub trace: Option<&'a str>,
    /// The body, whose meaning follows from the message type.
    pub body: &'n Node<'a>,
    /// Whether the body itself says what it is about, because nothing around it does.
    pub about_itself: bool,
}

impl<'n, 'a> Incoming<'n, 'a> {
    pub fn parse(node: &'n Node<'a>, msg_type: &'static str) -> Result<Self, Invalid> {
        Self::parse_one_of(node, &[msg_type]).map(|(_, envelope)| envelope)
    }

    /// Reads an envelope of one of several message types.
    pub fn parse_one_of(
        node: &'n Node<'a>,
        allowed: &[&'static str],
    ) -> Result<(&'static str, Self), Invalid> {
        let mut reader = Reader::new(node, "")?;
        if let Some(id) = reader.optional_str("msgId")?
            && id.is_empty()
        {
            return Err(Invalid::shape("/msgId", "a string of at least 1 character"));
        }
        let msg_type = reader.one_of("msgType", allowed)?;
        let envelope = Self {
            request_id: reader.id("requestId")?,
            created_at: reader.timestamp("createdAt")?,
            expires_at: reader.optional_timestamp("expiresAt")?,
            sender: parse_sender(reader.nested("sender")?)?,
            recipient: match reader.optional_nested("recipient")? {
                Some(node) => parse_recipient(node)?,
                None => Recipient::default(),
            },
            trace: reader.optional_nested("trace")?.map(|node| node.raw),
            body: reader.nested("body")?,
            about_itself: false,
        };
        reader.finish()?;
        Ok((msg_type, envelope))
    }

    /// Checks that the envelope speaks of the exchange that the path or body names.
    pub fn expect_request(&self, request_id: &RequestId) -> Result<(), Invalid> {
        if self.request_id == *request_id {
            return Ok(());
        }
        Err(Invalid::shape(
            "/requestId",
            "the requestId of the path and the body",
        ))
    }

    /// Checks that an `expiresAt` on the envelope is the body's.
    pub fn expect_expiry(&self, expires_at: Timestamp) -> Result<(), Invalid> {
        match self.expires_at {
            Some(at) if at != expires_at => {
                Err(Invalid::shape("/expiresAt", "the expiresAt of the body"))
            }
            _ => Ok(()),
        }
    }
}

fn parse_sender(node: &Node<'_>) -> Result<Sender, Invalid> {
    let mut reader = Reader::new(node, "/sender")?;
    let sender = Sender {
        enforcer_id: reader.optional_id("enforcerId")?,
        approver_id: reader.optional_id("approverId")?,
        gateway_id: reader.optional_str("gatewayId")?.map(str::to_owned),
    };
    reader.finish()?;
    Ok(sender)
}

fn parse_recipient(node: &Node<'_>) -> Result<Recipient, Invalid> {
    let mut reader = Reader::new(node, "/recipient")?;
    let recipient = Recipient {
        enforcer_id: reader.optional_id("enforcerId")?,
        approver_id: reader.optional_id("approverId")?,
    };
    reader.finish()?;
    Ok(recipient)
}

/// An envelope that the gateway emits. Members print in this order.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outgoing<B> {
    /// Names this message, so that it can be acknowledged and told from its repeats.
    pub msg_id: MessageId,
    pub msg_type: &'static str,
    /// The exchange it is about, or the HTTP request when there is none.
    pub request_id: String,
    /// When the gateway made it.
    pub created_at: Timestamp,
    /// When the exchange ends, where one is meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    pub sender: Sender,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipient: Option<Recipient>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Box<RawValue>>,
    pub body: B,
}
