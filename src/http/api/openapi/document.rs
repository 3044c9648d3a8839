//! The documents of a node: openapi.json and asyncapi.json with its own values.

use std::sync::LazyLock;

use axum::body::Bytes;
use serde::Serialize;
use serde_json::{Map, Value, json};
use time::Duration;

use super::template::fill;
use crate::config::{Config, TlsMode};
use crate::http::api::page_settings;
use crate::http::api::status::described;
use crate::page::page;
use crate::protocol::canonical::{Sha256Hex, canonical_without};
use crate::protocol::decision::CompactRule;
use crate::protocol::error::CodeNames;
use crate::protocol::json;
use crate::protocol::timestamp::Timestamp;

/// The exchanges of examples last a day, or as long as the node allows.
const EXAMPLE_LIFETIME_SECONDS: u64 = 24 * 3_600;

static OPENAPI: LazyLock<Value> = LazyLock::new(|| read(include_str!("openapi.json")));
static ASYNCAPI: LazyLock<Value> = LazyLock::new(|| read(include_str!("asyncapi.json")));

/// A test compares it with its source, so it can be read.
fn read(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_default()
}

pub struct RenderedDocuments {
    pub hour: Timestamp,
    pub openapi: Bytes,
    pub asyncapi: Bytes,
}

impl RenderedDocuments {
    /// The documents of a node, with examples that it accepts for the next hour.
    pub fn new(config: &Config, names: &CodeNames, hour: Timestamp) -> Self {
        let mut values = values(config, names, hour);
        values["hash"] = hashes(&OPENAPI["x-examples"], &values);
        let mut openapi = fill(&OPENAPI, &values);
        if let Some(members) = openapi.as_object_mut() {
            members.remove("x-examples");
        }
        let mut asyncapi = fill(&ASYNCAPI, &values);
        asyncapi["components"]["schemas"] = openapi["components"]["schemas"].clone();
        Self {
            hour,
            openapi: openapi.to_string().into(),
            asyncapi: asyncapi.to_string().into(),
        }
    }
}

/// The values of placeholders.
fn values(config: &Config, names: &CodeNames, hour: Timestamp) -> Value {
    let seconds = config
        .artifacts
        .max_lifetime_seconds
        .min(EXAMPLE_LIFETIME_SECONDS);
    let later = hour.inner() + Duration::seconds(i64::try_from(seconds).unwrap_or_default());
    let (limits, now) = (&config.limits, hour.to_string());
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "now": now, "later": Timestamp::from(later).to_string(),
        "status": described(config, names, &["apiKey"], "node-1", &now),
        "page_settings": page_settings::described(&config.page.oidc),
        "media_type": names.media_type, "error_prefix": names.error_prefix,
        "requested_actions": names.requested_actions, "prompt_extension": names.prompt,
        "server": { "gateway_id": config.server.gateway_id },
        "limits": with_constants(limits, limits.constants()), "push": with_constants(&config.push, config.push.constants()),
        "page_default": limits.default_page(), "wait_default": limits.default_wait(),
        "longest_reoffer": config.push.longest_reoffer(),
        "artifact_body_bytes": limits.artifact_bytes + limits.envelope_bytes,
        "prompt_body_bytes": limits.prompt_bytes + limits.envelope_bytes,
        "snapshot_body_bytes": limits.snapshot_bytes + limits.envelope_bytes,
        "idempotency": { "required": config.idempotency.required },
        "idempotency_hours": config.idempotency.lifetime_seconds / 3_600,
        "auth": { "basic": config.auth.basic }, "certificates": config.tls.takes_certificates(),
        "artifacts": { "open": config.artifacts.open }, "sealed_only": !config.artifacts.open,
        "compact_decisions": config.decisions.compact != CompactRule::Refuse,
        "full_only": config.decisions.compact == CompactRule::Refuse,
        "pairing": { "required": config.pairing.required }, "pending_share": limits.pending_per_enforcer(),
        "page_version": page().version, "upstream_tls": config.tls.mode == TlsMode::Upstream,
    })
}

fn with_constants(section: &impl Serialize, constants: Value) -> Value {
    let mut values = serde_json::to_value(section).unwrap_or_default();
    if let (Some(values), Value::Object(constants)) = (values.as_object_mut(), constants) {
        values.extend(constants);
    }
    values
}

/// The hashes of the examples that carry their own, by the example's name.
fn hashes(examples: &Value, values: &Value) -> Value {
    let hash = |(name, example): (&String, &Value)| {
        let own = format!("{{{{hash.{name}}}}}");
        let (member, _) = example
            .as_object()?
            .iter()
            .find(|(_, text)| **text == own)?;
        let text = fill(example, values).to_string();
        let node = json::parse(text.as_bytes()).ok()?;
        let canonical = canonical_without(node.as_object()?, member);
        let hash = Sha256Hex::of(canonical.as_bytes()).to_string();
        Some((name.clone(), Value::from(hash)))
    };
    let examples = examples.as_object().into_iter().flatten();
    examples.filter_map(hash).collect::<Map<_, _>>().into()
}
