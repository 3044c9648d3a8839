//! A request as a person reads it: complete, never shortened, with nothing in it that could move
//! the cursor or hide.

use std::fmt::Write as _;
use std::time::Duration;

use countersign::agent::Agent;
use countersign::client::approver::{
    Approver, InboxRequest, StrangeDevice, agent_reason, requested_actions,
};
use countersign::client::visible;
use countersign::e2e::{ArtifactRule, DEVICES, LOG, OUTCOME, PlainArtifact, REPOSITORY, RULE};
use countersign::protocol::timestamp::Timestamp;
use serde_json::{Map, Value, json};

use super::artifact::members_of;
use super::payload::{formatted, render_payload, shell_line, warnings};
use super::rule_text::{TeamNames, rule_sentence};
use crate::commands::terminal::{Colour, minutes, paint};

const SALT: &str = "countersign.salt";
/// 16 bytes in base64url.
const SALT_CHARS: usize = 22;

fn is_salt(value: &Value) -> bool {
    let is_base64url = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    value
        .as_str()
        .is_some_and(|text| text.len() == SALT_CHARS && text.as_bytes().iter().all(is_base64url))
}

/// A request for programs.
pub fn request_json(item: &InboxRequest) -> Value {
    let mut shown = json!({
        "requestId": item.request_id,
        "enforcerId": item.enforcer_id,
        "enforcerLabel": item.label,
        "paired": item.is_paired,
        "artifactType": item.artifact_type,
        "artifactHash": item.artifact_hash.map(|hash| hash.to_string()),
        "expiresAt": item.expires_at,
        "opened": item.content.is_ok(),
    });
    if !item.strangers.is_empty() {
        let strangers = item.strangers.iter();
        let shown_of =
            |it: &StrangeDevice| json!({ "deviceId": it.id.to_string(), "revoked": it.is_revoked });
        shown["strangeDevices"] = strangers.map(shown_of).collect();
    }
    match &item.content {
        Ok(opened) => shown["artifact"] = members_of(opened.artifact()),
        Err(problem) => shown["problem"] = problem.to_string().into(),
    }
    shown
}

/// Two lines of a list, from the id on.
pub fn listed(id: &str, summary: &str, colour: bool) -> String {
    let id = paint(colour, Colour::Bold, &visible(id));
    format!("{id}  {summary}")
}

/// Two lines of a list, after the id: what it would do, then where it comes from.
pub fn summary(item: &InboxRequest, now: Timestamp, colour: bool) -> String {
    let what = match &item.content {
        Ok(opened) => paint(colour, Colour::Bold, &headline(opened.artifact())),
        Err(problem) => {
            let problem = format!("can't be approved: {problem}");
            paint(colour, Colour::Yellow, &problem)
        }
    };
    let artifact = artifact_of(item);
    let agent = artifact.and_then(agent_title);
    let agent = agent
        .map(|title| format!("{title} on "))
        .unwrap_or_default();
    let kind = item.artifact_type.as_deref().unwrap_or("unknown");
    let kind = visible(kind.strip_suffix(".review").unwrap_or(kind));
    let place = artifact.map(|artifact| format!("  {}", visible(artifact.repository())));
    let place = place.unwrap_or_default();
    let time = time_left(item, now);
    format!(
        "{what}\n    {kind}  {agent}{}{place}  {time}{}",
        who(item),
        age(item, now)
    )
}

/// How long ago it was asked, by the enforcer's clock.
fn age(item: &InboxRequest, now: Timestamp) -> String {
    let asked = artifact_of(item).and_then(|artifact| {
        let members = members_of(artifact);
        Timestamp::parse(members["createdAt"].as_str()?)
    });
    let age = asked.and_then(|asked| Duration::try_from(now.inner() - asked.inner()).ok());
    age.map_or_else(String::new, |age| format!("  asked {} ago", minutes(age)))
}

fn artifact_of(item: &InboxRequest) -> Option<&PlainArtifact> {
    let opened = item.content.as_ref().ok()?;
    Some(opened.artifact())
}

/// The agent that a request names, if it is a known one.
fn agent_title(artifact: &PlainArtifact) -> Option<&'static str> {
    let members = members_of(artifact);
    let agent: Agent = members["payload"]["agent"].as_str()?.parse().ok()?;
    Some(agent.title())
}

fn time_left(item: &InboxRequest, now: Timestamp) -> String {
    let Some(expires_at) = item.expires_at else {
        return "no deadline".to_owned();
    };
    match Duration::try_from(expires_at.inner() - now.inner()) {
        Ok(left) => format!("{} left", minutes(left)),
        Err(_) => "expired".to_owned(),
    }
}

/// The enforcer that asks, as this device knows it or as the gateway says.
fn who(item: &InboxRequest) -> String {
    let id = item.enforcer_id.as_ref().map(|id| visible(id.as_str()));
    let id = id.unwrap_or_else(|| "unknown".to_owned());
    let label = item.label.as_deref().map(visible);
    let label = label.filter(|label| *label != id);
    let label = label.map(|label| format!(" ({label})")).unwrap_or_default();
    let doubt = if item.is_paired { "" } else { ", unverified" };
    format!("{id}{label}{doubt}")
}

