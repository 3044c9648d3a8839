//! How the failures of lower layers become refusals. Each is logged here, once.

pub use crate::protocol::error::{Error, ThrottleDetails};
use crate::store::error::StoreError;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Refuses a call about something that does not exist, or not for its caller.
pub fn found(exists: bool) -> Result<()> {
    exists.then_some(()).ok_or(Error::NotFound)
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) | StoreError::Refused(_) | StoreError::ReadOnly(_) => {
                tracing::debug!(%error, "a call could not be served");
                Self::Unavailable
            }
            StoreError::Fault(_) | StoreError::Taken(_) => {
                tracing::error!(%error, "a call failed");
                Self::Internal
            }
        }
    }
}
