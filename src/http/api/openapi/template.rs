//! Fills the placeholders of a document, and leaves out the parts that do not apply.

use serde_json::Value;

/// A copy with known placeholders filled in, without the objects whose `x-if` is not true.
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
