//! Sends one notification. The outcome reveals nothing about the target.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::{HeaderMap, StatusCode, Uri, header};
use time::OffsetDateTime;
use tokio::time::Instant;

use super::keys::{DeliveryTarget, NotificationKeys};
use super::web_push::{self, MessageRandomness};
use super::webhook;
use crate::clock::Clock;
use crate::config::Config;
use crate::gateway::error::{Error, Result};
use crate::gateway::identity::authenticate::random;
use crate::outbound::{AddressGuard, OutboundAnswer, OutboundClient, OutboundError};
use crate::protocol::id::ApproverId;
use crate::protocol::notification::{NotificationNotice, TargetUrl, WebhookBody};
use crate::protocol::timestamp::Timestamp;

/// How long a target may take to answer.
pub const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a push service keeps a message for a browser that is away.
const LONGEST_TTL: i64 = 24 * 3_600;
/// The longest pause that a target may ask for.
const MAX_RETRY_INTERVAL: Duration = Duration::from_secs(3_600);

#[derive(Debug)]
pub enum DeliveryOutcome {
    Delivered(StatusCode),
    /// The target says that it is gone for good.
    Gone(StatusCode),
    Failed {
        status: Option<StatusCode>,
        failure: String,
        retry_after: Option<Duration>,
    },
}

impl DeliveryOutcome {
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Delivered(status) | Self::Gone(status) => Some(*status),
            Self::Failed { status, .. } => *status,
        }
    }

    pub fn failed(failure: impl Into<String>) -> Self {
        Self::Failed {
            status: None,
            failure: failure.into(),
            retry_after: None,
        }
    }
}

/// The contents of a notification.
pub struct NotificationMessage<'a> {
    pub approver: &'a ApproverId,
    pub notice: NotificationNotice,
    /// The same each time that it is sent.
    pub id: String,
    /// Until when it is of use.
    pub until: OffsetDateTime,
}

pub struct NotificationSender {
    clock: Clock,
    contact: Option<String>,
    page: Option<String>,
    allow: Arc<[ipnet::IpNet]>,
    /// For https, made when it is first needed: it reads the system's certificates.
    secure: OnceLock<Option<OutboundClient>>,
    plain: OnceLock<Option<OutboundClient>>,
}

impl NotificationSender {
    pub fn new(config: &Config, clock: &Clock) -> Self {
        let page = Some(config.page.url.clone()).filter(|url| !url.is_empty());
        let contact = match config.notifications.contact.as_str() {
            "" => page.clone().filter(|url| url.starts_with("https://")),
            contact => Some(contact.to_owned()),
        };
        Self {
            clock: clock.clone(),
            contact,
            page,
            allow: config.notifications.allow.clone().into(),
            secure: OnceLock::new(),
            plain: OnceLock::new(),
        }
    }

    /// Whether a URL could be sent to, as far as it tells without resolving its name.
    pub fn permits(&self, url: &TargetUrl) -> bool {
        let Ok(uri) = Uri::try_from(url.as_str()) else {
            return false;
        };
        let plain_allowed = url.is_secure() || !self.allow.is_empty();
        plain_allowed && self.guard(url.is_secure()).permits_host(&uri)
    }

    fn guard(&self, secure: bool) -> AddressGuard {
        if secure {
            AddressGuard::PublicOr(Arc::clone(&self.allow))
        } else {
            AddressGuard::Only(Arc::clone(&self.allow))
        }
    }

    fn outbound(&self, secure: bool) -> Option<&OutboundClient> {
        let client = if secure { &self.secure } else { &self.plain };
        let made = client.get_or_init(|| {
            let made = OutboundClient::guarded(secure, self.guard(secure));
            let log = |error: &std::io::Error| {
                tracing::error!(%error, "cannot read the system's CA certificates, so nothing can be notified over https");
            };
            made.inspect_err(log).ok()
        });
        made.as_ref()
    }

