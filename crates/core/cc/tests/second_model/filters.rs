//! The windowed maxima.

/// BBR.max_bw_filter: stores and searches all samples of the current and the previous probing cycle
/// (§2.11). Cycles without samples do not count.
#[derive(Clone, Debug, Default)]
pub(crate) struct CycleMax {
    previous: Vec<f64>,
    current: Vec<f64>,
}

impl CycleMax {
    pub(crate) fn insert(&mut self, value: f64) {
        self.current.retain(|older| *older > value);
        self.current.push(value);
    }

    pub(crate) fn advance(&mut self) {
        if !self.current.is_empty() {
            self.previous = std::mem::take(&mut self.current);
        }
    }

    pub(crate) fn max(&self) -> f64 {
        self.previous.iter().chain(&self.current).copied().fold(0.0, f64::max)
    }
}

/// Kathleen Nichols' estimate of a windowed maximum, referenced in §5.5.5: the best sample of the
/// window and the two best samples after it, as (time, value).
#[derive(Clone, Debug, Default)]
pub(crate) struct NicholsMax([(f64, f64); 3]);

impl NicholsMax {
    pub(crate) fn update(&mut self, window: f64, time: f64, value: f64) -> f64 {
        let sample = (time, value);
        let [first, second, third] = &mut self.0;
        if value >= first.1 || time - third.0 > window {
            self.0 = [sample; 3];
            return value;
        }
        if value >= second.1 {
            (*second, *third) = (sample, sample);
        } else if value >= third.1 {
            *third = sample;
        }
        // Expiry: drops a best sample that has left the window, and replaces the second and third
        // after a quarter and half of the window.
        let age = time - first.0;
        if age > window {
            (*first, *second, *third) = (*second, *third, sample);
            if time - first.0 > window {
                (*first, *second, *third) = (*second, *third, sample);
            }
        } else if second.0 == first.0 && age > window / 4.0 {
            (*second, *third) = (sample, sample);
        } else if third.0 == second.0 && age > window / 2.0 {
            *third = sample;
        }
        self.0[0].1
    }
}
