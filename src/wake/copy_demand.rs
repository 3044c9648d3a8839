//! The recipients whose messages other nodes want copies of. A node asks when a channel opens, and again when it is told of a message
//! for it. So nobody sends copies of messages that only the database waits for.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::short_lock::ShortLock;

/// How long copies are sent after a node has asked.
const DEMAND_LIFETIME: Duration = Duration::from_secs(600);
/// How often a node asks for the same.
const ASK_INTERVAL: Duration = Duration::from_secs(60);
/// Keys that are kept. When there are more, all are forgotten, and asked for again.
const KEYS: usize = 262_144;

#[derive(Default)]
pub(super) struct CopyDemand {
    /// By other nodes.
    elsewhere: DemandTimes,
    /// By this node.
    here: DemandTimes,
}

/// When the messages of a key were asked for, by its digest.
#[derive(Default)]
struct DemandTimes(ShortLock<HashMap<u64, Instant>>);

impl DemandTimes {
    fn is_within(&self, digest: u64, time: Duration) -> bool {
        let times = self.0.lock();
        times.get(&digest).is_some_and(|at| at.elapsed() < time)
    }

    fn set(&self, digest: u64) {
        let mut times = self.0.lock();
        if times.len() >= KEYS && !times.contains_key(&digest) {
            times.clear();
        }
        times.insert(digest, Instant::now());
    }
}

impl CopyDemand {
    /// Notes that another node asked.
    pub fn note(&self, digest: u64) {
        self.elsewhere.set(digest);
    }

    pub fn is_wanted(&self, digest: u64) -> bool {
        self.elsewhere.is_within(digest, DEMAND_LIFETIME)
    }

    /// Asks for everything again, since there is another node, or what was asked is lost.
    pub fn ask_again(&self) {
        self.here.0.lock().clear();
    }

    /// Whether this node is to ask now.
    pub fn must_ask(&self, digest: u64) -> bool {
        let must = !self.here.is_within(digest, ASK_INTERVAL);
        if must {
            self.here.set(digest);
        }
        must
    }
}
