//! HyStart++: RFC 9406.

use uncork_units::TimeDelta;

use super::ack_train::AckTrain;
use super::{SlowStart, StartAck};
use crate::event::RttSample;

/// Microseconds; [`INFINITY`] represents the RFC's infinity.
type Micros = u32;

const INFINITY: Micros = Micros::MAX;
//= rfc9406 4.3-1
const MIN_RTT_THRESH: Micros = 4_000;
const MAX_RTT_THRESH: Micros = 16_000;
const MIN_RTT_DIVISOR: Micros = 8;
const N_RTT_SAMPLE: u8 = 8;
//= rfc9406 4.3-5
pub(super) const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u8 = 5;

/// Below this many segments the ACK train is too short to measure and the initial slow start continues.
const ACK_TRAIN_MIN_SEGMENTS: u64 = 16;

/// HyStart++ (RFC 9406). On hosts that do not pace, it also ends slow start by the length of the ACK train, like
/// the kernel's CUBIC without pacing ([`crate::Settings::paced`]).
#[derive(Clone, Copy, Debug)]
pub struct HyStart {
    delay: DelayIncrease,
    train: AckTrain,
}

impl SlowStart for HyStart {
    const INITIAL: Self = Self { delay: DelayIncrease::new(), train: AckTrain::new() };

    fn on_ack(&mut self, ack: &StartAck) -> bool {
        let is_late = self.delay.on_ack(ack.round, ack.rtt.map(|rtt| rtt.latest));
        // Data paced over a round trip returns as a train of that length.
        let is_long = !ack.is_paced
            && ack.rtt.is_some_and(|rtt| self.train.on_ack(ack.now, ack.round, rtt.min));
        is_late || (is_long && ack.cwnd >= ACK_TRAIN_MIN_SEGMENTS * ack.mss)
    }

    //= rfc9406 4.2-7
    fn growth(&mut self, acked: u64, _round: u64, _rtt: Option<RttSample>) -> u64 {
        if self.delay.in_css() { acked / CSS_GROWTH_DIVISOR } else { acked }
    }

    fn state(&self) -> &'static str {
        self.delay.state()
    }
}

/// Ends the initial slow start when the RTT rises, before the queue overflows. Goes through
/// Conservative Slow Start (CSS), which reverts the decision if the rise was jitter.
#[derive(Clone, Copy, Debug)]
pub(super) struct DelayIncrease {
    round: u64,
    /// lastRoundMinRTT.
    last_round_min_rtt: Micros,
    /// currentRoundMinRTT.
    current_round_min_rtt: Micros,
    /// cssBaselineMinRtt; infinite outside CSS.
    css_baseline_min_rtt: Micros,
    /// rttSampleCount, up to the number required.
    samples: u8,
    /// Completed rounds of CSS, including the one in which it began.
    css_rounds: u8,
}

impl DelayIncrease {
    pub(super) const fn new() -> Self {
        Self {
            round: 0,
            last_round_min_rtt: INFINITY,
            current_round_min_rtt: INFINITY,
            css_baseline_min_rtt: INFINITY,
            samples: 0,
            css_rounds: 0,
        }
    }

    /// Whether it is in Conservative Slow Start.
    pub(super) fn in_css(&self) -> bool {
        self.css_baseline_min_rtt != INFINITY
    }

