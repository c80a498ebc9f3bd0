//! What can be replaced while others use it.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// Something that is read often and replaced seldom. Who has taken it keeps what was there.
///
/// A lock of the standard library is enough: it is held for as long as a reference is counted, once per
/// connection, and for a policy that decides each request once per request. Nothing is read or made
/// under it.
pub(crate) struct Swap<T>(RwLock<Arc<T>>);

impl<T> Swap<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(RwLock::new(Arc::new(value)))
    }

    /// What is there now.
    pub(crate) fn get(&self) -> Arc<T> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn set(&self, value: T) {
        let value = Arc::new(value);
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = value;
    }
}

impl<T: fmt::Debug> fmt::Debug for Swap<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}
