//! Randomness as a parameter: tests and vectors inject known bytes, clients the system's.

use std::convert::Infallible;

use hpke::rand_core::{TryCryptoRng, TryRng};
use zeroize::{Zeroize as _, Zeroizing};

use super::error::Result;

/// Fills a buffer with unpredictable bytes, or fails. A failure ends the operation, which never
/// goes on with zeros.
pub trait RandomSource {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<()>;
}

impl<F: FnMut(&mut [u8]) -> Result<()>> RandomSource for F {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        self(bytes)
    }
}

pub(super) fn draw<const N: usize>(random: &mut impl RandomSource) -> Result<Zeroizing<[u8; N]>> {
    let mut bytes = Zeroizing::new([0; N]);
    random.fill(bytes.as_mut_slice())?;
    Ok(bytes)
}

/// The 32 bytes from which `hpke` derives an ephemeral key, drawn before it asks: its generators
/// cannot fail, the system's can. If it ever asks for more, `intact` is false and its result must
/// be thrown away.
pub(super) struct EphemeralSeed {
    bytes: Zeroizing<[u8; 32]>,
    used: bool,
    overdrawn: bool,
}

impl EphemeralSeed {
    pub(super) fn draw(random: &mut impl RandomSource) -> Result<Self> {
        Ok(Self {
            bytes: draw(random)?,
            used: false,
            overdrawn: false,
        })
    }

    pub(super) fn intact(&self) -> bool {
        self.used && !self.overdrawn
    }
}

impl TryRng for EphemeralSeed {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.overdrawn = true;
        Ok(0)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.overdrawn = true;
        Ok(0)
    }

    fn try_fill_bytes(&mut self, to: &mut [u8]) -> Result<(), Infallible> {
        if self.used || to.len() != self.bytes.len() {
            self.overdrawn = true;
            to.fill(0);
        } else {
            to.copy_from_slice(self.bytes.as_slice());
            self.bytes.zeroize();
            self.used = true;
        }
        Ok(())
    }
}

impl TryCryptoRng for EphemeralSeed {}
