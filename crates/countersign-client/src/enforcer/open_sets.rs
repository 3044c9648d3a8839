//! The sets that go on without their calls: listed, and withdrawn by hand.

use std::time::Duration;

use futures_util::future::try_join_all;
use tokio::time::Instant;

use super::approval_request::ApprovalDenial;
use super::parked_set::KeptSet;
use super::role::Enforcer;
use super::withdrawal::take_back_unsent;
use crate::error::Result;
use countersign_e2e::PlainArtifact;
use countersign_protocol::id::RequestId;

const WITHDRAW_TIMEOUT: Duration = Duration::from_secs(5);

/// A set in its file.
pub struct OpenSet {
    pub id: RequestId,
    /// `None` if the file is not as this enforcer has written it. It counts for nothing.
    pub artifact: Option<PlainArtifact>,
    /// Whether a call waits for it now.
    pub is_awaited: bool,
}

impl Enforcer {
    /// The sets that are open, the oldest first. Those that are over are removed.
    pub fn open_sets(&self) -> Result<Vec<OpenSet>> {
        let folder = self.set_folder();
        let mut open = Vec::new();
        for id in folder.ids() {
            let (place, stored) = (folder.lock(&id), folder.read(&id));
            let is_awaited = place.is_none();
            match (stored, place) {
                (Some(stored), Some(place)) if self.is_over(&stored) => place.remove()?,
                (stored, _) => open.push(OpenSet {
                    id,
                    artifact: stored.map(|stored| stored.artifact),
                    is_awaited,
                }),
            }
        }
        Ok(open)
    }

    /// Ends a set: no call can be allowed by it any more. A call that waits for it is denied.
    pub async fn withdraw_set(&mut self, id: &RequestId) -> Result<(), ApprovalDenial> {
        let folder = self.set_folder();
        let (place, stored) = (folder.lock(id), folder.read(id));
        let is_first = self.take_once(id)?;
        folder.remove(id)?;
        match (stored, place) {
            (Some(stored), Some(place)) if is_first => {
                let kept = KeptSet {
                    folder,
                    place,
                    stored,
                };
                self.withdraw_kept(kept, "withdrawn").await
            }
            // The call that waits has its lock, and finds its requests withdrawn.
            (Some(stored), None) => {
                let deadline = Instant::now() + WITHDRAW_TIMEOUT;
                let taking = stored.parts.iter().map(|part| {
                    take_back_unsent(&self.access, &part.request_id, "withdrawn", deadline)
                });
                try_join_all(taking).await?;
                Ok(())
            }
            (_, _) => Ok(()),
        }
    }
}
