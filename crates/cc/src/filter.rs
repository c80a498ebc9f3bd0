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
