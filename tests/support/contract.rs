//! A node's description of its own API, and whether its answers keep to it.

use std::collections::HashMap;
use std::sync::Mutex;

use jsonschema::Validator;
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::{Answer, Client};

/// Headers of ours that an answer has only where the document says so.
const OWN_HEADERS: [&str; 7] = [
    "exchange-state",
    "idempotency-replayed",
    "retry-after",
    "ratelimit",
    "ratelimit-policy",
    "www-authenticate",
    "allow",
];

/// A node's document.
pub struct Contract {
    /// `/openapi.json`, as the node printed it.
    pub document: Value,
    /// `/asyncapi.json`, as the node printed it.
    pub messages: Value,
    /// Schemas that have been used, by their text.
    compiled: Mutex<HashMap<String, Validator>>,
}

/// One call of the document.
#[derive(Clone)]
pub struct Operation {
    pub method: Method,
    pub path: String,
    pub value: Value,
}

impl std::fmt::Debug for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

impl Operation {
    /// Its name.
    pub fn id(&self) -> &str {
        self.value["operationId"].as_str().expect("a name")
    }

    /// Its parameters that stand in `place`.
    pub fn parameters(&self, place: &str) -> Vec<&Value> {
        let all = self.value["parameters"].as_array().into_iter().flatten();
        all.filter(|parameter| parameter["in"] == place).collect()
    }

    /// Its path, with the examples of its names.
    pub fn example_path(&self) -> String {
        let named = self.parameters("path");
        named.iter().fold(self.path.clone(), |path, parameter| {
            let name = format!("{{{}}}", parameter["name"].as_str().unwrap());
            path.replace(&name, parameter["example"].as_str().unwrap())
        })
    }

    /// The examples of its body, by name.
    pub fn bodies(&self) -> Vec<(String, Value)> {
        let examples = &self.value["requestBody"]["content"]["application/json"]["examples"];
        let examples = examples.as_object().into_iter().flatten();
        examples
            .map(|(name, example)| (name.clone(), example["value"].clone()))
            .collect()
    }
}

impl Contract {
    /// The description of the client's node.
    pub async fn of(client: &Client) -> Self {
        let document = client.get("/openapi.json").await.expect(200).json();
        let messages = client.get("/asyncapi.json").await.expect(200).json();
        Self {
            document,
            messages,
            compiled: Mutex::default(),
        }
    }

    /// Every call, with its parameters looked up.
    pub fn operations(&self) -> Vec<Operation> {
        let mut operations = Vec::new();
        for (path, methods) in self.document["paths"].as_object().unwrap() {
            for (method, value) in methods.as_object().unwrap() {
                let mut value = value.clone();
                let parameters = value["parameters"].as_array_mut();
                for parameter in parameters.into_iter().flatten() {
                    *parameter = self.resolve(parameter).clone();
                }
                operations.push(Operation {
                    method: method.to_uppercase().parse().unwrap(),
                    path: path.clone(),
                    value,
                });
            }
        }
        operations
    }

    /// The call of this name.
    pub fn operation(&self, id: &str) -> Operation {
        let mut all = self.operations().into_iter();
        all.find(|one| one.id() == id)
            .unwrap_or_else(|| panic!("no {id}"))
    }

    /// The call that a request is: of the paths that fit, the one with the fewest names in it.
    fn find(&self, method: &Method, path: &str) -> Operation {
        let path = path.split('?').next().unwrap();
        let parts: Vec<_> = path.split('/').collect();
        let fits = |template: &str| {
            let names: Vec<_> = template.split('/').collect();
            names.len() == parts.len()
                && names
                    .iter()
                    .zip(&parts)
                    .all(|(name, part)| name.starts_with('{') || name == part)
        };
        let fitting = self.operations().into_iter().filter(|one| fits(&one.path));
        let best = fitting
            .filter(|one| one.method == *method)
            .min_by_key(|one| one.path.matches('{').count());
        best.unwrap_or_else(|| panic!("{method} {path} is not in the document"))
    }

