//! Distinguishes random loss from congestion: the option `bbr3:loss_floor`, which the draft does not have.
//!
//! The draft takes every round with a loss for a congested one (§5.5.10.3), and a flight that lost
//! more than 2 % for too large a one (§5.5.10.2). Where packets are lost at random neither holds: at
//! 1 % most rounds lose something, and below 50 packets one loss is more than 2 %.
//!
//! Here the path is asked what it loses while this flow does not press it: between two bandwidth
//! probes, and while the round trip is in the lower half of what the latest probes have seen, so
//! that no queue is about to overflow. That share is the floor. A round or a flight is congested
//! only if it lost more than the floor explains: by the draft's measure more than what was to be
//! expected, and three standard deviations of that.
//!
//! Where nothing is lost at rest the floor is zero, and so is its deviation: every decision is then
//! the draft's, but for Startup, which allows for the most a floor can be.
//!
//! What drops without a queue, a policer or an AQM that keeps it short, looks like random loss. Up to
//! the highest floor it is taken for that.

use core::mem;

use uncork_units::{Ratio, TimeDelta};

use super::Bbr3;
use super::state::{AckPhase, State};
use crate::event::Feedback;

/// The highest floor. A path that loses more is congested, whatever else it is; v1, which knows no
/// such limit, keeps 20 % of loss going in a shallow buffer.
const FLOOR_MAX: Ratio = Ratio::new(4, 100);
/// Fewer packets at rest than this do not say much: they count as this many.
const SAMPLE_MIN: u32 = 100;
/// Standard deviations that chance is given.
const DEVIATIONS: u64 = 3;
/// Binary digits of a fraction of a packet.
const FRACTION: u32 = 16;

/// Packets, and how many of them were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    packets: u32,
    lost: u32,
}

impl Tally {
    fn count(&mut self, acked: u32, lost: u32) {
        self.packets = self.packets.saturating_add(acked).saturating_add(lost);
        self.lost = self.lost.saturating_add(lost);
    }

    /// Whether more was lost than `floor` explains.
    fn exceeds(self, floor: Ratio) -> bool {
        u64::from(self.lost) << FRACTION > by_chance(self.packets, floor)
    }
}

/// One feedback as the estimator sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossReport {
    /// RS.rtt.
    pub(super) rtt: Option<TimeDelta>,
    /// BBR.min_rtt.
    pub(super) min_rtt: Option<TimeDelta>,
    /// Packets acknowledged.
    pub(super) acked: usize,
    /// Packets declared lost.
    pub(super) lost: usize,
    /// Whether Startup or a bandwidth probe presses the path.
    pub(super) is_probe: bool,
}

/// What the path loses at rest, and what the current loss round has lost.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossFloor {
    /// Without the option nothing is explained.
    is_on: bool,
    /// Packets at rest; each probing cycle counts half as much as the next.
    rest: Tally,
    /// Longest round trips in microseconds: of this cycle, and of the one before.
    rtt_max: [u32; 2],
    /// Packets of this loss round.
    round: Tally,
    /// Those of them that met a queue.
    queued: Tally,
}

impl LossFloor {
    pub(super) fn turn(&mut self, is_on: bool) {
        self.is_on = is_on;
    }

    /// As on a new path, and on or off as before.
    pub(super) fn restarted(&self) -> Self {
        Self { is_on: self.is_on, ..Self::default() }
    }

    /// Takes in a feedback.
    pub(super) fn on_feedback(&mut self, report: LossReport) {
        if !self.is_on {
            return;
        }
        let acked = u32::try_from(report.acked).unwrap_or(u32::MAX);
        let lost = u32::try_from(report.lost).unwrap_or(u32::MAX);
        self.round.count(acked, lost);
        if self.has_queued(report.rtt, report.min_rtt) {
            self.queued.count(acked, lost);
        } else if !report.is_probe {
            self.rest.count(acked, lost);
        }
    }

    /// Whether the round trip is in the upper half of those seen lately. What a timer declares lost,
    /// without any, has met the worst.
    fn has_queued(&mut self, rtt: Option<TimeDelta>, min_rtt: Option<TimeDelta>) -> bool {
        let Some(rtt) = rtt.map(micros) else {
            return true;
        };
        let [this, last] = self.rtt_max;
        self.rtt_max[0] = this.max(rtt);
        let min = min_rtt.map_or(0, micros);
        let most = rtt.max(this).max(last).saturating_sub(min);
        rtt.saturating_sub(min) >= most / 2
    }

