//! Refusals as the dialect spells them: codes in lower case without a prefix, and 410 for anything
//! that has expired.

use axum::http::StatusCode;
use serde_json::Value;

use crate::protocol::error::{Code, ErrorDescription};

/// Writes the code to a member of the refusal's body; the status to send it with.
pub fn translate(refusal: &ErrorDescription, status: StatusCode, member: &mut Value) -> StatusCode {
    *member = refusal.code.as_str().to_ascii_lowercase().into();
    match refusal.code {
        Code::Expired => StatusCode::GONE,
        _ => status,
    }
}
