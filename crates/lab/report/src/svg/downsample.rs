//! Reduces the points of curves without visible change.

/// Reduces a curve with ascending x to at most two points per bucket, with `buckets` equal parts of
/// its x range: the lowest and the highest of each part, in order. Extremes are kept, so a spike of
/// a single sample stays visible.
pub(crate) fn downsample(points: &[(f64, f64)], buckets: usize) -> Vec<(f64, f64)> {
    let [(first, _), .., (last, _)] = points else { return points.to_vec() };
    if points.len() <= buckets.saturating_mul(2) || buckets == 0 {
        return points.to_vec();
    }
    let width = (last - first) / buckets as f64;
    let bucket = |x: f64| (((x - first) / width) as usize).min(buckets - 1);
    points.chunk_by(|a, b| bucket(a.0) == bucket(b.0)).flat_map(extremes).collect()
}

fn extremes(part: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let by_y = |a: &usize, b: &usize| part[*a].1.total_cmp(&part[*b].1);
    let lowest = (0..part.len()).min_by(by_y).unwrap_or(0);
    let highest = (0..part.len()).max_by(by_y).unwrap_or(0);
    let mut kept = vec![lowest.min(highest), lowest.max(highest)];
    kept.dedup();
    kept.into_iter().map(|at| part[at]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_extremes_and_order() {
        let mut points: Vec<(f64, f64)> =
            (0..100_000).map(|i| (f64::from(i), f64::from(i % 977))).collect();
        points[31_337].1 = 5000.0;
        points[77_777].1 = -5000.0;
        let few = downsample(&points, 750);
        assert!(few.len() <= 1500, "{}", few.len());
        assert!(few.contains(&(31_337.0, 5000.0)));
        assert!(few.contains(&(77_777.0, -5000.0)));
        assert!(few.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn short_curves_are_unchanged() {
        let points = [(0.0, 1.0), (1.0, 2.0), (5.0, 0.0)];
        assert_eq!(downsample(&points, 2), points);
        assert_eq!(downsample(&[], 2), []);
    }

    #[test]
    fn one_instant_is_one_bucket() {
        let points = vec![(1.0, 1.0), (1.0, 3.0), (1.0, 2.0), (1.0, 2.5), (1.0, 2.6)];
        assert_eq!(downsample(&points, 2), [(1.0, 1.0), (1.0, 3.0)]);
    }
}
