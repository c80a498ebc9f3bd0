//! Arrivals: when objects are requested by many users together.

use std::str::FromStr;

use uncork_units::{Rng, Time, TimeDelta};

use crate::error::require;
use crate::table::{billionths, bytes, rows};
use crate::{ObjectSizes, SpecError, TableError, exponential};

/// A request for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub at: Time,
    /// The object's size.
    pub bytes: u64,
}

/// When objects are requested, and their sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArrivalSpec {
    /// A Poisson process: many independent users. Its rate is one per `mean_gap`. For n arrivals
    /// per second, use `TimeDelta::from_secs(1).divided_by(n)`; to load a link up to a given rate,
    /// use `rate.time_for(sizes.mean())`.
    Poisson {
        /// The mean time between two arrivals.
        mean_gap: TimeDelta,
        /// Sizes of the objects.
        sizes: ObjectSizes,
        /// Start of the arrivals.
        from: Time,
        /// End of the arrivals; [`Time::NEVER`] for an endless process.
        until: Time,
    },
    /// A recording.
    Trace(ArrivalTrace),
}

/// Recorded arrivals ordered by time. Parsed from lines `seconds bytes` with at most 9 decimal
/// places in the seconds; text after `#` is ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrivalTrace(Vec<Arrival>);

/// Arrivals ordered by time.
#[derive(Clone, Debug)]
pub struct Arrivals(ArrivalSource);

#[derive(Clone, Debug)]
enum ArrivalSource {
    Poisson(Poisson),
    Trace(std::vec::IntoIter<Arrival>),
}

/// Sizes have their own random stream, so that other sizes do not change the times.
#[derive(Clone, Debug)]
struct Poisson {
    mean_gap: TimeDelta,
    sizes: ObjectSizes,
    last: Time,
    until: Time,
    gap_rng: Rng,
    size_rng: Rng,
}

impl ArrivalSpec {
    /// Checks that arrivals are distinct in time and their window is not empty.
    pub fn check(&self) -> Result<(), SpecError> {
        let Self::Poisson { mean_gap, from, until, .. } = self else { return Ok(()) };
        let remedy = "use at least 1ns";
        require(!mean_gap.is_zero(), "the mean gap between arrivals", mean_gap, remedy)?;
        let window = until.since(*from);
        require(!window.is_zero(), "the window of the arrivals", window, "end it after its start")
    }

    /// The arrivals; fails if [`ArrivalSpec::check`] does. A trace does not use `rng`.
    pub fn arrivals(self, mut rng: Rng) -> Result<Arrivals, SpecError> {
        self.check()?;
        Ok(Arrivals(match self {
            Self::Poisson { mean_gap, sizes, from, until } => {
                let size_rng = Rng::new(rng.next_u64(), 0);
                ArrivalSource::Poisson(Poisson {
                    mean_gap,
                    sizes,
                    last: from,
                    until,
                    gap_rng: rng,
                    size_rng,
                })
            }
            Self::Trace(ArrivalTrace(arrivals)) => ArrivalSource::Trace(arrivals.into_iter()),
        }))
    }
}

impl Iterator for Arrivals {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        match &mut self.0 {
            ArrivalSource::Poisson(poisson) => poisson.next(),
            ArrivalSource::Trace(arrivals) => arrivals.next(),
        }
    }
}

impl Poisson {
    fn next(&mut self) -> Option<Arrival> {
        let at = self.last + exponential(self.mean_gap, &mut self.gap_rng);
        if at >= self.until {
            // Repeated calls must return the same answer.
            self.last = self.until;
            return None;
        }
        self.last = at;
        Some(Arrival { at, bytes: self.sizes.sample(&mut self.size_rng) })
    }
}

impl FromStr for ArrivalTrace {
    type Err = TableError;

