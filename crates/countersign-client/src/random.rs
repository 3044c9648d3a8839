//! The system's randomness, as `countersign_e2e` takes it.

use countersign_e2e::Error;

pub fn random(bytes: &mut [u8]) -> Result<(), Error> {
    getrandom::fill(bytes).map_err(|_| Error::Random)
}
