//! Axes of a matrix, for tables and figures.

use uncork_path::Buffer;
use uncork_report::lab::{ColumnValue, MatrixColumn};
use uncork_units::{ByteCount, Probability, Rate, TimeDelta};

use super::model::{Axis, AxisPart};
use crate::decimal::decimal;

/// Positions of an axis's values in a figure.
#[derive(Debug, PartialEq)]
pub(crate) struct Places {
    /// The axis label, with the unit if there is one.
    pub(crate) label: String,
    /// The position of each value.
    pub(crate) at: Vec<f64>,
    /// Names of the values, if they are not numbers.
    pub(crate) names: Vec<String>,
}

impl Axis {
    /// The index of the value with the name or text `text`.
    pub(crate) fn find(&self, text: &str) -> Option<usize> {
        let among = |texts: &[String]| texts.iter().position(|known| known == text);
        among(&self.values).or_else(|| among(&self.written))
    }

    /// Positions of its values in a figure: on a scale if all are numbers with one unit, otherwise
    /// evenly spaced.
    pub(crate) fn places(&self) -> Places {
        let name = &self.name;
        match self.numbers() {
            Some((at, "")) => Places { label: name.clone(), at, names: Vec::new() },
            Some((at, unit)) => Places { label: format!("{name}, {unit}"), at, names: Vec::new() },
            None => Places {
                label: name.clone(),
                at: (0..self.values.len()).map(|index| index as f64).collect(),
                names: self.values.clone(),
            },
        }
    }

    /// The values as numbers with their common unit, if they have one.
    fn numbers(&self) -> Option<(Vec<f64>, &'static str)> {
        let (unit, numbers) = numbers(&self.values)?;
        let (label, scale) = unit.in_figures();
        let scaled = |number: Option<f64>| Some(number? * scale);
        Some((numbers.into_iter().map(scaled).collect::<Option<_>>()?, label))
    }

    /// The values for data analysis: a column for each varied key, with plain numbers where all
    /// values have one unit.
    pub(crate) fn columns(&self) -> Vec<MatrixColumn> {
        let of_part = |part: &AxisPart| {
            let hidden = self.parts.len() > 1 || part.values != self.values;
            let text = |text: &String| ColumnValue::Text(text.clone());
            // A single key names the column itself.
            let name =
                if self.parts.len() > 1 { part.key.clone() } else { part.key.clone() + "_value" };
            let texts = MatrixColumn { name, values: part.values.iter().map(text).collect() };
            let numbers = numbers(&part.values).map(|(unit, numbers)| MatrixColumn {
                name: format!("{}_{}", part.key, unit.suffix()),
                values: numbers.into_iter().map(ColumnValue::Number).collect(),
            });
            hidden.then_some(texts).into_iter().chain(numbers)
        };
        self.parts.iter().flat_map(of_part).collect()
    }
}

/// Unit of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Plain,
    Fraction,
    Nanoseconds,
    BitsPerSecond,
    Bytes,
    Bdp,
    Packets,
}

impl Unit {
    /// The suffix of a column name.
    const fn suffix(self) -> &'static str {
        match self {
            Self::Plain => "number",
            Self::Fraction => "fraction",
            Self::Nanoseconds => "ns",
            Self::BitsPerSecond => "bps",
            Self::Bytes => "bytes",
            Self::Bdp => "bdp",
            Self::Packets => "packets",
        }
    }

    /// `number` in scenario syntax, with four digits.
    pub(super) fn text(self, number: f64) -> String {
        let digits = |number: f64| {
            let places = if number > 0.0 { 3.0 - libm::floor(libm::log10(number)) } else { 0.0 };
            let text = format!("{number:.*}", places.clamp(0.0, 9.0) as usize);
            if text.contains('.') {
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            } else {
                text
            }
        };
        let whole = |number: f64| {
            let unit = libm::pow(10.0, libm::floor(libm::log10(number.max(1.0))) - 3.0).max(1.0);
            (libm::round(number / unit) * unit) as u64
        };
        match self {
            Self::Plain => format!("{}", libm::round(number) as u64),
            Self::Fraction => format!("{}%", digits(number * 100.0)),
            Self::Nanoseconds => TimeDelta::from_nanos(whole(number)).to_string(),
            Self::BitsPerSecond => Rate::from_bits_per_sec(whole(number)).to_string(),
            Self::Bytes => ByteCount::new(whole(number)).to_string(),
            Self::Bdp => Buffer::MilliBdp(libm::round(number * 1e3) as u64).to_string(),
            Self::Packets => Buffer::Packets(libm::round(number) as u64).to_string(),
        }
    }

    /// Its unit in figures, and the conversion factor.
    const fn in_figures(self) -> (&'static str, f64) {
        match self {
            Self::Plain => ("", 1.0),
            Self::Fraction => ("%", 100.0),
            Self::Nanoseconds => ("ms", 1e-6),
            Self::BitsPerSecond => ("Mbit/s", 1e-6),
            Self::Bytes => ("kB", 1e-3),
            Self::Bdp => ("BDP", 1.0),
            Self::Packets => ("packets", 1.0),
        }
    }
}

