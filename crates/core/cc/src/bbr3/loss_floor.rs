//! Option `bbr3:loss_floor` (not in the draft): distinguishes random loss from congestion.
//!
//! The draft treats every round with a loss as congested (§5.5.10.3), and a flight that lost more
//! than 2 % as too large (§5.5.10.2). With random loss, both are wrong: at 1 % most rounds lose a
//! packet, and below 50 packets a single loss exceeds 2 %.
//!
//! This option measures the path's baseline loss rate while the flow is not pushing the path:
//! between two bandwidth probes, and while the RTT is in the lower half of the range seen in the
//! latest probes, so that no queue is about to overflow. That rate is the floor. A round or a
//! flight is congested only if it exceeds the draft's threshold by more than the expected random
//! losses plus three standard deviations.
//!
//! Without baseline loss, both the floor and its deviation are zero, and every decision equals the
//! draft's. Startup is the exception: it allows for the maximum floor.
//!
//! Droppers without a queue (a policer, or an AQM that keeps the queue short) look like random
//! loss. Up to the maximum floor they are treated as such.

use core::mem;

use uncork_units::wide::isqrt;
use uncork_units::{Ratio, TimeDelta};

use super::Bbr3;
use super::state::{AckPhase, State};
use crate::event::Feedback;

/// The maximum floor. A path that loses more is congested, even if it also loses at random. BBRv1
/// has no such limit and sustains 20 % loss in a shallow buffer.
const FLOOR_MAX: Ratio = Ratio::new(4, 100);
/// Minimum sample size in packets: a smaller sample counts as this many.
const SAMPLE_MIN: u32 = 100;
/// Standard deviations attributed to chance.
const DEVIATIONS: u64 = 3;
/// Fractional bits of a packet count.
const FRACTION: u32 = 16;

/// A packet count and how many of them were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LossCount {
    packets: u32,
    lost: u32,
}

impl LossCount {
    fn count(&mut self, acked: u32, lost: u32) {
        self.packets = self.packets.saturating_add(acked).saturating_add(lost);
        self.lost = self.lost.saturating_add(lost);
    }

    /// Whether losses exceed what `floor` explains.
    fn exceeds(self, floor: Ratio) -> bool {
        u64::from(self.lost) << FRACTION > by_chance(self.packets, floor)
    }
}

/// One feedback, as input of the estimator.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossReport {
    /// RS.rtt.
    pub(super) rtt: Option<TimeDelta>,
    /// BBR.min_rtt.
    pub(super) min_rtt: Option<TimeDelta>,
    /// Packets acknowledged.
    pub(super) acked: u64,
    /// Packets declared lost.
    pub(super) lost: u64,
    /// Whether Startup or a bandwidth probe is pushing the path.
    pub(super) is_probe: bool,
}

/// The baseline loss of the path, and the losses of the current loss round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossFloor {
    /// Without the option, the floor is always zero.
    is_on: bool,
    /// Packets outside of probes; each older probing cycle has half the weight of the next.
    rest: LossCount,
    /// Longest RTT in microseconds in this cycle and in the previous one.
    rtt_max: [u32; 2],
    /// Packets of this loss round.
    round: LossCount,
    /// Those of them that were queued.
    queued: LossCount,
}

impl LossFloor {
    pub(super) fn set_on(&mut self, is_on: bool) {
        self.is_on = is_on;
    }

    /// Reset for a new path; keeps the option.
    pub(super) fn restarted(&self) -> Self {
        Self { is_on: self.is_on, ..Self::default() }
    }

    /// Processes a feedback.
    pub(super) fn on_feedback(&mut self, report: LossReport) {
        let acked = u32::try_from(report.acked).unwrap_or(u32::MAX);
        let lost = u32::try_from(report.lost).unwrap_or(u32::MAX);
        self.round.count(acked, lost);
        if self.has_queued(report.rtt, report.min_rtt) {
            self.queued.count(acked, lost);
        } else if !report.is_probe {
            self.rest.count(acked, lost);
        }
    }

    /// Whether the RTT is in the upper half of the recent range. Losses declared by a timer come
    /// without an RTT and count as queued.
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
        self.rest = LossCount { packets: self.rest.packets / 2, lost: self.rest.lost / 2 };
        self.rtt_max = [0, self.rtt_max[0]];
    }

    /// Restarts the loss round, because its packets belong to a probe.
    pub(super) fn restart_round(&mut self) {
        self.round = LossCount::default();
        self.queued = LossCount::default();
    }

    /// Packets that were declared lost had arrived. It is unknown which counts include them, so the
    /// floor is lowered.
    pub(super) fn on_spurious(&mut self, packets: u64) {
        let packets = u32::try_from(packets).unwrap_or(u32::MAX);
        self.rest.lost = self.rest.lost.saturating_sub(packets);
    }

    /// Ends a loss round. Returns whether it was congested.
    pub(super) fn end_round(&mut self) -> bool {
        let (round, queued) = (mem::take(&mut self.round), mem::take(&mut self.queued));
        !self.is_on || queued.exceeds(self.floor()) || round.exceeds(FLOOR_MAX)
    }

    /// How many of `packets` the path may lose by chance. Startup has no baseline yet and uses the
    /// maximum.
    pub(super) fn allowance(&self, packets: u64, is_startup: bool) -> u64 {
        if !self.is_on {
            return 0;
        }
        let floor = if is_startup { FLOOR_MAX } else { self.floor() };
        by_chance(u32::try_from(packets).unwrap_or(u32::MAX), floor) >> FRACTION
    }

    fn floor(&self) -> Ratio {
        let LossCount { packets, lost } = self.rest;
        let packets = packets.max(SAMPLE_MIN);
        let is_over = u64::from(lost) > FLOOR_MAX.of(u64::from(packets));
        if is_over { FLOOR_MAX } else { Ratio::new(lost, packets) }
    }
}

