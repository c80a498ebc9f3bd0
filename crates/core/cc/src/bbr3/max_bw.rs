//! BBR.max_bw: draft-ietf-ccwg-bbr-06 §5.5.2 to §5.5.6.

use uncork_units::Rate;

/// BBR.max_bw_filter: the highest delivery rate of the current and the previous bandwidth-probing
/// cycle.
///
/// MaxBwFilterLen is two cycles, so two slots suffice.
//= bbr-06 2.11-1 5.5.3-1
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxBwFilter {
    previous: Rate,
    current: Rate,
}

impl MaxBwFilter {
    /// BBR.max_bw; zero before the first sample.
    pub(super) fn get(&self) -> Rate {
        self.previous.max(self.current)
    }

    /// Adds a delivery rate sample.
    pub(super) fn update(&mut self, rate: Rate) {
        self.current = self.current.max(rate);
    }

    /// AdvanceMaxBwFilter() at the end of a cycle. A cycle without samples (the application was
    /// idle) does not measure the path, so it does not age the filter.
    //= bbr-06 3.8-1 5.5.6-1
    pub(super) fn advance(&mut self) {
        if !self.current.is_zero() {
            self.previous = self.current;
            self.current = Rate::ZERO;
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    #[test]
    //= bbr-06 2.11-1 5.5.3-1 5.5.6-1 test
    fn remembers_this_cycle_and_the_previous_one() {
        let mut filter = MaxBwFilter::default();
        filter.update(Rate::from_mbit(100));
        filter.advance();
        filter.update(Rate::from_mbit(10));
        assert_eq!(filter.get(), Rate::from_mbit(100));
        filter.advance();
        assert_eq!(filter.get(), Rate::from_mbit(10));
    }

    #[test]
    //= bbr-06 3.8-1 test
    fn empty_cycles_do_not_age_the_filter() {
        let mut filter = MaxBwFilter::default();
        filter.update(Rate::from_mbit(100));
        for _ in 0..5 {
            filter.advance();
        }
        assert_eq!(filter.get(), Rate::from_mbit(100));
    }

    proptest! {
        /// Samples; a 0 marks the end of a cycle.
        #[test]
        fn filter_returns_the_largest_sample_of_two_cycles(
            script in proptest::collection::vec(prop_oneof![1 => Just(0), 3 => 1..1_000_u64], 0..60),
        ) {
            let mut filter = MaxBwFilter::default();
            let mut cycles: Vec<Vec<u64>> = vec![vec![]];
            for sample in script {
                if sample > 0 {
                    filter.update(Rate::from_bytes_per_sec(sample));
                    cycles.last_mut().expect("a first cycle").push(sample);
                } else {
                    filter.advance();
                    cycles.push(vec![]);
                }
                // Only cycles with samples count. The current one may not have any yet.
                let (current, past) = cycles.split_last().expect("a first cycle");
                let previous = past.iter().rev().find(|cycle| !cycle.is_empty());
                let largest = previous.into_iter().chain([current]).flatten().max();
                prop_assert_eq!(filter.get().bytes_per_sec(), *largest.unwrap_or(&0));
            }
        }
    }
}
