//! Completes the operations of the document: the errors that they list become responses, one for each status, shared where
//! they are the same.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::template::fill;
use crate::protocol::error::CodeNames;

/// Errors by their name in the catalogue, in the order in which an operation lists them.
type Errors = Vec<(String, Value)>;

struct Catalogue<'n> {
    errors: Value,
    headers: Value,
    /// An error as an Envelope, with a placeholder for its body.
    envelope: &'n Value,
    names: &'n CodeNames,
    responses: Map<String, Value>,
}

pub fn complete(openapi: &mut Value, names: &CodeNames, envelope: &Value) {
    let mut catalogue = Catalogue {
        errors: openapi["x-errors"].take(),
        headers: openapi["components"]["headers"].clone(),
        envelope,
        names,
        responses: Map::new(),
    };
    let mut ids = Vec::new();
    let paths = openapi["paths"].as_object_mut().into_iter();
    let paths = paths.flat_map(Map::values_mut);
    let operations = paths.filter_map(Value::as_object_mut);
    for operation in operations.flat_map(Map::values_mut) {
        catalogue.complete(operation);
        // Two spellings of a path are two operations.
        if ids.contains(&operation["operationId"]) {
            let id = operation["operationId"].as_str().unwrap_or_default();
            operation["operationId"] = format!("{id}Alias").into();
        }
        ids.push(operation["operationId"].clone());
    }
    // No operation refuses its own method, so these are listed here.
    for framing in ["envelope", "plain"] {
        let mut errors = Errors::new();
        catalogue.find(&json!("methodNotAllowed"), &Value::Null, &mut errors);
        catalogue.share(framing, "405", &errors);
    }
    openapi["components"]["responses"] = catalogue.responses.into();
    remove_extensions(openapi);
}

fn remove_extensions(value: &mut Value) {
    if let Some(members) = value.as_object_mut() {
        members.retain(|name, _| !name.starts_with("x-"));
    }
}

fn request_id() -> Value {
    json!({ "$ref": "#/components/headers/X-Request-Id" })
}

impl Catalogue<'_> {
    fn complete(&mut self, operation: &mut Value) {
        let framing = operation["x-framing"].as_str().unwrap_or("plain");
        let framing = framing.to_owned();
        let own = json!({
            "role": operation["x-role"], "rate": operation["x-rate"], "body_bytes": operation["x-body-bytes"],
        });
        let mut errors = Errors::new();
        self.find(&operation["x-errors"], &own, &mut errors);
        let mut by_status = BTreeMap::<String, Errors>::new();
        for error in errors {
            let status = error.1["status"].to_string();
            by_status.entry(status).or_default().push(error);
        }
        let responses = operation["responses"].as_object_mut();
        for response in responses.into_iter().flat_map(Map::values_mut) {
            response["headers"]["X-Request-Id"] = request_id();
        }
        for (status, errors) in by_status {
            operation["responses"][&status] = self.share(&framing, &status, &errors);
        }
        if let Some(content) = operation.pointer_mut("/requestBody/content") {
            content[&self.names.media_type] = content["application/json"].clone();
        }
        if let Some(role) = operation["x-role"].as_str() {
            let text = operation["description"].as_str().unwrap_or_default();
            operation["description"] = format!("For {role}. {text}").trim_end().into();
        }
        remove_extensions(operation);
    }

    /// Adds the errors that are listed, with `values` for their placeholders.
    fn find(&self, listed: &Value, values: &Value, found: &mut Errors) {
        match listed {
            Value::Array(all) => all.iter().for_each(|one| self.find(one, values, found)),
            Value::Object(with_values) => {
                for (name, own) in with_values {
                    self.find(&name.as_str().into(), own, found);
                }
            }
            Value::String(name) => match &self.errors[name] {
                group @ Value::Array(_) => self.find(group, values, found),
                error @ Value::Object(_) => found.push((name.clone(), fill(error, values))),
                // One that does not apply to this node.
                _ => {}
            },
            _ => {}
        }
    }

    /// A reference to the response with these errors.
    fn share(&mut self, framing: &str, status: &str, errors: &Errors) -> Value {
        let mut codes: Vec<&str> = Vec::new();
        for code in errors
            .iter()
            .filter_map(|(_, error)| error["code"].as_str())
        {
            if !codes.contains(&code) {
                codes.push(code);
            }
        }
        let response = self.response(framing, &codes, errors);
        let base = format!("{framing}.{status}.{}", codes.join("."));
        let (mut name, mut count) = (base.clone(), 1);
        while *self
            .responses
            .entry(&name)
            .or_insert_with(|| response.clone())
            != response
        {
            count += 1;
            name = format!("{base}.{count}");
        }
        json!({ "$ref": format!("#/components/responses/{name}") })
    }

    fn response(&self, framing: &str, codes: &[&str], errors: &Errors) -> Value {
        let prefixed = |code: &str| format!("{}{code}", self.names.error_prefix);
        let codes: Vec<_> = codes.iter().map(|code| prefixed(code)).collect();
        let retryable = errors.iter().all(|(_, error)| error["retryable"] == true);
        let own = json!({ "code": { "enum": codes }, "retryable": { "const": retryable } });
        let is_envelope = framing == "envelope";
        let (media, schema) = if is_envelope {
            let own = json!({ "body": { "properties": own } });
            let schema = json!({ "$ref": "#/components/schemas/ErrorEnvelope", "properties": own });
            (self.names.media_type.as_str(), schema)
        } else {
            let schema = json!({ "$ref": "#/components/schemas/Error", "properties": own });
            ("application/json", schema)
        };
        let (mut examples, mut messages) = (Map::new(), Vec::new());
        for (name, error) in errors {
            let mut body =
                json!({ "message": error["message"], "retryable": error["retryable"] == true });
            body["code"] = prefixed(error["code"].as_str().unwrap_or_default()).into();
            if error["details"].is_object() {
                body["details"] = error["details"].clone();
            }
            if is_envelope {
                body["requestId"] = self.envelope["requestId"].clone();
                body = fill(self.envelope, &json!({ "body": body }));
            }
            examples.insert(name.clone(), json!({ "value": body }));
            messages.extend(error["message"].as_str());
        }
        json!({
            "description": messages.join("; "), "headers": self.headers(errors),
            "content": { media: { "schema": schema, "examples": examples } },
        })
    }

    /// The headers that go with these errors; those that all of them set are always there.
    fn headers(&self, errors: &Errors) -> Value {
        let mut headers = json!({ "X-Request-Id": request_id() });
        for (name, header) in self.headers.as_object().into_iter().flatten() {
            let sets = |(_, error): &(String, Value)| {
                let mut names = error["headers"].as_array().into_iter().flatten();
                names.any(|one| one == name)
            };
            if errors.iter().any(sets) {
                headers[name] = header.clone();
                headers[name]["required"] = errors.iter().all(sets).into();
            }
        }
        headers
    }
}
