//! How calls are made up from the document.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::string::string_regex;
use serde_json::{Map, Value};

use crate::access::routes::{ROUTES, Role};
use crate::support::contract::Operation;
use crate::support::{Contract, in_time};

/// A call, made up.
#[derive(Debug, Clone)]
pub struct Made {
    pub operation: Operation,
    pub caller: usize,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<Vec<u8>>,
}

/// Ids that exist, and any others.
fn ids() -> BoxedStrategy<String> {
    let known = [
        "build-bot",
        "alice",
        "session-7",
        "laptop",
        "0192f0c1-7a00-7000-8000-000000000001",
        "0192f0c1-7a00-7000-8000-000000000003",
    ];
    let known = select(known.to_vec()).prop_map(str::to_owned);
    prop_oneof![3 => known, 1 => ".{1,20}", 1 => "[a-zé/%]{1,140}"].boxed()
}

fn times() -> BoxedStrategy<String> {
    let known = vec![
        "2026-03-01T12:00:00Z".to_owned(),
        "2026-03-01T12:00:00.123456789+05:30".to_owned(),
        "1996-12-19T16:39:57-08:00".to_owned(),
        in_time(3_600),
        in_time(400 * 24 * 3_600),
    ];
    select(known).boxed()
}

/// Any JSON.
fn anything() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z.]{0,6}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
    .boxed()
}

/// Values that a schema allows.
fn allowed(contract: &Contract, schema: &Value) -> BoxedStrategy<Value> {
    match schema["$ref"].as_str() {
        Some("#/components/schemas/Id") => return ids().prop_map(Value::from).boxed(),
        Some("#/components/schemas/Timestamp") => return times().prop_map(Value::from).boxed(),
        _ => {}
    }
    let schema = contract.resolve(schema);
    if let Some(value) = schema.get("const") {
        return Just(value.clone()).boxed();
    }
    if let Some(values) = schema["enum"].as_array() {
        return select(values.clone()).boxed();
    }
    if let Some(forms) = schema["oneOf"].as_array() {
        let forms: Vec<_> = forms.iter().map(|form| allowed(contract, form)).collect();
        return proptest::strategy::Union::new(forms).boxed();
    }
    match schema["type"].as_str() {
        Some("string") => strings(schema).prop_map(Value::from).boxed(),
        Some("integer") => (1_i64..400).prop_map(Value::from).boxed(),
        Some("boolean") => any::<bool>().prop_map(Value::from).boxed(),
        Some("array") => {
            let item = allowed(contract, &schema["items"]);
            let most = usize::try_from(schema["maxItems"].as_u64().unwrap_or(3)).unwrap();
            prop::collection::vec(item, 1..=most)
                .prop_map(Value::from)
                .boxed()
        }
        _ => objects(contract, schema),
    }
}

fn strings(schema: &Value) -> BoxedStrategy<String> {
    if let Some(pattern) = schema["pattern"].as_str() {
        let bare = pattern.trim_start_matches('^').trim_end_matches('$');
        return string_regex(bare).expect("a pattern").boxed();
    }
    let least = schema["minLength"].as_u64().unwrap_or(0);
    string_regex(&format!(".{{{least},24}}"))
        .expect("a length")
        .boxed()
}

fn objects(contract: &Contract, schema: &Value) -> BoxedStrategy<Value> {
    let none = Map::new();
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let mut strategy = Just(Map::new()).boxed();
    for (name, member) in schema["properties"].as_object().unwrap_or(&none) {
        let is_required = required.iter().any(|one| one == name.as_str());
        let member = allowed(contract, member);
        let member = if is_required {
            member.prop_map(Some).boxed()
        } else {
            prop::option::weighted(0.3, member).boxed()
        };
        let name = name.clone();
        strategy = (strategy, member)
            .prop_map(move |(mut members, member)| {
                if let Some(member) = member {
                    members.insert(name.clone(), member);
                }
                members
            })
            .boxed();
    }
    strategy.prop_map(Value::Object).boxed()
}

/// A value with something in it changed: a member gone, replaced, or added.
fn changed(mut value: Value, depth: usize, change: &Value, kind: u8) -> Value {
    if let Some(members) = value.as_object_mut() {
        let names: Vec<_> = members.keys().cloned().collect();
        if let Some(name) = names.get(depth % names.len().max(1)) {
            match kind {
                0 => drop(members.remove(name)),
                1 => drop(members.insert(name.clone(), change.clone())),
                2 => drop(members.insert("unheard-of".to_owned(), change.clone())),
                _ => {
                    let inner = members[name].clone();
                    members.insert(name.clone(), changed(inner, depth / 3, change, kind - 3));
                }
            }
            return value;
        }
    }
    change.clone()
}

