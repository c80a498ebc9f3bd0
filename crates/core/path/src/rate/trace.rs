//! A recorded or generated trace of a link.

use std::str::FromStr;
use std::sync::Arc;

use uncork_units::{Rate, Ratio, TimeDelta};

use super::curve::Curve;
use super::opportunities::Opportunities;
use super::parse::{NumberedLines, TraceError, parse};

/// The capacity of a link over time; cheap to clone. Either rates that last until the next one, or
/// mahimahi's delivery opportunities.
///
/// Parsed from text ([`Trace::from_str`]): one line `seconds Mbit/s` per rate change, or one line
/// `milliseconds` per opportunity to send 1500 bytes. The number of columns selects the format.
/// Empty lines and text after `#` are ignored.
///
/// - Rates: the first time is shifted to 0. The last rate lasts for the median of the spans between
///   lines, then the trace ends. The median is used because recordings have gaps.
/// - Opportunities: the last time is the length of the trace, as in mm-link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace(pub(super) Content);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Rates(Arc<Curve>),
    Opportunities(Arc<Opportunities>),
}

const FCC_2016: [(&str, &str); 4] = [
    ("fcc-2016-1", include_str!("../../traces/fcc-2016-1.txt")),
    ("fcc-2016-2", include_str!("../../traces/fcc-2016-2.txt")),
    ("fcc-2016-3", include_str!("../../traces/fcc-2016-3.txt")),
    ("fcc-2016-4", include_str!("../../traces/fcc-2016-4.txt")),
];

impl Trace {
    /// Names of the built-in traces: throughput of four fixed broadband connections (FCC, Measuring
    /// Broadband America 2016), in steps of 5 s.
    pub const BUILTIN: [&'static str; 4] =
        [FCC_2016[0].0, FCC_2016[1].0, FCC_2016[2].0, FCC_2016[3].0];

    /// The built-in trace of that name, one of [`Trace::BUILTIN`].
    pub fn builtin(name: &str) -> Result<Self, TraceError> {
        let found = FCC_2016.iter().find(|(known, _)| *known == name);
        found.map_or_else(|| Err(TraceError::Unknown(name.into())), |(_, text)| text.parse())
    }

    /// Rates by start time (nanoseconds, sorted, beginning at 0), until `length`.
    pub(super) fn of_rates(rates: impl IntoIterator<Item = (u64, Rate)>, length: u64) -> Self {
        Self(Content::Rates(Arc::new(Curve::new(rates, length))))
    }

    /// Its duration.
    pub fn length(&self) -> TimeDelta {
        TimeDelta::from_nanos(match &self.0 {
            Content::Rates(curve) => curve.length(),
            Content::Opportunities(opportunities) => opportunities.length(),
        })
    }

    /// The mean rate over its length, rounded down.
    pub fn mean(&self) -> Rate {
        match &self.0 {
            Content::Rates(curve) => curve.mean(),
            Content::Opportunities(opportunities) => opportunities.mean(),
        }
    }

    /// This trace with every rate times `factor`, rounded down to whole bytes per second; or with
    /// opportunities for 1500 bytes times `factor`, exact to a billionth of a byte.
    #[must_use]
    pub fn scaled(&self, factor: Ratio) -> Self {
        match &self.0 {
            Content::Rates(curve) => {
                let rates = curve.rates().map(|(at, rate)| (at, rate.scaled(factor)));
                Self::of_rates(rates, curve.length())
            }
            Content::Opportunities(opportunities) => {
                Self(Content::Opportunities(Arc::new(opportunities.scaled(factor))))
            }
        }
    }
}

impl FromStr for Trace {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Self, TraceError> {
        match parse(text)? {
            NumberedLines::Rates { rates, length } => Ok(Self::of_rates(rates, length)),
            NumberedLines::Opportunities(at_ms) => {
                Ok(Self(Content::Opportunities(Arc::new(Opportunities::new(at_ms)))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uncork_testkit::assert_message;

    /// Values computed from the files with `awk '{ sum += $2 } END { print sum / NR }'`, which is
    /// the mean over time because all lines are 5 s apart.
    #[test]
    fn builtin_traces() {
        for (name, lines, mean_bps) in [
            ("fcc-2016-1", 270, 1_674_175.0),
            ("fcc-2016-2", 38, 2_021_730.0),
            ("fcc-2016-3", 123, 1_555_688.0),
            ("fcc-2016-4", 38, 807_132.0),
        ] {
            let trace = Trace::builtin(name).expect("it comes along");
            assert_eq!(trace.length(), TimeDelta::from_secs(5 * lines), "{name}");
            let mean = trace.mean().bits_per_sec() as f64;
            assert!((mean - mean_bps).abs() < 16.0, "{name}: {mean}");
            assert!(Trace::BUILTIN.contains(&name));
        }
        assert_message!("fcc-2017", Trace::builtin("fcc-2017").expect_err("no such trace"));
    }

    #[test]
    fn factors_apply_to_every_rate() {
        let trace: Trace = "0 1\n1 3\n".parse().expect("a trace");
        assert_eq!(trace.mean(), Rate::from_mbit(2));
        assert_eq!(trace.scaled(Ratio::new(5, 2)).mean(), Rate::from_mbit(5));
        let opportunities: Trace = "1".parse().expect("a trace");
        assert_eq!(opportunities.scaled(Ratio::new(1, 3)).mean(), Rate::from_mbit(4));
    }
}
