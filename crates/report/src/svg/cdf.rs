//! Empirical distributions.

/// A distribution given by its values, ascending, with the share of samples up to each: as corners
/// of a staircase that begins at zero.
pub(crate) fn climb(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
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
}
