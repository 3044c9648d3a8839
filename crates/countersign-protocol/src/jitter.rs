//! Random delays. Periodic work varies by a fifth, so that nodes started together do not stay in
//! step.

use std::time::Duration;

/// Between zero and `most`.
pub fn below(most: Duration) -> Duration {
    most * u32::from(random_byte()) / 255
}

/// `base` ± 20 %.
pub fn jitter(base: Duration) -> Duration {
    let fifth = base / 5;
    base.saturating_sub(fifth) + fifth * 2 * u32::from(random_byte()) / 255
}

/// Without a source of randomness the delay is merely regular.
fn random_byte() -> u8 {
    let mut byte = [128];
    let _unavailable = getrandom::fill(&mut byte);
    let [byte] = byte;
    byte
}
