//! CUBIC: RFC 9438, and as in Linux (`linux`).

mod cbrt;
mod curve;
mod linux;

use uncork_units::wide::forget;
use uncork_units::{Ratio, Time, TimeDelta};

use crate::ack_train::AckTrain;
use crate::controller::{Control, Controller, Settings, Snapshot};
use crate::event::{AppState, Feedback, Lost, PathEvent, RttSample, SentPacket, Timeout, Token};
use crate::hystart::HyStart;
use crate::inheritance::Inheritance;
use crate::loss_window::{Congestion, LossReaction, LossWindow};
use curve::{Curve, Epoch};
pub(crate) use linux::LinuxCubic;

/// Multiplicative decrease factor (§4.6).
//= rfc9438 4.6-2
const BETA: Ratio = Ratio::new(7, 10);

/// Below this many segments the ACK train is too short to measure and the initial slow start
/// continues.
const ACK_TRAIN_MIN_SEGMENTS: u64 = 16;

/// CUBIC: RFC 9438, with HyStart++ in the initial slow start.
///
/// On hosts that do not pace, it also ends slow start by the length of the ACK train, like the
/// kernel's CUBIC without pacing ([`Settings::paced`]).
#[derive(Clone, Debug)]
pub struct Cubic {
    window: LossWindow,
    phase: CubicPhase,
    /// The epoch before the latest congestion event.
    undo: Epoch,
    /// Smoothed RTT in microseconds: how far §4.2 looks ahead.
    rtt_us: u32,
}

const _: () = assert!(size_of::<Cubic>() <= 272, "servers keep one per connection");

#[derive(Clone, Copy, Debug)]
enum CubicPhase {
    /// The two detectors run only in the initial slow start (RFC 9406 §4.3).
    SlowStart(HyStart, AckTrain),
    /// Congestion avoidance, or the recovery before it.
    Avoidance(Curve),
}

impl CubicPhase {
    const SLOW_START: Self = Self::SlowStart(HyStart::new(), AckTrain::new());
}

impl Cubic {
    /// Creates a controller for a new connection.
    pub fn new(settings: &Settings) -> Self {
        let window = LossWindow::new(settings);
        let plateau = Curve::plateau(settings.now, window.cwnd());
        let mut cubic = Self {
            phase: CubicPhase::SLOW_START,
            undo: plateau.epoch(),
            rtt_us: settings.initial_rtt.map_or(0, micros),
            window,
        };
        if !cubic.window.in_slow_start() {
            cubic.avoid(plateau);
        }
        cubic
    }

    /// State handed over to another controller.
    pub(crate) fn bequeath(&self, rtt: RttSample) -> Inheritance {
        self.window.bequeath(rtt)
    }

    /// The current epoch; in slow start, the epoch that would begin if it ended now.
    fn epoch(&self, now: Time) -> Epoch {
        match self.phase {
            CubicPhase::SlowStart(..) => Curve::plateau(now, self.window.cwnd()).epoch(),
            CubicPhase::Avoidance(curve) => curve.epoch(),
        }
    }

    /// Switches to congestion avoidance along `curve`, or to the recovery before it.
    fn avoid(&mut self, curve: Curve) {
        self.phase = CubicPhase::Avoidance(curve);
    }

    //= rfc9406 4.2-10
    //= rfc9438 4.6-1 4.9.2-2
    fn on_congestion(&mut self, now: Time, event: Congestion, feedback: &Feedback<'_>) {
        let last_w_max = match self.phase {
            CubicPhase::SlowStart(..) => 0,
            CubicPhase::Avoidance(curve) => curve.w_max(),
        };
        self.undo = self.epoch(now);
        self.avoid(Curve::after_congestion(event.cwnd, last_w_max));
        self.window.reduce(event, BETA.of(event.used), feedback);
    }

