//! Seeded random numbers.

use crate::wide::full_mul;

/// A small seeded generator (SplitMix64; Steele, Lea, Flood, OOPSLA 2014). Equal seeds give equal numbers on
/// every machine. Not cryptographically secure.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator for one consumer. Consumers of the same seed use different `stream`s, so adding
    /// one does not affect the others.
    pub const fn new(seed: u64, stream: u64) -> Self {
        Self(mix(seed ^ mix(stream.wrapping_add(0x9e37_79b9_7f4a_7c15))))
    }

    /// The next 64 uniformly distributed bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number in `0..bound`; 0 when `bound` is 0. The bias is below `bound` / 2^64.
    pub const fn below(&mut self, bound: u64) -> u64 {
        full_mul(self.next_u64(), bound).0
    }
}

const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_numbers() {
        let (mut one, mut other) = (Rng::new(42, 3), Rng::new(42, 3));
        assert!((0..100).all(|_| one.next_u64() == other.next_u64()));
    }

    #[test]
    fn the_mixer_is_splitmix64() {
        // The published first outputs of SplitMix64 from state 0.
        let mut rng = Rng(0);
        assert_eq!(rng.next_u64(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(rng.next_u64(), 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn streams_of_a_seed_agree_on_half_of_their_bits() {
        for stream in 1..20 {
            let (mut one, mut other) = (Rng::new(1, 0), Rng::new(1, stream));
            let equal: u32 =
                (0..1_000).map(|_| (!(one.next_u64() ^ other.next_u64())).count_ones()).sum();
            // 32000 expected, five standard deviations of 126 allowed.
            assert!(equal.abs_diff(32_000) < 632, "stream {stream}: {equal}");
        }
    }

    #[test]
    fn below_is_less_than_its_bound() {
        let mut rng = Rng::new(1, 1);
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.below(1), 0);
        for bound in [2, 3, 1_000, u64::MAX] {
            assert!((0..1_000).all(|_| rng.below(bound) < bound));
        }
    }

    #[test]
    fn below_is_uniform() {
        let mut rng = Rng::new(5, 0);
        let mut counts = [0_u32; 10];
        for _ in 0..100_000 {
            counts[rng.below(10) as usize] += 1;
        }
        // 10000 expected in each, five standard deviations of 95 allowed.
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 475), "{counts:?}");
    }
}
