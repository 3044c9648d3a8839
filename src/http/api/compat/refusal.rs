//! Refusals as the dialect spells them: codes in lower case without a prefix, and 410 for anything
//! that has expired.

use axum::http::StatusCode;
use serde_json::Value;

use crate::protocol::error::{Code, ErrorDescription};

pub fn code(refusal: &ErrorDescription) -> Value {
    refusal.code.as_str().to_ascii_lowercase().into()
}

pub fn status(refusal: &ErrorDescription, usual: StatusCode) -> StatusCode {
    match refusal.code {
        Code::Expired => StatusCode::GONE,
        _ => usual,
    }
}
