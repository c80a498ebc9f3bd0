//! Means of clustered samples, and sums per cluster.

use super::{Range, Samples, Spread, t_quantile};
use crate::scenario::Statistic;

/// Student's t interval of the mean, with the variance between clusters (linearised: Cochran,
/// Sampling Techniques, 1977, §6.3).
///
/// It is computed on a logarithmic scale, or on a logistic one for shares, because means of skewed
/// samples are skewed. For ten exponential values, the plain interval covers the true mean in 90 %
/// of cases, this one in 94 %; for log-normal values with a sigma of 1 in 89 %.
pub(super) fn spread(samples: &Samples, mean: f64) -> Option<Spread> {
    let clusters = samples.clusters.len() as f64;
    let mut influence = vec![0.0; samples.clusters.len()];
    for (value, cluster) in &samples.sorted {
        influence[*cluster] += value;
    }
    let mut count = 0.0;
    for (sum, size) in influence.iter_mut().zip(&samples.sizes) {
        let values = if samples.statistic == Statistic::Sum { 1.0 } else { *size as f64 };
        *sum -= mean * values;
        count += values;
    }
    let squares: f64 = influence.iter().map(|x| x * x).sum();
    let error = (squares * clusters / (clusters - 1.0)).sqrt() / count;
    let half = |relative: f64| t_quantile(clusters - 1.0) * widened(relative);
    // Not defined on either scale; and a count of zero does not show how rare the event is.
    if mean <= 0.0 || samples.sorted.first().is_some_and(|(least, _)| *least < 0.0) {
        return None;
    }
    let relative = half(error / mean);
    let within_unit = samples.range == Range::Unit && mean < 1.0;
    let limits = if within_unit {
        let factor = libm::exp(half(error / (mean * (1.0 - mean))));
        let odds = mean / (1.0 - mean);
        let share = |odds: f64| if odds.is_finite() { odds / (1.0 + odds) } else { 1.0 };
        (share(odds / factor), share(odds * factor))
    } else {
        let factor = libm::exp(relative);
        (mean / factor, mean * factor)
    };
    // Without variation, rounding must not change the limits.
    let limits = if squares == 0.0 { (mean, mean) } else { limits };
    Some(Spread { limits, relative, influence })
}

/// The standard error of the logarithm of a mean with this relative error, to second order, for
/// gamma-distributed values.
fn widened(error: f64) -> f64 {
    error * (1.0 + error * error / 2.0).sqrt()
}
