//! Events and answers in a form that Claude Code and Codex share.

use serde_json::{Value, json};

use crate::event::{HookEvent, ToolAction};
use crate::members::{EventMembers, EventTable, ReadProblem, call, common};

pub fn read_event(
    members: EventMembers,
    events: &EventTable,
    action: fn(&str, &mut EventMembers) -> Result<ToolAction, ReadProblem>,
) -> Result<HookEvent, ReadProblem> {
    common(members, |name, members| match name {
        "PreToolUse" => {
            let tool = members.text("tool_name")?;
            call(tool, members.object("tool_input")?, action)
        }
        name => events.kind(name),
    })
}

pub fn hook_specific_denial(event: &str, reason: &str) -> Value {
    json!({ "hookSpecificOutput": {
        "hookEventName": event,
        "permissionDecision": "deny",
        "permissionDecisionReason": reason,
    } })
}

pub fn hook_specific_permission(
    event: &HookEvent,
    approved: Option<String>,
    context: Option<&str>,
) -> Option<Value> {
    if approved.is_none() && context.is_none() {
        return None;
    }
    let mut own = json!({ "hookEventName": event.name });
    if let Some(approved) = approved {
        own["permissionDecision"] = "allow".into();
        own["permissionDecisionReason"] = approved.into();
    }
    if let Some(context) = context {
        own["additionalContext"] = context.into();
    }
    Some(json!({ "hookSpecificOutput": own }))
}
