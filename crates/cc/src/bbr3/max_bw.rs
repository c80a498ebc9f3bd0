//! BBR.max_bw: draft-ietf-ccwg-bbr-06 §5.5.2 to §5.5.6.

use uncork_units::Rate;

/// BBR.max_bw_filter: the largest delivery rate of this bandwidth-probing cycle and the one before.
///
/// MaxBwFilterLen is two cycles, so two slots are the whole window.
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

    /// Takes in a delivery rate.
    pub(super) fn update(&mut self, rate: Rate) {
        self.current = self.current.max(rate);
    }

    /// AdvanceMaxBwFilter(): a cycle is over. A cycle without a single sample (the application had
    /// nothing to send) says nothing about the path and ages nothing.
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
    use super::*;

    //= bbr-06 2.11-1 5.5.3-1 5.5.6-1 test
    #[test]
    fn remembers_this_cycle_and_the_previous_one() {
        let mut filter = MaxBwFilter::default();
        filter.update(Rate::from_mbit(100));
        filter.advance();
        filter.update(Rate::from_mbit(10));
        assert_eq!(filter.get(), Rate::from_mbit(100));
        filter.advance();
        assert_eq!(filter.get(), Rate::from_mbit(10));
    }

    //= bbr-06 3.8-1 test
    #[test]
    fn empty_cycles_do_not_age_it() {
        let mut filter = MaxBwFilter::default();
        filter.update(Rate::from_mbit(100));
        for _ in 0..5 {
            filter.advance();
        }
        assert_eq!(filter.get(), Rate::from_mbit(100));
    }
}
