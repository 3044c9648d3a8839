//! The description of a refusal for its caller.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::code::{Code, CodeNames};
use crate::invalid::{InvalidMember, clip};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThrottleDetails {
    /// Its name in `RateLimit-Policy`.
    pub policy: &'static str,
    /// The kind of calls, in words.
    pub calls: String,
    pub quota: u32,
    pub window_seconds: u64,
    pub retry_after: Duration,
}

#[derive(Debug, Clone)]
pub struct ErrorDescription {
    pub status: u16,
    pub code: Code,
    pub message: String,
    pub details: Map<String, Value>,
    pub throttled: Option<ThrottleDetails>,
    /// Whether a token was presented and refused.
    pub invalid_token: bool,
}

impl ErrorDescription {
    pub fn new(status: u16, code: Code, message: String) -> Self {
        Self {
            status,
            code,
            message,
            details: Map::new(),
            throttled: None,
            invalid_token: false,
        }
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    pub(super) fn at(self, pointer: &str) -> Self {
        self.with("pointer", clip(pointer))
    }

    #[must_use]
    pub fn expecting(self, expected: &str) -> Self {
        self.with("expected", expected)
    }

    pub(super) fn about(self, invalid: &InvalidMember) -> Self {
        self.at(&invalid.pointer).expecting(&invalid.expected)
    }

    /// The JSON of an error, which is also the body of its envelope.
    pub fn body(&self, names: &CodeNames, about: Option<&str>) -> Value {
        let mut body = json!({
            "code": names.code(self.code),
            "message": self.message,
            "retryable": self.code.retryable(),
        });
        if let Some(request) = about {
            body["requestId"] = request.into();
        }
        if !self.details.is_empty() {
            body["details"] = Value::Object(self.details.clone());
        }
        body
    }
}