/// The numbers in `texts` with their common unit; `None` without one.
fn numbers(texts: &[String]) -> Option<(Unit, Vec<Option<f64>>)> {
    let read: Vec<Option<(f64, Unit)>> = texts.iter().map(|text| number(text)).collect();
    let (_, unit) = read.iter().copied().flatten().next()?;
    let same = read.iter().flatten().all(|(_, its)| *its == unit);
    same.then(|| (unit, read.into_iter().map(|read| read.map(|(number, _)| number)).collect()))
}

/// A number with a unit.
pub(super) fn number(text: &str) -> Option<(f64, Unit)> {
    if let Some(number) = decimal(text) {
        return Some((number, Unit::Plain));
    }
    if let Ok(probability) = text.parse::<Probability>() {
        return Some((probability.as_f64(), Unit::Fraction));
    }
    if let Ok(time) = text.parse::<TimeDelta>() {
        return Some((time.as_nanos() as f64, Unit::Nanoseconds));
    }
    if let Ok(rate) = text.parse::<Rate>() {
        return Some((rate.bits_per_sec() as f64, Unit::BitsPerSecond));
    }
    if let Ok(bytes) = text.parse::<ByteCount>() {
        return Some((bytes.as_u64() as f64, Unit::Bytes));
    }
    match text.parse::<Buffer>() {
        Ok(Buffer::MilliBdp(thousandths)) => Some((thousandths as f64 / 1e3, Unit::Bdp)),
        Ok(Buffer::Packets(packets)) => Some((packets as f64, Unit::Packets)),
        _ => None,
    }
}

impl Axis {
    /// Whether it varies only controllers, but not that of `class`.
    pub(crate) fn is_cc_of_others(&self, class: &str) -> bool {
        self.chooses_controllers() && self.keys().all(|key| key != format!("flow.{class}.cc"))
    }

    /// Whether it varies only controllers.
    pub(crate) fn chooses_controllers(&self) -> bool {
        uncork_report::lab::chooses_controllers(&self.key)
    }

    /// The keys it varies.
    fn keys(&self) -> impl Iterator<Item = &str> {
        self.key.split(',').map(str::trim)
    }
}

/// Names of axes: the last words of their keys, each once, with one more word if the name would not
/// be unique.
pub(crate) fn names(axes: &[Vec<Vec<String>>]) -> Vec<String> {
    let words = |keys: &[Vec<String>], count: usize| {
        let mut words: Vec<String> = Vec::new();
        for key in keys {
            let word = key[key.len().saturating_sub(count)..].join(".");
            if !words.contains(&word) {
                words.push(word);
            }
        }
        listed(&words)
    };
    let deepest = axes.iter().flatten().map(Vec::len).max().unwrap_or(1);
    let name = |(nth, keys): (usize, &Vec<Vec<String>>)| {
        let alone = |count: &usize| {
            let mut others = axes.iter().enumerate().filter(|(other, _)| *other != nth);
            others.all(|(_, other)| words(other, *count) != words(keys, *count))
        };
        words(keys, (1..=deepest).find(alone).unwrap_or(deepest))
    };
    axes.iter().enumerate().map(name).collect()
}

