//! Specification of link rates.

use std::sync::Arc;

use uncork_units::{Rate, Rng, TimeDelta};

use super::link::LinkRate;
use super::lte::LteSpec;
use super::trace::Trace;
use crate::Step;

/// The rate of a link over time. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RateSpec {
    /// Constant.
    Constant(Rate),
    /// A new rate at each step, also for the packet in transmission; zero is an outage. The last one lasts
    /// forever.
    Steps {
        /// The rate before the first step.
        first: Rate,
        /// The changes, in any order. Of two at the same time, the later in this list counts.
        steps: Arc<[Step<Rate>]>,
    },
    /// A recorded trace.
    Trace(TraceSpec),
    /// A synthetic mobile link, different for each seed.
    Lte(LteSpec),
}

/// How a trace is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceSpec {
    /// The recording; [`Trace::scaled`] scales it.
    pub trace: Trace,
    /// Position in the trace at the start of a run.
    pub start: TraceStart,
    /// Whether the trace repeats; otherwise sending stops at its end.
    pub repeat: bool,
}

/// Position in the trace at the start of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceStart {
    /// This long after the trace's start.
    At(TimeDelta),
    /// A random position, different for each seed.
    Seeded,
}

impl RateSpec {
    /// Builds the link. Random parts use the stream `stream` of `seed`.
    pub fn link(&self, seed: u64, stream: u64) -> LinkRate {
        match self {
            Self::Constant(rate) => LinkRate::constant(*rate),
            Self::Steps { first, steps } => LinkRate::stepped(*first, steps),
            Self::Trace(spec) => {
                let start = spec.start.offset(&spec.trace, seed, stream);
                LinkRate::traced(&spec.trace, start, spec.repeat)
            }
            Self::Lte(spec) => LinkRate::traced(&spec.trace(seed, stream), TimeDelta::ZERO, true),
        }
    }

    /// The mean rate: over the length of a trace; for steps the last rate; for a mobile link
    /// including outages.
    pub fn mean(&self) -> Rate {
        match self {
            Self::Constant(_) | Self::Steps { .. } => self.link(0, 0).mean(),
            Self::Trace(spec) => spec.trace.mean(),
            Self::Lte(spec) => spec.long_run_mean(),
        }
    }
}

impl TraceStart {
    fn offset(self, trace: &Trace, seed: u64, stream: u64) -> TimeDelta {
        match self {
            Self::At(offset) => offset,
            Self::Seeded => {
                let length = trace.length().as_nanos();
                TimeDelta::from_nanos(Rng::new(seed, stream).below(length))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uncork_units::Time;

    fn ms(millis: u64) -> Time {
        Time::ZERO + TimeDelta::from_millis(millis)
    }

    fn traced(start: TraceStart, repeat: bool) -> RateSpec {
        let trace = "0 12\n1 24\n".parse().expect("a trace");
        RateSpec::Trace(TraceSpec { trace, start, repeat })
    }

    /// 12 Mbit/s is a packet of 1500 bytes per millisecond. The second packet is half sent when the
    /// rate rises tenfold, the third when it drops to zero for 10 ms.
    #[test]
    fn packets_in_transmission_follow_the_steps() {
        let steps = [(1500, 120), (1600, 0), (11_600, 12)];
        let steps = steps.map(|(at_us, mbit)| Step {
            at: Time::ZERO + TimeDelta::from_micros(at_us),
            value: Rate::from_mbit(mbit),
        });
        let spec = RateSpec::Steps { first: Rate::from_mbit(12), steps: steps.into() };
        let mut link = spec.link(1, 0);
        let ends: Vec<u64> =
            (0..3).map(|_| link.finish(Time::ZERO, 1500).as_nanos() / 1000).collect();
        assert_eq!(ends, [1000, 1550, 12_100]);
        assert_eq!(spec.mean(), Rate::from_mbit(12));
        let rates = [0, 1, 2, 20].map(|millis| link.rate_at(ms(millis)).bits_per_sec() / 1_000_000);
        assert_eq!(rates, [12, 12, 0, 12]);
        // 1.5 ms at 12, 0.1 ms at 120 and 8.4 ms at 12 Mbit/s.
        assert_eq!(link.capacity(ms(20)), 2250 + 1500 + 12_600);
    }

    #[test]
    fn steps_may_come_in_any_order_and_at_zero() {
        let step = |at_ms, mbit| Step { at: ms(at_ms), value: Rate::from_mbit(mbit) };
        let steps = [step(20, 5), step(0, 1), step(10, 9), step(10, 50)].into();
        let link = RateSpec::Steps { first: Rate::from_mbit(20), steps }.link(1, 0);
        let rates =
            [0, 9, 10, 19, 20, 99].map(|at| link.rate_at(ms(at)).bits_per_sec() / 1_000_000);
        assert_eq!(rates, [1, 1, 50, 50, 5, 5]);
        assert_eq!(link.mean(), Rate::from_mbit(5));
    }

    #[test]
    fn endless_outage_never_sends() {
        let steps = [Step { at: ms(1), value: Rate::ZERO }].into();
        let mut link = RateSpec::Steps { first: Rate::from_mbit(12), steps }.link(1, 0);
        assert_eq!(link.finish(Time::ZERO, 1500), ms(1));
        assert_eq!(link.finish(Time::ZERO, 1), Time::NEVER);
        assert_eq!(RateSpec::Constant(Rate::ZERO).link(1, 0).finish(Time::ZERO, 1), Time::NEVER);
    }

    #[test]
    fn traces_start_at_their_offset_and_end_or_repeat() {
        let rates = |spec: RateSpec, at: [u64; 3]| {
            let link = spec.link(1, 0);
            at.map(|at| link.rate_at(ms(at)).bits_per_sec() / 1_000_000)
        };
        let at = |millis| TraceStart::At(TimeDelta::from_millis(millis));
        assert_eq!(rates(traced(at(0), true), [999, 1000, 2000]), [12, 24, 12]);
        assert_eq!(rates(traced(at(0), false), [999, 1999, 2000]), [12, 24, 0]);
        assert_eq!(rates(traced(at(500), true), [499, 500, 1500]), [12, 24, 12]);
        assert_eq!(rates(traced(at(500), false), [499, 1499, 1500]), [12, 24, 0]);
        let mut link = traced(at(1999), false).link(1, 0);
        assert_eq!(link.finish(Time::ZERO, 3000), ms(1));
        assert_eq!(link.finish(Time::ZERO, 1), Time::NEVER);
    }

    /// The mean offset is half the length; allows four standard errors of a uniform distribution.
    #[test]
    fn seeds_start_at_different_positions() {
        let RateSpec::Trace(spec) = traced(TraceStart::Seeded, true) else { panic!("a trace") };
        let offset = |seed| spec.start.offset(&spec.trace, seed, 3).as_secs_f64();
        let offsets: Vec<f64> = (0..10_000).map(offset).collect();
        assert!(offsets.iter().all(|offset| (0.0..2.0).contains(offset)));
        let mean = offsets.iter().sum::<f64>() / 10_000.0;
        assert!((mean - 1.0).abs() < 4.0 * 2.0 / 12_f64.sqrt() / 100.0, "{mean}");
        assert!((offset(7) - offset(7)).abs() < f64::EPSILON);
    }
}
