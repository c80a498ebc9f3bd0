//! Statistics and intervals of samples small enough to check by hand.

use uncork_units::Rng;

use super::*;

const MEDIAN: Statistic = Statistic::Quantile(0.5);

fn clustered(samples: impl IntoIterator<Item = (u64, f64)>, statistic: Statistic) -> Samples {
    let sample = |(cluster, value)| Sample { cluster, value };
    let samples: Vec<Sample> = samples.into_iter().map(sample).collect();
    Samples::new(&samples, statistic, Range::Positive)
}

/// One value per cluster.
fn of(values: &[f64], statistic: Statistic) -> Samples {
    clustered((0..).zip(values.iter().copied()), statistic)
}

/// Sums of twelve uniform numbers: approximately normal with a mean of 6.
fn normal(seed: u64, count: usize) -> Vec<f64> {
    let mut rng = Rng::new(seed, 0);
    let mut uniform = move || rng.below(1 << 30) as f64 / f64::from(1 << 30);
    (0..count).map(|_| (0..12).map(|_| uniform()).sum::<f64>()).collect()
}

fn limits(samples: &Samples) -> Option<(f64, f64)> {
    let estimate = samples.estimate().expect("values");
    estimate.low.zip(estimate.high)
}

fn close(one: f64, other: f64) {
    assert!((one - other).abs() < 1e-3 * other.abs(), "{one} is not {other}");
}

#[test]
fn value_is_the_plain_statistic() {
    let values = [3.0, 1.0, 2.0, 10.0];
    for q in [0.25, 0.5, 0.7] {
        assert_eq!(of(&values, Statistic::Quantile(q)).value(), uncork_flow::quantile(&values, q));
    }
    assert_eq!(of(&values, Statistic::Mean).value(), Some(4.0));
    for statistic in [Statistic::Mean, Statistic::Sum, MEDIAN, Statistic::Quantile(0.99)] {
        assert_eq!(of(&[], statistic).value(), None);
        assert_eq!(of(&[], statistic).needed(), None);
    }
}

#[test]
fn unfinished_samples_are_larger_than_all_others() {
    let values = [1.0, 2.0, f64::INFINITY];
    assert_eq!(of(&values, MEDIAN).value(), Some(2.0));
    assert_eq!(of(&values, Statistic::Mean).value(), None);
    let mut values = [1.0; 10];
    values[9] = f64::INFINITY;
    assert_eq!(of(&values, Statistic::Quantile(0.9)).value(), None);
}

#[test]
fn sum_is_the_mean_sum_of_a_cluster() {
    let samples = clustered([(1, 2.0), (1, 3.0), (2, 5.0), (2, 0.0)], Statistic::Sum);
    assert_eq!(samples.value(), Some(5.0));
}

#[test]
fn quantiles_in_the_tail_need_samples_beyond_them() {
    for (q, needed) in [(0.9, 10), (0.1, 10), (0.99, 100), (0.01, 100), (0.999, 1000), (0.5, 1)] {
        let values = normal(1, needed);
        let enough = of(&values, Statistic::Quantile(q));
        assert!(enough.value().is_some() && enough.needed().is_none(), "{q}");
        if needed > 1 {
            let few = of(&values[1..], Statistic::Quantile(q));
            assert_eq!((few.value(), few.needed()), (None, Some(needed as u64)), "{q}");
        }
    }
}

/// t tables: five degrees of freedom 2.5706, nine 2.2622, 30 2.0423.
#[test]
fn t_quantile_matches_the_tables() {
    for (degrees, expected) in [(5.0, 2.5706), (9.0, 2.2622), (30.0, 2.0423), (1e9, 1.95996)] {
        assert!((t_quantile(degrees) - expected).abs() < 3e-4, "{degrees}");
    }
}

/// Mean 10, standard error 0.8944 / 10 of it: 10 · e^±(2.5706 · 0.05773).
#[test]
fn interval_of_a_mean_is_students_on_a_logarithmic_scale() {
    let (low, high) = limits(&of(&[8.0, 9.0, 10.0, 10.0, 11.0, 12.0], Statistic::Mean)).unwrap();
    let relative = 2.5706 * (10.0_f64 / 5.0 / 6.0).sqrt() / 10.0;
    close(low, 10.0 * (-relative).exp());
    close(high, 10.0 * relative.exp());
}

