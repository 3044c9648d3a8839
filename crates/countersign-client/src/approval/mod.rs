//! Approval of calls, for agents that are written in Rust. The same three ways as in the libraries
//! for Python and TypeScript: ask and wait, run a call only if it was approved, and submit now to
//! resume in another process.
//!
//! | file | contents |
//! |---|---|
//! | `client` | the calls |
//! | `subject` | a call or content that a person is asked about |
//! | `pending` | requests that outlive their process |

mod client;
mod pending;
mod subject;

pub use self::client::ApprovalClient;
pub use self::pending::{PendingApproval, RequestOutcome, UnusedApproval};
pub use self::subject::{AskOptions, OfferedAction, ReviewSubject, ToolCall};
