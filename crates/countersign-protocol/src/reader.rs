//! Reads the members of an object one by one and refuses those that were not asked for. A refusal names the member by
//! its JSON Pointer and says what was expected there.

use std::borrow::Cow;
use std::fmt;

use super::canonical::Sha256Hex;
use super::id::{ID_EXPECTED, TextId};
use super::json::{JsonNode, JsonObject, JsonValue};
use super::text::{escape_invisible, is_control_or_bidi};
use super::timestamp::Timestamp;

/// Longest pointer shown to a caller: member names are the caller's own and may be as long as the body.
const MAX_POINTER_CHARS: usize = 512;

pub(super) fn clip(pointer: &str) -> String {
    pointer.chars().take(MAX_POINTER_CHARS).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberFault {
    /// Missing, of the wrong type, out of range, or unknown.
    Shape,
    Timestamp,
    Unsupported,
}

/// A member that does not conform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidMember {
    pub pointer: String,
    pub expected: Cow<'static, str>,
    pub fault: MemberFault,
}

impl InvalidMember {
    pub fn shape(pointer: impl Into<String>, expected: impl Into<Cow<'static, str>>) -> Self {
        Self {
            pointer: pointer.into(),
            expected: expected.into(),
            fault: MemberFault::Shape,
        }
    }

    pub fn timestamp(pointer: impl Into<String>, expected: impl Into<Cow<'static, str>>) -> Self {
        Self {
            fault: MemberFault::Timestamp,
            ..Self::shape(pointer, expected)
        }
    }

    pub fn unsupported(pointer: impl Into<String>, expected: &'static str) -> Self {
        Self {
            fault: MemberFault::Unsupported,
            ..Self::shape(pointer, expected)
        }
    }
}

impl fmt::Display for InvalidMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            write!(f, "the body should be {}", self.expected)
        } else {
            // A name is the sender's own text, and this may be shown on a terminal.
            let pointer = escape_invisible(&clip(&self.pointer));
            write!(f, "{pointer} should be: {}", self.expected)
        }
    }
}

impl std::error::Error for InvalidMember {}

