//! Jitter: whatever is periodic varies by a fifth, so that nodes started together do not stay together.

use std::time::Duration;

/// Anything from nothing to `most`.
#[must_use]
pub fn below(most: Duration) -> Duration {
    most * u32::from(random_byte()) / 255
}

/// `base` ± 20 %.
#[must_use]
pub fn jitter(base: Duration) -> Duration {
    let fifth = base / 5;
    base.saturating_sub(fifth) + fifth * 2 * u32::from(random_byte()) / 255
}

/// A random byte; without randomness a middling one, and the period is merely regular.
fn random_byte() -> u8 {
    let mut byte = [128];
    let _unavailable = getrandom::fill(&mut byte);
    let [byte] = byte;
    byte
}
