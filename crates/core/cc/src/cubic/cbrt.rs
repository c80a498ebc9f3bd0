//! Integer cube root.

use uncork_units::wide::full_div;

/// Newton's method at least squares the relative error with each step. It starts below 1, and five steps
/// bring it below 2^-32.
const STEPS: u32 = 6;

/// The cube root of `high · 2^64 + low`, rounded down, at most `u32::MAX`.
pub(super) fn cbrt((high, low): (u64, u64)) -> u32 {
    const MAX: u64 = u32::MAX as u64;
    if high > MAX {
        return u32::MAX;
    }
    let bits = if high == 0 { 64 - low.leading_zeros() } else { 128 - high.leading_zeros() };
    // The number over the square of `root`: less than the root if and only if `root` is too large.
    let over_square = |root: u64| full_div((high, low), root * root).1;
    // At least the root, and at most twice the root.
    let mut root = (1 << bits.div_ceil(3)).min(MAX);
    for _ in 0..STEPS {
        root = ((2 * root + over_square(root)) / 3).clamp(1, MAX);
    }
    // It may stop one above.
    let is_above = over_square(root) < root;
    (root - u64::from(is_above)) as u32
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "the reference")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn root_of(n: u128) -> u32 {
        cbrt(((n >> 64) as u64, n as u64))
    }

    #[test]
    fn small_numbers() {
        let roots = [(0, 0), (1, 1), (7, 1), (8, 2), (26, 2), (27, 3), (999, 9)];
        for (n, root) in roots {
            assert_eq!(root_of(n), root, "cube root of {n}");
        }
    }

    #[test]
    fn large_numbers_saturate() {
        for n in [1 << 96, u128::MAX] {
            assert_eq!(root_of(n), u32::MAX);
        }
        assert_eq!(root_of((1 << 96) - 1), u32::MAX);
        assert_eq!(root_of(u128::from(u32::MAX).pow(3) - 1), u32::MAX - 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn cubes_are_exact(root in 1..u32::MAX, shift in 0..32_u32) {
            let root = (root >> shift).max(1);
            let cube = u128::from(root).pow(3);
            prop_assert_eq!(root_of(cube), root);
            prop_assert_eq!(root_of(cube - 1), root - 1);
            prop_assert_eq!(root_of(cube + 1), root);
        }

        #[test]
        fn cube_of_the_root_is_the_largest_that_fits(n: u128, shift in 32..128_u32) {
            let n = n >> shift;
            let root = u128::from(root_of(n));
            prop_assert!(root.pow(3) <= n && n < (root + 1).pow(3));
        }
    }
}
