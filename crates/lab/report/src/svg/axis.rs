//! Scales and their ticks.

use crate::number::rounded;

/// Mapping from values to positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Linear.
    Linear,
    /// Logarithmic.
    Log,
}

/// One axis of a chart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    /// Label with unit: `RTT, ms`.
    pub(crate) label: String,
    scale: Scale,
    min: f64,
    max: f64,
    /// Labels at 0, 1, 2 and so on, instead of numbers.
    names: Vec<String>,
}

/// Target number of ticks.
const TICKS: f64 = 6.0;

/// Maximum number of ticks; more means that the range is invalid.
const MAX_TICKS: usize = 50;

impl Axis {
    /// From zero to `max`, rounded up to the next tick.
    pub(crate) fn from_zero(label: &str, max: f64) -> Self {
        let max = if max.is_finite() && max > 0.0 { max } else { 1.0 };
        let step = nice_step(max / TICKS);
        Self::new(label, Scale::Linear, 0.0, (max / step - 1e-9).ceil() * step)
    }

    /// From `min` to `max`, rounded outwards to the next ticks.
    pub(crate) fn between(label: &str, min: f64, max: f64) -> Self {
        let max = if max > min { max } else { min + 1.0 };
        let step = nice_step((max - min) / TICKS);
        let (low, high) = ((min / step + 1e-9).floor(), (max / step - 1e-9).ceil());
        Self::new(label, Scale::Linear, low * step, high * step)
    }

    /// From `min` to `max` exactly.
    pub(crate) fn linear(label: &str, min: f64, max: f64) -> Self {
        let max = if max > min { max } else { min + 1.0 };
        Self::new(label, Scale::Linear, min, max)
    }

    /// From `min` to `max`, logarithmic; both must be above zero.
    pub(crate) fn log(label: &str, min: f64, max: f64) -> Self {
        let min = min.max(f64::MIN_POSITIVE);
        let max = if max > min { max } else { min * 10.0 };
        Self::new(label, Scale::Log, min, max)
    }

    /// With a name at 0, 1, 2 and so on, evenly spaced.
    pub(crate) fn named(label: &str, names: &[String]) -> Self {
        let max = names.len().max(1) as f64 - 0.5;
        Self { names: names.to_vec(), ..Self::new(label, Scale::Linear, -0.5, max) }
    }

    fn new(label: &str, scale: Scale, min: f64, max: f64) -> Self {
        Self { label: label.to_owned(), scale, min, max, names: Vec::new() }
    }

    /// Its names, if it has any.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// How its values map to distances.
    pub(crate) fn scale(&self) -> Scale {
        self.scale
    }

    /// Where it begins and ends.
    pub(crate) fn range(&self) -> (f64, f64) {
        (self.min, self.max)
    }

    /// The position of `value` between the ends, 0 to 1; clamped.
    pub(crate) fn fraction(&self, value: f64) -> f64 {
        let fraction = match self.scale {
            Scale::Linear => (value - self.min) / (self.max - self.min),
            Scale::Log => (value / self.min).ln() / (self.max / self.min).ln(),
        };
        if fraction.is_nan() { 0.0 } else { fraction.clamp(0.0, 1.0) }
    }

    /// Its names, or round values within the axis in ascending order, with labels.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        if !self.names.is_empty() {
            return (0..).zip(&self.names).map(|(n, name)| (f64::from(n), name.clone())).collect();
        }
        let (values, decimals) = match self.scale {
            Scale::Linear => self.linear_ticks(),
            Scale::Log => (self.log_ticks(), None),
        };
        let label = |v: f64| decimals.map_or_else(|| plain(v), |d| format!("{v:.d$}"));
        values.into_iter().map(|v| (v, label(v))).collect()
    }

    fn linear_ticks(&self) -> (Vec<f64>, Option<usize>) {
        let step = nice_step((self.max - self.min) / TICKS);
        let first = (self.min / step - 1e-9).ceil() as i64;
        let last = (self.max / step + 1e-9).floor() as i64;
        let decimals = (-rounded(step, 1).log10().floor()).clamp(0.0, 12.0) as usize;
        ((first..=last).take(MAX_TICKS).map(|k| k as f64 * step).collect(), Some(decimals))
    }

    /// Powers of ten; with few decades also 2 and 5 in between.
    fn log_ticks(&self) -> Vec<f64> {
        let first = self.min.log10().floor() as i32;
        let last = self.max.log10().ceil() as i32;
        let steps: &[f64] = if last - first <= 4 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        (first..=last)
            .flat_map(|decade| steps.iter().map(move |s| rounded(s * 10_f64.powi(decade), 1)))
            .filter(|v| *v >= self.min * (1.0 - 1e-9) && *v <= self.max * (1.0 + 1e-9))
            .collect()
    }
}

