//! Windowed maxima.

/// The maximum over a sliding window, in constant space: Kathleen Nichols' algorithm (the best,
/// second best and third best sample of the window), with any monotonic `u64` as time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WindowedMax {
    best: [Sample; 3],
}

#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    time: u64,
    value: u64,
}

impl WindowedMax {
    /// The maximum of the window, as of the last update.
    pub(crate) fn get(&self) -> u64 {
        self.best[0].value
    }

    /// Forgets everything but `value`.
    pub(crate) fn reset(&mut self, time: u64, value: u64) {
        self.best = [Sample { time, value }; 3];
    }

    /// Takes in a sample and returns the maximum of the last `window` time units.
    pub(crate) fn update(&mut self, window: u64, time: u64, value: u64) -> u64 {
        let sample = Sample { time, value };
        let third_expired = time.saturating_sub(self.best[2].time) > window;
        if value >= self.best[0].value || third_expired {
            self.reset(time, value);
            return value;
        }
        if value >= self.best[1].value {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if value >= self.best[2].value {
            self.best[2] = sample;
        }
        self.expire(window, sample);
        self.get()
    }

    /// Lets go of a best that has left the window, and refreshes a second and third best that are no
    /// later than the first: they could not replace it when it goes.
    fn expire(&mut self, window: u64, sample: Sample) {
        let age = sample.time.saturating_sub(self.best[0].time);
        if age > window {
            self.best = [self.best[1], self.best[2], sample];
            if sample.time.saturating_sub(self.best[0].time) > window {
                self.best = [self.best[1], self.best[2], sample];
            }
        } else if self.best[1].time == self.best[0].time && age > window / 4 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if self.best[2].time == self.best[1].time && age > window / 2 {
            self.best[2] = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    const WINDOW: u64 = 10;

    fn filter(samples: &[(u64, u64)]) -> WindowedMax {
        let mut filter = WindowedMax::default();
        for &(time, value) in samples {
            filter.update(WINDOW, time, value);
        }
        filter
    }

    #[test]
    fn a_larger_sample_counts_at_once() {
        assert_eq!(filter(&[(0, 5), (0, 7), (1, 9)]).get(), 9);
    }

    #[test]
    fn a_maximum_lasts_for_the_window_and_no_longer() {
        let falling: Vec<_> = (0..=WINDOW).map(|time| (time, 100 - time)).collect();
        assert_eq!(filter(&falling).get(), 100);
        let mut filter = filter(&falling);
        assert!(filter.update(WINDOW, WINDOW + 1, 1) < 100);
    }

    #[test]
    fn the_second_best_of_the_window_takes_over() {
        assert_eq!(filter(&[(0, 100), (4, 80), (8, 60), (11, 10)]).get(), 80);
        assert_eq!(filter(&[(0, 100), (4, 80), (8, 60), (11, 10), (15, 10)]).get(), 60);
    }

    #[test]
    fn after_a_silence_only_the_newest_sample_counts() {
        assert_eq!(filter(&[(0, 100), (5, 50), (100, 1)]).get(), 1);
    }

    #[test]
    fn a_reset_forgets_the_past() {
        let mut filter = filter(&[(0, 100)]);
        filter.reset(1, 3);
        assert_eq!(filter.get(), 3);
    }

    proptest! {
        /// Three samples stand for the window: the answer may be below the true maximum, but it is a
        /// sample of the window, and none since the last of equal or greater value exceeds it.
        #[test]
        fn the_maximum_is_a_recent_sample(
            steps in proptest::collection::vec((0..6_u64, 0..100_u64), 1..60),
            start in prop_oneof![Just(0), any::<u64>()],
        ) {
            let mut filter = WindowedMax::default();
            filter.reset(start, 0);
            let (mut time, mut seen) = (start, Vec::from([(start, 0)]));
            for (step, value) in steps {
                time = time.saturating_add(step);
                seen.push((time, value));
                let max = filter.update(WINDOW, time, value);
                prop_assert_eq!(max, filter.get());
                prop_assert!(max >= value);
                let mut window = seen.iter().filter(|(at, _)| time - at <= WINDOW);
                prop_assert!(window.any(|(_, value)| *value == max), "{max} of {seen:?}");
            }
        }
    }
}