    /// A probing cycle ends.
    pub(super) fn end_cycle(&mut self) {
        self.rest = Tally { packets: self.rest.packets / 2, lost: self.rest.lost / 2 };
        self.rtt_max = [0, self.rtt_max[0]];
    }

    /// The loss round starts over: what it has seen belongs to a probe.
    pub(super) fn restart_round(&mut self) {
        self.round = Tally::default();
        self.queued = Tally::default();
    }

    /// Packets that were declared lost had arrived. Which of the counts they are in is not known: the
    /// floor gives way.
    pub(super) fn on_spurious(&mut self, packets: usize) {
        let packets = u32::try_from(packets).unwrap_or(u32::MAX);
        self.rest.lost = self.rest.lost.saturating_sub(packets);
    }

    /// A loss round ends. Whether it was a congested one.
    pub(super) fn end_round(&mut self) -> bool {
        let (round, queued) = (mem::take(&mut self.round), mem::take(&mut self.queued));
        !self.is_on || queued.exceeds(self.floor()) || round.exceeds(FLOOR_MAX)
    }

    /// How many of `packets` the path may lose by chance. In Startup, before there was any rest,
    /// that is the most there can be.
    pub(super) fn allowance(&self, packets: u64, is_startup: bool) -> u64 {
        if !self.is_on {
            return 0;
        }
        let floor = if is_startup { FLOOR_MAX } else { self.floor() };
        by_chance(u32::try_from(packets).unwrap_or(u32::MAX), floor) >> FRACTION
    }

    fn floor(&self) -> Ratio {
        let Tally { packets, lost } = self.rest;
        let packets = packets.max(SAMPLE_MIN);
        let is_over = u64::from(lost) > FLOOR_MAX.of(u64::from(packets));
        if is_over { FLOOR_MAX } else { Ratio::new(lost, packets) }
    }
}

/// The losses to be expected among `packets`, and [`DEVIATIONS`] of a Poisson process on top, in
/// fixed point.
fn by_chance(packets: u32, floor: Ratio) -> u64 {
    let expected = floor.of(u64::from(packets) << FRACTION);
    expected.saturating_add(DEVIATIONS * (expected << FRACTION).isqrt())
}

fn micros(delta: TimeDelta) -> u32 {
    u32::try_from(delta.as_micros()).unwrap_or(u32::MAX)
}

impl Bbr3 {
    /// Feeds the estimator.
    pub(super) fn watch_loss_floor(&mut self, feedback: &Feedback<'_>) {
        let is_probe = self.is_pressing();
        self.loss_floor.on_feedback(LossReport {
            rtt: feedback.rtt.map(|rtt| rtt.latest),
            min_rtt: self.min_rtt.get(),
            acked: feedback.acked.len(),
            lost: feedback.lost.len() + usize::from(feedback.repaired_by_probe),
            is_probe,
        });
    }