/// A body: as the document says, nearly so, or anything.
fn bodies(contract: &Contract, operation: &Operation) -> BoxedStrategy<Option<Vec<u8>>> {
    let content = &operation.value["requestBody"]["content"]["application/json"];
    if content.is_null() {
        return Just(None).boxed();
    }
    let right = allowed(contract, &content["schema"]);
    let examples: Vec<_> = operation
        .bodies()
        .into_iter()
        .map(|(_, body)| body)
        .collect();
    let example = select(examples);
    let base = prop_oneof![2 => right, 1 => example].boxed();
    let near = (base.clone(), any::<u8>(), anything(), 0_u8..7)
        .prop_map(|(value, depth, change, kind)| changed(value, depth.into(), &change, kind));
    let text = |value: Value| Some(value.to_string().into_bytes());
    prop_oneof![
        3 => base.prop_map(text),
        4 => near.prop_map(text),
        1 => anything().prop_map(text),
        1 => prop::collection::vec(any::<u8>(), 0..40).prop_map(Some),
        1 => Just(None),
    ]
    .boxed()
}

/// A text for a place in a URL, with all that means something there escaped.
fn escaped(text: &str) -> String {
    // Clients take these out of a path, escaped or not.
    if [".", ".."].contains(&text) {
        return "dots".to_owned();
    }
    text.bytes()
        .map(|byte| match byte {
            byte if byte.is_ascii_alphanumeric() || b"-_".contains(&byte) => {
                char::from(byte).to_string()
            }
            byte => format!("%{byte:02X}"),
        })
        .collect()
}

/// A path with its names filled in, and some of the query.
fn paths(contract: &Contract, operation: &Operation) -> BoxedStrategy<String> {
    let mut path = Just(operation.path.clone()).boxed();
    for parameter in operation.parameters("path") {
        let name = format!("{{{}}}", parameter["name"].as_str().unwrap());
        let example = parameter["example"].as_str().unwrap().to_owned();
        let value = prop_oneof![2 => Just(example), 1 => ids()];
        path = (path, value)
            .prop_map(move |(path, value)| path.replace(&name, &escaped(&value)))
            .boxed();
    }
    for parameter in operation.parameters("query") {
        let name = parameter["name"].as_str().unwrap().to_owned();
        let right = allowed(contract, &parameter["schema"]);
        let value = prop::option::of(prop_oneof![3 => right, 1 => anything()]);
        path = (path, value)
            .prop_map(move |(path, value)| match value {
                None => path,
                Some(value) => {
                    let text = value.as_str().map_or(value.to_string(), str::to_owned);
                    let mark = if path.contains('?') { '&' } else { '?' };
                    format!("{path}{mark}{name}={}", escaped(&text))
                }
            })
            .boxed();
    }
    path
}

/// Mostly those who may call.
fn callers(operation: &Operation) -> BoxedStrategy<usize> {
    let route = ROUTES.iter().find(|route| {
        operation.method == route.method && operation.path == route.path.split('?').next().unwrap()
    });
    let roles = [Role::Enforcer, Role::Approver, Role::Admin, Role::Operator];
    let allowed = |index: &usize| route.unwrap().roles.contains(&roles[*index]);
    let allowed: Vec<_> = (0..roles.len()).filter(allowed).collect();
    match allowed.as_slice() {
        [] => (0_usize..5).boxed(),
        some => prop_oneof![4 => select(some.to_vec()), 1 => 0_usize..5].boxed(),
    }
}

/// Calls of every kind.
pub fn calls(contract: &Contract) -> BoxedStrategy<Made> {
    let operations = contract.operations().into_iter();
    // Streams do not end.
    let operations = operations.filter(|one| !one.path.contains("/sse/"));
    let made: Vec<_> = operations
        .map(|operation| {
            let key = prop::option::weighted(0.1, "[!-~ ]{0,8}");
            (
                paths(contract, &operation),
                bodies(contract, &operation),
                key,
                callers(&operation),
            )
                .prop_map(move |(path, body, key, caller)| Made {
                    operation: operation.clone(),
                    caller,
                    path,
                    headers: key
                        .map(|key| ("idempotency-key".to_owned(), key.trim().to_owned()))
                        .into_iter()
                        .collect(),
                    body,
                })
                .boxed()
        })
        .collect();
    proptest::strategy::Union::new(made).boxed()
}
