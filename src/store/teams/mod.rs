//! Teams: their chains of states, who may read them, joining, and the pairings that follow from them.

pub mod follow;
pub mod introduction;
pub mod invitation;
pub mod state;

use std::sync::Arc;

use crate::store::database::pools::Database;

pub struct TeamStore {
    pub(in crate::store) database: Arc<Database>,
}
