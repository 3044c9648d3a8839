//! The fifteen digits that two people, or one in front of two screens, compare when a pairing code
//! was typed.

use std::fmt;
use std::num::NonZeroU32;

use ring::pbkdf2;

use countersign_protocol::pairing::Nonce;

const PURPOSE: &[u8] = b"countersign digits v1";
/// Makes each guess at a second pair of bundles with the same digits expensive.
const ITERATIONS: NonZeroU32 = NonZeroU32::MIN.saturating_add(600_000 - 1);
const LIMIT: u128 = 1_000_000_000_000_000;

/// Shown as three groups of five.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComparisonDigits(u64);

impl ComparisonDigits {
    pub(super) fn of(transcript: &str, nonce: &Nonce) -> Self {
        let message = [PURPOSE, transcript.as_bytes()].concat();
        let salt = nonce.as_str().as_bytes();
        let mut derived = [0; 16];
        let algorithm = pbkdf2::PBKDF2_HMAC_SHA256;
        pbkdf2::derive(algorithm, ITERATIONS, salt, &message, &mut derived);
        let number = u128::from_be_bytes(derived) % LIMIT;
        Self(u64::try_from(number).unwrap_or_default())
    }
}

impl fmt::Display for ComparisonDigits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = |place: u64| self.0 / place % 100_000;
        let (first, second) = (group(10_000_000_000), group(100_000));
        write!(f, "{first:05} {second:05} {:05}", group(1))
    }
}

/// Something that is trusted only once a person has said that both screens show the same digits.
#[derive(Debug)]
#[must_use = "nothing is pinned until the digits were compared"]
pub struct DigitComparison<T> {
    digits: ComparisonDigits,
    subject: T,
}

impl<T> DigitComparison<T> {
    pub(super) fn new(digits: ComparisonDigits, subject: T) -> Self {
        Self { digits, subject }
    }

    pub fn digits(&self) -> ComparisonDigits {
        self.digits
    }

    /// To be shown beside the digits, and nothing more.
    pub fn claimed(&self) -> &T {
        &self.subject
    }

    /// To be called only after a person answered yes.
    pub fn confirmed_by_person(self) -> T {
        self.subject
    }
}
