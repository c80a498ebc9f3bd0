//! Long-term bandwidth estimate for paths with token-bucket policers: Linux tcp_bbr.c.
//!
//! A policer passes a burst, then drops everything above its rate. A short-term maximum measures
//! the burst and overestimates. A policer is detected from two consecutive intervals that begin and
//! end with losses, lose at least a fifth and have equal rates. Its rate is then used for a while
//! without probing.

use uncork_units::{Rate, Time, TimeDelta};

use super::params::{
    POLICER_LIMIT_ROUNDS, POLICER_LOSS, POLICER_MAX_ROUNDS, POLICER_MIN_ROUNDS, POLICER_TOLERANCE,
    POLICER_TOLERANCE_BYTES,
};

/// Detects a policer and estimates its rate.
#[derive(Clone, Debug, Default)]
pub(super) struct Policer {
    state: PolicerState,
    interval: Interval,
    /// Rate of the last complete interval, or the policer's rate.
    bw: Rate,
}

#[derive(Clone, Copy, Debug, Default)]
enum PolicerState {
    /// No losses yet: a policer would still have tokens.
    #[default]
    Waiting,
    Sampling,
    /// The path is policed.
    Limiting,
}

/// The current sample. While the rate is limited, only the rounds count.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    since: Time,
    delivered: u64,
    lost: u64,
    rounds: u32,
}

/// State of the connection after an ACK.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts of one ACK, each independent of the others"
)]
pub(super) struct AckFacts {
    pub(super) now: Time,
    /// C.delivered and C.lost.
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// Whether this ACK declared packets lost.
    pub(super) has_losses: bool,
    pub(super) is_app_limited: bool,
    pub(super) round_started: bool,
    /// Whether the state is ProbeBW, the only one in which the policer's rate expires.
    pub(super) in_probe_bw: bool,
}

impl Policer {
    /// The policer's rate, if one was detected.
    pub(super) fn bw(&self) -> Option<Rate> {
        matches!(self.state, PolicerState::Limiting).then_some(self.bw)
    }

    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Processes an ACK. Returns true when the policer's rate has expired and probing restarts.
    pub(super) fn update(&mut self, reading: AckFacts) -> bool {
        match self.state {
            PolicerState::Limiting => return self.wear_off(reading),
            PolicerState::Waiting if reading.has_losses => {
                self.interval = Interval::from(reading);
                self.sample(reading);
            }
            PolicerState::Waiting => {}
            PolicerState::Sampling => self.sample(reading),
        }
        false
    }

    fn wear_off(&mut self, reading: AckFacts) -> bool {
        if !(reading.in_probe_bw && reading.round_started) {
            return false;
        }
        self.interval.rounds += 1;
        let over = self.interval.rounds >= POLICER_LIMIT_ROUNDS;
        if over {
            self.reset();
        }
        over
    }

    fn sample(&mut self, reading: AckFacts) {
        self.interval.rounds += u32::from(reading.round_started);
        // An application-limited sender does not measure the path. A policer would have shown
        // within 16 rounds.
        if reading.is_app_limited || self.interval.rounds > POLICER_MAX_ROUNDS {
            self.reset();
            return;
        }
        self.state = PolicerState::Sampling;
        // An interval ends when the tokens run out, which only a loss reveals.
        if self.interval.rounds < POLICER_MIN_ROUNDS || !reading.has_losses {
            return;
        }
        if let Some(bw) = self.interval.policed_rate(reading) {
            self.finish(bw, reading);
        }
    }

    fn finish(&mut self, bw: Rate, reading: AckFacts) {
        if !self.bw.is_zero() && agree(self.bw, bw) {
            self.bw = midpoint(self.bw, bw);
            self.state = PolicerState::Limiting;
            self.interval.rounds = 0;
        } else {
            self.bw = bw;
            self.state = PolicerState::Sampling;
            self.interval = Interval::from(reading);
        }
    }
}

impl From<AckFacts> for Interval {
    fn from(reading: AckFacts) -> Self {
        Self { since: reading.now, delivered: reading.delivered, lost: reading.lost, rounds: 0 }
    }
}

impl Interval {
    /// The rate delivered since the interval began, if its loss ratio is that of a policer.
    fn policed_rate(&self, reading: AckFacts) -> Option<Rate> {
        let lost = reading.lost.saturating_sub(self.lost);
        let delivered = reading.delivered.saturating_sub(self.delivered);
        let span = reading.now.since(self.since);
        let policed = delivered > 0 && lost >= POLICER_LOSS.of(delivered);
        (policed && span >= TimeDelta::from_millis(1)).then(|| Rate::of(delivered, span))
    }
}

