//! What can go wrong in the store, and what each SQLSTATE means for a batch.

use std::borrow::Cow;

/// A failure of the store. Not finding a row is not one.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The database is away, too slow, or has no connection to spare.
    #[error("the database is unavailable: {0}")]
    Unavailable(Cow<'static, str>),
    /// A statement was refused in a way that retrying cannot mend: a fault of ours.
    #[error("the database refused a statement: {0}")]
    Fault(String),
    /// The row exists already (a unique constraint, by name).
    #[error("{0} is taken")]
    Taken(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// One of the rows is to blame: try them one by one.
    Data,
    /// Another transaction was in the way: the same again.
    Conflict,
    /// The connection broke, perhaps after the commit: the same again, recognising our own work.
    Lost,
    /// Anything else: trying again would multiply the overload.
    Other,
}

pub(super) fn classify(error: &sqlx::Error) -> Class {
    match error {
        sqlx::Error::Database(error) => match error.code().as_deref() {
            Some("40001" | "40P01") => Class::Conflict,
            // The server was told to stop, or this backend was: the connection is gone.
            Some("57P01" | "57P02" | "57P05") => Class::Lost,
            Some(code) if code.starts_with("22") || code.starts_with("23") => Class::Data,
            Some(code) if code.starts_with("08") => Class::Lost,
            _ => Class::Other,
        },
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => Class::Lost,
        _ => Class::Other,
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
