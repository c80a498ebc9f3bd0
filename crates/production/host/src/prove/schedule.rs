//! Which controller each window has.

use uncork_units::Rng;

/// Stream of the seed's random numbers.
const STREAM: u64 = 0x7377_6974;

/// One of the two controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arm {
    /// The controller to compare with.
    A,
    /// The candidate controller.
    B,
}

/// A switchback window: a time with one controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Index of its pair.
    pub pair: u32,
    /// Its controller.
    pub arm: Arm,
}

impl Arm {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::A, Self::B];

    /// 0 or 1.
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// `pairs` pairs of windows, each with both arms. A coin of the seed decides the order within a pair, so changes with time are
/// as likely to favour one arm as the other.
pub fn schedule(pairs: u32, seed: u64) -> Vec<Window> {
    let mut rng = Rng::new(seed, STREAM);
    let pair = |pair| {
        let [first, second] = if rng.below(2) == 0 { Arm::BOTH } else { [Arm::B, Arm::A] };
        [Window { pair, arm: first }, Window { pair, arm: second }]
    };
    (0..pairs).flat_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_has_both_arms_in_an_order_of_the_seed() {
        let windows = schedule(1000, 7);
        assert_eq!(windows, schedule(1000, 7));
        assert_ne!(windows, schedule(1000, 8));
        let mut first_is_a = 0;
        for (pair, two) in windows.chunks(2).enumerate() {
            assert!(two.iter().all(|window| window.pair as usize == pair));
            assert_ne!(two[0].arm, two[1].arm);
            first_is_a += u32::from(two[0].arm == Arm::A);
        }
        // 500 expected, four standard deviations of 16 allowed.
        assert!(first_is_a.abs_diff(500) < 64, "{first_is_a}");
    }
}