fn agree(previous: Rate, bw: Rate) -> bool {
    let difference = previous.bytes_per_sec().abs_diff(bw.bytes_per_sec());
    difference <= POLICER_TOLERANCE.of(previous.bytes_per_sec())
        || difference <= POLICER_TOLERANCE_BYTES
}

fn midpoint(a: Rate, b: Rate) -> Rate {
    Rate::from_bytes_per_sec(a.bytes_per_sec().midpoint(b.bytes_per_sec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Controller;
    use crate::bbr1::Bbr1;
    use crate::script::{Host, settings};

    /// A connection with one reading per 100 ms round.
    struct Rounds {
        policer: Policer,
        reading: AckFacts,
    }

    impl Rounds {
        fn new() -> Self {
            let reading = AckFacts {
                now: Time::ZERO,
                delivered: 0,
                lost: 0,
                has_losses: false,
                is_app_limited: false,
                round_started: true,
                in_probe_bw: true,
            };
            Self { policer: Policer::default(), reading }
        }

        fn round(&mut self, delivered: u64, lost: u64) -> bool {
            self.reading.now += TimeDelta::from_millis(100);
            self.reading.delivered += delivered;
            self.reading.lost += lost;
            self.reading.has_losses = lost > 0;
            self.policer.update(self.reading)
        }

        fn rounds(&mut self, n: u64, delivered: u64, lost: u64) {
            for _ in 0..n {
                self.round(delivered, lost);
            }
        }
    }

    #[test]
    fn two_lossy_intervals_of_equal_rate_detect_a_policer() {
        let mut path = Rounds::new();
        path.rounds(1, 100_000, 20_000);
        path.rounds(3, 100_000, 20_000);
        assert_eq!(path.policer.bw(), None);
        path.rounds(3, 100_000, 20_000);
        assert_eq!(path.policer.bw(), None, "one interval is not enough");
        path.rounds(1, 100_000, 20_000);
        assert_eq!(path.policer.bw(), Some(Rate::from_bytes_per_sec(1_000_000)));
    }

    #[test]
    fn loss_threshold_is_50_lost_per_256_delivered() {
        for (lost, policed) in [(49, false), (50, true)] {
            let mut path = Rounds::new();
            path.rounds(12, 256_000, lost * 1_000);
            assert_eq!(path.policer.bw().is_some(), policed, "{lost}");
        }
    }

    #[test]
    fn rates_more_than_an_eighth_apart_are_not_a_policer() {
        let mut path = Rounds::new();
        path.rounds(4, 100_000, 30_000);
        path.rounds(4, 120_000, 30_000);
        path.rounds(3, 140_000, 40_000);
        assert_eq!(path.policer.bw(), None);
    }

    #[test]
    fn application_limited_intervals_are_ignored() {
        let mut path = Rounds::new();
        path.rounds(6, 100_000, 30_000);
        path.reading.is_app_limited = true;
        path.round(100_000, 30_000);
        path.reading.is_app_limited = false;
        path.rounds(7, 100_000, 30_000);
        assert_eq!(path.policer.bw(), None);
        path.rounds(1, 100_000, 30_000);
        assert!(path.policer.bw().is_some());
    }

    #[test]
    fn interval_with_too_few_losses_ends_after_sixteen_rounds() {
        let mut path = Rounds::new();
        path.rounds(17, 100_000, 1_000);
        assert!(matches!(path.policer.state, PolicerState::Waiting));
    }

    #[test]
    fn policer_rate_expires_after_48_rounds_of_probe_bw() {
        let mut path = Rounds::new();
        path.rounds(8, 100_000, 30_000);
        assert!(path.policer.bw().is_some());
        path.reading.in_probe_bw = false;
        path.rounds(60, 100_000, 0);
        assert!(path.policer.bw().is_some());
        path.reading.in_probe_bw = true;
        path.rounds(47, 100_000, 0);
        assert!(path.policer.bw().is_some());
        assert!(path.round(100_000, 0), "probing restarts");
        assert_eq!(path.policer.bw(), None);
    }

    #[test]
    fn timeout_counts_as_a_lossy_round_and_spurious_losses_do_not() {
        let mut host = Host::new(Bbr1::new(&settings(20)));
        host.fill();
        host.advance(TimeDelta::from_millis(100));
        let lost = host.time_out();
        assert!(matches!(host.cc.policer.state, PolicerState::Sampling));
        assert_eq!(host.cc.policer.interval.rounds, 1);
        host.cc.on_spurious(host.now, &lost);
        assert!(matches!(host.cc.policer.state, PolicerState::Waiting));
    }
}
