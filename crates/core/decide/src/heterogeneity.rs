//! Do cells differ by more than chance?
//!
//! Two tests share a small error rate. Cochran's Q (1954) sees many small differences, the largest leave-one-out deviation sees
//! one cell among many. Both take normal scores of Student's t, so that few degrees of freedom do not count as differences.
//! Overlapping cells are positively dependent: their differences vary less than the tests assume, so the error rate is smaller,
//! never larger.

use std::collections::BTreeSet;

use crate::case::Estimate;
use crate::distribution::{chi_squared_tail, normal_cdf, normal_quantile, tail};

/// Error rate of both tests together: cells decide by themselves only where they clearly differ.
const ALPHA: f64 = 0.01;
/// With fewer cells it is not clear which of them is the outlier.
const MIN_SIBLINGS: usize = 5;
/// One of this many cells may be an outlier. With more, cells are of several kinds and none is an outlier.
const CELLS_PER_OUTLIER: usize = 5;
/// Of normal scores: further tails underflow.
const MAX_SCORE: f64 = 30.0;

/// Which cells differ. Cells are places in the list of estimates.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heterogeneity {
    pub(crate) is_found: bool,
    pub(crate) outliers: BTreeSet<usize>,
    /// Whether cells without the outliers still differ.
    pub(crate) rest_differs: bool,
    /// Common effect of the cells that are not outliers.
    pub(crate) rest: Option<Estimate>,
}

/// `overlap`: how many cells a unit is in, on average.
pub(crate) fn heterogeneity(estimates: &[Option<Estimate>], overlap: f64) -> Heterogeneity {
    let mut active: Vec<(usize, Estimate)> =
        estimates.iter().enumerate().filter_map(|(place, one)| Some((place, (*one)?))).collect();
    let cells = active.len();
    let mut found = Heterogeneity::default();
    if cells < 2 {
        return found;
    }
    let max_outliers = if cells >= MIN_SIBLINGS { cells / CELLS_PER_OUTLIER } else { 0 };
    loop {
        let some: Vec<Estimate> = active.iter().map(|(_, one)| *one).collect();
        let (place, p_outlier) = furthest(&some);
        let is_outlier = p_outlier * (cells as f64) < ALPHA / 2.0;
        let differs = is_outlier || p_of_q(&some) < ALPHA / 2.0;
        found.is_found |= differs;
        if !is_outlier || found.outliers.len() >= max_outliers {
            found.rest_differs = differs;
            found.rest = (!found.outliers.is_empty()).then(|| pooled(&some, overlap));
            return found;
        }
        found.outliers.insert(active.remove(place).0);
    }
}

/// 1 / variance, of a normal as wide as Student's t.
fn weight(one: &Estimate) -> f64 {
    one.normal_error().powi(-2)
}

/// Precision-weighted mean. A unit in several cells counts once.
fn pooled(some: &[Estimate], overlap: f64) -> Estimate {
    let sum: f64 = some.iter().map(weight).sum();
    let gain = some.iter().map(|one| weight(one) * one.gain).sum::<f64>() / sum;
    Estimate { gain, error: (overlap.max(1.0) / sum).sqrt(), df: f64::INFINITY, p: None }
}

/// p-value of Cochran's Q of normal scores.
fn p_of_q(some: &[Estimate]) -> f64 {
    if some.len() < 2 {
        return 1.0;
    }
    let centre = pooled(some, 1.0).gain;
    let q = some.iter().map(|one| score((one.gain - centre) / one.error, one.df).powi(2)).sum();
    chi_squared_tail(q, some.len() as f64 - 1.0)
}

/// The cell furthest from all others, and the two-sided p-value of its deviation alone.
fn furthest(some: &[Estimate]) -> (usize, f64) {
    if some.len() < 2 {
        return (0, 1.0);
    }
    let sum: f64 = some.iter().map(weight).sum();
    let weighted: f64 = some.iter().map(|one| weight(one) * one.gain).sum();
    let deviation = |one: &Estimate| {
        let rest = sum - weight(one);
        let from_rest = one.gain - (weighted - weight(one) * one.gain) / rest;
        score(from_rest / one.error.hypot(rest.sqrt().recip()), one.df).abs()
    };
    let mut largest = (0, f64::NEG_INFINITY);
    for (place, z) in some.iter().map(deviation).enumerate() {
        if z > largest.1 {
            largest = (place, z);
        }
    }
    (largest.0, 2.0 * normal_cdf(-largest.1))
}

/// The normal deviate as improbable as `t`.
fn score(t: f64, df: f64) -> f64 {
    if df.is_infinite() {
        return t.clamp(-MAX_SCORE, MAX_SCORE);
    }
    let p = tail(t.abs(), df);
    let deviate = if p > 0.0 { (-normal_quantile(p)).min(MAX_SCORE) } else { MAX_SCORE };
    deviate.copysign(t)
}
