//! Logarithmic bins: bin `b` holds the values in `(GAMMA^(b-1), GAMMA^b]`, as in `measure/bins.py`.

/// The ratio of neighbouring bins' edges. A quantile read from the bins is within 1 % of the exact one.
pub const GAMMA: f64 = 1.02;

/// Its logarithm.
pub const LN_GAMMA: f64 = 0.019_802_627_296_179_73;

/// The bin of a value that cannot be: negative, infinite or no number.
pub const IMPOSSIBLE: i32 = -(1 << 30);

/// The largest value that counts as a number.
const LIMIT: f64 = 1e300;

/// The bin of `value`. Values beyond the bounds count as these, zero as the lower one.
pub fn bin_of(value: f64, (low, high): (f64, f64)) -> i32 {
    if !(0.0..LIMIT).contains(&value) {
        return IMPOSSIBLE;
    }
    (value.clamp(low, high).ln() / LN_GAMMA).ceil() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_have_the_edges_and_bounds_of_python() {
        let bounds = (1e3, 1e12);
        // python: bin_of([1e3, 1e12, 1e6, 123456789.0])
        let expected = [(0.0, 349), (1e3, 349), (1e13, 1396), (1e6, 698), (123_456_789.0, 941)];
        for (value, bin) in expected {
            assert_eq!(bin_of(value, bounds), bin, "{value}");
        }
        for value in [-1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(bin_of(value, bounds), IMPOSSIBLE, "{value}");
        }
    }

    #[test]
    fn ln_gamma_is_the_logarithm_of_gamma() {
        assert_eq!(GAMMA.ln().to_bits(), LN_GAMMA.to_bits());
    }
}
