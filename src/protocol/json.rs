//! Strict JSON that remembers its source: every value keeps the exact text it was read from.
//! What two honest parsers could read differently (repeated names, lone surrogates, integers a double
//! cannot hold) is refused here, so a hash or signature covers one meaning only.

use std::borrow::Cow;
use std::fmt;

mod grammar;

/// How many arrays and objects may stand inside one another; it also bounds our own recursion.
pub const MAX_DEPTH: usize = 64;

/// A parsed value together with the exact text it was read from.
#[derive(Debug, Clone, PartialEq)]
pub struct Node<'a> {
    /// The value's source, without surrounding white space.
    pub raw: &'a str,
    pub value: Value<'a>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    Number(f64),
    /// A string, unescaped; borrowed when the source has no escapes.
    String(Cow<'a, str>),
    Array(Vec<Node<'a>>),
    Object(Object<'a>),
}

/// The members of an object, in source order, no name twice.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Object<'a> {
    /// In source order, since bytes are never rewritten.
    members: Vec<Member<'a>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Member<'a> {
    pub name: Cow<'a, str>,
    pub raw_name: &'a str,
    pub node: Node<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The bytes are not UTF-8.
    NotUtf8,
    /// The grammar of RFC 8259 does not allow what stands here.
    Syntax,
    UnexpectedEnd,
    /// Something other than white space follows the value.
    TrailingBytes,
    /// More than [`MAX_DEPTH`] arrays and objects stand inside one another.
    TooDeep,
    DuplicateMember,
    /// A `\u` escape is half of a surrogate pair.
    LoneSurrogate,
    /// A string or name contains U+0000.
    NulCharacter,
    /// An integer literal is beyond ±(2^53−1).
    IntegerRange,
    NumberOverflow,
}

/// A refusal, and where in the text it arose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    pub reason: Reason,
    /// The byte at which reading stopped making sense.
    pub offset: usize,
    /// JSON Pointer (RFC 6901) of the value being read, as far as known.
    pub pointer: String,
}

/// Reads one JSON value that fills the whole text.
pub fn parse(bytes: &[u8]) -> Result<Node<'_>, JsonError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| JsonError::new(Reason::NotUtf8, error.valid_up_to()))?;
    grammar::document(text)
}

impl<'a> Node<'a> {
    /// The members, if this is an object.
    #[must_use]
    pub fn as_object(&self) -> Option<&Object<'a>> {
        match &self.value {
            Value::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The text, if this is a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        }
    }
}

impl<'a> Object<'a> {
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Node<'a>> {
        let member = self.members.iter().find(|member| member.name == name)?;
        Some(&member.node)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Member<'a>> {
        self.members.iter()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
}

impl JsonError {
    /// A refusal at the root; the containers it passes on its way out add themselves.
    fn new(reason: Reason, offset: usize) -> Self {
        Self {
            reason,
            offset,
            pointer: String::new(),
        }
    }

    /// The same refusal, seen from the container whose member or item it came from.
    fn inside(mut self, segment: &str) -> Self {
        let segment = segment.replace('~', "~0").replace('/', "~1");
        self.pointer.insert_str(0, &segment);
        self.pointer.insert(0, '/');
        self
    }
}

// The pointer stays out of the sentence: it is made of member names, and those are payload.
impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sentence = match self.reason {
            Reason::NotUtf8 => "the JSON text is not valid UTF-8",
            Reason::Syntax => "the text is not JSON as RFC 8259 defines it",
            Reason::UnexpectedEnd => "the JSON text ends before its value is complete",
            Reason::TrailingBytes => "the JSON value must not be followed by anything",
            Reason::TooDeep => "arrays and objects must not be nested deeper than 64 levels",
            Reason::DuplicateMember => "an object must not have two members of the same name",
            Reason::LoneSurrogate => "a \\u escape must not be half of a surrogate pair",
            Reason::NulCharacter => "strings and member names must not contain U+0000",
            Reason::IntegerRange => {
                "an integer must lie within \u{b1}9007199254740991; send larger ones as strings"
            }
            Reason::NumberOverflow => "a number must fit into a double-precision float",
        };
        write!(f, "{sentence} (byte {})", self.offset)
    }
}

impl std::error::Error for JsonError {}
