//! Histograms for Prometheus.

/// Edges for rates: 10 kbyte/s to 10 Gbyte/s, in bytes per second.
pub const RATE_EDGES: &[f64] = &[
    1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7, 2e7, 5e7, 1e8, 2e8, 5e8, 1e9, 2e9, 5e9, 1e10,
];
/// Edges for times: 0.1 ms to 30 s, in seconds.
pub const TIME_EDGES: &[f64] = &[
    1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 3e-2, 5e-2, 7e-2, 0.1, 0.15, 0.2, 0.3, 0.5,
    1.0, 2.0, 5.0, 10.0, 30.0,
];
/// Edges for a round-trip time over the minimum: from an empty queue to thirty times the minimum.
pub const RATIO_EDGES: &[f64] =
    &[1.0, 1.05, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0, 20.0, 30.0];

/// Counts of values up to each of the edges, and above.
#[derive(Clone, Debug, PartialEq)]
pub struct Buckets {
    edges: &'static [f64],
    sum: f64,
    counts: Vec<u64>,
}

impl Buckets {
    /// No values yet. `edges` increase.
    pub fn new(edges: &'static [f64]) -> Self {
        Self { edges, sum: 0.0, counts: vec![0; edges.len() + 1] }
    }

    /// Counts a value. One that is not finite is ignored.
    pub fn observe(&mut self, value: f64) {
        if value.is_finite() {
            let at = self.edges.partition_point(|edge| *edge < value);
            self.sum += value;
            if let Some(count) = self.counts.get_mut(at) {
                *count += 1;
            }
        }
    }

    /// The number of values between the edge before and each edge, and above the last.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// The number of all values.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The sum of the values.
    pub const fn sum(&self) -> f64 {
        self.sum
    }

    /// The edges, ending with infinity, each with its count.
    pub fn edges(&self) -> impl Iterator<Item = (f64, u64)> {
        let edges = self.edges.iter().copied().chain([f64::INFINITY]);
        edges.zip(self.counts.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_belongs_to_the_lower_bucket() {
        let mut buckets = Buckets::new(&[1.0, 2.0]);
        for value in [0.5, 1.0, 1.5, 2.0, 2.5, f64::NAN, f64::INFINITY] {
            buckets.observe(value);
        }
        assert_eq!(buckets.counts(), [2, 2, 1]);
        assert!((buckets.sum() - 7.5).abs() < 1e-9);
        assert_eq!(buckets.edges().collect::<Vec<_>>(), [(1.0, 2), (2.0, 2), (f64::INFINITY, 1)]);
    }
}
