//! Makes the documents of a node from openapi.yaml and asyncapi.yaml: fills in the node's values, leaves out what does not
//! apply to it, and turns the listed errors into responses. The comment at the top of openapi.yaml says what is replaced.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use time::Duration;

use super::errors;
use crate::config::{Config, TlsMode};
use crate::http::status::described;
use crate::protocol::canonical::{Sha256Hex, canonical_without};
use crate::protocol::error::Names;
use crate::protocol::json;
use crate::protocol::timestamp::Timestamp;

/// How long the exchanges of examples last, unless they may not last that long.
const EXAMPLE_SECONDS: u64 = 24 * 3_600;

static OPENAPI: LazyLock<Value> = LazyLock::new(|| read(include_str!("../openapi.yaml")));
/// With the schemas of `OPENAPI` as its own.
static ASYNCAPI: LazyLock<Value> =
    LazyLock::new(|| read(&include_str!("../asyncapi.yaml").replace("./openapi.yaml#", "#")));

/// The tests read both documents, so a fault shows there.
fn read(yaml: &str) -> Value {
    serde_saphyr::from_str(yaml).unwrap_or_else(|error| {
        tracing::error!(%error, "an embedded document cannot be read");
        Value::Null
    })
}

pub struct Documents {
    pub openapi: Value,
    pub asyncapi: Value,
}

impl Documents {
    /// The documents of a node, with examples that it accepts for the next hour.
    pub fn new(config: &Config, names: &Names, hour: Timestamp) -> Self {
        let mut values = values(config, names, hour);
        values["hash"] = hashes(&OPENAPI["x-examples"], &values);
        let examples = fill(&OPENAPI["x-examples"], &values);
        let mut openapi = fill(&OPENAPI, &values);
        errors::expand(&mut openapi, names, &examples["errorEnvelope"]);
        accept_media_type(&mut openapi["paths"], &names.media_type);
        let schemas = openapi["components"]["schemas"].clone();
        close(&mut openapi, &schemas);
        values["examples"] = examples;
        let mut asyncapi = fill(&ASYNCAPI, &values);
        asyncapi["components"]["schemas"] = openapi["components"]["schemas"].clone();
        Self { openapi, asyncapi }
    }
}

/// What placeholders stand for.
fn values(config: &Config, names: &Names, hour: Timestamp) -> Value {
    let seconds = config.artifacts.max_lifetime_seconds.min(EXAMPLE_SECONDS);
    let later = hour.inner() + Duration::seconds(i64::try_from(seconds).unwrap_or_default());
    let (limits, now) = (&config.limits, hour.to_string());
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "now": now, "later": Timestamp::from(later).to_string(),
        "status": described(config, names, &["apiKey"], "node-1", &now),
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
        "upstream_tls": config.tls.mode == TlsMode::Upstream,
    })
}

/// A copy with the placeholders that `values` knows filled in, without the objects whose `x-if` is not true.
pub fn fill(template: &Value, values: &Value) -> Value {
    match template {
        Value::String(text) => fill_text(text, values),
        Value::Array(items) => {
            let items = items.iter().filter(|item| applies(item, values));
            items.map(|item| fill(item, values)).collect()
        }
        Value::Object(members) => members
            .iter()
            .filter(|(name, member)| *name != "x-if" && applies(member, values))
            .map(|(name, member)| match fill_text(name, values) {
                Value::String(name) => (name, fill(member, values)),
                _ => (name.clone(), fill(member, values)),
            })
            .collect(),
        other => other.clone(),
    }
}

fn applies(value: &Value, values: &Value) -> bool {
    let condition = value.get("x-if").and_then(Value::as_str);
    condition.is_none_or(|name| look_up(name, values) == Some(&Value::Bool(true)))
}

fn look_up<'v>(name: &str, values: &'v Value) -> Option<&'v Value> {
    values.pointer(&format!("/{}", name.replace('.', "/")))
}

/// A text that is one placeholder becomes its value, whatever type that has.
fn fill_text(text: &str, values: &Value) -> Value {
    let mut parts = text.split("{{");
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let found = part.split_once("}}");
        match found.and_then(|(name, rest)| Some((look_up(name, values)?, rest))) {
            Some((value, "")) if text.len() == part.len() + 2 => return value.clone(),
            Some((Value::String(value), rest)) => filled.extend([value.as_str(), rest]),
            Some((value, rest)) => filled.extend([value.to_string().as_str(), rest]),
            None => filled.extend(["{{", part]),
        }
    }
    filled.into()
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

/// Lists the request bodies under the protocol's media type too.
fn accept_media_type(paths: &mut Value, media_type: &str) {
    for operation in operations(paths) {
        if let Some(content) = operation.pointer_mut("/requestBody/content") {
            content[media_type] = content["application/json"].clone();
        }
    }
}

pub fn operations(paths: &mut Value) -> impl Iterator<Item = &mut Value> {
    let methods = paths.as_object_mut().into_iter().flat_map(Map::values_mut);
    methods
        .filter_map(Value::as_object_mut)
        .flat_map(Map::values_mut)
}

/// Turns each schema that refines another into one closed object, which client generators read better.
fn close(value: &mut Value, schemas: &Value) {
    if value.get("unevaluatedProperties").is_some() {
        let refinement = value.take();
        *value = target(&refinement, schemas).clone();
        value["additionalProperties"] = false.into();
        for (name, member) in refinement.as_object().into_iter().flatten() {
            match (name.as_str(), member) {
                ("$ref" | "unevaluatedProperties", _) => {}
                ("properties", Value::Object(own)) => {
                    if let Some(all) = value["properties"].as_object_mut() {
                        all.extend(own.clone());
                    }
                }
                ("required", Value::Array(own)) => {
                    if let Some(all) = value["required"].as_array_mut() {
                        all.extend(own.clone());
                    }
                }
                _ => value[name] = member.clone(),
            }
        }
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| close(item, schemas)),
        Value::Object(members) => members
            .values_mut()
            .for_each(|member| close(member, schemas)),
        _ => {}
    }
}

/// A schema, looked up where it only names another.
fn target<'v>(schema: &'v Value, schemas: &'v Value) -> &'v Value {
    let name = schema["$ref"]
        .as_str()
        .and_then(|path| path.rsplit('/').next());
    name.and_then(|name| schemas.get(name)).unwrap_or(schema)
}
