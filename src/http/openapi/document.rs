//! Makes the documents of a node from openapi.yaml and asyncapi.yaml. The comment at the top of openapi.yaml says what is
//! replaced.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use time::Duration;

use super::operations;
use super::template::fill;
use crate::config::{Config, TlsMode};
use crate::http::page_settings;
use crate::http::status::described;
use crate::page::page;
use crate::protocol::canonical::{Sha256Hex, canonical_without};
use crate::protocol::decision::CompactRule;
use crate::protocol::error::CodeNames;
use crate::protocol::json;
use crate::protocol::timestamp::Timestamp;

/// How long the exchanges of examples last, unless they may not last that long.
const EXAMPLE_SECONDS: u64 = 24 * 3_600;

static OPENAPI: LazyLock<Value> =
    LazyLock::new(|| read(include_str!(concat!(env!("OUT_DIR"), "/openapi.json"))));
/// With the schemas of `OPENAPI` as its own.
static ASYNCAPI: LazyLock<Value> = LazyLock::new(|| {
    let json = include_str!(concat!(env!("OUT_DIR"), "/asyncapi.json"));
    read(&json.replace("./openapi.yaml#", "#"))
});

/// `build.rs` wrote it, so it can be read.
fn read(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_default()
}

pub struct Documents {
    pub openapi: Value,
    pub asyncapi: Value,
}

impl Documents {
    /// The documents of a node, with examples that it accepts for the next hour.
    pub fn new(config: &Config, names: &CodeNames, hour: Timestamp) -> Self {
        let mut values = values(config, names, hour);
        values["hash"] = hashes(&OPENAPI["x-examples"], &values);
        let examples = fill(&OPENAPI["x-examples"], &values);
        let mut openapi = fill(&OPENAPI, &values);
        operations::complete(&mut openapi, names, &examples["errorEnvelope"]);
        let schemas = openapi["components"]["schemas"].clone();
        close(&mut openapi, &schemas);
        values["examples"] = examples;
        let mut asyncapi = fill(&ASYNCAPI, &values);
        asyncapi["components"]["schemas"] = openapi["components"]["schemas"].clone();
        Self { openapi, asyncapi }
    }
}

/// What placeholders stand for.
fn values(config: &Config, names: &CodeNames, hour: Timestamp) -> Value {
    let seconds = config.artifacts.max_lifetime_seconds.min(EXAMPLE_SECONDS);
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
        "limits": limits, "push": config.push,
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

/// Turns each schema that refines another into one closed object, which client generators read better.
fn close(value: &mut Value, schemas: &Value) {
    if value.get("unevaluatedProperties").is_some() {
        let own = value.take();
        let name = own["$ref"]
            .as_str()
            .and_then(|path| path.rsplit('/').next());
        value.clone_from(&schemas[name.unwrap_or_default()]);
        value["additionalProperties"] = false.into();
        let refers = |name: &str| ["$ref", "unevaluatedProperties"].contains(&name);
        let members = own.as_object().into_iter().flatten();
        for (name, member) in members.filter(|(name, _)| !refers(name)) {
            match (name.as_str(), &mut value[name], member) {
                ("properties", Value::Object(all), Value::Object(own)) => all.extend(own.clone()),
                ("required", Value::Array(all), Value::Array(own)) => all.extend(own.clone()),
                (_, base, own) => base.clone_from(own),
            }
        }
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| close(item, schemas)),
        Value::Object(all) => all.values_mut().for_each(|member| close(member, schemas)),
        _ => {}
    }
}