    fn from_str(text: &str) -> Result<Self, TableError> {
        let mut arrivals: Vec<Arrival> = Vec::new();
        for row in rows(text, "seconds bytes") {
            let (line, seconds, size) = row?;
            let at = Time::from_nanos(billionths(line, seconds)?);
            let bytes = bytes(line, size)?;
            if bytes == 0 {
                return Err(TableError::at(line, "an object has at least 1 byte"));
            }
            if arrivals.last().is_some_and(|before| at < before.at) {
                let problem =
                    format!("{seconds} s is earlier than the line before; sort the trace");
                return Err(TableError::at(line, problem));
            }
            arrivals.push(Arrival { at, bytes });
        }
        if arrivals.is_empty() {
            return Err(TableError::whole("the trace is empty: use lines `seconds bytes`"));
        }
        Ok(Self(arrivals))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uncork_testkit::assert_message;

    fn poisson(per_second: u64, from: u64, until: u64) -> ArrivalSpec {
        let at = |secs| Time::ZERO + TimeDelta::from_secs(secs);
        ArrivalSpec::Poisson {
            mean_gap: TimeDelta::from_secs(1).divided_by(per_second),
            sizes: ObjectSizes::fixed(1000),
            from: at(from),
            until: at(until),
        }
    }

    fn times(spec: ArrivalSpec, seed: u64) -> Vec<Time> {
        let arrivals = spec.arrivals(Rng::new(seed, 0)).expect("a valid specification");
        arrivals.map(|arrival| arrival.at).collect()
    }

    /// In windows of a second, the counts of a Poisson process have equal mean and variance. The
    /// standard deviation of the variance over n windows is slightly above mean · sqrt(2/n).
    #[test]
    fn arrival_counts_are_poisson() {
        let (rate, windows) = (100_u64, 2000_usize);
        let times = times(poisson(rate, 10, 10 + windows as u64), 7);
        let mut counts = vec![0_f64; windows];
        for time in &times {
            counts[(time.as_nanos() / 1_000_000_000) as usize - 10] += 1.0;
        }
        let n = windows as f64;
        let mean = counts.iter().sum::<f64>() / n;
        let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / n;
        assert!((mean - 100.0).abs() < 4.0 * (100.0 / n).sqrt(), "{mean}");
        assert!((variance - 100.0).abs() < 4.0 * 101.0 * (2.0 / n).sqrt(), "{variance}");
    }

    /// Given their number, the arrivals of a Poisson process are uniform in the window.
    #[test]
    fn arrival_times_are_uniform_in_the_window() {
        let times = times(poisson(1000, 5, 105), 3);
        let n = times.len() as f64;
        let distance = times.iter().enumerate().map(|(rank, time)| {
            let share = (time.as_secs_f64() - 5.0) / 100.0;
            (share - rank as f64 / n).abs()
        });
        let distance = distance.fold(0.0, f64::max);
        assert!(distance < 1.95 / n.sqrt(), "{distance}");
        assert!(times.is_sorted());
    }

    #[test]
    fn arrival_times_do_not_depend_on_sizes() {
        let ArrivalSpec::Poisson { mean_gap, from, until, .. } = poisson(100, 0, 10) else {
            unreachable!("it is one")
        };
        let sizes: ObjectSizes = "web".parse().expect("a name");
        let web = ArrivalSpec::Poisson { mean_gap, sizes, from, until };
        assert_eq!(times(web, 5), times(poisson(100, 0, 10), 5));
    }

    #[test]
    fn arrivals_stop_at_the_end() {
        let mut arrivals = poisson(10, 0, 1).arrivals(Rng::new(1, 0)).expect("valid");
        assert!(arrivals.by_ref().count() > 0);
        assert!((0..1000).all(|_| arrivals.next().is_none()));
    }

    #[test]
    fn arrivals_replay_a_trace() {
        let trace: ArrivalTrace = "# t size\n0 10\n1.5 20\n1.5 30\n".parse().expect("a trace");
        let arrivals = ArrivalSpec::Trace(trace).arrivals(Rng::new(1, 0)).expect("valid");
        let read: Vec<(u64, u64)> =
            arrivals.map(|arrival| (arrival.at.as_nanos(), arrival.bytes)).collect();
        assert_eq!(read, [(0, 10), (1_500_000_000, 20), (1_500_000_000, 30)]);
    }

    #[test]
    fn arrival_trace_errors_name_line_and_reason() {
        for (text, place) in [
            ("1 10\n0.5 10", "line 2: "),
            ("1 0", "line 1: "),
            ("1s 10", "line 1: "),
            ("1", "line 1: "),
            ("\n#\n", ""),
        ] {
            let error = text.parse::<ArrivalTrace>().expect_err("refused").to_string();
            assert!(error.starts_with(place), "{error}");
            assert_message!(text, error);
        }
    }

    #[test]
    fn arrivals_reject_a_process_without_gap_or_window() {
        for (case, spec) in [("window", poisson(1, 7, 7)), ("gap", poisson(2_000_000_000, 0, 7))] {
            assert_message!(case, spec.check().expect_err(case));
        }
    }
}
