//! Failures whose cause is logged here, once, because the caller must not learn it.

use super::Error;
use crate::message::NotJson;
use crate::token::TokenError;

impl From<NotJson> for Error {
    fn from(error: NotJson) -> Self {
        tracing::error!(%error, "an envelope could not be built");
        Self::Internal
    }
}

/// The caller learns only that the token was refused; the log has the reason, never the token.
impl From<TokenError> for Error {
    fn from(why: TokenError) -> Self {
        tracing::debug!(%why, "a token was refused");
        Self::InvalidToken
    }
}
