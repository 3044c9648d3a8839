//! Things that happened a moment ago, each forgotten after a time.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

pub(super) struct RecentSet<T> {
    lifetime: Duration,
    times: HashMap<T, Instant>,
    /// Oldest first.
    order: VecDeque<(Instant, T)>,
}

impl<T: Clone + Eq + Hash> RecentSet<T> {
    pub fn new(lifetime: Duration) -> Self {
        Self {
            lifetime,
            times: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    pub fn insert(&mut self, thing: T, now: Instant) {
        self.remove_old(now);
        self.times.insert(thing.clone(), now);
        self.order.push_back((now, thing));
    }

    pub fn contains(&self, thing: &T, now: Instant) -> bool {
        let at = self.times.get(thing);
        at.is_some_and(|at| now.saturating_duration_since(*at) <= self.lifetime)
    }

    fn remove_old(&mut self, now: Instant) {
        while let Some((at, _)) = self.order.front()
            && now.saturating_duration_since(*at) > self.lifetime
            && let Some((at, thing)) = self.order.pop_front()
        {
            // It may have been inserted again.
            if self.times.get(&thing) == Some(&at) {
                self.times.remove(&thing);
            }
        }
    }
}
