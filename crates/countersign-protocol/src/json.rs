//! Strict JSON whose values keep their source text. Written by hand because `serde_json` accepts
//! texts that two parsers may read differently (repeated names, lone surrogates, integers beyond a
//! double), and a hash must cover one meaning only.

mod grammar;
mod value;

pub use self::value::{
    JsonError, JsonMember, JsonNode, JsonObject, JsonProblem, JsonValue, MAX_DEPTH, MAX_VALUES,
};

pub fn parse(bytes: &[u8]) -> Result<JsonNode<'_>, JsonError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| JsonError::new(JsonProblem::NotUtf8, error.valid_up_to()))?;
    grammar::document(text)
}
