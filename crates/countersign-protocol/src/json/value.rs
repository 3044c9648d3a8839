//! Values with their source text, and the refusals of the parser.

use std::borrow::Cow;
use std::fmt;

/// Deepest nesting of arrays and objects; it also bounds the parser's recursion.
pub const MAX_DEPTH: usize = 64;

/// Most values in a text. A parsed value takes some fifty bytes, even if its text has two, such as
/// `1,`.
pub const MAX_VALUES: usize = 250_000;

#[derive(Debug, Clone, PartialEq)]
pub struct JsonNode<'a> {
    /// The source text, without surrounding white space.
    pub raw: &'a str,
    pub value: JsonValue<'a>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum JsonValue<'a> {
    Null,
    Bool(bool),
    Number(f64),
    /// A string, unescaped; borrowed when the source has no escapes.
    String(Cow<'a, str>),
    Array(Vec<JsonNode<'a>>),
    Object(JsonObject<'a>),
}

/// The members of an object, in source order, no name twice.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct JsonObject<'a> {
    pub(super) members: Vec<JsonMember<'a>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct JsonMember<'a> {
    pub name: Cow<'a, str>,
    pub raw_name: &'a str,
    pub node: JsonNode<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonProblem {
    NotUtf8,
    Syntax,
    UnexpectedEnd,
    TrailingBytes,
    TooDeep,
    TooManyValues,
    DuplicateMember,
    LoneSurrogate,
    NulCharacter,
    IntegerRange,
    NumberOverflow,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    pub reason: JsonProblem,
    /// In bytes.
    pub offset: usize,
    /// JSON Pointer (RFC 6901) of the value, as far as known.
    pub pointer: String,
}

impl<'a> JsonNode<'a> {
    pub fn as_object(&self) -> Option<&JsonObject<'a>> {
        match &self.value {
            JsonValue::Object(object) => Some(object),
            _ => None,
        }
    }

    pub fn as_object_mut(&mut self) -> Option<&mut JsonObject<'a>> {
        match &mut self.value {
            JsonValue::Object(object) => Some(object),
            _ => None,
        }
    }

    pub fn as_array(&self) -> Option<&[JsonNode<'a>]> {
        match &self.value {
            JsonValue::Array(items) => Some(items),
            _ => None,
        }
    }

    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            JsonValue::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn kind(&self) -> &'static str {
        match self.value {
            JsonValue::Null => "null",
            JsonValue::Bool(_) => "boolean",
            JsonValue::Number(_) => "number",
            JsonValue::String(_) => "string",
            JsonValue::Array(_) => "array",
            JsonValue::Object(_) => "object",
        }
    }
}

impl<'a> JsonObject<'a> {
    pub fn get(&self, name: &str) -> Option<&JsonNode<'a>> {
        let member = self.members.iter().find(|member| member.name == name)?;
        Some(&member.node)
    }

    pub fn iter(&self) -> impl Iterator<Item = &JsonMember<'a>> {
        self.members.iter()
    }

    /// A member, to be read as something else. The source text of the object stays as it was.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut JsonNode<'a>> {
        let mut members = self.members.iter_mut();
        Some(&mut members.find(|member| member.name == name)?.node)
    }

    /// Removes members. The source text of the object stays as it was.
    pub fn retain(&mut self, keep: impl FnMut(&JsonMember<'a>) -> bool) {
        self.members.retain(keep);
    }

    pub fn len(&self) -> usize {
        self.members.len()
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
}

impl JsonError {
    /// An error at the root; each container adds itself with `inside`.
    pub(super) fn new(reason: JsonProblem, offset: usize) -> Self {
        Self {
            reason,
            offset,
            pointer: String::new(),
        }
    }

    pub(super) fn inside(mut self, segment: &str) -> Self {
        let segment = segment.replace('~', "~0").replace('/', "~1");
        self.pointer.insert_str(0, &segment);
        self.pointer.insert(0, '/');
        self
    }
}

// The message leaves out the pointer, because member names are payload.
impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sentence = match self.reason {
            JsonProblem::NotUtf8 => "the JSON text is not valid UTF-8",
            JsonProblem::Syntax => "the text is not JSON as RFC 8259 defines it",
            JsonProblem::UnexpectedEnd => "the JSON text ends before its value is complete",
            JsonProblem::TrailingBytes => "the JSON value must not be followed by anything",
            JsonProblem::TooDeep => "arrays and objects must not be nested deeper than 64 levels",
            JsonProblem::TooManyValues => "the JSON text must not have more than 250,000 values",
            JsonProblem::DuplicateMember => "an object must not have two members of the same name",
            JsonProblem::LoneSurrogate => "a \\u escape must not be half of a surrogate pair",
            JsonProblem::NulCharacter => "strings and member names must not contain U+0000",
            JsonProblem::IntegerRange => {
                "an integer must lie within \u{b1}9007199254740991; send larger ones as strings"
            }
            JsonProblem::NumberOverflow => "a number must fit into a double-precision float",
        };
        write!(f, "{sentence} (byte {})", self.offset)
    }
}

impl std::error::Error for JsonError {}
