//! Locks that stay usable after a panic of another thread.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A mutex that can be locked after a panic of a thread that held it. Only for state that is never
/// left incomplete, or where a panic of one thread ends all others.
#[derive(Debug, Default)]
pub struct Lock<T: ?Sized>(Mutex<T>);

impl<T> Lock<T> {
    /// Creates a lock around `value`.
    pub const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Lock<T> {
    /// Waits until no other thread holds the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits on `changed` while `waits` is true. The guard is released meanwhile.
pub fn wait_while<'g, T>(
    changed: &Condvar,
    guard: MutexGuard<'g, T>,
    waits: impl FnMut(&mut T) -> bool,
) -> MutexGuard<'g, T> {
    changed
        .wait_while(guard, waits)
        .unwrap_or_else(PoisonError::into_inner)
}
