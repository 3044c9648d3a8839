//! Why the gateway refuses a target to notify an approver at.

use super::code::Code;
use super::description::ErrorDescription;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotificationError {
    #[error("this gateway doesn't send notifications: {reason}")]
    Off { reason: &'static str },
    #[error("notifications are sent only over https and to public addresses")]
    Address { pointer: &'static str },
    #[error("this approver has no such active device")]
    NoDevice,
    #[error("an approver can have at most {limit} notification targets")]
    TooMany { limit: usize },
    #[error("this notification was added with another cluster secret")]
    Stale,
}

impl NotificationError {
    pub(super) fn describe(&self) -> ErrorDescription {
        let refusal = |status, code| ErrorDescription::new(status, code, self.to_string());
        match self {
            Self::Off { .. } => {
                refusal(403, Code::PolicyDeny).expecting("an operator that enables notifications")
            }
            Self::Address { pointer } => refusal(403, Code::PolicyDeny)
                .at(pointer)
                .expecting("an https URL with a public address, or one in notifications.allow"),
            Self::NoDevice => refusal(403, Code::PolicyDeny)
                .at("/deviceId")
                .expecting("a device of this approver that is in force"),
            Self::TooMany { limit } => refusal(422, Code::TooLarge)
                .expecting("fewer notifications: remove one first")
                .with("limit", *limit),
            Self::Stale => refusal(409, Code::InvalidState).expecting("the same URL, added again"),
        }
    }
}
