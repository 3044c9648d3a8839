//! What travels over event streams and WebSockets, message by message: for the page that people read, and as schemas in the
//! document.

use serde_json::{Value, json};

use super::Context;
use super::bodies::envelope::{From, answer, answer_until, printed, sent};
use super::bodies::{
    APPROVER, DECIDED, ENFORCER, MESSAGE, PROMPT, artifact, decision, prompt, small,
};
use super::schema::{meaning, shared};
use crate::gateway::error::Error;

/// One kind of message.
pub struct Message {
    /// Its `msgType`.
    pub kind: &'static str,
    /// Who sends it to whom.
    pub direction: Direction,
    /// Over what.
    pub over: &'static str,
    /// When, and what to do about it.
    pub text: &'static str,
    /// Whether, and how, it is acknowledged.
    pub ack: &'static str,
    /// What it looks like.
    pub schema: Value,
    /// One of them.
    pub example: Value,
}

/// Who sends a message to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The gateway to an approver.
    ToApprover,
    /// The gateway to an enforcer.
    ToEnforcer,
    /// The gateway to whoever sent a frame.
    Answer,
    /// An enforcer to the gateway.
    ByEnforcer,
    /// An approver to the gateway.
    ByApprover,
    /// Either to the gateway.
    ByEither,
}

impl Direction {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::ToApprover => "gateway → approver",
            Self::ToEnforcer => "gateway → enforcer",
            Self::Answer => "gateway → sender of a frame",
            Self::ByEnforcer => "enforcer → gateway",
            Self::ByApprover => "approver → gateway",
            Self::ByEither => "enforcer or approver → gateway",
        }
    }

    /// Whether the gateway sends it.
    pub fn is_out(self) -> bool {
        matches!(self, Self::ToApprover | Self::ToEnforcer | Self::Answer)
    }
}

impl Message {
    /// What its schema is called in the document.
    pub fn schema_name(&self) -> String {
        let side = if self.direction.is_out() {
            "printed"
        } else {
            "sent"
        };
        format!("{side}.{}", self.kind)
    }
}

const BOTH: &str = "WebSocket, SSE";
const SOCKET: &str = "WebSocket";
/// How pushed messages are acknowledged.
const ACKED: &str = "By an ack.submit that names its msgId, over REST or the WebSocket, on any node. Until then it is offered again.";

/// The envelope of an approval request, which inboxes show too.
pub fn approval_request(context: &Context<'_>) -> Value {
    printed("approval.request", artifact::approval_request(context))
}

fn to_approver(mut envelope: Value) -> Value {
    envelope["recipient"] = json!({ "approverId": APPROVER });
    envelope
}

fn pushed(context: &Context<'_>) -> [Message; 5] {
    [
        Message {
            kind: "approval.request",
            direction: Direction::ToApprover,
            over: BOTH,
            text: "An artifact waits for a decision. It goes to every channel of each approver who was asked, until it is \
                   acknowledged, removed from the inbox, or no longer pending.",
            ack: ACKED,
            schema: shared("ApprovalRequest"),
            example: artifact::request_example(context),
        },
        Message {
            kind: "exchange.withdrawn",
            direction: Direction::ToApprover,
            over: SOCKET,
            text: "The enforcer took the artifact back, or an administrator cancelled the exchange; over an event stream one \
                   learns of it from the inbox.",
            ack: ACKED,
            schema: printed("exchange.withdrawn", small::withdrawn()),
            example: to_approver(small::withdrawn_example(context)),
        },
        Message {
            kind: "decision.deliver",
            direction: Direction::ToEnforcer,
            over: BOTH,
            text: "The decision, byte for byte as the approver signed it: verify it again. It goes to the enforcer's most \
                   recently opened living channel in the cluster, and only there; a wait shows it under the same msgId.",
            ack: "By an ack.submit, which makes the exchange delivered. Until then it is offered again, for a day.",
            schema: printed("decision.deliver", decision::delivered()),
            example: decision::delivery_example(context),
        },
        Message {
            kind: "refresh.request",
            direction: Direction::ToEnforcer,
            over: BOTH,
            text: "An approver or administrator asks for the artifact again: submit it under a new requestId.",
            ack: ACKED,
            schema: printed("refresh.request", small::reason()),
            example: small::refresh_example(context),
        },
        Message {
            kind: "prompt.send",
            direction: Direction::ToEnforcer,
            over: BOTH,
            text: "A prompt for the agent, in the order of submission within its session.",
            ack: "By a prompt.ack, which ends redelivery whatever its status; an ack.submit ends it too.",
            schema: printed("prompt.send", prompt::body()),
            example: prompt::delivery_example(context),
        },
    ]
}

