//! Turns the `x-errors` of each operation into responses, one for each status, that are shared where they are the same.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::document::{fill, operations};
use crate::protocol::error::Names;

/// The errors of a response by the name in the catalogue, in the order in which the operation lists them.
type Errors = Vec<(String, Value)>;

struct Catalogue<'n> {
    errors: Value,
    headers: Value,
    /// An error as an Envelope, with a placeholder for its body.
    envelope: &'n Value,
    names: &'n Names,
    responses: Map<String, Value>,
}

/// Completes the operations of a document: their errors, the headers of their answers, who may call them.
pub fn expand(openapi: &mut Value, names: &Names, envelope: &Value) {
    let mut catalogue = Catalogue {
        errors: openapi["x-errors"].take(),
        headers: openapi["components"]["headers"].clone(),
        envelope,
        names,
        responses: Map::new(),
    };
    let mut ids = Vec::new();
    for operation in operations(&mut openapi["paths"]) {
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
    if let Some(members) = openapi.as_object_mut() {
        members.retain(|name, _| !name.starts_with("x-"));
    }
}

impl Catalogue<'_> {
    fn complete(&mut self, operation: &mut Value) {
        let framing = operation["x-framing"]
            .as_str()
            .unwrap_or("plain")
            .to_owned();
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
            response["headers"]["X-Request-Id"] =
                json!({ "$ref": "#/components/headers/X-Request-Id" });
        }
        for (status, errors) in by_status {
            operation["responses"][&status] = self.share(&framing, &status, &errors);
        }
        if let Some(role) = operation["x-role"].as_str() {
            let text = operation["description"].as_str().unwrap_or_default();
            operation["description"] = format!("For {role}. {text}").trim_end().into();
        }
        if let Some(members) = operation.as_object_mut() {
            members.retain(|name, _| !name.starts_with("x-"));
        }
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
        let mut codes = Vec::new();
        for (_, error) in errors {
            let code = error["code"].as_str().unwrap_or_default();
            if !codes.contains(&code) {
                codes.push(code);
            }
        }
        let response = self.response(framing, &codes, errors);
        let base = format!("{framing}.{status}.{}", codes.join("."));
        let mut name = base.clone();
        let mut count = 1;
        while self
            .responses
            .get(&name)
            .is_some_and(|other| *other != response)
        {
            count += 1;
            name = format!("{base}.{count}");
        }
        let reference = json!({ "$ref": format!("#/components/responses/{name}") });
        self.responses.insert(name, response);
        reference
    }

    fn response(&self, framing: &str, codes: &[&str], errors: &Errors) -> Value {
        let codes: Vec<_> = codes
            .iter()
            .map(|code| format!("{}{code}", self.names.error_prefix))
            .collect();
        let retryable = errors.iter().all(|(_, error)| error["retryable"] == true);
        let own = json!({ "code": { "enum": codes }, "retryable": { "const": retryable } });
        let (media, schema) = if framing == "envelope" {
            let own = json!({ "body": { "properties": own } });
            let schema = json!({ "$ref": "#/components/schemas/ErrorEnvelope", "properties": own });
            (self.names.media_type.as_str(), schema)
        } else {
            let schema = json!({ "$ref": "#/components/schemas/Error", "properties": own });
            ("application/json", schema)
        };
        let example = |(name, error): &(String, Value)| {
            (
                name.clone(),
                json!({ "value": self.example(framing, error) }),
            )
        };
        let examples: Map<_, _> = errors.iter().map(example).collect();
        let messages = errors
            .iter()
            .filter_map(|(_, error)| error["message"].as_str());
        json!({
            "description": messages.collect::<Vec<_>>().join("; "),
            "headers": self.headers(errors),
            "content": { media: { "schema": schema, "examples": examples } },
        })
    }

    fn example(&self, framing: &str, error: &Value) -> Value {
        let code = error["code"].as_str().unwrap_or_default();
        let mut body = json!({
            "code": format!("{}{code}", self.names.error_prefix), "message": error["message"],
            "retryable": error["retryable"] == true,
        });
        if error["details"].is_object() {
            body["details"] = error["details"].clone();
        }
        if framing == "envelope" {
            body["requestId"] = self.envelope["requestId"].clone();
            return fill(self.envelope, &json!({ "body": body }));
        }
        body
    }

    /// The headers that go with these errors; those that all of them set are always there.
    fn headers(&self, errors: &Errors) -> Map<String, Value> {
        let mut headers = Map::new();
        headers.insert(
            "X-Request-Id".to_owned(),
            json!({ "$ref": "#/components/headers/X-Request-Id" }),
        );
        let sets = |error: &Value, name: &str| {
            let mut names = error["headers"].as_array().into_iter().flatten();
            names.any(|one| one == name)
        };
        for (name, header) in self.headers.as_object().into_iter().flatten() {
            if errors.iter().any(|(_, error)| sets(error, name)) {
                let mut header = header.clone();
                header["required"] = errors.iter().all(|(_, error)| sets(error, name)).into();
                headers.insert(name.clone(), header);
            }
        }
        headers
    }
}
