//! HyStart++: RFC 9406.

use uncork_units::TimeDelta;

const MIN_RTT_THRESH: TimeDelta = TimeDelta::from_millis(4);
const MAX_RTT_THRESH: TimeDelta = TimeDelta::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u8 = 5;

/// Ends the initial slow start when the round-trip time rises, before the queue overflows; by way
/// of Conservative Slow Start, which takes the decision back if the rise was jitter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HyStart {
    round: u64,
    /// lastRoundMinRTT; [`TimeDelta::MAX`] stands for the RFC's infinity.
    last_round_min_rtt: TimeDelta,
    /// currentRoundMinRTT.
    current_round_min_rtt: TimeDelta,
    /// cssBaselineMinRtt; infinite outside CSS.
    css_baseline_min_rtt: TimeDelta,
    /// rttSampleCount.
    samples: u32,
    /// Rounds of CSS completed, the one it began in included.
    css_rounds: u8,
}

impl HyStart {
    pub(crate) const fn new() -> Self {
        Self {
            round: 0,
            last_round_min_rtt: TimeDelta::MAX,
            current_round_min_rtt: TimeDelta::MAX,
            css_baseline_min_rtt: TimeDelta::MAX,
            samples: 0,
            css_rounds: 0,
        }
    }

    /// Whether this is Conservative Slow Start.
    pub(crate) fn in_css(&self) -> bool {
        self.css_baseline_min_rtt != TimeDelta::MAX
    }

    /// By how much `bytes` acknowledged in slow start let the window grow.
    pub(crate) fn growth(&self, bytes: u64) -> u64 {
        if self.in_css() { bytes / CSS_GROWTH_DIVISOR } else { bytes }
    }

    /// An ACK arrived in packet-timed round `round`, with or without an RTT sample. True when slow
    /// start is over.
    pub(crate) fn on_ack(&mut self, round: u64, rtt: Option<TimeDelta>) -> bool {
        if round != self.round {
            self.start_round(round);
        }
        if let Some(rtt) = rtt {
            self.current_round_min_rtt = self.current_round_min_rtt.min(rtt);
            self.samples = self.samples.saturating_add(1);
            self.judge();
        }
        self.css_rounds >= CSS_ROUNDS
    }

    fn start_round(&mut self, round: u64) {
        self.round = round;
        self.last_round_min_rtt = self.current_round_min_rtt;
        self.current_round_min_rtt = TimeDelta::MAX;
        self.samples = 0;
        if self.in_css() {
            self.css_rounds += 1;
        }
    }

    /// Into CSS when the round's RTT is above the last round's, and back when it falls below what
    /// it was on the way in.
    fn judge(&mut self) {
        if self.samples < N_RTT_SAMPLE {
            return;
        }
        if self.in_css() {
            if self.current_round_min_rtt < self.css_baseline_min_rtt {
                self.css_baseline_min_rtt = TimeDelta::MAX;
                self.css_rounds = 0;
            }
        } else if self.last_round_min_rtt != TimeDelta::MAX
            && self.current_round_min_rtt >= self.last_round_min_rtt + self.rtt_thresh()
        {
            self.css_baseline_min_rtt = self.current_round_min_rtt;
        }
    }

    fn rtt_thresh(&self) -> TimeDelta {
        self.last_round_min_rtt.divided_by(MIN_RTT_DIVISOR).max(MIN_RTT_THRESH).min(MAX_RTT_THRESH)
    }
}
