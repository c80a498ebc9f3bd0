//! Integer cube root.

/// The largest integer whose cube is at most `n`, by Newton's method from above.
pub(super) fn cbrt(n: u128) -> u64 {
    if n == 0 {
        return 0;
    }
    let bits = u128::BITS - n.leading_zeros();
    // 2^ceil(bits/3) is above the root and at most twice the next power of two above it.
    let mut root = 1u128 << bits.div_ceil(3);
    loop {
        let next = (2 * root + n / (root * root)) / 3;
        if next >= root {
            return root as u64;
        }
        root = next;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::cbrt;

    #[test]
    fn small_numbers() {
        let roots: [(u128, u64); 7] = [(0, 0), (1, 1), (7, 1), (8, 2), (26, 2), (27, 3), (999, 9)];
        for (n, root) in roots {
            assert_eq!(cbrt(n), root, "cube root of {n}");
        }
    }

    #[test]
    fn largest_number() {
        // 6981463658331^3 < 2^128 < 6981463658332^3.
        assert_eq!(cbrt(u128::MAX), 6_981_463_658_331);
    }

    proptest! {
        #[test]
        fn cubes_are_exact(root in 1u64..6_981_463_658_331) {
            let cube = u128::from(root).pow(3);
            prop_assert_eq!(cbrt(cube), root);
            prop_assert_eq!(cbrt(cube - 1), root - 1);
            prop_assert_eq!(cbrt(cube + 1), root);
        }
    }
}