    /// Whether what is acknowledged now may have left in Startup or in a bandwidth probe: until the
    /// feedback of the probe is in, whatever has ended it.
    fn is_pressing(&self) -> bool {
        let awaits_feedback = !matches!(self.cycle.ack_phase, AckPhase::Init | AckPhase::Refilling);
        !self.full_pipe.reached() || self.state == State::ProbeBwUp || awaits_feedback
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN_RTT: TimeDelta = TimeDelta::from_millis(40);

    fn floor() -> LossFloor {
        let mut floor = LossFloor::default();
        floor.turn(true);
        // A probe has filled the queue to twice the RTT.
        floor.on_feedback(report(80, 0, 0, true));
        floor
    }

    fn report(rtt_ms: u64, acked: usize, lost: usize, is_probe: bool) -> LossReport {
        let rtt = Some(TimeDelta::from_millis(rtt_ms));
        LossReport { rtt, min_rtt: Some(MIN_RTT), acked, lost, is_probe }
    }

    #[test]
    fn the_option_outlives_a_migration() {
        let settings = crate::Settings::new(1_452, 1, uncork_units::Time::ZERO);
        let mut bbr = Bbr3::new(&settings, false).with_loss_floor(true);
        bbr.start_over(uncork_units::Time::ZERO);
        assert!(bbr.loss_floor.is_on);
    }

    #[test]
    fn what_is_lost_at_rest_is_the_floor() {
        let mut floor = floor();
        floor.on_feedback(report(41, 990, 10, false));
        assert_eq!(floor.floor(), Ratio::new(10, 1_000));
        // Ten of a thousand, and three times the root of ten.
        assert_eq!(floor.allowance(1_000, false), 19);
    }

    #[test]
    fn losses_behind_a_queue_or_in_a_probe_do_not_raise_it() {
        let mut floor = floor();
        floor.on_feedback(report(41, 1_000, 0, false));
        floor.on_feedback(report(61, 990, 10, false));
        floor.on_feedback(report(41, 990, 10, true));
        assert_eq!(floor.floor(), Ratio::new(0, 1_000));
    }

    #[test]
    fn without_loss_at_rest_a_single_loss_behind_a_queue_is_congestion() {
        let mut floor = floor();
        floor.on_feedback(report(41, 1_000, 0, false));
        assert!(!floor.end_round());
        floor.on_feedback(report(61, 99, 1, false));
        assert!(floor.end_round());
        assert_eq!(floor.allowance(1_000, false), 0);
    }

    #[test]
    fn losses_at_rest_are_no_congestion_up_to_the_highest_floor() {
        let mut floor = floor();
        for _ in 0..10 {
            floor.on_feedback(report(41, 970, 30, false));
            assert!(!floor.end_round());
        }
        // 4 % of 1000 and three standard deviations are 58.
        floor.on_feedback(report(41, 941, 59, false));
        assert!(floor.end_round());
    }

    #[test]
    fn losses_behind_a_queue_are_congestion_beyond_three_standard_deviations() {
        let mut floor = floor();
        floor.on_feedback(report(41, 990, 10, false));
        assert!(!floor.end_round());
        floor.on_feedback(report(61, 96, 4, false));
        assert!(!floor.end_round(), "one is expected of a hundred, four are chance");
        floor.on_feedback(report(61, 95, 5, false));
        assert!(floor.end_round());
    }

    #[test]
    fn the_floor_has_a_ceiling() {
        let mut floor = floor();
        floor.on_feedback(report(41, 800, 200, false));
        assert_eq!(floor.floor(), FLOOR_MAX);
    }

    #[test]
    fn a_few_packets_do_not_make_a_floor() {
        let mut floor = floor();
        floor.on_feedback(report(41, 9, 1, false));
        assert_eq!(floor.floor(), Ratio::new(1, 100));
    }

    #[test]
    fn the_past_counts_half_as_much_each_cycle() {
        let mut floor = floor();
        floor.on_feedback(report(41, 980, 20, false));
        floor.end_cycle();
        floor.on_feedback(report(41, 500, 0, false));
        assert_eq!(floor.floor(), Ratio::new(10, 1_000));
    }

    #[test]
    fn a_queue_is_forgotten_after_two_cycles() {
        let mut floor = floor();
        floor.end_cycle();
        assert!(!floor.has_queued(Some(MIN_RTT.times(5).divided_by(4)), Some(MIN_RTT)));
        floor.end_cycle();
        assert!(floor.has_queued(Some(MIN_RTT.times(5).divided_by(4)), Some(MIN_RTT)));
    }

    #[test]
    fn what_a_timer_declares_lost_has_queued() {
        let mut floor = floor();
        assert!(floor.has_queued(None, Some(MIN_RTT)));
    }

    #[test]
    fn extremes_do_not_overflow() {
        let mut floor = floor();
        for _ in 0..3 {
            floor.on_feedback(report(41, usize::MAX, usize::MAX, false));
            floor.on_feedback(report(79, usize::MAX, usize::MAX, false));
        }
        assert!(floor.allowance(u64::MAX, true) < u64::from(u32::MAX));
        assert!(floor.end_round());
    }

    #[test]
    fn without_the_option_every_loss_is_congestion() {
        let mut floor = LossFloor::default();
        floor.on_feedback(report(41, 980, 20, false));
        assert_eq!(floor.allowance(1_000, true), 0);
        assert!(floor.end_round());
    }
}
