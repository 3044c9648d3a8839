//! Notifications of approvers: where they are sent, and the sending. They say that something waits,
//! and nothing of what it is.

mod keys;
mod load;
mod notifier;
mod send;
mod service;
mod web_push;
mod webhook;

pub use self::keys::{DeliveryTarget, NotificationKeys};
pub use self::service::{NotificationService, off};
pub use self::web_push::{MessageRandomness, encrypt};
pub(in crate::gateway) mod hints;
