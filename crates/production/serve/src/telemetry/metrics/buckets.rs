//! Histograms that several threads fill.

use std::sync::{Mutex, MutexGuard, PoisonError};

use uncork_flow::Buckets;

/// [`Buckets`] behind a lock.
#[derive(Debug)]
pub(super) struct SharedBuckets(Mutex<Buckets>);

impl SharedBuckets {
    pub(super) fn new(edges: &'static [f64]) -> Self {
        Self(Mutex::new(Buckets::new(edges)))
    }

    pub(super) fn observe(&self, value: f64) {
        self.locked().observe(value);
    }

    pub(super) fn locked(&self) -> MutexGuard<'_, Buckets> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
