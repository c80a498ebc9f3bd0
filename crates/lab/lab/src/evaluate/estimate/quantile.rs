//! Quantiles of clustered samples.

use super::{Samples, Spread, t_quantile};

/// Probability that the quantile is beyond either end of its interval.
const TAIL: f64 = 0.025;
/// With this many expected values beyond the quantile, the binomial distribution is approximated by
/// a normal one.
const MANY: f64 = 50.0;

/// The `q`-quantile of `sorted`, which is not empty: type 7 of Hyndman and Fan (The American
/// Statistician 1996), as of [`uncork_flow::quantile`].
pub(super) fn of(sorted: &[(f64, usize)], q: f64) -> f64 {
    between(sorted, (sorted.len() - 1) as f64 * q + 1.0)
}

/// The value at `rank`, counted from 1, by linear interpolation.
fn between(sorted: &[(f64, usize)], rank: f64) -> f64 {
    let place = |rank: f64| sorted[(rank as usize).clamp(1, sorted.len()) - 1].0;
    let (below, above) = (place(rank.floor()), place(rank.ceil()));
    // Between equal values the result is exact, even if they are infinite.
    if below.total_cmp(&above).is_eq() { below } else { below + (above - below) * rank.fract() }
}

/// The interval of the `q`-quantile; `None` if there are too few samples beyond it.
pub(super) fn spread(samples: &Samples, q: f64) -> Option<Spread> {
    let count = samples.sorted.len() as f64;
    let limits = if samples.is_one_each() && count * q.min(1.0 - q) < MANY {
        order_statistics(&samples.sorted, q)?
    } else {
        Inversion { samples, q }.limits()?
    };
    let relative =
        if limits.0 < limits.1 { (libm::log(limits.1) - libm::log(limits.0)) / 2.0 } else { 0.0 };
    let influence = if samples.has_medians_of_ranks() {
        let middle = (count - 1.0) / 2.0;
        let mut ranks = vec![0.0; samples.clusters.len()];
        for (rank, (_, cluster)) in samples.sorted.iter().enumerate() {
            ranks[*cluster] = rank as f64 - middle;
        }
        ranks
    } else {
        let (below, _) = below(samples, of(&samples.sorted, q));
        below.iter().zip(&samples.sizes).map(|(below, size)| q * *size as f64 - below).collect()
    };
    Some(Spread { limits, relative, influence })
}

/// The correlation of the medians of two samples with ranks of this `correlation`: between that and
/// the correlation of signs, which applies to many normal values.
pub(super) fn correlation_of_medians(correlation: f64) -> f64 {
    let signs = libm::asin(correlation) * std::f64::consts::FRAC_2_PI;
    f64::midpoint(correlation, signs)
}

/// The interval between order statistics of independent values, with exact binomial probabilities,
/// interpolated to 95 % (Hettmansperger and Sheather, Statistics & Probability Letters 1986; for
/// any quantile Nyblom, ibid. 1992).
fn order_statistics(sorted: &[(f64, usize)], q: f64) -> Option<(f64, f64)> {
    let n = sorted.len();
    let (low, high) = (lower_rank(n, q)?, lower_rank(n, 1.0 - q)?);
    Some((between(sorted, low), between(sorted, n as f64 + 1.0 - high)))
}

/// The rank (from 1, interpolated) below which the `q`-quantile lies with probability [`TAIL`];
/// `None` if even the smallest of `n` values exceeds it more often.
fn lower_rank(n: usize, q: f64) -> Option<f64> {
    let mut last: Option<(usize, f64)> = None;
    // The quantile is below the value of rank r if at most r - 1 values are below the quantile.
    for (rank, missed) in (1..).zip(binomial(n, q)) {
        if missed > TAIL {
            let (rank, tighter) = last?;
            let (r, n) = (rank as f64, n as f64);
            let odds = r * (1.0 - q) / ((n - r) * q) * (missed - TAIL) / (TAIL - tighter);
            return Some(r + 1.0 / (1.0 + odds));
        }
        last = Some((rank, missed));
    }
    None
}

/// The probabilities that at most 0, 1, … of `n` trials succeed, each with probability `q`.
fn binomial(n: usize, q: f64) -> impl Iterator<Item = f64> {
    let log_odds = libm::log(q / (1.0 - q));
    // Computed with logarithms, because (1 - q)^n may underflow.
    let mut log = n as f64 * libm::log(1.0 - q);
    let mut sum = 0.0;
    (0..n).map(move |successes| {
        sum += libm::exp(log);
        log += libm::log((n - successes) as f64 / (successes + 1) as f64) + log_odds;
        sum
    })
}

/// The interval of all values that a t test between clusters does not reject as the quantile
/// (Woodruff, JASA 1952), on a logistic scale, because shares beyond a tail are skewed if there are
/// few clusters.
struct Inversion<'a> {
    samples: &'a Samples,
    q: f64,
}

impl Inversion<'_> {
    fn limits(&self) -> Option<(f64, f64)> {
        let sorted = &self.samples.sorted;
        let last = sorted.len() - 1;
        let bound = t_quantile(self.samples.clusters.len() as f64 - 1.0);
        if sorted[0].0.total_cmp(&sorted[last].0).is_eq() {
            return Some((sorted[0].0, sorted[0].0));
        }
        if self.score(sorted[0].0) >= -bound || self.score(sorted[last].0) < bound {
            return None;
        }
        let middle = |from: usize| f64::midpoint(sorted[from].0, sorted[from + 1].0);
        Some((middle(self.last_below(-bound)), middle(self.last_below(bound))))
    }

    /// The index of the last value with a score below `bound`. The first value's score must be
    /// below it, the last one's must not.
    fn last_below(&self, bound: f64) -> usize {
        let sorted = &self.samples.sorted;
        let (mut below, mut above) = (0, sorted.len() - 1);
        while above - below > 1 {
            let middle = usize::midpoint(below, above);
            if self.score(sorted[middle].0) < bound {
                below = middle;
            } else {
                above = middle;
            }
        }
        below
    }

    /// How many standard errors the share of values below `value` exceeds `q`.
    fn score(&self, value: f64) -> f64 {
        let (below, sum) = below(self.samples, value);
        let (clusters, count) = (below.len() as f64, self.samples.sorted.len() as f64);
        let share = sum / count;
        let residuals = below.iter().zip(&self.samples.sizes);
        let squares: f64 =
            residuals.map(|(below, size)| below - share * *size as f64).map(|x| x * x).sum();
        let error = (squares * clusters / (clusters - 1.0)).sqrt() / count;
        let logit = |share: f64| libm::log(share / (1.0 - share));
        let distance = (logit(share) - logit(self.q)) * share * (1.0 - share);
        // If all clusters agree exactly, every other share is rejected.
        if distance == 0.0 { 0.0 } else { distance / error }
    }
}

/// How many values of each cluster are below `value`, counting equal ones half, and their sum.
fn below(samples: &Samples, value: f64) -> (Vec<f64>, f64) {
    let mut counts = vec![0.0; samples.clusters.len()];
    let mut sum = 0.0;
    for (other, cluster) in &samples.sorted {
        let count = match other.total_cmp(&value) {
            std::cmp::Ordering::Less => 1.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Greater => break,
        };
        counts[*cluster] += count;
        sum += count;
    }
    (counts, sum)
}
