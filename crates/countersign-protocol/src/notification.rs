//! Notifications of approvers: their targets and their texts. A notification says only that
//! something waits, and nothing of the request.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::id::ApproverId;
use super::json::JsonNode;
use super::lenient::BASE64URL;
use super::reader::{MemberReader, ReadResult};
use super::redacted::redacted;
use super::timestamp::Timestamp;
use super::words::words;

/// Most targets an approver may be notified at.
pub const MAX_NOTIFICATIONS: usize = 16;
/// Most bytes of a registration: a URL and keys.
pub const MAX_NOTIFICATION_BYTES: usize = 4 << 10;
const MAX_URL_BYTES: usize = 1_024;
const URL_EXPECTED: &str =
    "an https URL of at most 1024 characters, without credentials and without #";
const SECRET_EXPECTED: &str = "whsec_ and 24 to 64 bytes in base64, or nothing to have one made";
/// How the secret of a webhook is spelled, as Standard Webhooks say.
const SECRET_PREFIX: &str = "whsec_";
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

words! {
    NotificationKind {
        WebPush = "webpush",
        Webhook = "webhook",
    }
    /// Whether notifications get through.
    NotificationState {
        Active = "active",
        /// The last ones failed. It is tried again.
        Failing = "failing",
        /// It failed for too long. Adding it again, or a test that gets through, enables it.
        Disabled = "disabled",
        /// It was added under another cluster secret, and has to be added again.
        Stale = "stale",
    }
}

redacted! { TargetUrl = "(redacted)", WebhookSecret = "(redacted)", PushKeys = "(redacted)" }

/// An absolute `https:` or `http:` URL without credentials and fragment. It is a capability, and
/// never printed.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct TargetUrl(String);

impl TargetUrl {
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text
            .strip_prefix("https://")
            .or_else(|| text.strip_prefix("http://"))?;
        let authority = rest.split(['/', '?']).next()?;
        let visible = text.bytes().all(|byte| byte.is_ascii_graphic());
        let fits =
            visible && text.len() <= MAX_URL_BYTES && !text.contains(['#', '\\', '"', '<', '>']);
        (fits && !authority.is_empty() && !authority.contains('@') && !authority.starts_with(':'))
            .then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_secure(&self) -> bool {
        self.0.starts_with("https://")
    }

    /// Scheme, host and port.
    pub fn origin(&self) -> &str {
        let start = self.0.find("://").map_or(0, |at| at + 3);
        let rest = self.0.get(start..).unwrap_or_default();
        let length = rest.find(['/', '?']).unwrap_or(rest.len());
        self.0.get(..start + length).unwrap_or_default()
    }

    /// Host and port.
    pub fn authority(&self) -> &str {
        self.origin().split("://").nth(1).unwrap_or_default()
    }
}

/// The key that a webhook's body is signed with.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
pub struct WebhookSecret(String);

impl WebhookSecret {
    pub fn new(bytes: &[u8]) -> Self {
        Self(format!("{SECRET_PREFIX}{}", STANDARD.encode(bytes)))
    }

    pub fn parse(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text.strip_prefix(SECRET_PREFIX)?).ok()?;
        SECRET_BYTES
            .contains(&bytes.len())
            .then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn bytes(&self) -> Vec<u8> {
        let text = self.0.strip_prefix(SECRET_PREFIX).unwrap_or_default();
        STANDARD.decode(text).unwrap_or_default()
    }
}

/// The keys of a browser's subscription (RFC 8291): a point of P-256, and a secret that
/// authenticates.
#[derive(Clone, PartialEq, Eq, Deserialize, Serialize)]
pub struct PushKeys {
    pub p256dh: Vec<u8>,
    pub auth: Vec<u8>,
}

/// A target that an approver wants to be notified at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewNotification {
    WebPush {
        device: String,
        endpoint: TargetUrl,
        keys: PushKeys,
    },
    Webhook {
        url: TargetUrl,
        /// One is made, or stays as it is, if none is given.
        secret: Option<WebhookSecret>,
    },
}

