//! `[notifications]`: telling approvers that something waits.

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::error::ConfigError;
use super::require::require;
use super::tls::networks;

/// Longest delay before a notification that failed is sent again.
pub const MAX_RETRY_SECONDS: u64 = 300;

section! {
    /// `[notifications]`: telling approvers that something waits, by Web Push and webhooks.
    Notifications {
        /// Whether anything is sent. It also needs `security.cluster_secret`.
        enabled: bool = true,
        /// Whom a push service may contact about this gateway, as `mailto:` or `https:`; `page.url`
        /// if empty and https.
        contact: String = String::new(),
        /// Networks that may be notified although they are not public, also without TLS.
        #[serde(deserialize_with = "networks")]
        allow: Vec<IpNet> = Vec::new(),
        /// Least time between two notifications to the same target. All requests in between are one
        /// notification.
        pause_seconds: u64 = 10,
        /// How often a node looks for what was not sent when it was submitted.
        sweep_ms: u64 = 15_000,
    }
    constants {
        /// First delay before a notification that failed is sent again; it doubles.
        retry_seconds: u64 = 5,
        /// How long a target may fail before it is disabled.
        give_up_seconds: u64 = 3 * 24 * 3_600,
    }
}

impl Notifications {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let visible = self.contact.bytes().all(|byte| byte.is_ascii_graphic());
        let known = ["mailto:", "https://"]
            .iter()
            .filter_map(|scheme| self.contact.strip_prefix(scheme))
            .any(|rest| !rest.is_empty());
        require(
            self.contact.is_empty() || (visible && known),
            "notifications.contact",
            "must be such as mailto:security@example.com or https://example.com",
        )?;
        require(
            self.sweep_ms > 0,
            "notifications.sweep_ms",
            "must be at least 1",
        )
    }
}
