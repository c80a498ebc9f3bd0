//! Axes of a matrix, for tables and figures.

use uncork_path::Buffer;
use uncork_units::{ByteCount, Probability, Rate, TimeDelta};

use super::Axis;

impl Axis {
    /// What it is called in tables and figures: the last words of its key.
    pub fn name(&self) -> String {
        let last = |key: &str| key.rsplit('.').next().unwrap_or(key).trim().to_owned();
        self.key.split(',').map(last).collect::<Vec<_>>().join(" and ")
    }

    /// Its name with the unit of [`Self::number`].
    pub(crate) fn label(&self) -> String {
        let unit = self.values.first().map_or("", |value| Self::number_of(value).1);
        if unit.is_empty() { self.name() } else { format!("{}, {unit}", self.name()) }
    }

    /// A value as a place along a scale; its index if it is no number.
    pub(crate) fn number(&self, index: usize) -> f64 {
        let (number, _) = Self::number_of(&self.values[index]);
        if number.is_nan() { index as f64 } else { number }
    }

    /// A value that people wrote as a number and its unit; not a number if it is none.
    pub(crate) fn number_of(text: &str) -> (f64, &'static str) {
        if let Ok(number) = text.parse::<f64>() {
            return (number, "");
        }
        if let Ok(probability) = text.parse::<Probability>() {
            return (probability.as_f64() * 100.0, "%");
        }
        if let Ok(time) = text.parse::<TimeDelta>() {
            return (time.as_millis_f64(), "ms");
        }
        if let Ok(rate) = text.parse::<Rate>() {
            return (rate.bits_per_sec() as f64 / 1e6, "Mbit/s");
        }
        if let Ok(bytes) = text.parse::<ByteCount>() {
            return (bytes.as_u64() as f64 / 1e3, "kB");
        }
        match text.parse::<Buffer>() {
            Ok(Buffer::MilliBdp(thousandths)) => (thousandths as f64 / 1e3, "BDP"),
            Ok(Buffer::Packets(packets)) => (packets as f64, "packets"),
            _ => (f64::NAN, ""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(key: &str, values: &[&str]) -> Axis {
        Axis { key: key.into(), values: values.iter().map(|value| (*value).to_owned()).collect() }
    }

    #[test]
    fn axes_that_vary_several_things_name_all_of_them() {
        assert_eq!(axis("path.rate,path.rtt", &["1mbit, 5ms"]).label(), "rate and rtt");
    }

    #[test]
    fn values_become_places_along_a_scale() {
        for (values, label, places) in [
            (&["0.5%", "20%"][..], "x, %", [0.5, 20.0]),
            (&["50ms", "1s"], "x, ms", [50.0, 1000.0]),
            (&["20mbit", "1gbit"], "x, Mbit/s", [20.0, 1000.0]),
            (&["0.5bdp", "2bdp"], "x, BDP", [0.5, 2.0]),
            (&["100kB", "10MB"], "x, kB", [100.0, 10_000.0]),
            (&["1", "16"], "x", [1.0, 16.0]),
            (&["cubic", "bbr3"], "x", [0.0, 1.0]),
        ] {
            let axis = axis("path.x", values);
            assert_eq!(axis.label(), label);
            for (index, place) in places.into_iter().enumerate() {
                assert!((axis.number(index) - place).abs() < 1e-9, "{values:?}");
            }
        }
    }
}
