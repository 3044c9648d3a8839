//! An answer of a node, and what tests ask of it.

use reqwest::header::HeaderMap;
use serde_json::Value;

/// An answer, read whole.
#[derive(Debug, Clone)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// The body's text.
    pub text: String,
}

impl Answer {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// A member of the envelope's body, by JSON Pointer.
    pub fn body(&self, pointer: &str) -> Value {
        self.json()["body"]
            .pointer(pointer)
            .cloned()
            .unwrap_or(Value::Null)
    }

    /// A header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .get(name)
            .map(|value| value.to_str().expect("text"))
    }

    /// The error code without its prefix, from an envelope or transport JSON.
    pub fn code(&self) -> String {
        let json = self.json();
        let error = if json["msgType"] == "error" {
            &json["body"]
        } else {
            &json
        };
        let code = error["code"]
            .as_str()
            .unwrap_or_else(|| panic!("an error: {self:?}"));
        assert!(
            error["message"].is_string() && error["retryable"].is_boolean(),
            "{self:?}"
        );
        code.strip_prefix("PROTO_ERR_")
            .unwrap_or_else(|| panic!("a prefix: {code}"))
            .to_owned()
    }

    /// A member of the error's details.
    pub fn detail(&self, name: &str) -> Value {
        let json = self.json();
        let error = if json["msgType"] == "error" {
            &json["body"]
        } else {
            &json
        };
        error["details"][name].clone()
    }

    /// The answer in a few words, such as `202`, `202 duplicate` or `409 EXPIRED`.
    pub fn outcome(&self) -> String {
        if self.status >= 400 {
            return format!("{} {}", self.status, self.code());
        }
        if !self.text.is_empty() && self.body("/duplicate") == true {
            return format!("{} duplicate", self.status);
        }
        self.status.to_string()
    }

    /// Asserts a success.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }

    /// Asserts a refusal.
    #[track_caller]
    pub fn refused(self, status: u16, code: &str) -> Self {
        assert_eq!(
            (self.status, self.code().as_str()),
            (status, code),
            "{self:?}"
        );
        self
    }

    /// Asserts a refusal that names a member.
    #[track_caller]
    pub fn refused_at(self, status: u16, code: &str, pointer: &str) -> Self {
        assert_eq!(
            (self.status, self.code().as_str()),
            (status, code),
            "{self:?}"
        );
        assert_eq!(self.detail("pointer"), pointer, "{self:?}");
        self
    }
}
