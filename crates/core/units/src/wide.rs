//! Products of two 64-bit numbers, for targets with and without 128-bit arithmetic.
//!
//! The controllers are compiled to BPF too, for the Linux kernel. BPF has no wider multiplication
//! than 64 bits and cannot call a library for one, so the functions of `limbs` do with halves of
//! 32 bits there. `u64::saturating_mul`, `u64::checked_mul` and `u64::isqrt` are 128-bit
//! multiplications in disguise; `clippy.toml` keeps them and `u128` out of the code that is compiled to BPF.
//! Elsewhere the machine's own instructions are used. Tests hold the two to the same results.

/// Whether the target lacks 128-bit arithmetic.
const IS_NARROW: bool = cfg!(target_arch = "bpf");

/// `a · b`, saturating.
#[inline]
#[expect(clippy::disallowed_methods, reason = "this is the replacement")]
pub const fn saturating_mul(a: u64, b: u64) -> u64 {
    if !IS_NARROW {
        return a.saturating_mul(b);
    }
    match limbs::checked_mul(a, b) {
        Some(product) => product,
        None => u64::MAX,
    }
}

/// `a · b`: the upper and the lower half.
#[inline]
pub const fn full_mul(a: u64, b: u64) -> (u64, u64) {
    if !IS_NARROW {
        let product = a as u128 * b as u128;
        return ((product >> 64) as u64, product as u64);
    }
    limbs::full_mul(a, b)
}

/// `(high · 2^64 + low) / c`, rounded down: the upper and the lower half. The largest number for `c` = 0.
#[inline]
pub const fn full_div((high, low): (u64, u64), c: u64) -> (u64, u64) {
    if c == 0 {
        return (u64::MAX, u64::MAX);
    }
    if !IS_NARROW {
        let quotient = ((high as u128) << 64 | low as u128) / c as u128;
        return ((quotient >> 64) as u64, quotient as u64);
    }
    limbs::full_div(high, low, c)
}

/// `a · b / c`, rounded down and saturating, also for `c` = 0. Uses 64-bit arithmetic if the product
/// fits, the per-packet case: a 128-bit division costs several times as much.
#[inline]
#[expect(clippy::disallowed_methods, reason = "this is the replacement")]
pub const fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    if c == 0 {
        return u64::MAX;
    }
    if IS_NARROW {
        return limbs::mul_div(a, b, c);
    }
    if let Some(product) = a.checked_mul(b) {
        return product / c;
    }
    let quotient = a as u128 * b as u128 / c as u128;
    if quotient > u64::MAX as u128 { u64::MAX } else { quotient as u64 }
}

/// The integer square root.
#[inline]
#[expect(clippy::disallowed_methods, reason = "this is the replacement")]
pub const fn isqrt(n: u64) -> u64 {
    if IS_NARROW { limbs::isqrt(n) } else { n.isqrt() }
}

/// Makes the compiler read again what is in memory; does nothing on hosts.
///
/// The kernel's verifier follows each path through a BPF program with all it knows about the values
/// on it, and merges two paths only where it knows the same about both. It knows nothing about a
/// value that was read from memory. Without this call between the steps of an algorithm, the paths
/// of the steps multiply, beyond the verifier's limit.
#[inline]
pub fn forget() {
    #[cfg(target_arch = "bpf")]
    core::sync::atomic::compiler_fence(core::sync::atomic::Ordering::SeqCst);
}

/// The same arithmetic in halves of 32 bits. No loop with a length that depends on a number, and
/// few branches: the verifier would follow each.
#[expect(clippy::inline_always, reason = "a call costs the verifier another look at its callee")]
mod limbs {
    const LOW: u64 = 0xffff_ffff;

    /// `a · b`, if it fits.
    #[inline(always)]
    pub(super) const fn checked_mul(a: u64, b: u64) -> Option<u64> {
        let (a1, a0, b1, b0) = (a >> 32, a & LOW, b >> 32, b & LOW);
        if a1 != 0 && b1 != 0 {
            return None;
        }
        // One of the two terms is zero.
        let cross = a1 * b0 + a0 * b1;
        if cross >> 32 != 0 {
            return None;
        }
        (a0 * b0).checked_add(cross << 32)
    }

    /// `a · b`, the upper and the lower half.
    #[inline(always)]
    pub(super) const fn full_mul(a: u64, b: u64) -> (u64, u64) {
        let (a1, a0, b1, b0) = (a >> 32, a & LOW, b >> 32, b & LOW);
        let low = a0 * b0;
        let middle = a1 * b0 + (low >> 32);
        let other = a0 * b1 + (middle & LOW);
        (a1 * b1 + (middle >> 32) + (other >> 32), (other << 32) | (low & LOW))
    }

    /// `a · b / c`, saturating; `c` is not 0.
    #[inline(always)]
    pub(super) const fn mul_div(a: u64, b: u64, c: u64) -> u64 {
        if let Some(product) = checked_mul(a, b) {
            return product / nonzero(c).get();
        }
        let (high, low) = full_mul(a, b);
        if high >= c { u64::MAX } else { narrow_div(high, low, c) }
    }

    /// `(high · 2^64 + low) / c`, the upper and the lower half; `c` is not 0.
    #[inline(always)]
    pub(super) const fn full_div(high: u64, low: u64, c: u64) -> (u64, u64) {
        let upper = high / nonzero(c).get();
        (upper, narrow_div(high - upper * c, low, c))
    }

