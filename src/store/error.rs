//! The errors of the store, and what each SQLSTATE means for a batch.

use std::borrow::Cow;
use std::io;

use sqlx::error::DatabaseError;

/// Not finding a row is no error.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The database is unreachable, too slow, or has no connection to spare.
    #[error("the database is unavailable: {0}")]
    Unavailable(Cow<'static, str>),
    /// The database admits nobody under this configuration, as with a wrong password. Waiting does not mend it.
    #[error("the database is unavailable: {0}")]
    Refused(String),
    /// The server takes no writes; it may be a standby.
    #[error("the database takes no writes: {0}")]
    ReadOnly(String),
    /// A statement failed in a way that a retry cannot mend: a defect of the gateway.
    #[error("the database refused a statement: {0}")]
    Fault(String),
    /// The row exists already; this is the unique constraint's name.
    #[error("{0} is taken")]
    Taken(String),
}

pub type Result<T, E = StoreError> = std::result::Result<T, E>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorClass {
    /// One of the rows caused it: try them one by one.
    Data,
    /// Another transaction was in the way: try again.
    Conflict,
    /// The connection broke, perhaps after the commit: try again, and recognise work already done.
    Lost,
    /// Anything else: a retry would only add load.
    Other,
}

const READ_ONLY: &str = "25006";

fn is_read_only(error: &dyn DatabaseError) -> bool {
    error.code().as_deref() == Some(READ_ONLY)
}

pub(super) fn classify(error: &sqlx::Error) -> ErrorClass {
    match error {
        sqlx::Error::Database(error) => match error.code().as_deref() {
            Some("40001" | "40P01") => ErrorClass::Conflict,
            // Read-only as a standby is: another connection may lead to the primary, and nothing was written. Or idle for too
            // long in a transaction, which ended with its connection.
            Some(READ_ONLY | "25P03") => ErrorClass::Lost,
            // The server or this backend was shut down, or takes no connections yet.
            Some(code) if code.starts_with("57P") => ErrorClass::Lost,
            Some(code) if code.starts_with("08") => ErrorClass::Lost,
            Some(code) if code.starts_with("22") || code.starts_with("23") => ErrorClass::Data,
            _ => ErrorClass::Other,
        },
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => {
            ErrorClass::Lost
        }
        _ => ErrorClass::Other,
    }
}

/// Whether an operator can mend what the code stands for, while the statement itself is right: the call can be repeated later.
fn is_mendable(code: &str) -> bool {
    // Cancelled by a timeout, a lock that was not free, or no new transactions until a vacuum.
    matches!(code, "57014" | "55P03" | "54000")
        // Out of disk, memory, connections or another resource.
        || code.starts_with("53")
        // Not in the state that the statement needs, as during recovery.
        || matches!(code, "55000" | "55006")
        // Files that cannot be read or written.
        || code.starts_with("58")
}

/// The error of a statement that was not answered in time.
pub(super) fn unanswered() -> sqlx::Error {
    sqlx::Error::Io(io::Error::new(
        io::ErrorKind::TimedOut,
        "the database did not answer in time",
    ))
}

/// Whether the connection said nothing until our time was up. If the system's was, the connection is broken.
pub(super) fn is_unanswered(error: &sqlx::Error) -> bool {
    matches!(
        error,
        sqlx::Error::Io(error) if error.kind() == io::ErrorKind::TimedOut && error.raw_os_error().is_none()
    )
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match (classify(&error), &error) {
            (ErrorClass::Data, sqlx::Error::Database(cause)) if cause.is_unique_violation() => {
                Self::Taken(cause.constraint().unwrap_or_default().to_owned())
            }
            (ErrorClass::Other, sqlx::Error::Database(cause)) => match cause.code().as_deref() {
                Some(code) if is_mendable(code) => Self::Unavailable(error.to_string().into()),
                _ => Self::Fault(error.to_string()),
            },
            (ErrorClass::Lost, sqlx::Error::Database(cause)) if is_read_only(&**cause) => {
                Self::ReadOnly(error.to_string())
            }
            (ErrorClass::Data, _) => Self::Fault(error.to_string()),
            (ErrorClass::Conflict | ErrorClass::Lost | ErrorClass::Other, _) => {
                Self::Unavailable(error.to_string().into())
            }
        }
    }
}
