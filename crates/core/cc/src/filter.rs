//! Windowed maxima.

/// The maximum over a sliding window, in constant space: Kathleen Nichols' algorithm, which keeps
/// the best, second-best and third-best sample of the window. Time is a counter that may wrap, such
/// as rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WindowedMax {
    values: [u64; 3],
    times: [u32; 3],
}

impl WindowedMax {
    /// The maximum of the window, as of the last update.
    pub(crate) fn get(&self) -> u64 {
        self.values[0]
    }

    /// Clears the window and stores `value`.
    pub(crate) fn reset(&mut self, time: u32, value: u64) {
        *self = Self { values: [value; 3], times: [time; 3] };
    }

    /// Adds a sample and returns the maximum of the last `window` time units.
    pub(crate) fn update(&mut self, window: u32, time: u32, value: u64) -> u64 {
        if value >= self.values[0] || self.age(2, time) > window {
            self.reset(time, value);
        } else if value >= self.values[1] {
            self.replace_from(1, time, value);
        } else if value >= self.values[2] {
            self.replace_from(2, time, value);
        }
        self.expire(window, time, value);
        self.get()
    }

    /// Age of the sample at this rank.
    fn age(&self, rank: usize, now: u32) -> u32 {
        now.wrapping_sub(self.times[rank])
    }

    /// Stores the sample at this rank and all lower ones.
    fn replace_from(&mut self, rank: usize, time: u32, value: u64) {
        self.values[rank..].fill(value);
        self.times[rank..].fill(time);
    }

    /// Removes the best sample, moves the others up and stores the new sample last.
    fn drop_best(&mut self, time: u32, value: u64) {
        self.values = [self.values[1], self.values[2], value];
        self.times = [self.times[1], self.times[2], time];
    }

    /// Removes a best sample that has left the window. Also refreshes a second-best or third-best
    /// as old as the best, because it would expire together with it.
    fn expire(&mut self, window: u32, time: u32, value: u64) {
        let age = self.age(0, time);
        if age > window {
            self.drop_best(time, value);
            if self.age(0, time) > window {
                self.drop_best(time, value);
            }
        } else if self.times[1] == self.times[0] && age > window / 4 {
            self.replace_from(1, time, value);
        } else if self.times[2] == self.times[1] && age > window / 2 {
            self.replace_from(2, time, value);
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    const WINDOW: u32 = 10;

    fn filter(samples: &[(u32, u64)]) -> WindowedMax {
        let mut filter = WindowedMax::default();
        for &(time, value) in samples {
            filter.update(WINDOW, time, value);
        }
        filter
    }

    #[test]
    fn larger_sample_counts_at_once() {
        assert_eq!(filter(&[(0, 5), (0, 7), (1, 9)]).get(), 9);
    }

    #[test]
    fn maximum_expires_with_the_window() {
        let falling: Vec<_> = (0..=WINDOW).map(|time| (time, 100 - u64::from(time))).collect();
        assert_eq!(filter(&falling).get(), 100);
        let mut filter = filter(&falling);
        assert!(filter.update(WINDOW, WINDOW + 1, 1) < 100);
    }

    #[test]
    fn second_best_replaces_an_expired_maximum() {
        assert_eq!(filter(&[(0, 100), (4, 80), (8, 60), (11, 10)]).get(), 80);
        assert_eq!(filter(&[(0, 100), (4, 80), (8, 60), (11, 10), (15, 10)]).get(), 60);
    }

    #[test]
    fn after_a_gap_only_the_newest_sample_counts() {
        assert_eq!(filter(&[(0, 100), (5, 50), (100, 1)]).get(), 1);
    }

    #[test]
    fn reset_clears_the_window() {
        let mut filter = filter(&[(0, 100)]);
        filter.reset(1, 3);
        assert_eq!(filter.get(), 3);
    }

    proptest! {
        /// Three samples represent the window, so the result may be below the true maximum. It is
        /// always a sample from the window, and no later sample exceeds it.
        #[test]
        fn maximum_is_a_recent_sample(
            steps in proptest::collection::vec((0..6_u32, 0..100_u64), 1..60),
            start in prop_oneof![Just(0), any::<u32>()],
        ) {
            let mut filter = WindowedMax::default();
            filter.reset(start, 0);
            let (mut time, mut seen) = (start, Vec::from([(start, 0)]));
            for (step, value) in steps {
                time = time.wrapping_add(step);
                seen.push((time, value));
                let max = filter.update(WINDOW, time, value);
                prop_assert_eq!(max, filter.get());
                prop_assert!(max >= value);
                let mut window = seen.iter().filter(|(at, _)| time.wrapping_sub(*at) <= WINDOW);
                prop_assert!(window.any(|(_, value)| *value == max), "{max} of {seen:?}");
            }
        }
    }
}