    /// `(high · 2^64 + low) / c` for `high < c`: two digits of 32 bits (Knuth, TAOCP 4.3.1,
    /// algorithm D).
    ///
    /// In BPF it is a global function, which needs its name: the verifier looks at it once. At any other it looks once more for
    /// each path to each call.
    #[cfg_attr(target_arch = "bpf", expect(unsafe_code), unsafe(no_mangle))]
    #[inline(never)]
    const fn narrow_div(high: u64, low: u64, c: u64) -> u64 {
        let shift = c.leading_zeros() & 63;
        let c = c << shift;
        let carried = if shift == 0 { 0 } else { low >> (64 - shift) };
        let high = (high << shift) | carried;
        let low = low << shift;
        let (first, rest) = digit(high, low >> 32, c);
        let (second, _) = digit(rest, low & LOW, c);
        (first << 32) | second
    }

    /// One digit of the quotient, and the remainder. The top bit of `c` is set.
    #[inline(always)]
    const fn digit(high: u64, next: u64, c: u64) -> (u64, u64) {
        let (c1, c0) = (nonzero(c >> 32).get(), c & LOW);
        let mut q = high / c1;
        if q > LOW {
            q = LOW;
        }
        let mut rest = high - q * c1;
        // The estimate is at most two too large.
        if rest <= LOW && q * c0 > ((rest << 32) | next) {
            q -= 1;
            rest += c1;
            if rest <= LOW && q * c0 > ((rest << 32) | next) {
                q -= 1;
            }
        }
        (q, ((high << 32) | next).wrapping_sub(q.wrapping_mul(c)))
    }

    /// Newton's method with a fixed number of steps.
    pub(super) const fn isqrt(n: u64) -> u64 {
        let bits = 64 - (n | 1).leading_zeros();
        // At least the root, and less than twice the root: six steps reach it.
        let mut root = 1_u64 << bits.div_ceil(2);
        let mut step = 0;
        while step < 6 {
            root = (root + n / nonzero(root).get()) >> 1;
            step += 1;
        }
        // It may stop one above the floor, and the square of 2^32 does not fit.
        let root = if root > LOW { LOW } else { root };
        root - (root * root > n) as u64
    }

    /// `n`, or 1 instead of 0: a division by it has no path that panics.
    #[inline(always)]
    const fn nonzero(n: u64) -> core::num::NonZeroU64 {
        match core::num::NonZeroU64::new(n) {
            Some(n) => n,
            None => core::num::NonZeroU64::MIN,
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use proptest::prelude::*;

    use super::*;

    fn product(a: u64, b: u64) -> u128 {
        u128::from(a) * u128::from(b)
    }

    fn saturated(n: u128) -> u64 {
        u64::try_from(n).unwrap_or(u64::MAX)
    }

    /// Numbers of every length, and the neighbours of the powers of two.
    fn number() -> impl Strategy<Value = u64> {
        prop_oneof![
            (any::<u64>(), 0..64_u32).prop_map(|(n, shift)| n >> shift),
            (0..64_u32, 0..3_u64).prop_map(|(bit, more)| (1_u64 << bit).wrapping_add(more) - 1),
            Just(u64::MAX),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn products_are_those_of_128_bits(a in number(), b in number()) {
            let exact = product(a, b);
            prop_assert_eq!(limbs::checked_mul(a, b), u64::try_from(exact).ok());
            prop_assert_eq!(limbs::full_mul(a, b), ((exact >> 64) as u64, exact as u64));
            prop_assert_eq!(full_mul(a, b), limbs::full_mul(a, b));
            prop_assert_eq!(saturating_mul(a, b), saturated(exact));
        }

        #[test]
        fn quotients_are_those_of_128_bits(a in number(), b in number(), c in number()) {
            let c = c.max(1);
            let exact = saturated(product(a, b) / u128::from(c));
            prop_assert_eq!(limbs::mul_div(a, b, c), exact);
            prop_assert_eq!(mul_div(a, b, c), exact);
        }

        #[test]
        fn wide_quotients_are_those_of_128_bits(high in number(), low in number(), c in number()) {
            let c = c.max(1);
            let exact = (u128::from(high) << 64 | u128::from(low)) / u128::from(c);
            let halves = ((exact >> 64) as u64, exact as u64);
            prop_assert_eq!(limbs::full_div(high, low, c), halves);
            prop_assert_eq!(full_div((high, low), c), halves);
        }

        #[test]
        fn root_is_the_largest_with_a_square_that_fits(n in number()) {
            let root = limbs::isqrt(n);
            prop_assert!(product(root, root) <= u128::from(n));
            prop_assert!(product(root + 1, root + 1) > u128::from(n));
            prop_assert_eq!(isqrt(n), root);
        }
    }

    #[test]
    fn roots_next_to_squares() {
        for root in [1, 2, 3, 1_000, 65_535, 65_536, u64::from(u32::MAX)] {
            let square = root * root;
            assert_eq!([limbs::isqrt(square - 1), limbs::isqrt(square)], [root - 1, root]);
        }
    }

    #[test]
    fn division_by_zero_saturates() {
        assert_eq!(mul_div(0, 5, 0), u64::MAX);
        assert_eq!(full_div((0, 5), 0), (u64::MAX, u64::MAX));
    }
}
