//! A message to a webhook, signed as Standard Webhooks say, so that their libraries verify it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use ring::hmac;

use crate::gateway::error::{Error, Result};
use crate::protocol::notification::WebhookSecret;
use crate::protocol::timestamp::Timestamp;

/// The headers of a body. `id` stays the same when the body is sent again.
pub fn headers(id: &str, at: Timestamp, body: &[u8], secret: &WebhookSecret) -> Result<HeaderMap> {
    let at = at.inner().unix_timestamp().to_string();
    let key = hmac::Key::new(hmac::HMAC_SHA256, &secret.bytes());
    let signed = [id.as_bytes(), b".", at.as_bytes(), b".", body].concat();
    let signature = STANDARD.encode(hmac::sign(&key, &signed));
    let value = |text: &str| HeaderValue::try_from(text).map_err(|_| Error::Internal);
    let mut headers = HeaderMap::new();
    let json = HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json);
    let agent = HeaderValue::from_static("countersign");
    headers.insert(header::USER_AGENT, agent);
    headers.insert(HeaderName::from_static("webhook-id"), value(id)?);
    headers.insert(HeaderName::from_static("webhook-timestamp"), value(&at)?);
    let signature = value(&format!("v1,{signature}"))?;
    headers.insert(HeaderName::from_static("webhook-signature"), signature);
    Ok(headers)
}
