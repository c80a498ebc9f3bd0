//! Statistics of small samples, such as a value per seed or a throughput per flow.

/// The `q`-quantile of `values`, 0 ≤ `q` ≤ 1, by linear interpolation between order statistics
/// (type 7 of Hyndman and Fan, The American Statistician 1996); `None` without values.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    quantile_of_sorted(&sorted, q)
}

/// [`quantile`] of sorted `values`.
pub(crate) fn quantile_of_sorted(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let position = last as f64 * q.clamp(0.0, 1.0);
    let (below, above) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
    // Between equal values the result is exact, even if they are infinite.
    let step = if below.total_cmp(&above).is_eq() { 0.0 } else { above - below };
    Some(below + step * position.fract())
}

/// The arithmetic mean; `None` without values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Fairness of `shares`, from 1/n (one has everything) to 1 (all are equal): Jain's index (Jain,
/// Chiu, Hawe, DEC-TR-301, 1984). `None` if the sum is zero.
pub fn jain_index(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::{prop_assert, proptest};

    use super::*;

    #[test]
    fn quantiles_interpolate() {
        let values = [40.0, 10.0, 30.0, 20.0];
        assert_eq!(quantile(&values, 0.0), Some(10.0));
        assert_eq!(quantile(&values, 0.5), Some(25.0));
        assert_eq!(quantile(&values, 0.1), Some(13.0));
        assert_eq!(quantile(&values, 0.9), Some(37.0));
        assert_eq!(quantile(&values, 1.0), Some(40.0));
    }

    #[test]
    fn one_value_is_every_quantile() {
        assert_eq!(quantile(&[7.0], 0.1), Some(7.0));
        assert_eq!(quantile(&[0.1; 3], 0.35), Some(0.1));
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn quantiles_out_of_range_are_clamped() {
        assert_eq!(quantile(&[1.0, 2.0], 1.5), Some(2.0));
        assert_eq!(quantile(&[1.0, 2.0], -1.0), Some(1.0));
    }

    #[test]
    fn unfinished_transfers_may_count_as_infinite() {
        let values = [1.0, 2.0, f64::INFINITY, f64::INFINITY];
        assert_eq!(quantile(&values, 1.0 / 3.0), Some(2.0));
        assert_eq!(quantile(&values, 0.5), Some(f64::INFINITY));
        assert_eq!(quantile(&values, 0.9), Some(f64::INFINITY));
    }

    #[test]
    fn means() {
        assert_eq!(mean(&[1.0, 2.0, 6.0]), Some(3.0));
        assert_eq!(mean(&[]), None);
    }

    #[test]
    fn fairness_runs_from_one_nth_to_one() {
        assert_eq!(jain_index(&[5.0, 5.0, 5.0, 5.0]), Some(1.0));
        assert_eq!(jain_index(&[8.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain_index(&[1.0, 3.0]), Some(0.8));
        assert_eq!(jain_index(&[]), None);
        assert_eq!(jain_index(&[0.0, 0.0]), None);
    }

    proptest! {
        #[test]
        fn quantiles_stay_within_the_values_and_in_order(
            values in vec(-1e9..1e9_f64, 1..20),
            q in 0.0..1.0_f64,
            step in 0.0..1.0_f64,
        ) {
            let (low, high) = (quantile(&values, 0.0).unwrap(), quantile(&values, 1.0).unwrap());
            let at = quantile(&values, q).unwrap();
            let tolerance = 1e-6;
            prop_assert!(low - tolerance <= at && at <= high + tolerance);
            prop_assert!(quantile(&values, q + step).unwrap() >= at - tolerance);
        }
    }
}
