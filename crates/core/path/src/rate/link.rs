//! Link service times.

use std::sync::Arc;

use uncork_units::{Rate, Time, TimeDelta};

use super::curve::{Curve, CurveClock};
use super::opportunities::OpportunityClock;
use super::trace::{Content, Trace};
use crate::Step;

/// A link that sends one packet at a time, at the rate of [`crate::RateSpec`].
///
/// Exact: of back-to-back packets, the last one leaves in the first nanosecond by which the link
/// could have sent them all. A packet in transmission during a rate change continues at the new
/// rate.
#[derive(Clone, Debug)]
pub struct LinkRate {
    service: LinkService,
    mean: Rate,
}

#[derive(Clone, Debug)]
enum LinkService {
    Curve(CurveClock),
    Opportunities(OpportunityClock),
}

impl LinkRate {
    /// A link with a constant rate.
    pub fn constant(rate: Rate) -> Self {
        Self::stepped(rate, &[])
    }

    /// A link with the rate `first` until the first of `steps`.
    pub(super) fn stepped(first: Rate, steps: &[Step<Rate>]) -> Self {
        let mut steps = steps.to_vec();
        steps.sort_by_key(|step| step.at);
        let steps = steps.into_iter().map(|step| (step.at.as_nanos(), step.value));
        let curve = Arc::new(Curve::new([(0, first)].into_iter().chain(steps), u64::MAX));
        Self { mean: curve.mean(), service: LinkService::Curve(CurveClock::new(curve, 0, true)) }
    }

    /// A link that follows `trace` from `start`.
    pub(super) fn traced(trace: &Trace, start: TimeDelta, repeat: bool) -> Self {
        let offset = start.as_nanos();
        let service = match &trace.0 {
            Content::Rates(curve) => {
                LinkService::Curve(CurveClock::new(Arc::clone(curve), offset, repeat))
            }
            Content::Opportunities(opportunities) => LinkService::Opportunities(
                OpportunityClock::new(Arc::clone(opportunities), offset, repeat),
            ),
        };
        Self { service, mean: trace.mean() }
    }

    /// When a packet of `bytes` has been sent, if its transmission begins at `start`;
    /// [`Time::NEVER`] if never. Starts must not decrease; a packet that would start during
    /// another's transmission starts after it.
    pub fn finish(&mut self, start: Time, bytes: u32) -> Time {
        match &mut self.service {
            LinkService::Curve(clock) => clock.finish(start, bytes),
            LinkService::Opportunities(clock) => clock.finish(start, bytes),
        }
    }

    /// The rate at `time`. For a trace of opportunities, the mean over the surrounding 100 ms.
    pub fn rate_at(&self, time: Time) -> Rate {
        match &self.service {
            LinkService::Curve(clock) => clock.rate_at(time),
            LinkService::Opportunities(clock) => clock.rate_at(time),
        }
    }

    /// Bytes that the link can send from [`Time::ZERO`] until `time`, rounded down.
    pub fn capacity(&self, time: Time) -> u64 {
        match &self.service {
            LinkService::Curve(clock) => clock.capacity(time),
            LinkService::Opportunities(clock) => clock.capacity(time),
        }
    }

    /// The mean rate: over the length of a trace, repeating or not; the last rate of steps.
    pub fn mean(&self) -> Rate {
        self.mean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A constant link takes [`Rate::time_for`], rounded up.
    #[test]
    fn a_constant_link_takes_bytes_over_rate() {
        for bytes_per_sec in [1_000, 2_500_000, 7_777_777, 50_000_000_000] {
            let rate = Rate::from_bytes_per_sec(bytes_per_sec);
            let mut link = LinkRate::constant(rate);
            for n in 1..=100_u64 {
                let start = Time::from_nanos(n * 10_000_000_000);
                let took = link.finish(start, 1500).since(start).as_nanos();
                assert_eq!(took, 1_500_000_000_000_u64.div_ceil(bytes_per_sec));
            }
            assert_eq!(link.mean(), rate);
            assert_eq!(link.rate_at(Time::from_nanos(u64::MAX - 1)), rate);
        }
    }

    /// Both kinds of service with the same capacity carry the same amount in a minute.
    #[test]
    fn opportunities_and_rates_agree_in_the_long_run() {
        let minute = Time::ZERO + TimeDelta::from_secs(60);
        let carried = |text: &str| {
            let trace: Trace = text.parse().expect("a trace");
            let mut link = LinkRate::traced(&trace, TimeDelta::ZERO, true);
            (0..100_000).take_while(|_| link.finish(Time::ZERO, 1500) <= minute).count()
        };
        assert_eq!(carried("1\n2\n2\n"), 90_000);
        assert_eq!(carried("0 12\n0.001 24\n"), 90_000);
    }
}