impl NewNotification {
    /// The pointer of the URL.
    pub fn url(&self) -> (&'static str, &TargetUrl) {
        match self {
            Self::WebPush { endpoint, .. } => ("/endpoint", endpoint),
            Self::Webhook { url, .. } => ("/url", url),
        }
    }

    pub fn kind(&self) -> NotificationKind {
        match self {
            Self::WebPush { .. } => NotificationKind::WebPush,
            Self::Webhook { .. } => NotificationKind::Webhook,
        }
    }

    pub fn device(&self) -> Option<&str> {
        match self {
            Self::WebPush { device, .. } => Some(device),
            Self::Webhook { .. } => None,
        }
    }

    pub fn parse(document: &JsonNode<'_>) -> ReadResult<Self> {
        let mut reader = MemberReader::new(document, "")?;
        let kind = reader.parsed("kind", "webpush or webhook", NotificationKind::parse)?;
        let new = match kind {
            NotificationKind::WebPush => Self::WebPush {
                device: reader.str("deviceId")?.to_owned(),
                endpoint: reader.parsed("endpoint", URL_EXPECTED, TargetUrl::parse)?,
                keys: push_keys(reader.inner("keys")?)?,
            },
            NotificationKind::Webhook => Self::Webhook {
                url: reader.parsed("url", URL_EXPECTED, TargetUrl::parse)?,
                secret: reader.optional_parsed("secret", SECRET_EXPECTED, WebhookSecret::parse)?,
            },
        };
        reader.finish()?;
        Ok(new)
    }
}

fn push_keys(mut keys: MemberReader<'_, '_>) -> ReadResult<PushKeys> {
    let point = "65 bytes in base64url: an uncompressed point of P-256";
    let decode = |text: &str| BASE64URL.decode(text).ok();
    let read = PushKeys {
        p256dh: keys.parsed("p256dh", point, |text| {
            decode(text).filter(|key| key.len() == 65 && key.first() == Some(&4))
        })?,
        auth: keys.parsed("auth", "16 bytes in base64url", |text| {
            decode(text).filter(|secret| secret.len() == 16)
        })?,
    };
    keys.finish()?;
    Ok(read)
}

/// A target that an approver is notified at, without anything secret.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NotificationLine {
    pub notification_id: Uuid,
    pub kind: NotificationKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_id: Option<String>,
    /// Host and port of its URL; unknown if it is stale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    pub state: NotificationState,
    pub created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<Timestamp>,
    /// Why the last one failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled_at: Option<Timestamp>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NotificationList {
    pub approver_id: ApproverId,
    pub enabled: bool,
    /// Why nothing is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// The key that browsers subscribe with (RFC 8292), if anything is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vapid_key: Option<String>,
    pub notifications: Vec<NotificationLine>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AddedNotification {
    pub notification_id: Uuid,
    /// The webhook's secret, if the gateway has made it just now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// The result of a test.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TestedNotification {
    pub delivered: bool,
    /// The status that was answered, if anything was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// The occasion of a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotificationNotice {
    /// The number of requests that wait.
    Waiting(i64),
    Test,
}

impl NotificationNotice {
    pub fn type_name(self) -> &'static str {
        match self {
            Self::Waiting(_) => "waiting",
            Self::Test => "test",
        }
    }

    /// A constant, so that nothing of a request is in it.
    pub fn text(self) -> &'static str {
        match self {
            Self::Waiting(_) => "A request is waiting for your decision.",
            Self::Test => "This is a test. You’ll get a message here when a request is waiting.",
        }
    }

    /// The body for a browser.
    pub fn push_payload(self) -> String {
        format!("{{\"type\":\"{}\"}}", self.type_name())
    }
}

/// The body for a webhook. Chat services show `text` (Slack, Mattermost), or `title` and `message`
/// (Gotify).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WebhookBody<'a> {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub approver_id: &'a ApproverId,
    pub waiting: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<&'a str>,
    pub at: Timestamp,
    pub title: &'static str,
    pub text: &'static str,
    pub message: &'static str,
}
