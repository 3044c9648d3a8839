//! Puts the document together, out of the table of routes, the schemas, and the catalogue of errors.

use std::collections::{BTreeMap, HashSet};

use axum::response::Response;
use serde_json::{Map, Value, json};

use super::Context;
use super::bodies::{self, envelope};
use super::messages::{self, messages};
use super::operation::Operation;
use super::routes::{Frame, Listed};
use super::schema::{basics, meaning, text};
use super::tag::Tag;
use crate::config::TlsMode;
use crate::http::error::{TransportError, add_headers};
use crate::protocol::error::Description;

const ABOUT: &str = "\
An approval gateway for AI agents: an enforcer submits an artifact, an approver decides, the signed decision is delivered.

Bodies are strict JSON: what has two readings (repeated names, lone surrogates, integers beyond 2^53−1) is refused, and so are \
members that are not listed here. Calls marked as Envelopes answer in the protocol's media type; all others in plain JSON, \
their errors included. Every answer carries `X-Request-Id`. A path that exists answers other methods than those listed with \
405 and `Allow` (see `components`); HEAD works where GET does.

`/docs` describes the messages over event streams and WebSockets.";

/// The whole document.
pub fn document(context: &Context<'_>, table: &[Listed]) -> Value {
    let mut refusals = Map::new();
    let mut paths = Map::new();
    let mut names = HashSet::new();
    for listed in table {
        let operation = describe(context, listed);
        let operation_id = operation.id;
        let mut printed = print(context, listed, operation, &mut refusals);
        let path = paths.entry(listed.path).or_insert_with(|| json!({}));
        // Two spellings of a path are two operations.
        if !names.insert(operation_id) {
            printed["operationId"] = format!("{operation_id}Alias").into();
        }
        path[listed.method] = printed;
    }
    for frame in [Frame::Envelope, Frame::Plain] {
        let (name, printed) = other_methods(context, frame);
        refusals.insert(name, printed);
    }
    let tags: Vec<_> = Tag::ALL
        .map(|tag| json!({ "name": tag.words().0, "description": tag.words().1 }))
        .into();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Countersign", "version": env!("CARGO_PKG_VERSION"), "description": ABOUT,
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "servers": [{ "url": "/" }],
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": schemas(context),
            "responses": refusals,
            "headers": { "X-Request-Id": {
                "description": "names this request, also in the gateway's logs", "required": true,
                "schema": { "type": "string", "format": "uuid" },
            } },
            "securitySchemes": schemes(context),
        },
    })
}

/// What a path answers to other methods than those that are listed.
fn other_methods(context: &Context<'_>, frame: Frame) -> (String, Value) {
    let described = [TransportError::MethodNotAllowed.describe()];
    let mut printed = refusal(context, frame, &described);
    printed["headers"]["Allow"] = json!({
        "description": "the methods that the path takes", "required": true, "schema": text(),
    });
    (response_name(frame, 405, &described), printed)
}

/// A call, with the refusals that follow from its method and the node's configuration.
pub fn describe(context: &Context<'_>, listed: &Listed) -> Operation {
    let mut operation = (listed.describe)(context);
    if !listed.only_looks() {
        operation = operation.refuses_in_transport(TransportError::ForeignOrigin);
    }
    let is_health = ["/livez", "/readyz"].contains(&listed.path);
    if context.config.tls.mode == TlsMode::Upstream && !is_health {
        operation = operation.refuses_in_transport(TransportError::Unencrypted {
            expected: "X-Forwarded-Proto: https from the proxy",
        });
    }
    operation
}

fn print(
    context: &Context<'_>,
    listed: &Listed,
    operation: Operation,
    refusals: &mut Map<String, Value>,
) -> Value {
    let mut responses = Map::new();
    for answer in operation.answers {
        let status = answer.status.to_string();
        responses.insert(status, answer.print(context, listed.frame));
    }
    let mut by_status: BTreeMap<u16, Vec<Description>> = BTreeMap::new();
    for described in operation.refusals {
        by_status
            .entry(described.status)
            .or_default()
            .push(described);
    }
    for (status, described) in by_status {
        let printed = refusal(context, listed.frame, &described);
        let name = shared_name(refusals, listed.frame, status, &described, printed);
        let reference = json!({ "$ref": format!("#/components/responses/{name}") });
        responses.insert(status.to_string(), reference);
    }
    let description = match operation.role {
        Some(role) => format!("For {role}. {}", operation.description),
        None => operation.description,
    };
    let mut printed = json!({
        "operationId": operation.id, "tags": [operation.tag.words().0], "summary": operation.summary,
        "description": description.trim_end(), "responses": responses,
        "security": if operation.role.is_some() { security(context) } else { json!([]) },
    });
    if !operation.parameters.is_empty() {
        printed["parameters"] = operation.parameters.into();
    }
    if let Some(body) = operation.body {
        printed["requestBody"] = body.print(context);
    }
    printed
}

/// The name under which a refusal is shared: the same for the same content.
fn shared_name(
    refusals: &mut Map<String, Value>,
    frame: Frame,
    status: u16,
    described: &[Description],
    printed: Value,
) -> String {
    let base = response_name(frame, status, described);
    let mut name = base.clone();
    let mut count = 1;
    while refusals.get(&name).is_some_and(|other| *other != printed) {
        count += 1;
        name = format!("{base}.{count}");
    }
    refusals.insert(name.clone(), printed);
    name
}

