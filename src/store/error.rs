//! What can go wrong in the store, and what each SQLSTATE means for a batch.

use std::borrow::Cow;

/// Not finding a row is no error.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The database is unreachable, too slow, or has no connection to spare.
    #[error("the database is unavailable: {0}")]
    Unavailable(Cow<'static, str>),
    /// A statement failed in a way that a retry cannot mend: a defect of the gateway.
    #[error("the database refused a statement: {0}")]
    Fault(String),
    /// The row exists already; this is the unique constraint's name.
    #[error("{0} is taken")]
    Taken(String),
}

pub type Result<T, E = StoreError> = std::result::Result<T, E>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// One of the rows caused it: try them one by one.
    Data,
    /// Another transaction was in the way: try again.
    Conflict,
    /// The connection broke, perhaps after the commit: try again, and recognise work already done.
    Lost,
    /// Anything else: a retry would only add load.
    Other,
}

pub(super) fn classify(error: &sqlx::Error) -> Class {
    match error {
        sqlx::Error::Database(error) => match error.code().as_deref() {
            Some("40001" | "40P01") => Class::Conflict,
            // The server or this backend was shut down: the connection is gone.
            Some("57P01" | "57P02" | "57P05") => Class::Lost,
            Some(code) if code.starts_with("22") || code.starts_with("23") => Class::Data,
            Some(code) if code.starts_with("08") => Class::Lost,
            _ => Class::Other,
        },
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => Class::Lost,
        _ => Class::Other,
    }
}

/// Allows a call that recognises its own work one retry: after a conflict, or when the reply may have been lost.
#[derive(Default)]
pub(super) struct RetryOnce {
    used: bool,
}

impl RetryOnce {
    pub fn allows(&mut self, error: &sqlx::Error) -> bool {
        let used = std::mem::replace(&mut self.used, true);
        !used && matches!(classify(error), Class::Conflict | Class::Lost)
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match (classify(&error), &error) {
            (Class::Data, sqlx::Error::Database(cause)) if cause.is_unique_violation() => {
                Self::Taken(cause.constraint().unwrap_or_default().to_owned())
            }
            (Class::Other, sqlx::Error::Database(cause)) => match cause.code().as_deref() {
                // Cancelled by a timeout, too many connections, starting up, or read-only while failing over.
                Some("57014" | "55P03" | "53300" | "57P03" | "25006") => {
                    Self::Unavailable(error.to_string().into())
                }
                _ => Self::Fault(error.to_string()),
            },
            (Class::Data, _) => Self::Fault(error.to_string()),
            (Class::Conflict | Class::Lost | Class::Other, _) => {
                Self::Unavailable(error.to_string().into())
            }
        }
    }
}