#[test]
fn interval_of_a_share_stays_within_0_and_1() {
    let samples = [0.5, 0.6, 0.9, 0.99, 1.0, 1.0, 1.0].into_iter().zip(0..);
    let samples: Vec<Sample> = samples.map(|(value, cluster)| Sample { cluster, value }).collect();
    let (low, high) = limits(&Samples::new(&samples, Statistic::Mean, Range::Unit)).unwrap();
    assert!(low > 0.5 && high < 1.0, "{low} to {high}");
}

/// n = 10: ranks 2 and 9 contain the median with 97.85 %, ranks 3 and 8 with 89.06 %. Interpolation
/// by Hettmansperger and Sheather: 0.6577 of the way.
#[test]
fn interval_of_a_median_lies_between_order_statistics() {
    let values: Vec<f64> = (1..=10).map(f64::from).collect();
    let (low, high) = limits(&of(&values, MEDIAN)).unwrap();
    close(low, 2.6577);
    close(high, 8.3423);
}

#[test]
fn interval_of_a_tail_needs_samples_on_both_sides() {
    // 0.9^35 = 2.504 %, 0.9^36 = 2.25 %.
    let p90 = |count| limits(&of(&normal(1, count), Statistic::Quantile(0.9)));
    assert_eq!(p90(35), None);
    assert!(p90(36).is_some());
    let p99 = |count| limits(&of(&normal(1, count), Statistic::Quantile(0.99)));
    assert_eq!(p99(360), None);
    assert!(p99(370).is_some());
}

#[test]
fn few_clusters_have_no_interval() {
    assert_eq!(limits(&of(&[1.0, 2.0, 3.0, 4.0, 5.0], MEDIAN)), None);
    assert_eq!(limits(&of(&[1.0, 2.0, 3.0, 4.0, 5.0], Statistic::Mean)), None);
}

#[test]
fn zero_counts_have_no_interval() {
    assert_eq!(limits(&of(&[0.0; 10], Statistic::Mean)), None);
    assert_eq!(limits(&of(&[3.0; 10], Statistic::Mean)), Some((3.0, 3.0)));
    assert_eq!(limits(&of(&[3.0; 10], MEDIAN)), Some((3.0, 3.0)));
}

/// Ten equal values per cluster carry no more information than one.
#[test]
fn values_of_a_cluster_count_once() {
    let values = normal(7, 8);
    let tenfold = (0..80_usize).map(|n| (n as u64 % 8, values[n % 8]));
    let (once, tenfold) = (of(&values, Statistic::Mean), clustered(tenfold, Statistic::Mean));
    let (once, tenfold) = (limits(&once).unwrap(), limits(&tenfold).unwrap());
    close(once.0, tenfold.0);
    close(once.1, tenfold.1);
}

#[test]
fn ratio_of_equal_noise_is_certain() {
    let noise = normal(3, 12);
    let twice: Vec<f64> = noise.iter().map(|value| 2.0 * value).collect();
    for statistic in [MEDIAN, Statistic::Mean] {
        let ratio = of(&twice, statistic).ratio(&of(&noise, statistic)).unwrap();
        assert!((ratio.low.unwrap() - 2.0).abs() < 1e-6, "{ratio:?}");
        assert!((ratio.high.unwrap() - 2.0).abs() < 1e-6, "{ratio:?}");
    }
}

/// A seed without data on one side does not remove the interval.
#[test]
fn ratio_handles_clusters_of_only_one_side() {
    let noise = normal(3, 12);
    let twice: Vec<f64> = noise.iter().take(11).map(|value| 2.0 * value).collect();
    let ratio = of(&twice, Statistic::Mean).ratio(&of(&noise, Statistic::Mean)).unwrap();
    let width = ratio.high.unwrap() - ratio.low.unwrap();
    assert!(width > 1e-3 && width < 0.3, "{width}");
    let apart = clustered((100..).zip(noise.iter().copied()), Statistic::Mean);
    let ratio = apart.ratio(&of(&noise, Statistic::Mean)).unwrap();
    assert!(ratio.high.unwrap() - ratio.low.unwrap() > width);
}

#[test]
fn ratio_over_zero_is_none() {
    assert!(of(&[1.0; 8], Statistic::Mean).ratio(&of(&[0.0; 8], Statistic::Mean)).is_none());
    let none = of(&[0.0; 8], Statistic::Mean).ratio(&of(&[1.0; 8], Statistic::Mean)).unwrap();
    assert_eq!((none.value, none.low), (0.0, None));
}
