//! The words that schemas are made of: JSON Schema 2020-12, as strict as the readers of `protocol` are.

use serde_json::{Map, Value, json};

use crate::protocol::id::MAX_ID_CHARS;

/// A member of an object: its name and schema.
pub type Member = (&'static str, Value);

/// An object with these members and no others.
pub fn object<const R: usize, const O: usize>(
    required: [Member; R],
    optional: [Member; O],
) -> Value {
    let names: Vec<_> = required.iter().map(|(name, _)| *name).collect();
    let mut schema = json!({ "type": "object", "additionalProperties": false });
    if !names.is_empty() {
        schema["required"] = names.into();
    }
    let members: Map<_, _> = required
        .into_iter()
        .chain(optional)
        .map(|(name, member)| (name.to_owned(), member))
        .collect();
    schema["properties"] = members.into();
    schema
}

/// The same object, where more members pass through.
pub fn and_more(mut object: Value) -> Value {
    if let Some(members) = object.as_object_mut() {
        members.remove("additionalProperties");
    }
    object
}

/// Any object.
pub fn any_object() -> Value {
    json!({ "type": "object" })
}

/// A schema of `components`, by name.
pub fn shared(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// The same schema, with a sentence on what it means here.
pub fn meaning(mut schema: Value, description: &str) -> Value {
    schema["description"] = description.into();
    schema
}

/// Any string.
pub fn text() -> Value {
    json!({ "type": "string" })
}

/// A string of so many characters.
pub fn text_of(min: usize, max: usize) -> Value {
    let mut schema = json!({ "type": "string", "maxLength": max });
    if min > 0 {
        schema["minLength"] = min.into();
    }
    schema
}

/// A string that matches.
pub fn pattern(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": pattern })
}

/// A string that has one value.
pub fn word(word: &str) -> Value {
    json!({ "const": word })
}

/// A string that is one of these.
pub fn one_of(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words })
}

/// True or false.
pub fn flag() -> Value {
    json!({ "type": "boolean" })
}

/// A count.
pub fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

/// A list.
pub fn list(items: Value) -> Value {
    let mut schema = json!({ "type": "array" });
    schema["items"] = items;
    schema
}

/// Exactly one of these schemas.
pub fn either<const N: usize>(schemas: [Value; N]) -> Value {
    json!({ "oneOf": Vec::from(schemas) })
}

/// An id that a client chooses.
pub fn id() -> Value {
    shared("Id")
}

/// A time.
pub fn time() -> Value {
    shared("Timestamp")
}

/// A SHA-256.
pub fn hash() -> Value {
    shared("Hash")
}

/// A page of a listing.
pub fn page(items: Value) -> Value {
    let next = json!({ "type": ["string", "null"], "description": "where the next page starts, if there is one" });
    object([("items", list(items)), ("nextCursor", next)], [])
}

/// The schemas that all others are made of.
pub fn basics() -> Vec<Member> {
    let uuid = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$";
    let control = r"^[^\u0000-\u001f\u007f-\u009f]*$";
    let mut id = text_of(1, MAX_ID_CHARS);
    id["pattern"] = control.into();
    vec![
        (
            "Id",
            meaning(
                id,
                "Chosen by clients, compared by case; no control characters.",
            ),
        ),
        (
            "Uuid",
            meaning(pattern(uuid), "Made by the gateway, and sorted by time."),
        ),
        (
            "UuidOrUlid",
            pattern(
                "^([0-9A-Za-z]{26}|[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12})$",
            ),
        ),
        (
            "Timestamp",
            json!({ "type": "string", "format": "date-time", "description": "RFC 3339; the gateway prints UTC." }),
        ),
        (
            "Hash",
            meaning(
                pattern("^[0-9a-f]{64}$"),
                "SHA-256 in lowercase hexadecimal.",
            ),
        ),
    ]
}
