//! `openapi.json` and `asyncapi.json`, which a node serves, are made from the YAML files beside
//! them. The comment at the top of openapi.yaml says what is replaced. `make api-documents` writes
//! the JSON files; without it, this test compares them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize as _;
use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Map, Value, json};

/// Errors by their name in the catalogue, in the order in which an operation lists them.
type Errors = Vec<(String, Value)>;

#[test]
fn the_json_documents_are_those_of_the_yaml_sources() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/http/api/openapi");
    let source = |name: &str| -> Value {
        let text = std::fs::read_to_string(format!("{directory}/{name}.yaml")).unwrap();
        serde_saphyr::from_str(&text).unwrap()
    };
    for (name, made) in made(source("openapi"), &source("asyncapi")) {
        let path = format!("{directory}/{name}.json");
        let made = printed(&made);
        if std::env::var_os("WRITE_API_DOCUMENTS").is_some() {
            std::fs::write(&path, &made).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(committed == made, "run `make api-documents`: {path}");
    }
}

/// One space for each level keeps the program that holds it small.
pub fn printed(document: &Value) -> String {
    let mut text = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut text, PrettyFormatter::with_indent(b" "));
    document.serialize(&mut serializer).unwrap();
    text.push(b'\n');
    String::from_utf8(text).unwrap()
}