    pub async fn send(
        &self,
        keys: &NotificationKeys,
        target: &DeliveryTarget,
        letter: &NotificationMessage<'_>,
    ) -> DeliveryOutcome {
        let url = target.url();
        let Some(outbound) = self.outbound(url.is_secure()) else {
            return DeliveryOutcome::failed("the gateway has no CA certificates");
        };
        let (Ok(uri), Ok((headers, body))) = (
            Uri::try_from(url.as_str()),
            self.compose(keys, target, letter),
        ) else {
            return DeliveryOutcome::failed("the notification cannot be put together");
        };
        let deadline = Instant::now() + SEND_TIMEOUT;
        match outbound.post(&uri, headers, body, deadline).await {
            Ok(answered) => self.judge(&answered),
            Err(OutboundError::Slow) => DeliveryOutcome::failed("no answer in time"),
            Err(OutboundError::NotPermitted) => {
                DeliveryOutcome::failed("the address is not public")
            }
            Err(OutboundError::Unreachable(_)) => DeliveryOutcome::failed("no connection"),
            Err(OutboundError::Status(_) | OutboundError::Unread | OutboundError::Malformed) => {
                DeliveryOutcome::failed("no valid answer")
            }
        }
    }

    fn compose(
        &self,
        keys: &NotificationKeys,
        target: &DeliveryTarget,
        letter: &NotificationMessage<'_>,
    ) -> Result<(HeaderMap, Vec<u8>)> {
        let now = self.clock.now();
        match target {
            DeliveryTarget::WebPush {
                endpoint,
                keys: theirs,
            } => {
                let payload = letter.notice.push_payload();
                let body = web_push::encrypt(payload.as_bytes(), theirs, &ephemeral()?)?;
                let (public, contact) = (keys.vapid_text(), self.contact.as_deref());
                let proof = web_push::authorization(keys.vapid(), &public, endpoint, contact, now)?;
                let ttl = (letter.until - now.inner()).whole_seconds();
                let ttl = ttl.clamp(60, LONGEST_TTL);
                Ok((web_push::headers(proof, ttl), body))
            }
            DeliveryTarget::Webhook { secret, .. } => {
                let waiting = match letter.notice {
                    NotificationNotice::Waiting(count) => count,
                    NotificationNotice::Test => 0,
                };
                let body = WebhookBody {
                    kind: letter.notice.type_name(),
                    approver_id: letter.approver,
                    waiting,
                    url: self.page.as_deref(),
                    at: now,
                    title: "Countersign",
                    text: letter.notice.text(),
                    message: letter.notice.text(),
                };
                let body = serde_json::to_vec(&body).map_err(|_| Error::Internal)?;
                let headers = webhook::headers(&letter.id, now, &body, secret)?;
                Ok((headers, body))
            }
        }
    }

    fn judge(&self, answered: &OutboundAnswer) -> DeliveryOutcome {
        let status = answered.status;
        match status {
            status if status.is_success() => DeliveryOutcome::Delivered(status),
            StatusCode::NOT_FOUND | StatusCode::GONE => DeliveryOutcome::Gone(status),
            status if status.is_redirection() => DeliveryOutcome::Failed {
                status: Some(status),
                failure: format!(
                    "the answer is a redirect ({}), which is not followed",
                    status.as_u16()
                ),
                retry_after: None,
            },
            status => DeliveryOutcome::Failed {
                status: Some(status),
                failure: format!("the answer is {}", status.as_u16()),
                retry_after: retry_after(&answered.headers, self.clock.now()),
            },
        }
    }
}

fn ephemeral() -> Result<MessageRandomness> {
    loop {
        // Of random numbers practically all are scalars of the curve.
        if let Ok(key) = p256::SecretKey::from_slice(&random::<32>()?) {
            let salt = random()?;
            return Ok(MessageRandomness { key, salt });
        }
    }
}

/// How long the target asks to be left alone, in seconds or until a date.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    let asked = if let Ok(seconds) = text.parse() {
        Duration::from_secs(seconds)
    } else {
        let date = httpdate::parse_http_date(text).ok()?;
        let date = OffsetDateTime::from(date);
        Duration::try_from(date - now.inner()).unwrap_or_default()
    };
    Some(asked.min(MAX_RETRY_INTERVAL))
}
