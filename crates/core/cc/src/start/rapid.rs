//! Rapid Start: draft-kazuho-ccwg-rapid-start-02.

use uncork_units::{Ratio, TimeDelta};

use super::hystart::{CSS_GROWTH_DIVISOR, DelayIncrease};
use super::{SlowStart, StartAck};
use crate::event::RttSample;

/// The rise of the RTT that shows a queue: 4 ms, and a tenth of the minimum RTT.
const MAX_RISE: TimeDelta = TimeDelta::from_millis(4);
const RISE: Ratio = Ratio::new(1, 10);

/// Rapid Start with HyStart++: the window triples in each round trip while no queue builds up, then doubles, and grows
/// by a quarter of that in HyStart++'s Conservative Slow Start, which may end it. After a loss or a mark the window
/// converges to what the path delivers (`loss_window/convergence.rs`).
///
/// HyStart++ is an option of the draft (§3.2): it ends the start before a buffer of several BDP overflows.
///
/// The draft's pacing of the first flight over a full RTT (§3.1) is the host's. A host that sends the initial window
/// as a burst sees the burst's own queue, and the window doubles.
#[derive(Clone, Copy, Debug)]
pub struct RapidStart {
    round: u64,
    /// The smallest RTT of the current round (`rtt_floor`).
    rtt_floor: TimeDelta,
    /// Whether the path seems to have no queue.
    is_clear: bool,
    delay: DelayIncrease,
}

impl SlowStart for RapidStart {
    const INITIAL: Self =
        Self { round: 0, rtt_floor: TimeDelta::MAX, is_clear: false, delay: DelayIncrease::new() };
    const CONVERGES: bool = true;

    //= rapid-start 3.2-1 3.2-2 3.2-3 3.2-4
    fn growth(&mut self, acked: u64, round: u64, rtt: Option<RttSample>) -> u64 {
        if round != self.round {
            *self = Self { round, delay: self.delay, ..Self::INITIAL };
        }
        if let Some(rtt) = rtt {
            self.rtt_floor = self.rtt_floor.min(rtt.latest);
            let rise = TimeDelta::from_nanos(RISE.of(rtt.min.as_nanos())).min(MAX_RISE);
            self.is_clear = self.rtt_floor <= rtt.min + rise;
        }
        if self.delay.in_css() {
            acked / CSS_GROWTH_DIVISOR
        } else if self.is_clear {
            acked.saturating_add(acked)
        } else {
            acked
        }
    }

    //= rapid-start 3.2-5
    fn on_ack(&mut self, ack: &StartAck) -> bool {
        self.delay.on_ack(ack.round, ack.rtt.map(|rtt| rtt.latest))
    }

    fn state(&self) -> &'static str {
        self.delay.state()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The growth by 1,000 bytes in a round. Its ACKs so far had RTTs of these milliseconds.
    fn growth(start: &mut RapidStart, round: u64, min_ms: u64, rtts_ms: &[u64]) -> u64 {
        let ms = TimeDelta::from_millis;
        let rtt = |latest| RttSample { latest: ms(latest), smoothed: ms(latest), min: ms(min_ms) };
        let growth = rtts_ms.iter().map(|latest| start.growth(1_000, round, Some(rtt(*latest))));
        growth.last().expect("an ACK")
    }

    #[test]
    //= rapid-start 3.2-1 3.2-3 3.2-4 test
    fn window_triples_until_the_rtt_floor_has_risen_by_a_tenth_or_4_ms() {
        let growth_at = |min, rtt| growth(&mut { RapidStart::INITIAL }, 1, min, &[rtt]);
        assert_eq!((growth_at(30, 33), growth_at(30, 34)), (2_000, 1_000));
        assert_eq!((growth_at(200, 204), growth_at(200, 205)), (2_000, 1_000));
    }

    #[test]
    //= rapid-start 3.2-2 test
    fn floor_is_that_of_the_round() {
        let mut start = RapidStart::INITIAL;
        assert_eq!(growth(&mut start, 1, 30, &[30, 60]), 2_000, "one early ACK saw no queue");
        assert_eq!(growth(&mut start, 2, 30, &[60]), 1_000);
        assert_eq!(growth(&mut start, 3, 30, &[30]), 2_000);
    }

    #[test]
    //= rapid-start 3.2-5 test
    fn lasting_queue_ends_it_as_hystart_does() {
        let mut start = RapidStart::INITIAL;
        let mut ends_at = |round: u64, rtt_ms: u64| {
            let latest = TimeDelta::from_millis(rtt_ms);
            let min = TimeDelta::from_millis(50);
            let rtt = Some(RttSample { latest, smoothed: latest, min });
            (0..10).any(|_| {
                start.growth(1_000, round, rtt);
                start.on_ack(&StartAck::at(uncork_units::Time::ZERO, round, Some(latest)))
            })
        };
        assert!(!ends_at(1, 50));
        let end = (2..20).find(|round| ends_at(*round, 60));
        assert_eq!(end, Some(7), "five rounds of Conservative Slow Start");
        assert_eq!(start.state(), "CSS");
    }

    #[test]
    fn without_an_rtt_the_window_doubles() {
        assert_eq!(RapidStart::INITIAL.clone().growth(1_000, 1, None), 1_000);
    }
}
