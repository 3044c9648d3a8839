//! The log of decisions and outcomes. One node at a time adds to it (`build`); every node reads it
//! (`read`). No statement of an exchange waits for it.

mod build;
mod read;

use std::sync::Arc;

pub use self::build::{LogProgress, NewLeaf, NewTree, UnloggedEvent};
pub use self::read::{LoggedEntry, StoredHead, StoredTile};
use super::Database;

pub struct LogStore {
    pub(in crate::store) database: Arc<Database>,
}
