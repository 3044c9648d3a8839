//! Jitter: whatever is periodic varies by a fifth, so that nodes started together do not stay together.

use std::time::Duration;

/// `base` ± 20 %.
#[must_use]
pub fn jitter(base: Duration) -> Duration {
    let mut byte = [128];
    // Without randomness the period is merely regular.
    let _unavailable = getrandom::fill(&mut byte);
    let fifth = base / 5;
    base.saturating_sub(fifth) + fifth * 2 * u32::from(byte[0]) / 255
}