fn taken(context: &Context<'_>) -> [Message; 5] {
    let artifact_body = artifact::sealed_example(context);
    let decision_body = decision::compact_example();
    let mut prompt_ack = prompt::ack_example(context, "delivered");
    prompt_ack = json!({
        "msgType": "prompt.ack", "requestId": PROMPT, "createdAt": context.earlier(),
        "sender": { "enforcerId": ENFORCER }, "body": prompt_ack,
    });
    [
        Message {
            kind: "artifact.submit",
            direction: Direction::ByEnforcer,
            over: SOCKET,
            text: "Submits an artifact, as POST /v1/artifacts does.",
            ack: "Answered with an artifact.accepted or an error.",
            schema: sent(
                "artifact.submit",
                From::Enforcer,
                artifact::submitted(context, false),
            ),
            example: artifact::example(context, DECIDED, &artifact_body),
        },
        Message {
            kind: "decision.submit",
            direction: Direction::ByApprover,
            over: SOCKET,
            text: "Decides an exchange, as POST /v1/decisions does.",
            ack: "Answered with a decision.accepted or an error.",
            schema: sent(
                "decision.submit",
                From::Approver,
                decision::submitted(false),
            ),
            example: decision::example(context, DECIDED, &decision_body),
        },
        Message {
            kind: "ack.submit",
            direction: Direction::ByEither,
            over: SOCKET,
            text: "Acknowledges a message, as POST /v1/acks does. Either status ends redelivery.",
            ack: "Answered with an ack.accepted or an error.",
            schema: sent("ack.submit", From::Either, small::ack()),
            example: small::ack_example(context),
        },
        Message {
            kind: "prompt.ack",
            direction: Direction::ByEnforcer,
            over: SOCKET,
            text: "Says what became of a prompt: queued for as long as it is kept, then one of the others, which is final.",
            ack: "Answered with the prompt.ack that stands, or an error.",
            schema: sent("prompt.ack", From::Either, shared("PromptAck")),
            example: prompt_ack,
        },
        Message {
            kind: "hello",
            direction: Direction::ByEnforcer,
            over: SOCKET,
            text: "A bare object in which the enforcer's client says what it is; it fills presence, and a later one replaces \
                   it whole. From an approver it is ignored.",
            ack: "Not answered, unless with an error.",
            schema: small::hello(),
            example: json!({
                "msgType": "hello", "enforcerLabel": "Build bot", "workspaceName": "monorepo",
                "capabilities": { "push": true },
            }),
        },
    ]
}

fn answered(context: &Context<'_>) -> [Message; 5] {
    let replied = |mut envelope: Value| {
        envelope["trace"] = json!({ "inReplyTo": "frame-1" });
        envelope
    };
    let until = |kind, request, body: &Value| replied(answer_until(context, kind, request, body));
    let answers = |kind, text, schema, example| Message {
        kind,
        direction: Direction::Answer,
        over: SOCKET,
        text,
        ack: "Not acknowledged. trace.inReplyTo is the msgId of the frame it answers, if that had one.",
        schema: meaning(printed(kind, schema), "the answer to a frame"),
        example,
    };
    let artifact = json!({
        "requestId": DECIDED, "state": "pendingApproval", "expiresAt": context.later(), "duplicate": false,
    });
    let decision = json!({
        "requestId": DECIDED, "state": "decided", "decision": "approve", "verified": true, "duplicate": false,
    });
    let refused = Error::AlreadyDecided
        .describe()
        .body(context.names, Some(DECIDED));
    let ack = prompt::ack_example(context, "delivered");
    [
        answers(
            "artifact.accepted",
            "The artifact was taken.",
            small::artifact_accepted(),
            until("artifact.accepted", DECIDED, &artifact),
        ),
        answers(
            "decision.accepted",
            "The decision was taken.",
            small::decision_accepted(),
            until("decision.accepted", DECIDED, &decision),
        ),
        answers(
            "ack.accepted",
            "The acknowledgement was taken.",
            small::ack_accepted(),
            until(
                "ack.accepted",
                DECIDED,
                &json!({ "msgId": MESSAGE, "status": "processed" }),
            ),
        ),
        answers(
            "prompt.ack",
            "What stands of the prompt now.",
            shared("PromptAck"),
            replied(answer(context, "prompt.ack", PROMPT, &ack)),
        ),
        answers(
            "error",
            "The frame was refused; the channel stays. The codes are those of the REST calls.",
            shared("Error"),
            replied(answer(context, "error", DECIDED, &refused)),
        ),
    ]
}

/// Every message, in the order in which one meets them.
pub fn messages(context: &Context<'_>) -> Vec<Message> {
    pushed(context)
        .into_iter()
        .chain(taken(context))
        .chain(answered(context))
        .collect()
}