/// Both documents as they are committed: a node still fills in its own values.
pub fn made(mut openapi: Value, asyncapi: &Value) -> [(&'static str, Value); 2] {
    let examples = openapi["x-examples"].take();
    ErrorCatalogue::complete(&mut openapi, &examples["errorEnvelope"]);
    let schemas = openapi["components"]["schemas"].clone();
    close(&mut openapi, &schemas);
    // Those that carry their own hash: a node computes it, since it covers times and names of the
    // node.
    let carries_hash = |(name, example): &(&String, &Value)| {
        let own = format!("{{{{hash.{name}}}}}");
        let mut members = example.as_object().into_iter().flat_map(Map::values);
        members.any(|member| *member == own)
    };
    let all = examples.as_object().unwrap();
    let hashed = all.iter().filter(carries_hash);
    let hashed = hashed.map(|(name, example)| (name.clone(), example.clone()));
    openapi["x-examples"] = hashed.collect::<Map<_, _>>().into();

    let named = all
        .iter()
        .map(|(name, example)| (format!("examples.{name}"), example.clone()));
    let mut asyncapi = replaced(asyncapi, &named.collect::<Map<_, _>>().into());
    point_at_own_schemas(&mut asyncapi);
    [("openapi", openapi), ("asyncapi", asyncapi)]
}

/// The served `asyncapi.json` has the schemas of `openapi.yaml` as its own.
fn point_at_own_schemas(asyncapi: &mut Value) {
    let text = asyncapi.to_string().replace("./openapi.yaml#", "#");
    *asyncapi = serde_json::from_str(&text).unwrap();
}

/// A copy with the placeholders that `values` knows replaced. A text that is one placeholder
/// becomes its value, of any type.
fn replaced(template: &Value, values: &Value) -> Value {
    let mut text = template.to_string();
    let values = values.as_object().into_iter().flatten();
    for (name, value) in values.filter(|(_, value)| !value.is_null()) {
        let value = value.to_string();
        text = text.replace(&format!("\"{{{{{name}}}}}\""), &value);
        text = text.replace(&format!("{{{{{name}}}}}"), value.trim_matches('"'));
    }
    serde_json::from_str(&text).unwrap()
}

/// Turns each schema that refines another into one closed object, which client generators read
/// better.
fn close(value: &mut Value, schemas: &Value) {
    if value.get("unevaluatedProperties").is_some() {
        let own = value.take();
        let name = own["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
        value.clone_from(&schemas[name]);
        value["additionalProperties"] = false.into();
        let refers = |name: &str| ["$ref", "unevaluatedProperties"].contains(&name);
        let members = own.as_object().unwrap().iter();
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

fn remove_extensions(value: &mut Value) {
    let members = value.as_object_mut().unwrap();
    members.retain(|name, _| !name.starts_with("x-"));
}

fn request_id() -> Value {
    json!({ "$ref": "#/components/headers/X-Request-Id" })
}

/// The errors that operations list become responses, one for each status, shared where they are the
/// same.
struct ErrorCatalogue<'e> {
    errors: Value,
    headers: Value,
    /// An error as an Envelope, with a placeholder for its body.
    envelope: &'e Value,
    responses: Map<String, Value>,
}

impl<'e> ErrorCatalogue<'e> {
    fn complete(openapi: &mut Value, envelope: &'e Value) {
        let mut catalogue = Self {
            errors: openapi["x-errors"].take(),
            headers: openapi["components"]["headers"].clone(),
            envelope,
            responses: Map::new(),
        };
        let mut ids = Vec::new();
        let paths = openapi["paths"].as_object_mut().unwrap().values_mut();
        for operation in paths.flat_map(|path| path.as_object_mut().unwrap().values_mut()) {
            catalogue.complete_operation(operation);
            // Two spellings of a path are two operations.
            if ids.contains(&operation["operationId"]) {
                let id = operation["operationId"].as_str().unwrap();
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

    fn complete_operation(&mut self, operation: &mut Value) {
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
            content["{{media_type}}"] = content["application/json"].clone();
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
                error @ Value::Object(_) => found.push((name.clone(), replaced(error, values))),
                other => panic!("the error {name} is {other}"),
            },
            other => panic!("{other} is no error"),
        }
    }

    /// A reference to the response with these errors.
    fn share(&mut self, framing: &str, status: &str, errors: &Errors) -> Value {
        let mut codes: Vec<&str> = Vec::new();
        for (_, error) in errors {
            let code = error["code"].as_str().unwrap();
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
            name.clone_from(&base);
            write!(name, ".{count}").unwrap();
        }
        let mut reference = json!({ "$ref": format!("#/components/responses/{name}") });
        if let Some(condition) = response.get("x-if") {
            reference["x-if"] = condition.clone();
        }
        reference
    }

    /// The example of an error with `x-if` is there only where it applies; its code is always
    /// listed. A response that has no other error is there only where it applies.
    fn response(&self, framing: &str, codes: &[&str], errors: &Errors) -> Value {
        let prefixed = |code: &str| format!("{{{{error_prefix}}}}{code}");
        let codes: Vec<_> = codes.iter().map(|code| prefixed(code)).collect();
        let retryable = errors.iter().all(|(_, error)| error["retryable"] == true);
        let own = json!({ "code": { "enum": codes }, "retryable": { "const": retryable } });
        let is_envelope = framing == "envelope";
        let (media, schema) = if is_envelope {
            let own = json!({ "body": { "properties": own } });
            let schema = json!({ "$ref": "#/components/schemas/ErrorEnvelope", "properties": own });
            ("{{media_type}}", schema)
        } else {
            let schema = json!({ "$ref": "#/components/schemas/Error", "properties": own });
            ("application/json", schema)
        };
        let (mut examples, mut messages) = (Map::new(), Vec::new());
        for (name, error) in errors {
            let mut body =
                json!({ "message": error["message"], "retryable": error["retryable"] == true });
            body["code"] = prefixed(error["code"].as_str().unwrap()).into();
            if error["details"].is_object() {
                body["details"] = error["details"].clone();
            }
            if is_envelope {
                body["requestId"] = self.envelope["requestId"].clone();
                body = replaced(self.envelope, &json!({ "body": body }));
            }
            let mut example = json!({ "value": body });
            match error.get("x-if") {
                Some(condition) => example["x-if"] = condition.clone(),
                None => messages.extend(error["message"].as_str()),
            }
            examples.insert(name.clone(), example);
        }
        let mut response = json!({
            "description": messages.join("; "), "headers": self.headers(errors),
            "content": { media: { "schema": schema, "examples": examples } },
        });
        if messages.is_empty() {
            let [(_, error)] = errors.as_slice() else {
                panic!("several errors that a node may not have: {errors:?}");
            };
            response["description"] = error["message"].clone();
            response["x-if"] = error["x-if"].clone();
        }
        response
    }

    /// The headers that go with these errors; those that all of them set are always there.
    fn headers(&self, errors: &Errors) -> Value {
        let mut headers = json!({ "X-Request-Id": request_id() });
        for (name, header) in self.headers.as_object().unwrap() {
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
