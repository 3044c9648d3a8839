//! The refusal of a member, by its JSON Pointer.

use std::borrow::Cow;
use std::fmt;

use super::text::escape_invisible;

pub type ReadResult<T> = Result<T, InvalidMember>;

/// Longest pointer shown to a caller: member names are the caller's own and may be as long as the
/// body.
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
    /// The name of the document, if its reader was given one.
    pub document: &'static str,
    pub pointer: String,
    pub expected: Cow<'static, str>,
    pub fault: MemberFault,
}

impl InvalidMember {
    pub fn shape(pointer: impl Into<String>, expected: impl Into<Cow<'static, str>>) -> Self {
        Self {
            document: "",
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
