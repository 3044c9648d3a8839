//! The tools as a model sees them. Their descriptions say when to use them and what the answers
//! mean.

use serde_json::{Value, json};

use super::arguments::{MAX_ACTIONS, MAX_APPROVALS, MAX_TIMEOUT, MAX_WAIT, kinds};

pub const REQUEST: &str = "request_approval";
pub const CHECK: &str = "check_approval";
pub const WITHDRAW: &str = "withdraw_approval";

pub const INSTRUCTIONS: &str = "\
Countersign asks a person for approval, on the person's own device. Call request_approval before anything that is hard to undo \
or that others notice: deleting, deploying, publishing, paying, sending, changing access or production data; and whenever you \
were told to ask first. Continue only if outcome is approved, and then do exactly what you asked for. If it is denied, do not do \
it in another way either: tell the user the reason.";

pub fn tools() -> [Value; 3] {
    [request(), check(), withdraw()]
}

fn tool(name: &str, description: &str, input: &Value, annotations: &Value) -> Value {
    json!({
        "name": name,
        "description": description,
        "inputSchema": input,
        "outputSchema": output(),
        "annotations": annotations,
    })
}

fn request() -> Value {
    let action = json!({
        "type": "object",
        "properties": {
            "id": { "type": "string", "description": "What actionId is if this is chosen, such as staging." },
            "caption": { "type": "string", "description": "What the person reads, such as: To staging." },
            "decision": { "type": "string", "enum": ["approve", "reject"] }
        },
        "required": ["id", "caption", "decision"],
        "additionalProperties": false
    });
    let input = json!({
        "type": "object",
        "properties": {
            "type": {
                "type": "string",
                "enum": kinds(),
                "description": "What to decide about: a plan before you carry it out, a task before you start it, a patch (unified diff), a shell command, or a checkpoint after a part of the work."
            },
            "text": {
                "type": "string",
                "description": "The complete text: the whole plan, the whole diff, the command exactly as it will run. The person sees nothing else and decides only about this text. Either text or content is required."
            },
            "content": {
                "type": "object",
                "description": "A JSON object to show instead of text, such as the arguments of a call."
            },
            "title": { "type": "string", "description": "A short title, with text only." },
            "directory": {
                "type": "string",
                "description": "Where a command would run, as an absolute path; by default the server's working directory."
            },
            "timeout_seconds": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_TIMEOUT,
                "default": 600,
                "description": "If nobody decides within this time, the outcome is denied."
            },
            "approver": {
                "type": "string",
                "description": "Ask only this person, by id. By default everyone who is paired may decide."
            },
            "approvals": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_APPROVALS,
                "description": "Ask everyone, and go on only if this many different people approve. The user's policy may demand more."
            },
            "wait": {
                "type": "boolean",
                "default": true,
                "description": "false: return a requestId as soon as the request is sent, with outcome pending, and get the decision with check_approval. Use it if you have other work to do in the meantime, or if calls that take minutes are cut off."
            },
            "actions": {
                "type": "array",
                "items": action,
                "minItems": 1,
                "maxItems": MAX_ACTIONS,
                "description": "Choices to offer besides yes and no. The chosen one is actionId."
            }
        },
        "required": ["type"],
        "additionalProperties": false
    });
    let description = "Ask a person to approve something before you do it, and wait for the decision. Use it before anything that is hard to undo or that others notice, and whenever you were told to ask first. Only outcome approved allows it, and only exactly what you asked for. Denied means: do not do it, and tell the user the reason. Cancelling the call withdraws the request.";
    let annotations = json!({
        "title": "Ask a person for approval",
        "readOnlyHint": false,
        "destructiveHint": false,
        "idempotentHint": false,
        "openWorldHint": true,
    });
    tool(REQUEST, description, &input, &annotations)
}

fn request_id() -> Value {
    json!({ "type": "string", "description": "The requestId that request_approval returned." })
}

fn check() -> Value {
    let input = json!({
        "type": "object",
        "properties": {
            "requestId": request_id(),
            "wait_seconds": {
                "type": "integer",
                "minimum": 0,
                "maximum": MAX_WAIT,
                "default": 0,
                "description": "How long to wait for the decision before answering that it is still pending."
            }
        },
        "required": ["requestId"],
        "additionalProperties": false
    });
    let description = "Look up a request that request_approval made in this session. Use it after request_approval with wait false. Pending allows nothing: check again with wait_seconds. Requests of other sessions are unknown here.";
    let annotations = json!({
        "title": "Check for a person's decision",
        "readOnlyHint": true,
        "openWorldHint": true,
    });
    tool(CHECK, description, &input, &annotations)
}

fn withdraw() -> Value {
    let input = json!({
        "type": "object",
        "properties": { "requestId": request_id() },
        "required": ["requestId"],
        "additionalProperties": false
    });
    let description = "Withdraw a request that is no longer needed, so that nobody has to decide it. If it was already decided, the answer is that decision.";
    let annotations = json!({
        "title": "Withdraw a request",
        "readOnlyHint": false,
        "destructiveHint": false,
        "idempotentHint": true,
        "openWorldHint": true,
    });
    tool(WITHDRAW, description, &input, &annotations)
}

/// Of every tool.
fn output() -> Value {
    json!({
        "type": "object",
        "properties": {
            "outcome": {
                "type": "string",
                "enum": ["approved", "denied", "pending"],
                "description": "approved: a person signed an approval of exactly this. denied: do not do it. pending: nobody has decided yet, so nothing is allowed."
            },
            "message": { "type": "string", "description": "What happened, in a sentence." },
            "requestId": { "type": "string" },
            "approverId": { "type": "string", "description": "Who decided; several people with commas between them." },
            "reason": { "type": "string", "description": "The reason that person gave, signed." },
            "actionId": { "type": "string", "description": "The chosen action." },
            "cause": {
                "type": "string",
                "enum": ["rejected", "timeout", "ended", "unavailable", "refused", "untrusted", "missing", "parked", "receipt", "paused", "unpaired", "withdrawn", "error"],
                "description": "Why it is denied: a person rejected it; nobody decided in time; it ended without a decision; the gateway was unavailable, or refused the request; the decision could not be trusted; too few people approved; it is not decided yet, and the same request continues to wait; the receipt that is required was not saved; a person told you to stop for now; no approver is paired; it was withdrawn; or something failed on this machine."
            },
            "secondsLeft": { "type": "integer", "minimum": 0, "description": "How much time is left for a decision." }
        },
        "required": ["outcome", "message"],
        "additionalProperties": false
    })
}