/// `a`, `a and b`, `a, b and c`.
fn listed(words: &[String]) -> String {
    match words.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => words.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(values: &[&str]) -> Axis {
        let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        let part = AxisPart { key: "path.x".into(), values: values.clone() };
        Axis {
            key: "path.x".into(),
            name: "x".into(),
            written: values.clone(),
            values,
            parts: vec![part],
        }
    }

    #[test]
    fn axis_name_covers_all_keys_and_is_unique() {
        let keys = |axis: &str| -> Vec<Vec<String>> {
            axis.split(',').map(|key| key.split('.').map(str::to_owned).collect()).collect()
        };
        for (axes, expected) in [
            (&["path.loss"][..], &["loss"][..]),
            (&["path.rate,path.rtt"], &["rate and rtt"]),
            (&["path.a.buffer,path.b.buffer"], &["buffer"]),
            (
                &["path.a.rate,path.b.rate,path.a.loss,path.b.loss,flow.f.count"],
                &["rate, loss and count"],
            ),
            (
                &["flow.main.cc", "flow.a.cc,flow.b.cc", "path.rtt"],
                &["main.cc", "a.cc and b.cc", "rtt"],
            ),
            (&["path.a.rtt", "flow.a.rtt"], &["path.a.rtt", "flow.a.rtt"]),
        ] {
            let keys: Vec<_> = axes.iter().map(|axis| keys(axis)).collect();
            assert_eq!(names(&keys), expected);
        }
    }

    #[test]
    fn numbers_of_one_unit_are_placed_on_a_scale() {
        for (values, label, places) in [
            (&["0.5%", "20%"][..], "x, %", [0.5, 20.0]),
            (&["50ms", "1s"], "x, ms", [50.0, 1000.0]),
            (&["20mbit", "1gbit"], "x, Mbit/s", [20.0, 1000.0]),
            (&["0.5bdp", "2bdp"], "x, BDP", [0.5, 2.0]),
            (&["100kB", "10MB"], "x, kB", [100.0, 10_000.0]),
            (&["1", "16"], "x", [1.0, 16.0]),
        ] {
            let Places { label: its, at, names } = axis(values).places();
            assert_eq!((its.as_str(), names), (label, Vec::new()));
            for (number, place) in at.into_iter().zip(places) {
                assert!((number - place).abs() < 1e-9, "{values:?}");
            }
        }
    }

    fn column(name: &str, values: &[Option<f64>]) -> MatrixColumn {
        let values = values.iter().map(|value| ColumnValue::Number(*value)).collect();
        MatrixColumn { name: name.into(), values }
    }

    #[test]
    fn columns_have_numbers_in_the_unit_of_their_name() {
        for (values, name, numbers) in [
            (&["0.5%", "20%"][..], "path.x_fraction", &[Some(0.005), Some(0.2)][..]),
            (&["50ms", "1s"], "path.x_ns", &[Some(5e7), Some(1e9)]),
            (&["20mbit", "1gbit"], "path.x_bps", &[Some(2e7), Some(1e9)]),
            (&["0.5bdp", "2bdp"], "path.x_bdp", &[Some(0.5), Some(2.0)]),
            (&["83p", "2p"], "path.x_packets", &[Some(83.0), Some(2.0)]),
            (&["100kB", "10MB"], "path.x_bytes", &[Some(1e5), Some(1e7)]),
            (&["1", "16"], "path.x_number", &[Some(1.0), Some(16.0)]),
            (&["1%", "gilbert:mean=1%,burst=5"], "path.x_fraction", &[Some(0.01), None]),
        ] {
            assert_eq!(axis(values).columns(), [column(name, numbers)], "{values:?}");
        }
        assert_eq!(axis(&["cubic", "bbr3"]).columns(), []);
        assert_eq!(axis(&["100p", "1bdp"]).columns(), [], "two units");
    }

    #[test]
    fn columns_separate_keys_that_vary_together() {
        let part = |key: &str, values: [&str; 2]| AxisPart {
            key: key.into(),
            values: values.map(str::to_owned).into(),
        };
        let parts = vec![part("path.rate", ["20mbit", "1gbit"]), part("path.rtt", ["50ms", "1ms"])];
        let axis = Axis { values: vec!["cable".into(), "lan".into()], parts, ..axis(&[]) };
        let text = |name: &str, values: [&str; 2]| MatrixColumn {
            name: name.into(),
            values: values.map(|value| ColumnValue::Text(value.into())).into(),
        };
        let expected = [
            text("path.rate", ["20mbit", "1gbit"]),
            column("path.rate_bps", &[Some(2e7), Some(1e9)]),
            text("path.rtt", ["50ms", "1ms"]),
            column("path.rtt_ns", &[Some(5e7), Some(1e6)]),
        ];
        assert_eq!(axis.columns(), expected);
    }

    #[test]
    fn other_values_are_evenly_spaced_with_names() {
        for names in [["cubic", "bbr3"], ["1%", "gilbert:mean=1%,burst=5"], ["100p", "1bdp"]] {
            let Places { label, at, names: its } = axis(&names).places();
            assert_eq!((label.as_str(), at), ("x", vec![0.0, 1.0]));
            assert_eq!(its, names);
        }
    }

    #[test]
    fn values_are_found_by_name_and_as_written() {
        let axis =
            Axis { written: vec!["20mbit, 50ms".into(), "b".into()], ..axis(&["home", "c"]) };
        let found = ["home", "20mbit, 50ms", "c", "b", "d"].map(|text| axis.find(text));
        assert_eq!(found, [Some(0), Some(0), Some(1), Some(1), None]);
    }
}
