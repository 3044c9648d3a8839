//! The same message in each framing that generic endpoints take.

use serde_json::{Value, json};

use super::{now, request_id};

/// How a message is wrapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    Bare,
    Core,
    Wire,
}

impl Framing {
    pub const ALL: [Self; 3] = [Self::Bare, Self::Core, Self::Wire];

    /// The message, wrapped. `sender` and `recipient` are an actor of the core Envelope and an id.
    pub fn wrap(
        self,
        msg_type: &str,
        sender: (&str, &str),
        recipient: Option<(&str, &str)>,
        body: &Value,
    ) -> Value {
        match self {
            Self::Bare => body.clone(),
            Self::Core => {
                let (to, device) = recipient.unwrap_or(("GW", "countersign"));
                json!({
                    "envelopeId": request_id(), "msgType": msg_type, "createdAt": now(), "body": body,
                    "sender": { "actor": sender.0, "deviceId": sender.1 },
                    "recipient": { "actor": to, "deviceId": device },
                })
            }
            Self::Wire => {
                let about = body["requestId"].as_str().unwrap_or("about-nothing");
                let mut body = body.clone();
                if is_said_by_the_envelope(&body) {
                    body.as_object_mut().unwrap().remove("requestId");
                }
                let mut envelope = json!({
                    "msgType": msg_type, "requestId": about, "createdAt": now(), "body": body,
                    "sender": { member(sender.0): sender.1 },
                });
                if let Some((actor, id)) = recipient {
                    envelope["recipient"] = json!({ member(actor): id });
                }
                envelope
            }
        }
    }

    /// Where a member of the body stands.
    pub fn pointer(self, member: &str) -> String {
        match self {
            Self::Bare => member.to_owned(),
            Self::Core | Self::Wire => format!("/body{member}"),
        }
    }
}

/// Whether a wire Envelope says what this is about, and not the body: of sealed artifacts and
/// compact decisions.
fn is_said_by_the_envelope(body: &Value) -> bool {
    let has = |name: &str| body.get(name).is_some();
    has("ciphertext") && !has("promptHash") || has("signerKeyId") && !has("sigAlg")
}

fn member(actor: &str) -> &'static str {
    match actor {
        "HE" => "enforcerId",
        "MA" => "approverId",
        _ => "gatewayId",
    }
}