    pub(super) fn state(&self) -> &'static str {
        if self.in_css() { "CSS" } else { "SlowStart" }
    }

    /// Handles an ACK in packet-timed round `round`, with or without an RTT sample. Returns true
    /// when slow start ends.
    //= rfc9406 4.2-1 4.2-4
    pub(super) fn on_ack(&mut self, round: u64, rtt: Option<TimeDelta>) -> bool {
        if round != self.round {
            self.start_round(round);
        }
        if let Some(rtt) = rtt {
            let rtt = Micros::try_from(rtt.as_micros()).unwrap_or(INFINITY);
            self.current_round_min_rtt = self.current_round_min_rtt.min(rtt);
            self.samples = self.samples.saturating_add(1);
            self.judge();
        }
        self.css_rounds >= CSS_ROUNDS
    }

    //= rfc9406 4.2-2 4.2-6
    fn start_round(&mut self, round: u64) {
        self.round = round;
        self.last_round_min_rtt = self.current_round_min_rtt;
        self.current_round_min_rtt = INFINITY;
        self.samples = 0;
        if self.in_css() {
            self.css_rounds += 1;
        }
    }

    /// Enters CSS when the round's RTT exceeds the previous round's. Leaves it when the RTT falls
    /// below its value on entry.
    //= rfc9406 4.2-5 4.2-8
    fn judge(&mut self) {
        if self.samples < N_RTT_SAMPLE {
            return;
        }
        if self.in_css() {
            if self.current_round_min_rtt < self.css_baseline_min_rtt {
                self.css_baseline_min_rtt = INFINITY;
                self.css_rounds = 0;
            }
        } else if self.last_round_min_rtt != INFINITY
            && self.current_round_min_rtt
                >= self.last_round_min_rtt.saturating_add(self.rtt_thresh())
        {
            self.css_baseline_min_rtt = self.current_round_min_rtt;
        }
    }

    //= rfc9406 4.2-5
    fn rtt_thresh(&self) -> Micros {
        (self.last_round_min_rtt / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLES: u32 = 10;

    /// A round of [`SAMPLES`] ACKs with the same RTT, in microseconds. Returns true when slow start
    /// ends.
    fn round(hystart: &mut DelayIncrease, round: u64, rtt_us: u64) -> bool {
        let rtt = Some(TimeDelta::from_micros(rtt_us));
        (0..SAMPLES).any(|_| hystart.on_ack(round, rtt))
    }

    /// Whether a rise between these RTTs triggers CSS.
    fn detects(from_us: u64, to_us: u64) -> bool {
        let mut hystart = DelayIncrease::new();
        round(&mut hystart, 1, from_us);
        assert!(!hystart.in_css());
        round(&mut hystart, 2, to_us);
        hystart.in_css()
    }

    #[test]
    //= rfc9406 4.2-5 test
    fn rtt_rise_by_an_eighth_enters_css() {
        assert!(!detects(80_000, 89_999));
        assert!(detects(80_000, 90_000));
    }

    #[test]
    //= rfc9406 4.2-5 4.3-1 test
    fn threshold_is_4_to_16_ms() {
        assert!(!detects(8_000, 11_999));
        assert!(detects(8_000, 12_000));
        assert!(!detects(400_000, 415_999));
        assert!(detects(400_000, 416_000));
    }

    #[test]
    //= rfc9406 4.2-2 4.2-4 4.3-1 test
    fn seven_samples_are_too_few() {
        let mut hystart = DelayIncrease::new();
        round(&mut hystart, 1, 50_000);
        for _ in 0..7 {
            hystart.on_ack(2, Some(TimeDelta::from_millis(100)));
        }
        assert!(!hystart.in_css());
        hystart.on_ack(2, None);
        assert!(!hystart.in_css());
        hystart.on_ack(2, Some(TimeDelta::from_millis(100)));
        assert!(hystart.in_css());
    }

    #[test]
    //= rfc9406 4.2-2 4.2-4 test
    fn the_smallest_sample_of_a_round_decides() {
        let mut hystart = DelayIncrease::new();
        round(&mut hystart, 1, 50_000);
        hystart.on_ack(2, Some(TimeDelta::from_millis(51)));
        round(&mut hystart, 2, 100_000);
        assert!(!hystart.in_css());
    }

    #[test]
    //= rfc9406 4.2-6 4.2-7 4.3-1 4.3-5 test
    fn css_grows_at_a_quarter_rate_and_ends_after_five_rounds() {
        let mut hystart = DelayIncrease::new();
        round(&mut hystart, 1, 50_000);
        assert!(!hystart.in_css());
        round(&mut hystart, 2, 60_000);
        assert!(hystart.in_css());
        // The round in which it began counts, so it ends at the start of the fifth round after it.
        for number in 3..7 {
            assert!(!round(&mut hystart, number, 60_000), "round {number}");
        }
        assert!(round(&mut hystart, 7, 60_000));
    }

    #[test]
    //= rfc9406 4.2-8 test
    fn rtt_below_the_baseline_leaves_css() {
        let mut hystart = DelayIncrease::new();
        round(&mut hystart, 1, 50_000);
        round(&mut hystart, 2, 60_000);
        round(&mut hystart, 3, 60_000);
        assert!(hystart.in_css());
        round(&mut hystart, 4, 59_999);
        assert!(!hystart.in_css());
        // The CSS rounds are counted from zero again.
        round(&mut hystart, 5, 70_000);
        for number in 6..10 {
            assert!(!round(&mut hystart, number, 70_000), "round {number}");
        }
        assert!(round(&mut hystart, 10, 70_000));
    }
}
