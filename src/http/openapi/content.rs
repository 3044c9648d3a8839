//! What a call takes and answers, as the document has it.

use serde_json::{Map, Value, json};

use super::Context;
use super::routes::Frame;

/// What a call takes beside its path.
pub struct Body {
    pub schema: Value,
    pub required: bool,
    pub examples: Vec<(&'static str, Value)>,
}

/// A way a call is answered when all is well.
pub struct Answer {
    pub status: u16,
    pub description: &'static str,
    /// The media type, unless it is the frame's own; and the schema.
    pub content: Option<(Option<&'static str>, Value)>,
    pub example: Option<Value>,
    pub headers: Vec<(&'static str, Value)>,
}

impl Body {
    /// A body that must be there.
    pub fn new<const N: usize>(schema: Value, examples: [(&'static str, Value); N]) -> Self {
        Self {
            schema,
            required: true,
            examples: examples.into(),
        }
    }

    /// A body that may be missing.
    pub fn optional(self) -> Self {
        Self {
            required: false,
            ..self
        }
    }

    /// As the document has it.
    pub fn print(self, context: &Context<'_>) -> Value {
        let examples: Map<_, _> = self
            .examples
            .into_iter()
            .map(|(name, value)| (name.to_owned(), json!({ "value": value })))
            .collect();
        let content = json!({ "schema": self.schema, "examples": examples });
        json!({
            "required": self.required,
            "content": { &context.names.media_type: content, "application/json": content },
        })
    }
}

impl Answer {
    /// As the document has it.
    pub fn print(self, context: &Context<'_>, frame: Frame) -> Value {
        let mut headers = Map::new();
        headers.insert(
            "X-Request-Id".into(),
            json!({ "$ref": "#/components/headers/X-Request-Id" }),
        );
        for (name, header) in self.headers {
            headers.insert(name.to_owned(), header);
        }
        let mut printed = json!({ "description": self.description, "headers": headers });
        if let Some((media, schema)) = self.content {
            let media = media.unwrap_or_else(|| context.media(frame));
            let mut content = json!({ "schema": schema });
            if let Some(example) = self.example {
                content["examples"] = json!({ "one": { "value": example } });
            }
            printed["content"] = json!({ media: content });
        }
        printed
    }
}