    /// A part of the document, looked up where it only names another.
    pub fn resolve<'d>(&'d self, value: &'d Value) -> &'d Value {
        match value["$ref"].as_str() {
            Some(path) => self.document.pointer(path.trim_start_matches('#')).unwrap(),
            None => value,
        }
    }

    /// The faults of a value, by a schema.
    pub fn faults(&self, schema: &Value, value: &Value) -> Option<String> {
        let mut compiled = self.compiled.lock().unwrap();
        let validator = compiled.entry(schema.to_string()).or_insert_with(|| {
            let root = json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "allOf": [schema], "components": self.document["components"],
            });
            let options = jsonschema::options().should_validate_formats(true);
            options.build(&root).expect("a schema")
        });
        let faults: Vec<_> = validator
            .iter_errors(value)
            .map(|fault| format!("{} at {:?}", fault, fault.instance_path().to_string()))
            .collect();
        (!faults.is_empty()).then(|| faults.join("; "))
    }

    /// The faults of a message, by `/asyncapi.json` about the one with this id.
    pub fn message_faults(&self, id: &str, message: &Value) -> Option<String> {
        let described = &self.messages["components"]["messages"][id];
        assert!(described.is_object(), "no message {id}");
        self.faults(&described["payload"], message)
    }

    /// Checks an answer against the document.
    pub fn check(&self, method: &Method, path: &str, answer: &Answer) -> Result<(), String> {
        let operation = self.find(method, path);
        let about = format!("{method} {path} answered {answer:?}");
        let response = &operation.value["responses"][answer.status.to_string()];
        if response.is_null() {
            return Err(format!("an undocumented status: {about}"));
        }
        match self.faults_of(self.resolve(response), answer) {
            None => Ok(()),
            Some(fault) => Err(format!("{fault}: {about}")),
        }
    }

    /// The faults of an answer, by one response of the document.
    pub fn faults_of(&self, response: &Value, answer: &Answer) -> Option<String> {
        let body = self.check_body(response, answer);
        body.and_then(|()| self.check_headers(response, answer))
            .err()
    }

    fn check_body(&self, response: &Value, answer: &Answer) -> Result<(), String> {
        let Some(content) = response["content"].as_object() else {
            return if answer.text.is_empty() {
                Ok(())
            } else {
                Err("an undocumented body".to_owned())
            };
        };
        let kind = answer.header("content-type").unwrap_or_default();
        let kind = kind.split(';').next().unwrap();
        let Some(media) = content.get(kind) else {
            return Err(format!("an undocumented media type {kind}"));
        };
        if !kind.ends_with("json") {
            return Ok(());
        }
        match self.faults(&media["schema"], &answer.json()) {
            Some(faults) => Err(faults),
            None => Ok(()),
        }
    }

    fn check_headers(&self, response: &Value, answer: &Answer) -> Result<(), String> {
        let none = Map::new();
        let documented = response["headers"].as_object().unwrap_or(&none);
        for (name, header) in documented {
            let header = self.resolve(header);
            match answer.header(name) {
                None if header["required"] == true => return Err(format!("no {name}")),
                None => {}
                Some(text) => {
                    let value = match header["schema"]["type"].as_str() {
                        Some("integer") => json!(text.parse::<i64>().ok()),
                        _ => json!(text),
                    };
                    if let Some(faults) = self.faults(&header["schema"], &value) {
                        return Err(format!("{name}: {faults}"));
                    }
                }
            }
        }
        let known = |own: &str| documented.keys().any(|name| name.eq_ignore_ascii_case(own));
        match OWN_HEADERS
            .iter()
            .find(|own| answer.header(own).is_some() && !known(own))
        {
            Some(own) => Err(format!("an undocumented header {own}")),
            None => Ok(()),
        }
    }

    /// Makes a call, and checks that the answer is as documented.
    pub async fn call(
        &self,
        client: &Client,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Answer {
        let call = client.call(method.clone(), path);
        let call = match body {
            Some(body) => call.json(body),
            None => call,
        };
        let answer = call.send().await;
        if let Err(fault) = self.check(&method, path, &answer) {
            panic!("{fault}");
        }
        answer
    }
}
