//! What the tests share: a private PostgreSQL, clusters of nodes on databases of their own, clients typed by role, and
//! the messages they send.

pub mod answer;
pub mod client;
pub mod cluster;
pub mod database;
pub mod messages;
pub mod process;
pub mod proxy;
pub mod raw;

pub use self::answer::Answer;
pub use self::client::{Approver, Client, Enforcer};
pub use self::cluster::Cluster;
pub use self::messages::*;

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Waits until `condition` holds, and fails the test if it does not within `patience`.
pub async fn until<F: Future<Output = bool>>(
    what: &str,
    patience: Duration,
    mut condition: impl FnMut() -> F,
) {
    let deadline = Instant::now() + patience;
    while !condition().await {
        assert!(Instant::now() < deadline, "not within {patience:?}: {what}");
        sleep(Duration::from_millis(10)).await;
    }
}
