//! Reads the members of an object one by one and refuses those that were not asked for. A refusal
//! names the member by its JSON Pointer and says what was expected there.

use std::borrow::Cow;

use super::canonical::Sha256Hex;
use super::id::{ID_EXPECTED, TextId};
pub use super::invalid::{InvalidMember, MemberFault, ReadResult, child};
use super::json::{JsonNode, JsonObject, JsonValue};
use super::signature::Signature;
use super::text::{is_control_or_bidi, is_longer};
use super::timestamp::Timestamp;
use super::words::WordEnum;

const HASH_EXPECTED: &str = "64 lowercase hexadecimal characters";
const TIME_EXPECTED: &str = "an RFC 3339 date-time";
pub(super) const NONEMPTY_EXPECTED: &str = "a string of at least 1 character";

pub(super) fn nonempty(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn object<'n, 'a>(node: &'n JsonNode<'a>) -> Option<&'n JsonNode<'a>> {
    node.as_object().map(|_| node)
}

pub struct MemberReader<'n, 'a> {
    document: &'static str,
    object: &'n JsonObject<'a>,
    pointer: String,
    known: Vec<&'static str>,
}

impl<'n, 'a> MemberReader<'n, 'a> {
    /// Reads `node`, which must be an object, found at `pointer`.
    pub fn new(node: &'n JsonNode<'a>, pointer: impl Into<String>) -> ReadResult<Self> {
        Self::within("", node, pointer.into())
    }

    /// Reads a whole document, which refusals name.
    pub fn named(document: &'static str, node: &'n JsonNode<'a>) -> ReadResult<Self> {
        Self::within(document, node, String::new())
    }

    fn within(document: &'static str, node: &'n JsonNode<'a>, pointer: String) -> ReadResult<Self> {
        match node.as_object() {
            Some(object) => Ok(Self {
                document,
                object,
                pointer,
                known: Vec::with_capacity(12),
            }),
            None => Err(InvalidMember {
                document,
                ..InvalidMember::shape(pointer, "an object")
            }),
        }
    }

    pub fn document(&self) -> &'static str {
        self.document
    }

    /// Gives the document another name in later refusals.
    pub fn rename(&mut self, document: &'static str) {
        self.document = document;
    }

    pub fn object(&self) -> &'n JsonObject<'a> {
        self.object
    }

    pub fn at(&self, name: &str) -> String {
        child(&self.pointer, name)
    }

    /// The refusal of a member.
    pub fn refusal(&self, name: &str, expected: impl Into<Cow<'static, str>>) -> InvalidMember {
        InvalidMember {
            document: self.document,
            ..InvalidMember::shape(self.at(name), expected)
        }
    }

    pub fn optional(&mut self, name: &'static str) -> Option<&'n JsonNode<'a>> {
        self.known.push(name);
        self.object.get(name)
    }

    pub fn required(
        &mut self,
        name: &'static str,
        expected: &'static str,
    ) -> ReadResult<&'n JsonNode<'a>> {
        self.optional(name)
            .ok_or_else(|| self.refusal(name, format!("{expected} (required)")))
    }

    /// An optional member, as `read` understands it.
    pub fn optional_as<T>(
        &mut self,
        name: &'static str,
        expected: &'static str,
        read: impl FnOnce(&'n JsonNode<'a>) -> Option<T>,
    ) -> ReadResult<Option<T>> {
        self.optional(name)
            .map(|node| read(node).ok_or_else(|| self.refusal(name, expected)))
            .transpose()
    }

    /// A required member, as `read` understands it.
    fn required_as<T>(
        &mut self,
        name: &'static str,
        expected: &'static str,
        read: impl FnOnce(&'n JsonNode<'a>) -> Option<T>,
    ) -> ReadResult<T> {
        read(self.required(name, expected)?).ok_or_else(|| self.refusal(name, expected))
    }

    pub fn optional_str(&mut self, name: &'static str) -> ReadResult<Option<&'n str>> {
        self.optional_as(name, "a string", JsonNode::as_str)
    }

    pub fn str(&mut self, name: &'static str) -> ReadResult<&'n str> {
        self.required_as(name, "a string", JsonNode::as_str)
    }

    /// A required string, as `parse` understands it.
    pub fn parsed<T>(
        &mut self,
        name: &'static str,
        expected: &'static str,
        parse: impl FnOnce(&'n str) -> Option<T>,
    ) -> ReadResult<T> {
        parse(self.str(name)?).ok_or_else(|| self.refusal(name, expected))
    }

    /// An optional string, as `parse` understands it.
    pub fn optional_parsed<T>(
        &mut self,
        name: &'static str,
        expected: &'static str,
        parse: impl FnOnce(&'n str) -> Option<T>,
    ) -> ReadResult<Option<T>> {
        self.optional_str(name)?
            .map(|text| parse(text).ok_or_else(|| self.refusal(name, expected)))
            .transpose()
    }

    pub fn nonempty_str(&mut self, name: &'static str) -> ReadResult<&'n str> {
        self.parsed(name, NONEMPTY_EXPECTED, nonempty)
    }

    pub fn bounded_str(
        &mut self,
        name: &'static str,
        min: usize,
        max: usize,
    ) -> ReadResult<&'n str> {
        let text = self.str(name)?;
        if is_longer(text, max) || text.chars().take(min).count() < min {
            return Err(self.refusal(name, format!("a string of {min} to {max} characters")));
        }
        Ok(text)
    }

    pub fn optional_bounded_str(
        &mut self,
        name: &'static str,
        max: usize,
    ) -> ReadResult<Option<String>> {
        match self.optional_str(name)? {
            Some(text) if is_longer(text, max) => {
                Err(self.refusal(name, format!("a string of at most {max} characters")))
            }
            text => Ok(text.map(str::to_owned)),
        }
    }

    pub fn one_of(
        &mut self,
        name: &'static str,
        allowed: &[&'static str],
    ) -> ReadResult<&'static str> {
        let text = self.str(name)?;
        let mut allowed_ones = allowed.iter().copied();
        allowed_ones
            .find(|choice| *choice == text)
            .ok_or_else(|| self.refusal(name, format!("one of {}", allowed.join(", "))))
    }

    pub fn word<T: WordEnum>(&mut self, name: &'static str) -> ReadResult<T> {
        T::parse(self.str(name)?)
            .ok_or_else(|| self.refusal(name, format!("one of {}", T::WORDS.join(", "))))
    }

    pub fn optional_bool(&mut self, name: &'static str) -> ReadResult<Option<bool>> {
        self.optional_as(name, "true or false", |node| match node.value {
            JsonValue::Bool(flag) => Some(flag),
            _ => None,
        })
    }

    /// A name that people are shown. Characters that end the line, or turn the text around, could
    /// make it look like another.
    pub fn optional_label(&mut self, name: &'static str, max: usize) -> ReadResult<Option<String>> {
        let label = self.optional_bounded_str(name, max)?;
        match label.as_ref() {
            Some(text) if text.chars().any(is_control_or_bidi) => {
                let expected = "text without control characters and bidirectional controls";
                Err(self.refusal(name, expected))
            }
            _ => Ok(label),
        }
    }

    /// A required string that has exactly one value in this version, such as the name of an
    /// algorithm.
    pub fn constant(&mut self, name: &'static str, value: &'static str) -> ReadResult<()> {
        if self.str(name)? == value {
            return Ok(());
        }
        Err(InvalidMember {
            fault: MemberFault::Unsupported,
            ..self.refusal(name, value)
        })
    }

    pub fn nested(&mut self, name: &'static str) -> ReadResult<&'n JsonNode<'a>> {
        self.required_as(name, "an object", object)
    }

    pub fn optional_nested(&mut self, name: &'static str) -> ReadResult<Option<&'n JsonNode<'a>>> {
        self.optional_as(name, "an object", object)
    }

    /// A reader of a required object among the members.
    pub fn inner(&mut self, name: &'static str) -> ReadResult<Self> {
        Self::within(self.document, self.nested(name)?, self.at(name))
    }

    /// A reader of an optional object among the members.
    pub fn optional_inner(&mut self, name: &'static str) -> ReadResult<Option<Self>> {
        self.optional_nested(name)?
            .map(|node| Self::within(self.document, node, self.at(name)))
            .transpose()
    }

    /// A reader of an object within the member `name`, which is an array.
    pub fn item(&self, name: &str, node: &'n JsonNode<'a>) -> ReadResult<Self> {
        Self::within(self.document, node, self.at(name))
    }

    /// A reader of the only item of an array.
    pub fn only_item(&mut self, name: &'static str, expected: &'static str) -> ReadResult<Self> {
        match self.array(name, expected)? {
            [item] => Self::within(self.document, item, format!("{}/0", self.at(name))),
            _ => Err(self.refusal(name, expected)),
        }
    }

    pub fn array(
        &mut self,
        name: &'static str,
        expected: &'static str,
    ) -> ReadResult<&'n [JsonNode<'a>]> {
        self.required_as(name, expected, JsonNode::as_array)
    }

    /// Between one item and `max`, which a refusal calls `plural`.
    pub fn items(
        &mut self,
        name: &'static str,
        max: usize,
        plural: &str,
    ) -> ReadResult<&'n [JsonNode<'a>]> {
        match self.required(name, "an array")?.as_array() {
            Some(items) if (1..=max).contains(&items.len()) => Ok(items),
            _ => Err(self.refusal(name, format!("an array of 1 to {max} {plural}"))),
        }
    }

    pub fn id<T: TextId>(&mut self, name: &'static str) -> ReadResult<T> {
        self.parsed(name, ID_EXPECTED, T::parse)
    }

    pub fn optional_id<T: TextId>(&mut self, name: &'static str) -> ReadResult<Option<T>> {
        self.optional_parsed(name, ID_EXPECTED, T::parse)
    }

    pub fn hash(&mut self, name: &'static str) -> ReadResult<Sha256Hex> {
        self.parsed(name, HASH_EXPECTED, Sha256Hex::parse)
    }

    pub fn optional_hash(&mut self, name: &'static str) -> ReadResult<Option<Sha256Hex>> {
        self.optional_parsed(name, HASH_EXPECTED, Sha256Hex::parse)
    }

    pub fn signature(&mut self, name: &'static str) -> ReadResult<Signature> {
        self.parsed(name, "64 bytes in base64url", Signature::parse)
    }

    pub fn timestamp(&mut self, name: &'static str) -> ReadResult<Timestamp> {
        let text = self.str(name)?;
        Timestamp::parse(text).ok_or_else(|| self.time_refusal(name, TIME_EXPECTED))
    }

    pub fn optional_timestamp(&mut self, name: &'static str) -> ReadResult<Option<Timestamp>> {
        self.optional_str(name)?
            .map(|text| {
                Timestamp::parse(text).ok_or_else(|| self.time_refusal(name, TIME_EXPECTED))
            })
            .transpose()
    }

    /// A required time that is not after `latest`.
    pub fn past_timestamp(
        &mut self,
        name: &'static str,
        latest: Timestamp,
    ) -> ReadResult<Timestamp> {
        let at = self.timestamp(name)?;
        if at <= latest {
            return Ok(at);
        }
        Err(self.time_refusal(name, "a time that is not in the future"))
    }

    fn time_refusal(&self, name: &str, expected: &'static str) -> InvalidMember {
        InvalidMember {
            fault: MemberFault::Timestamp,
            ..self.refusal(name, expected)
        }
    }

    /// Refuses members that were not asked for.
    pub fn finish(&self) -> ReadResult<()> {
        let mut members = self.object.iter();
        match members.find(|member| !self.known.contains(&member.name.as_ref())) {
            None => Ok(()),
            Some(member) => Err(self.refusal(
                &member.name,
                format!("no such member; known are {}", self.known.join(", ")),
            )),
        }
    }
}
