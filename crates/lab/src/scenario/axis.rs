//! Axes of a matrix, for tables and figures.

use uncork_path::Buffer;
use uncork_units::{ByteCount, Probability, Rate, TimeDelta};

use super::Axis;

/// The values of an axis along that of a figure.
#[derive(Debug, PartialEq)]
pub(crate) struct Places {
    /// The axis's name, with the unit where there is one.
    pub(crate) label: String,
    /// The place of each value.
    pub(crate) at: Vec<f64>,
    /// What the values are called, if they are no numbers.
    pub(crate) names: Vec<String>,
}

impl Axis {
    /// The index of the value that is called or written `text`.
    pub(crate) fn find(&self, text: &str) -> Option<usize> {
        let among = |texts: &[String]| texts.iter().position(|known| known == text);
        among(&self.values).or_else(|| among(&self.written))
    }

    /// Where its values lie along the axis of a figure: along a scale if all are numbers of one unit,
    /// else one after the other.
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

    /// The values as numbers and their unit, if all have one unit.
    fn numbers(&self) -> Option<(Vec<f64>, &'static str)> {
        let (_, unit) = Self::number_of(self.values.first()?);
        let number = |value: &String| {
            let (number, its) = Self::number_of(value);
            (its == unit && !number.is_nan()).then_some(number)
        };
        Some((self.values.iter().map(number).collect::<Option<_>>()?, unit))
    }

    /// A value that people wrote as a number and its unit; not a number if it is none.
    fn number_of(text: &str) -> (f64, &'static str) {
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

/// What the axes of these places are called: by the last words of their keys, each once, and by one
/// word more where that is what another is called, too.
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
        Axis { key: "path.x".into(), name: "x".into(), written: values.clone(), values }
    }

    #[test]
    fn an_axis_is_called_by_all_that_it_varies_and_unlike_others() {
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
    fn numbers_of_one_unit_become_places_along_a_scale() {
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

    #[test]
    fn all_else_lies_side_by_side_with_its_names() {
        for names in [["cubic", "bbr3"], ["1%", "gilbert:mean=1%,burst=5"], ["100p", "1bdp"]] {
            let Places { label, at, names: its } = axis(&names).places();
            assert_eq!((label.as_str(), at), ("x", vec![0.0, 1.0]));
            assert_eq!(its, names);
        }
    }

    #[test]
    fn values_are_found_by_what_they_are_called_and_as_they_are_written() {
        let axis =
            Axis { written: vec!["20mbit, 50ms".into(), "b".into()], ..axis(&["home", "c"]) };
        let found = ["home", "20mbit, 50ms", "c", "b", "d"].map(|text| axis.find(text));
        assert_eq!(found, [Some(0), Some(0), Some(1), Some(1), None]);
    }
}