fn plain(value: f64) -> String {
    format!("{value}")
}

/// The smallest of 1, 2 and 5 times a power of ten that is not below `rough`.
fn nice_step(rough: f64) -> f64 {
    let power = 10_f64.powi(rough.log10().floor() as i32);
    let nice = [1.0, 2.0, 5.0].into_iter().find(|s| s * power >= rough * (1.0 - 1e-9));
    rounded(nice.unwrap_or(10.0) * power, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<String> {
        axis.ticks().into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn linear_ticks_are_round() {
        assert_eq!(labels(&Axis::from_zero("", 20.0)), ["0", "5", "10", "15", "20"]);
        assert_eq!(labels(&Axis::from_zero("", 0.7)), ["0.0", "0.2", "0.4", "0.6", "0.8"]);
        assert_eq!(labels(&Axis::linear("", 0.0, 18.3)), ["0", "5", "10", "15"]);
        assert_eq!(labels(&Axis::between("", 39.5, 57.0)), ["35", "40", "45", "50", "55", "60"]);
    }

    #[test]
    fn log_ticks_are_one_two_five() {
        assert_eq!(labels(&Axis::log("", 0.4, 30.0)), ["0.5", "1", "2", "5", "10", "20"]);
        assert_eq!(labels(&Axis::log("", 1.0, 1e6)).len(), 7);
    }

    #[test]
    fn names_are_centred() {
        let axis = Axis::named("", &["a", "b"].map(str::to_owned));
        assert_eq!(labels(&axis), ["a", "b"]);
        let places: Vec<f64> = axis.ticks().iter().map(|(at, _)| axis.fraction(*at)).collect();
        assert!((places[0] - 0.25).abs() < 1e-12 && (places[1] - 0.75).abs() < 1e-12);
    }

    /// For any range over 18 powers of ten: 3 to 12 ticks, ascending, evenly spaced, within the
    /// axis, and with unique labels.
    #[test]
    fn linear_ticks_work_for_any_range() {
        for power in -9..9 {
            for mantissa in 10..100 {
                let axis = Axis::from_zero("", f64::from(mantissa) / 10.0 * 10_f64.powi(power));
                let ticks = axis.ticks();
                assert!((3..=12).contains(&ticks.len()), "{axis:?} {ticks:?}");
                let step = ticks[1].0 - ticks[0].0;
                for pair in ticks.windows(2) {
                    assert!(((pair[1].0 - pair[0].0) / step - 1.0).abs() < 1e-6, "{ticks:?}");
                    assert_ne!(pair[0].1, pair[1].1, "{ticks:?}");
                }
                assert!((axis.fraction(ticks[ticks.len() - 1].0) - 1.0).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn degenerate_range_still_has_an_axis() {
        for axis in [
            Axis::from_zero("", 0.0),
            Axis::from_zero("", f64::NAN),
            Axis::from_zero("", f64::INFINITY),
            Axis::linear("", 5.0, 5.0),
            Axis::between("", 5.0, 5.0),
            Axis::between("", 0.0, f64::NAN),
            Axis::between("", -1e18, -1e18),
            Axis::linear("", 0.0, f64::INFINITY),
            Axis::linear("", f64::NEG_INFINITY, f64::INFINITY),
            Axis::log("", 0.0, 0.0),
            Axis::log("", 3.0, 3.0),
        ] {
            assert!(axis.ticks().len() < 400, "{axis:?}");
            for value in [f64::NAN, 0.0, -1.0, 1e300] {
                assert!((0.0..=1.0).contains(&axis.fraction(value)), "{axis:?} {value}");
            }
        }
    }

    #[test]
    fn fractions_follow_the_scale() {
        assert!((Axis::linear("", 10.0, 20.0).fraction(15.0) - 0.5).abs() < 1e-12);
        assert!((Axis::log("", 1.0, 100.0).fraction(10.0) - 0.5).abs() < 1e-12);
        assert!((Axis::linear("", 0.0, 1.0).fraction(7.0) - 1.0).abs() < 1e-12, "clamped");
    }
}
