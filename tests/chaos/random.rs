//! Choices from a seed (splitmix64), so that a run can be repeated with the same ones.

use std::sync::atomic::{AtomicU64, Ordering};

pub struct Random(AtomicU64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    pub fn next(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let state = self.0.fetch_add(STEP, Ordering::Relaxed);
        let mut mixed = state.wrapping_add(STEP);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    pub fn below(&self, end: usize) -> usize {
        let end = end.max(1);
        // The remainder fits, since `end` does.
        usize::try_from(self.next() % end as u64).unwrap_or_default()
    }

    /// True in so many of a hundred cases.
    pub fn percent(&self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn shuffle<T>(&self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.below(end + 1));
        }
    }
}
