//! Reads messages of the dialect as the protocol's own. Only the parsed values change: the text of a
//! ciphertext is passed on as it was sent. A required member is never made up.

use std::borrow::Cow;
use std::time::Duration;

use crate::gateway::identity::caller::CallerIdentity;
use crate::protocol::json::{JsonNode, JsonObject, JsonValue};
use crate::protocol::timestamp::Timestamp;

/// The dialect means "soon" by an expiry no further from the creation than this.
const SAME_TIME: Duration = Duration::from_secs(1);
/// How long such a request then lives, from its acceptance.
const LIFETIME: Duration = Duration::from_secs(600);

/// The expiry that replaces one that is already over.
pub struct GivenExpiry {
    now: Timestamp,
    /// How far a client's clock may be off.
    skew: Duration,
    /// As JSON.
    text: String,
}

impl GivenExpiry {
    /// The one for the submissions of a caller; `None` if those are read strictly.
    pub fn of(origin: &CallerIdentity, now: Timestamp, skew_seconds: u64) -> Option<Self> {
        origin.profile.is_compat().then(|| Self {
            now,
            skew: Duration::from_secs(skew_seconds),
            text: format!("\"{}\"", Timestamp::from(now.inner() + LIFETIME)),
        })
    }

    /// Whether a submission gets it: a fresh one that expires as it is created. An older one may
    /// be a replay, and is not revived.
    fn replaces(&self, envelope: &JsonObject<'_>, body: &JsonObject<'_>) -> bool {
        let time = |object: &JsonObject<'_>, name| Timestamp::parse(object.get(name)?.as_str()?);
        let near = |one: Timestamp, other: Timestamp, distance| {
            (one.inner() - other.inner()).unsigned_abs() <= distance
        };
        match (time(envelope, "createdAt"), time(body, "expiresAt")) {
            (Some(created), Some(expires)) if envelope.get("expiresAt").is_none() => {
                near(created, self.now, self.skew) && near(created, expires, SAME_TIME)
            }
            _ => false,
        }
    }
}

fn inner<'n, 'a>(object: &'n mut JsonObject<'a>, name: &str) -> Option<&'n mut JsonObject<'a>> {
    object.get_mut(name)?.as_object_mut()
}

/// Removes those of these members that are `null`: the dialect's word for absent.
fn remove_nulls(object: &mut JsonObject<'_>, names: &[&str]) {
    object.retain(|member| {
        !(names.contains(&member.name.as_ref()) && member.node.value == JsonValue::Null)
    });
}

/// A sealed submission. Any other is left as it is, since its hash covers every member.
pub fn submission<'n, 'a>(
    document: &'n JsonNode<'a>,
    expiry: Option<&'a GivenExpiry>,
) -> Cow<'n, JsonNode<'a>> {
    let envelope = document.as_object();
    let body = envelope.and_then(|object| object.get("body")?.as_object());
    let body = body.filter(|body| body.get("ciphertext").is_some());
    let (Some(expiry), Some(envelope), Some(body)) = (expiry, envelope, body) else {
        return Cow::Borrowed(document);
    };
    let is_over = expiry.replaces(envelope, body);
    let mut read = document.clone();
    if let Some(body) = read
        .as_object_mut()
        .and_then(|envelope| inner(envelope, "body"))
    {
        remove_nulls(body, &["metadata"]);
        if let Some(sealed) = inner(body, "ciphertext") {
            remove_nulls(sealed, &["nonce", "tag", "aad"]);
        }
        if let Some(expires_at) = body.get_mut("expiresAt").filter(|_| is_over) {
            *expires_at = JsonNode {
                raw: &expiry.text,
                value: JsonValue::String(Cow::Borrowed(expiry.text.trim_matches('"'))),
            };
        }
    }
    Cow::Owned(read)
}

/// An acknowledgement: `delivered` means `processed`.
pub fn acknowledgement<'n, 'a>(
    origin: &CallerIdentity,
    document: &'n JsonNode<'a>,
) -> Cow<'n, JsonNode<'a>> {
    if !origin.profile.is_compat() {
        return Cow::Borrowed(document);
    }
    let mut read = document.clone();
    let body = read
        .as_object_mut()
        .and_then(|envelope| inner(envelope, "body"));
    let status = body.and_then(|body| body.get_mut("status"));
    if let Some(status) = status.filter(|status| status.as_str() == Some("delivered")) {
        status.value = JsonValue::String(Cow::Borrowed("processed"));
    }
    Cow::Owned(read)
}

/// A withdrawal: the body `null` means no body.
pub fn withdrawal<'b>(origin: &CallerIdentity, body: &'b [u8]) -> &'b [u8] {
    match body.trim_ascii() {
        b"null" if origin.profile.is_compat() => &[],
        _ => body,
    }
}
