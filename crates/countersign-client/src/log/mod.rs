//! The gateway's log of decisions and outcomes, as a client sees it: the key is trusted at first sight,
//! and every later checkpoint must continue the ones before. Nothing waits for the log, and no failure
//! blocks anything.

mod check;
mod memory;
mod proofs;
mod report;

pub use self::memory::known_keys;
pub(crate) use self::memory::{newest_note, note_decision, note_outcome};
pub use self::proofs::LogCheck;
pub use self::report::{LogReport, LogScope, LogState};
