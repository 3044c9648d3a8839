//! How the failures of lower layers become refusals. Each is logged here, once.

pub use crate::protocol::error::{Error, Throttled};
use crate::protocol::message::NotJson;
use crate::protocol::token::TokenError;
use crate::store::error::StoreError;

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl From<NotJson> for Error {
    fn from(error: NotJson) -> Self {
        tracing::error!(%error, "an envelope could not be built");
        Self::Internal
    }
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

/// The caller learns only that the token was refused; the log has the reason, never the token.
impl From<TokenError> for Error {
    fn from(why: TokenError) -> Self {
        tracing::debug!(%why, "a token was refused");
        Self::InvalidToken
    }
}