fn response_name(frame: Frame, status: u16, described: &[Description]) -> String {
    let frame = match frame {
        Frame::Envelope => "envelope",
        Frame::Plain => "plain",
    };
    format!("{frame}.{status}.{}", codes(described).join("."))
}

/// The codes of some refusals, each once, in their order.
fn codes(described: &[Description]) -> Vec<&'static str> {
    let mut codes: Vec<&'static str> = Vec::new();
    for one in described {
        if !codes.contains(&one.code.as_str()) {
            codes.push(one.code.as_str());
        }
    }
    codes
}

/// The refusals of one status.
fn refusal(context: &Context<'_>, frame: Frame, described: &[Description]) -> Value {
    let names = context.names;
    let mut examples = Map::new();
    let mut sentences: Vec<&str> = Vec::new();
    for one in described {
        if sentences.contains(&one.message.as_str()) {
            continue;
        }
        sentences.push(&one.message);
        let body = match frame {
            Frame::Plain => one.body(names, None),
            Frame::Envelope => {
                let body = one.body(names, Some(bodies::DECIDED));
                envelope::answer(context, "error", bodies::DECIDED, &body)
            }
        };
        let mut name = one.code.as_str().to_owned();
        while examples.contains_key(&name) {
            name.push_str("-other");
        }
        examples.insert(name, json!({ "value": body }));
    }
    let allowed: Vec<_> = (codes(described).iter())
        .map(|code| format!("{}{code}", names.error_prefix))
        .collect();
    let retryable = described.iter().all(|one| one.code.retryable());
    let error = json!({ "code": { "enum": allowed }, "retryable": { "const": retryable } });
    let schema = match frame {
        Frame::Plain => json!({ "$ref": "#/components/schemas/Error", "properties": error }),
        Frame::Envelope => json!({
            "$ref": "#/components/schemas/ErrorEnvelope",
            "properties": { "body": { "properties": error } },
        }),
    };
    json!({
        "description": sentences.join("; "),
        "headers": headers(context, described),
        "content": { context.media(frame): { "schema": schema, "examples": examples } },
    })
}

/// The headers that go with some refusals: those that all of them set are always there.
fn headers(context: &Context<'_>, described: &[Description]) -> Value {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for one in described {
        let mut response = Response::default();
        add_headers(one, &mut response, context.config.auth.basic);
        for name in response.headers().keys() {
            *counts.entry(name.to_string()).or_default() += 1;
        }
    }
    let mut headers = Map::new();
    headers.insert(
        "X-Request-Id".into(),
        json!({ "$ref": "#/components/headers/X-Request-Id" }),
    );
    for (name, count) in counts {
        let (name, description, schema) = match name.as_str() {
            "retry-after" => (
                "Retry-After",
                "how many seconds to wait",
                json!({ "type": "integer", "minimum": 0 }),
            ),
            "ratelimit" => (
                "RateLimit",
                "what is left of the quota, and when there is more",
                text(),
            ),
            "ratelimit-policy" => ("RateLimit-Policy", "the quota that was met", text()),
            "www-authenticate" => ("WWW-Authenticate", "how to authenticate", text()),
            other => (other, "", text()),
        };
        let always = count == described.len();
        headers.insert(
            name.to_owned(),
            json!({ "description": description, "required": always, "schema": schema }),
        );
    }
    headers.into()
}

/// The schemas that calls and messages share.
pub fn schemas(context: &Context<'_>) -> Map<String, Value> {
    let mut schemas: Map<_, _> = basics()
        .into_iter()
        .chain(bodies::small::shared_schemas())
        .chain(bodies::artifact::shared_schemas(context))
        .chain(bodies::decision::shared_schemas())
        .chain(bodies::prompt::shared_schemas(context))
        .chain(bodies::session::shared_schemas(context))
        .chain([("ApprovalRequest", messages::approval_request(context))])
        .map(|(name, schema)| (name.to_owned(), schema))
        .collect();
    for message in messages(context) {
        let name = message.schema_name();
        let mut schema = meaning(message.schema, message.text);
        schema["examples"] = json!([message.example]);
        schemas.insert(name, schema);
    }
    schemas
}

fn schemes(context: &Context<'_>) -> Value {
    let mut schemes = json!({
        "bearer": { "type": "http", "scheme": "bearer", "description": "An API key, or a token where those are on." },
        "apiKey": { "type": "apiKey", "in": "header", "name": "X-API-Key" },
    });
    if context.config.auth.basic {
        schemes["basic"] = json!({
            "type": "http", "scheme": "basic", "description": "A credential's id, and its secret or whole key.",
        });
    }
    if context.config.tls.takes_certificates() {
        schemes["certificate"] = json!({
            "type": "mutualTLS", "description": "A client certificate whose thumbprint is bound.",
        });
    }
    schemes
}

/// Any one of the schemes.
fn security(context: &Context<'_>) -> Value {
    let schemes = schemes(context);
    let names = schemes.as_object().into_iter().flat_map(Map::keys);
    names.map(|name| json!({ name: [] })).collect()
}