pub fn child(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

pub struct MemberReader<'n, 'a> {
    object: &'n JsonObject<'a>,
    pointer: String,
    known: Vec<&'static str>,
}

impl<'n, 'a> MemberReader<'n, 'a> {
    /// Reads `node`, which must be an object, found at `pointer`.
    pub fn new(node: &'n JsonNode<'a>, pointer: impl Into<String>) -> Result<Self, InvalidMember> {
        let pointer = pointer.into();
        match node.as_object() {
            Some(object) => Ok(Self {
                object,
                pointer,
                known: Vec::with_capacity(12),
            }),
            None => Err(InvalidMember::shape(pointer, "an object")),
        }
    }

    pub fn object(&self) -> &'n JsonObject<'a> {
        self.object
    }

    pub fn at(&self, name: &str) -> String {
        child(&self.pointer, name)
    }

    pub fn optional(&mut self, name: &'static str) -> Option<&'n JsonNode<'a>> {
        self.known.push(name);
        self.object.get(name)
    }

    pub fn required(
        &mut self,
        name: &'static str,
        expected: &'static str,
    ) -> Result<&'n JsonNode<'a>, InvalidMember> {
        self.optional(name)
            .ok_or_else(|| InvalidMember::shape(self.at(name), format!("{expected} (required)")))
    }

    pub fn optional_str(&mut self, name: &'static str) -> Result<Option<&'n str>, InvalidMember> {
        self.optional(name)
            .map(|node| self.check_str(name, node))
            .transpose()
    }

    pub fn str(&mut self, name: &'static str) -> Result<&'n str, InvalidMember> {
        let node = self.required(name, "a string")?;
        self.check_str(name, node)
    }

    fn check_str(&self, name: &str, node: &'n JsonNode<'a>) -> Result<&'n str, InvalidMember> {
        node.as_str()
            .ok_or_else(|| InvalidMember::shape(self.at(name), "a string"))
    }

    pub fn check_nonempty(&self, name: &str, text: &str) -> Result<(), InvalidMember> {
        if text.is_empty() {
            let expected = "a string of at least 1 character";
            return Err(InvalidMember::shape(self.at(name), expected));
        }
        Ok(())
    }

    pub fn bounded_str(
        &mut self,
        name: &'static str,
        min: usize,
        max: usize,
    ) -> Result<&'n str, InvalidMember> {
        let text = self.str(name)?;
        if text.chars().nth(max).is_some() || text.chars().take(min).count() < min {
            return Err(InvalidMember::shape(
                self.at(name),
                format!("a string of {min} to {max} characters"),
            ));
        }
        Ok(text)
    }

    pub fn one_of(
        &mut self,
        name: &'static str,
        allowed: &[&'static str],
    ) -> Result<&'static str, InvalidMember> {
        let text = self.str(name)?;
        allowed
            .iter()
            .find(|choice| **choice == text)
            .copied()
            .ok_or_else(|| {
                InvalidMember::shape(self.at(name), format!("one of {}", allowed.join(", ")))
            })
    }

    /// A required string that is the word of one of `all`.
    pub fn word<T: Copy, const N: usize>(
        &mut self,
        name: &'static str,
        all: [T; N],
        as_str: fn(T) -> &'static str,
    ) -> Result<T, InvalidMember> {
        let word = self.one_of(name, &all.map(as_str))?;
        all.into_iter()
            .find(|known| as_str(*known) == word)
            .ok_or_else(|| InvalidMember::shape(self.at(name), "a known word"))
    }

    pub fn optional_bounded_str(
        &mut self,
        name: &'static str,
        max: usize,
    ) -> Result<Option<String>, InvalidMember> {
        match self.optional_str(name)? {
            Some(text) if text.chars().nth(max).is_some() => Err(InvalidMember::shape(
                self.at(name),
                format!("a string of at most {max} characters"),
            )),
            text => Ok(text.map(str::to_owned)),
        }
    }

    pub fn optional_bool(&mut self, name: &'static str) -> Result<Option<bool>, InvalidMember> {
        match self.optional(name).map(|node| &node.value) {
            None => Ok(None),
            Some(JsonValue::Bool(flag)) => Ok(Some(*flag)),
            Some(_) => Err(InvalidMember::shape(self.at(name), "true or false")),
        }
    }

    /// A name that people are shown. Characters that end the line, or turn the text around, could make it look like another.
    pub fn optional_label(
        &mut self,
        name: &'static str,
        max: usize,
    ) -> Result<Option<String>, InvalidMember> {
        let label = self.optional_bounded_str(name, max)?;
        match label.as_ref() {
            Some(text) if text.chars().any(is_control_or_bidi) => {
                let expected = "text without control characters and bidirectional controls";
                Err(InvalidMember::shape(self.at(name), expected))
            }
            _ => Ok(label),
        }
    }

    /// A required string that has exactly one value in this version, such as the name of an algorithm.
    pub fn constant(
        &mut self,
        name: &'static str,
        value: &'static str,
    ) -> Result<(), InvalidMember> {
        if self.str(name)? == value {
            return Ok(());
        }
        Err(InvalidMember::unsupported(self.at(name), value))
    }

    pub fn nested(&mut self, name: &'static str) -> Result<&'n JsonNode<'a>, InvalidMember> {
        let node = self.required(name, "an object")?;
        self.check_object(name, node)
    }

    pub fn optional_nested(
        &mut self,
        name: &'static str,
    ) -> Result<Option<&'n JsonNode<'a>>, InvalidMember> {
        self.optional(name)
            .map(|node| self.check_object(name, node))
            .transpose()
    }

    fn check_object(
        &self,
        name: &str,
        node: &'n JsonNode<'a>,
    ) -> Result<&'n JsonNode<'a>, InvalidMember> {
        match node.value {
            JsonValue::Object(_) => Ok(node),
            _ => Err(InvalidMember::shape(self.at(name), "an object")),
        }
    }

    pub fn id<T: TextId>(&mut self, name: &'static str) -> Result<T, InvalidMember> {
        let text = self.str(name)?;
        T::parse(text).ok_or_else(|| InvalidMember::shape(self.at(name), ID_EXPECTED))
    }

    pub fn optional_id<T: TextId>(
        &mut self,
        name: &'static str,
    ) -> Result<Option<T>, InvalidMember> {
        let text = self.optional_str(name)?;
        text.map(|text| {
            T::parse(text).ok_or_else(|| InvalidMember::shape(self.at(name), ID_EXPECTED))
        })
        .transpose()
    }

    pub fn timestamp(&mut self, name: &'static str) -> Result<Timestamp, InvalidMember> {
        let text = self.str(name)?;
        self.check_timestamp(name, text)
    }

    pub fn optional_timestamp(
        &mut self,
        name: &'static str,
    ) -> Result<Option<Timestamp>, InvalidMember> {
        let text = self.optional_str(name)?;
        text.map(|text| self.check_timestamp(name, text))
            .transpose()
    }

    fn check_timestamp(&self, name: &str, text: &str) -> Result<Timestamp, InvalidMember> {
        Timestamp::parse(text)
            .ok_or_else(|| InvalidMember::timestamp(self.at(name), "an RFC 3339 date-time"))
    }

    pub fn hash(&mut self, name: &'static str) -> Result<Sha256Hex, InvalidMember> {
        let text = self.str(name)?;
        Sha256Hex::parse(text).ok_or_else(|| {
            InvalidMember::shape(self.at(name), "64 lowercase hexadecimal characters")
        })
    }

    /// A required time that is not after `latest`.
    pub fn past_timestamp(
        &mut self,
        name: &'static str,
        latest: Timestamp,
    ) -> Result<Timestamp, InvalidMember> {
        let at = self.timestamp(name)?;
        if at <= latest {
            return Ok(at);
        }
        let expected = "a time that is not in the future";
        Err(InvalidMember::timestamp(self.at(name), expected))
    }

    /// Refuses members that were not asked for.
    pub fn finish(self) -> Result<(), InvalidMember> {
        let mut members = self.object.iter();
        match members.find(|member| !self.known.contains(&member.name.as_ref())) {
            None => Ok(()),
            Some(member) => Err(InvalidMember::shape(
                self.at(&member.name),
                format!("no such member; known are {}", self.known.join(", ")),
            )),
        }
    }
}
