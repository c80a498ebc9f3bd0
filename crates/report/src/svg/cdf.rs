//! Empirical distributions.

/// The cumulative distribution of `values` as corners of a staircase, in percent. `absent` more
/// values are known to lie beyond all others (transfers that did not finish): the staircase then
/// ends below 100.
pub fn steps(values: &[f64], absent: u64) -> Vec<(f64, f64)> {
    let mut values: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let all = values.len() as f64 + absent as f64;
    let mut corners = Vec::with_capacity(values.len() * 2);
    for (below, value) in values.into_iter().enumerate() {
        corners.push((value, below as f64 / all * 100.0));
        corners.push((value, (below + 1) as f64 / all * 100.0));
    }
    corners
}

/// A distribution given by its values, ascending, with the share of samples up to each: as corners
/// of a staircase that begins at zero.
pub fn climb(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut share = 0.0;
    let mut corners = Vec::with_capacity(points.len() * 2);
    for (value, up_to) in points {
        corners.extend([(*value, share), (*value, *up_to)]);
        share = *up_to;
    }
    corners
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn climbs_from_zero() {
        let corners = [(1.0, 0.0), (1.0, 0.5), (3.0, 0.5), (3.0, 1.0)];
        assert_eq!(climb(&[(1.0, 0.5), (3.0, 1.0)]), corners);
    }

    #[test]
    fn climbs_at_each_value() {
        let corners = [(1.0, 0.0), (1.0, 50.0), (3.0, 50.0), (3.0, 100.0)];
        assert_eq!(steps(&[3.0, 1.0], 0), corners);
    }

    #[test]
    fn ends_below_a_hundred_when_some_never_finish() {
        assert_eq!(steps(&[2.0], 3), [(2.0, 0.0), (2.0, 25.0)]);
        assert_eq!(steps(&[], 3), []);
        assert_eq!(steps(&[f64::NAN], 0), []);
    }
}
