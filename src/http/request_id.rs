//! The id of one HTTP request: in its log line, its response, and every envelope that is about no exchange.

#[derive(Debug, Clone)]
pub struct HttpRequestId(pub String);