    //= rfc9406 4.3-4 4.3-7
    //= rfc9438 4.10-1 4.10-2 4.10-3
    fn grow(&mut self, now: Time, acked: u64, rtt: Option<RttSample>) {
        let window = &mut self.window;
        match &mut self.phase {
            CubicPhase::SlowStart(hystart, train) => {
                // Slow start that resumes after a Safe Retreat is not the initial one (RFC 9406
                // §4.3).
                let divisor = if window.is_initial() { hystart.growth_divisor() } else { 1 };
                window.slow_start(acked, divisor);
                let (round, cwnd) = (window.round(), window.cwnd());
                if window.is_initial() {
                    let is_late = hystart.on_ack(round, rtt.map(|rtt| rtt.latest));
                    // Data paced over a round trip returns as a train of that length.
                    let is_long = !window.is_paced()
                        && rtt.is_some_and(|rtt| train.on_ack(now, round, rtt.min));
                    let is_large = cwnd >= ACK_TRAIN_MIN_SEGMENTS * window.mss();
                    if is_late || (is_long && is_large) {
                        window.end_slow_start();
                    }
                }
                if !window.in_slow_start() {
                    self.avoid(Curve::plateau(now, cwnd));
                }
            }
            CubicPhase::Avoidance(curve) => {
                let rtt = TimeDelta::from_micros(u64::from(self.rtt_us));
                let cwnd = curve.on_ack(now, rtt, acked, window.cwnd(), window.mss());
                window.set_cwnd(cwnd);
            }
        }
    }

    /// §4.8: like Reno, but with CUBIC's factor.
    //= rfc9438 4.8-1
    fn collapse(&mut self, now: Time, event: Option<Congestion>, segments: u64) {
        let reduction = event.map(|event| (event, BETA.of(event.used)));
        if reduction.is_some() {
            self.undo = self.epoch(now);
        }
        self.phase = CubicPhase::SLOW_START;
        self.window.collapse(now, reduction, segments);
    }
}

/// Whole microseconds, saturating at a bit more than an hour.
fn micros(span: TimeDelta) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX)
}

impl Controller for Cubic {
    fn on_sent(&mut self, now: Time, packet: SentPacket, _app: AppState) -> Token {
        let was_idle = packet.unacked <= u64::from(packet.bytes);
        match &mut self.phase {
            CubicPhase::Avoidance(curve) if was_idle => curve.skip(now),
            _ => {}
        }
        self.window.on_sent(now, packet)
    }

    fn on_feedback(&mut self, now: Time, feedback: &Feedback<'_>) {
        if let Some(rtt) = feedback.rtt {
            self.rtt_us = micros(rtt.smoothed);
        }
        match (self.window.on_feedback(now, feedback), &mut self.phase) {
            (LossReaction::Congestion(event), _) => self.on_congestion(now, event, feedback),
            (LossReaction::Grow(acked), _) => self.grow(now, acked, feedback.rtt),
            (LossReaction::Recovered, CubicPhase::Avoidance(curve)) => {
                curve.begin(now, self.window.cwnd(), self.window.mss());
            }
            (LossReaction::Underused, CubicPhase::Avoidance(curve)) => curve.skip(now),
            (LossReaction::Recovered | LossReaction::Underused | LossReaction::Hold, _) => {}
        }
    }

    //= rfc9438 4.9.2-3
    fn on_spurious(&mut self, now: Time, packets: &[Lost]) {
        if self.window.on_spurious(packets) {
            if self.window.in_slow_start() {
                self.phase = CubicPhase::SLOW_START;
            } else {
                self.avoid(Curve::resumed(self.undo, now));
            }
        }
    }

    fn on_timeout(&mut self, now: Time, timeout: Timeout) {
        match timeout {
            Timeout::Probe => {}
            Timeout::Retransmission => self.collapse(now, self.window.timeout(), 1),
            Timeout::Persistent => {
                self.collapse(now, self.window.persistent_congestion(), 2);
                self.window.confirm();
            }
        }
    }

    fn on_path(&mut self, now: Time, event: PathEvent) {
        match event {
            PathEvent::MtuChanged { mss } => {
                self.window.on_mtu(mss);
                forget();
                // The curve is in segments, so a new one is started at the same window.
                if let CubicPhase::Avoidance(curve) = &mut self.phase {
                    curve.begin(now, self.window.cwnd(), self.window.mss());
                }
            }
            PathEvent::Migrated => {
                self.window.on_migration(now);
                self.phase = CubicPhase::SLOW_START;
            }
            PathEvent::Drained => {}
            PathEvent::Resume(hint) => self.window.offer(hint),
        }
    }

    fn control(&self) -> Control {
        self.window.control()
    }

    fn snapshot(&self) -> Snapshot {
        self.window.snapshot(match &self.phase {
            CubicPhase::SlowStart(hystart, _) if hystart.in_css() && self.window.is_initial() => {
                "CSS"
            }
            CubicPhase::SlowStart(..) => "SlowStart",
            CubicPhase::Avoidance(_) => "CongestionAvoidance",
        })
    }

    fn on_deferred(&mut self) {
        self.window.on_deferred();
    }
}

#[cfg(test)]
mod tests;
