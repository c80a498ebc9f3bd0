//! Histograms with readable counts, unlike those of the library.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Counts of values up to each of the `edges`, and above.
#[derive(Debug)]
pub(super) struct Buckets {
    edges: &'static [f64],
    state: Mutex<State>,
}

#[derive(Clone, Debug)]
struct State {
    sum: f64,
    counts: Vec<u64>,
}

impl Buckets {
    pub(super) fn new(edges: &'static [f64]) -> Self {
        let state = State { sum: 0.0, counts: vec![0; edges.len() + 1] };
        Self { edges, state: Mutex::new(state) }
    }

    pub(super) fn observe(&self, value: f64) {
        if value.is_finite() {
            let at = self.edges.partition_point(|edge| *edge < value);
            let mut state = self.state();
            state.sum += value;
            if let Some(count) = state.counts.get_mut(at) {
                *count += 1;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn counts(&self) -> Vec<u64> {
        self.state().counts.clone()
    }

    /// The sum, the number of values, and for each edge the number of values between the previous
    /// edge and this one.
    pub(super) fn read(&self) -> (f64, u64, Vec<(f64, u64)>) {
        let State { sum, counts } = self.state().clone();
        let edges = self.edges.iter().copied().chain([f64::INFINITY]);
        let number = counts.iter().sum();
        (sum, number, edges.zip(counts).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_belongs_to_the_lower_bucket() {
        let buckets = Buckets::new(&[1.0, 2.0]);
        for value in [0.5, 1.0, 1.5, 2.0, 2.5, f64::NAN, f64::INFINITY] {
            buckets.observe(value);
        }
        assert_eq!(buckets.counts(), [2, 2, 1]);
        let (sum, number, counts) = buckets.read();
        assert_eq!((sum, number), (7.5, 5));
        assert_eq!(counts, [(1.0, 2), (2.0, 2), (f64::INFINITY, 1)]);
    }
}
