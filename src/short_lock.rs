//! A mutex that is held for a few instructions and never across an await. If a holder panics, the
//! others go on: no update leaves the value half-written.

use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub struct ShortLock<T>(Mutex<T>);

impl<T> ShortLock<T> {
    pub const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