/// A sentence that says what it would do.
pub fn headline(artifact: &PlainArtifact) -> String {
    let members = members_of(artifact);
    let kind = members["artifactType"].as_str().unwrap_or_default();
    let payload = members["payload"].as_object().cloned();
    payload_headline(kind, &payload.unwrap_or_default())
}

pub fn payload_headline(artifact_type: &str, payload: &Map<String, Value>) -> String {
    countersign::client::approver::headline(artifact_type, payload, shell_line)
}

/// A whole item.
pub fn render(item: &InboxRequest, approver: &Approver, colour: bool) -> String {
    let now = approver.now();
    let mut text = String::new();
    if let Ok(opened) = &item.content {
        let artifact = opened.artifact();
        let _never = writeln!(text, "{}", paint(colour, Colour::Bold, &headline(artifact)));
        let members = members_of(artifact);
        let reason = members["payload"].as_object().and_then(agent_reason);
        if let Some(reason) = reason {
            let _never = writeln!(text, "The agent says: “{}”", visible(reason));
        }
        text.push('\n');
    }
    let mut line = |name: &str, value: &str| {
        let name = paint(colour, Colour::Dim, &format!("{name:<10}"));
        let _never = writeln!(text, "{name} {value}");
    };
    line("request", &visible(item.request_id.as_str()));
    let kind = item.artifact_type.as_deref().unwrap_or("unknown");
    line("type", &visible(kind));
    line("asked by", &who(item));
    line("time", &time_left(item, now));
    match &item.content {
        Ok(opened) => text.push_str(&render_artifact(
            opened.artifact(),
            &approver.team_names(),
            colour,
        )),
        Err(problem) => {
            let problem = format!("This request can't be approved: {problem}.");
            let problem = paint(colour, Colour::Yellow, &problem);
            let _never = write!(text, "\n{problem}\nYou can only reject it.");
        }
    }
    for stranger in &item.strangers {
        let warning = paint(colour, Colour::Yellow, &stranger.to_string());
        let _never = write!(text, "\n\n{warning}");
    }
    text
}

/// An artifact, from its repository to its last member.
pub fn render_artifact(artifact: &PlainArtifact, names: &TeamNames, colour: bool) -> String {
    let mut members = members_of(artifact);
    let mut rest = members
        .as_object_mut()
        .map(std::mem::take)
        .unwrap_or_default();
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        let name = paint(colour, Colour::Dim, &format!("{name:<10}"));
        let _never = writeln!(text, "{name} {}", visible(value));
    };
    line("repository", artifact.repository());
    if let Some(rule) = artifact.rule() {
        line("rule", &rule_sentence(rule, names));
    }
    for (member, name) in [
        ("baseRevision", "revision"),
        ("sessionId", "session"),
        ("createdAt", "asked at"),
        ("expiresAt", "expires at"),
    ] {
        if let Some(Value::String(value)) = rest.remove(member) {
            line(name, &value);
        }
    }
    // Shown above, or only for programs. Everything else is shown.
    for member in [
        "requestId",
        "artifactType",
        "repoRef",
        "artifactHash",
        "artifactHashAlg",
    ] {
        rest.remove(member);
    }
    if let Some(Value::Object(extensions)) = rest.get_mut("extensions") {
        // Only what can be nothing but the salt is left out.
        if extensions.get(SALT).is_some_and(is_salt) {
            extensions.remove(SALT);
        }
        // Shown above, and compared with what this device knows. The artifact could not be opened
        // if they held anything else.
        extensions.remove(REPOSITORY);
        extensions.remove(DEVICES);
        for name in [OUTCOME, LOG] {
            if extensions.get(name).is_some_and(|named| named["v"] == 1) {
                extensions.remove(name);
            }
        }
        if let Some(ArtifactRule::Known(_)) = artifact.rule() {
            extensions.remove(RULE);
        }
        if extensions.is_empty() {
            rest.remove("extensions");
        }
    }
    let payload = match rest.remove("payload") {
        Some(Value::Object(payload)) => payload,
        _ => Map::new(),
    };
    text.push('\n');
    text.push_str(&render_payload(payload, colour));
    if !rest.is_empty() {
        text.push_str("\nAlso:\n");
        text.push_str(&formatted(&Value::Object(rest)));
    }
    let actions = requested_actions(artifact);
    if !actions.is_empty() {
        text.push_str("\nChoices:\n");
        for action in actions {
            let (id, caption) = (visible(&action.id), visible(&action.caption));
            let _never = writeln!(
                text,
                "  --action {id}   {}: {caption}",
                action.verdict.as_str()
            );
        }
    }
    for warning in warnings(artifact) {
        let _never = writeln!(text, "\n{}", paint(colour, Colour::Yellow, &warning));
    }
    text.truncate(text.trim_end().len());
    text
}
