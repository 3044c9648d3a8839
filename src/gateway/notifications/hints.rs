//! A queue in memory of the approvers that submissions have asked, for the notifier.

use tokio::sync::mpsc;

use crate::protocol::id::{ApproverId, TenantId};

/// Approvers that wait to be looked at. The sweep finds those that do not fit.
const MAX_NOTICES: usize = 8_192;

pub type NotificationHint = (TenantId, ApproverId);

#[derive(Clone)]
pub struct NotificationHints(Option<mpsc::Sender<NotificationHint>>);

impl NotificationHints {
    /// A queue, or none if nothing is to be sent.
    pub fn new(enabled: bool) -> (Self, mpsc::Receiver<NotificationHint>) {
        let (sender, receiver) = mpsc::channel(MAX_NOTICES);
        (Self(enabled.then_some(sender)), receiver)
    }

    pub fn leave<'a>(
        &self,
        tenant: &TenantId,
        approvers: impl IntoIterator<Item = &'a ApproverId>,
    ) {
        let Some(sender) = &self.0 else {
            return;
        };
        for approver in approvers {
            // Full: the sweep finds it.
            let _full = sender.try_send((tenant.clone(), approver.clone()));
        }
    }
}
