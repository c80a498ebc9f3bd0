//! Empirical distributions.

/// Corners of the step function of a distribution, starting at zero, from its ascending values and
/// the share of samples up to each.
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
    fn steps_start_at_zero() {
        let corners = [(1.0, 0.0), (1.0, 0.5), (3.0, 0.5), (3.0, 1.0)];
        assert_eq!(climb(&[(1.0, 0.5), (3.0, 1.0)]), corners);
    }
}