/// Expected losses among `packets` plus [`DEVIATIONS`] standard deviations of a Poisson process, in
/// fixed point.
fn by_chance(packets: u32, floor: Ratio) -> u64 {
    let expected = floor.of(u64::from(packets) << FRACTION);
    expected.saturating_add(DEVIATIONS * isqrt(expected << FRACTION))
}

fn micros(delta: TimeDelta) -> u32 {
    u32::try_from(delta.as_micros()).unwrap_or(u32::MAX)
}

impl Bbr3 {
    /// Updates the estimator.
    pub(super) fn watch_loss_floor(&mut self, feedback: &Feedback<'_>) {
        if !self.loss_floor.is_on {
            return;
        }
        let is_probe = self.is_pressing();
        self.loss_floor.on_feedback(LossReport {
            rtt: feedback.rtt.map(|rtt| rtt.latest),
            min_rtt: self.min_rtt.get(),
            acked: feedback.acked_packets(self.mss),
            lost: feedback.lost_packets(self.mss) + u64::from(feedback.repaired_by_probe),
            is_probe,
        });
    }

    /// Whether packets acknowledged now may have left in Startup or in a bandwidth probe. Stays
    /// true until the probe's feedback is complete, however the probe ended.
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
        floor.set_on(true);
        // A probe has filled the queue to twice the RTT.
        floor.on_feedback(report(80, 0, 0, true));
        floor
    }

    fn report(rtt_ms: u64, acked: u64, lost: u64, is_probe: bool) -> LossReport {
        let rtt = Some(TimeDelta::from_millis(rtt_ms));
        LossReport { rtt, min_rtt: Some(MIN_RTT), acked, lost, is_probe }
    }

    #[test]
    fn option_survives_migration() {
        let settings = crate::Settings::new(1_452, 1, uncork_units::Time::ZERO);
        let mut bbr = Bbr3::new(&settings, false).with_loss_floor(true);
        bbr.start_over(uncork_units::Time::ZERO);
        assert!(bbr.loss_floor.is_on);
    }

    #[test]
    fn loss_outside_of_probes_is_the_floor() {
        let mut floor = floor();
        floor.on_feedback(report(41, 990, 10, false));
        assert_eq!(floor.floor(), Ratio::new(10, 1_000));
        // Ten of a thousand, plus three times the square root of ten.
        assert_eq!(floor.allowance(1_000, false), 19);
    }

    #[test]
    fn losses_behind_a_queue_or_in_a_probe_do_not_raise_the_floor() {
        let mut floor = floor();
        floor.on_feedback(report(41, 1_000, 0, false));
        floor.on_feedback(report(61, 990, 10, false));
        floor.on_feedback(report(41, 990, 10, true));
        assert_eq!(floor.floor(), Ratio::new(0, 1_000));
    }

    #[test]
    fn without_baseline_loss_a_single_loss_behind_a_queue_is_congestion() {
        let mut floor = floor();
        floor.on_feedback(report(41, 1_000, 0, false));
        assert!(!floor.end_round());
        floor.on_feedback(report(61, 99, 1, false));
        assert!(floor.end_round());
        assert_eq!(floor.allowance(1_000, false), 0);
    }

    #[test]
    fn baseline_losses_up_to_the_maximum_floor_are_not_congestion() {
        let mut floor = floor();
        for _ in 0..10 {
            floor.on_feedback(report(41, 970, 30, false));
            assert!(!floor.end_round());
        }
        // 4 % of 1000 plus three standard deviations is 58.
        floor.on_feedback(report(41, 941, 59, false));
        assert!(floor.end_round());
    }

    #[test]
    fn losses_behind_a_queue_are_congestion_beyond_three_standard_deviations() {
        let mut floor = floor();
        floor.on_feedback(report(41, 990, 10, false));
        assert!(!floor.end_round());
        floor.on_feedback(report(61, 96, 4, false));
        assert!(!floor.end_round(), "one in a hundred is expected, four are within chance");
        floor.on_feedback(report(61, 95, 5, false));
        assert!(floor.end_round());
    }

    #[test]
    fn floor_has_a_maximum() {
        let mut floor = floor();
        floor.on_feedback(report(41, 800, 200, false));
        assert_eq!(floor.floor(), FLOOR_MAX);
    }

    #[test]
    fn few_packets_do_not_set_a_floor() {
        let mut floor = floor();
        floor.on_feedback(report(41, 9, 1, false));
        assert_eq!(floor.floor(), Ratio::new(1, 100));
    }

    #[test]
    fn older_cycles_lose_half_their_weight_each_cycle() {
        let mut floor = floor();
        floor.on_feedback(report(41, 980, 20, false));
        floor.end_cycle();
        floor.on_feedback(report(41, 500, 0, false));
        assert_eq!(floor.floor(), Ratio::new(10, 1_000));
    }

    #[test]
    fn queue_expires_after_two_cycles() {
        let mut floor = floor();
        floor.end_cycle();
        assert!(!floor.has_queued(Some(MIN_RTT.times(5).divided_by(4)), Some(MIN_RTT)));
        floor.end_cycle();
        assert!(floor.has_queued(Some(MIN_RTT.times(5).divided_by(4)), Some(MIN_RTT)));
    }

    #[test]
    fn timer_losses_count_as_queued() {
        let mut floor = floor();
        assert!(floor.has_queued(None, Some(MIN_RTT)));
    }

    #[test]
    fn extremes_do_not_overflow() {
        let mut floor = floor();
        for _ in 0..3 {
            floor.on_feedback(report(41, u64::MAX, u64::MAX, false));
            floor.on_feedback(report(79, u64::MAX, u64::MAX, false));
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
