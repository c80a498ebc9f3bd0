//! CUBIC: RFC 9438, and as in Linux (`linux`).

mod cbrt;
mod curve;
mod linux;

use uncork_units::wide::forget;
use uncork_units::{Ratio, Time, TimeDelta};

use crate::controller::{Control, Controller, Settings, Snapshot};
use crate::event::{AppState, Feedback, Lost, PathEvent, RttSample, SentPacket, Timeout, Token};
use crate::inheritance::Inheritance;
use crate::loss_window::{Congestion, LossReaction, LossWindow};
use crate::resume::ResumeHint;
use crate::start::{HyStart, SlowStart};
use curve::{Curve, Epoch};
pub(crate) use linux::LinuxCubic;

/// Multiplicative decrease factor (§4.6).
//= rfc9438 4.6-2
const BETA: Ratio = Ratio::new(7, 10);

/// CUBIC: RFC 9438, with HyStart++ or another method in the initial slow start.
#[derive(Clone, Debug)]
pub struct Cubic<S = HyStart> {
    pub(crate) window: LossWindow,
    phase: CubicPhase<S>,
    /// The epoch before the latest congestion event.
    undo: Epoch,
    /// Smoothed RTT in microseconds: how far §4.2 looks ahead.
    rtt_us: u32,
}

const _: () = assert!(size_of::<Cubic>() <= 280, "servers keep one per connection");

#[derive(Clone, Copy, Debug)]
enum CubicPhase<S> {
    /// The method runs only in the initial slow start (RFC 9406 §4.3).
    SlowStart(S),
    /// Congestion avoidance, or the recovery before it.
    Avoidance(Curve),
}

impl<S: SlowStart> CubicPhase<S> {
    const SLOW_START: Self = Self::SlowStart(S::INITIAL);
}

impl Cubic {
    /// Creates a controller for a new connection.
    pub fn new(settings: &Settings) -> Self {
        Self::with_start(settings)
    }
}

impl<S: SlowStart> Cubic<S> {
    /// Creates a controller with `S` as the method that ends the initial slow start.
    pub fn with_start(settings: &Settings) -> Self {
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

    /// [`PathEvent::Resume`] alone, for a host that must keep its functions small.
    #[doc(hidden)]
    #[inline]
    pub fn take_in_hint(&mut self, hint: ResumeHint) {
        self.window.offer(hint);
    }

    /// Whether the window was taken over from an earlier connection, for a host that has no observer of starts.
    #[doc(hidden)]
    #[inline]
    pub fn has_jumped(&self) -> bool {
        self.window.has_jumped()
    }

    /// State handed over to another controller.
    #[doc(hidden)]
    pub fn bequeath(&self, rtt: RttSample) -> Inheritance {
        self.window.bequeath(rtt)
    }

    /// The current epoch; in slow start, the epoch that would begin if it ended now.
    fn epoch(&self, now: Time) -> Epoch {
        match self.phase {
            CubicPhase::SlowStart(_) => Curve::plateau(now, self.window.cwnd()).epoch(),
            CubicPhase::Avoidance(curve) => curve.epoch(),
        }
    }

    /// Continues with congestion avoidance from the current window, which no loss has set.
    pub(crate) fn restart_curve(&mut self, now: Time) {
        self.avoid(Curve::plateau(now, self.window.cwnd()));
    }

    /// What follows from a feedback that the window has processed.
    #[expect(clippy::inline_always, reason = "a call costs a tenth of CUBIC's ACK")]
    #[inline(always)]
    pub(crate) fn react(&mut self, now: Time, reaction: LossReaction, feedback: &Feedback<'_>) {
        if let Some(rtt) = feedback.rtt {
            self.rtt_us = micros(rtt.smoothed);
        }
        match (reaction, &mut self.phase) {
            (LossReaction::Congestion(event), _) => self.on_congestion(now, event, feedback),
            (LossReaction::Grow(acked), _) => self.grow(now, acked, feedback.rtt),
            (LossReaction::Recovered, CubicPhase::Avoidance(curve)) => {
                curve.begin(now, self.window.cwnd(), self.window.mss());
            }
            (LossReaction::Converged, _) => self.begin_after_convergence(now),
            (LossReaction::Underused, CubicPhase::Avoidance(curve)) => curve.skip(now),
            (LossReaction::Recovered | LossReaction::Underused | LossReaction::Hold, _) => {}
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
            CubicPhase::SlowStart(_) => 0,
            CubicPhase::Avoidance(curve) => curve.w_max(),
        };
        self.undo = self.epoch(now);
        let converges = S::CONVERGES && self.window.is_initial();
        self.avoid(Curve::after_congestion(event.cwnd, last_w_max));
        if converges {
            self.window.converge(event, BETA, feedback);
        } else {
            self.window.reduce(event, BETA.of(event.used), feedback);
        }
    }

    /// W_max is what path and buffer hold, not the window at the end of a start that may exceed that three times.
    fn begin_after_convergence(&mut self, now: Time) {
        let (cwnd, mss) = (self.window.cwnd(), self.window.mss());
        let mut curve = Curve::after_congestion(Ratio::new(BETA.den(), BETA.num()).of(cwnd), 0);
        curve.begin(now, cwnd, mss);
        self.avoid(curve);
    }

    //= rfc9406 4.3-4 4.3-7
    //= rfc9438 4.10-1 4.10-2 4.10-3
    fn grow(&mut self, now: Time, acked: u64, rtt: Option<RttSample>) {
        let window = &mut self.window;
        match &mut self.phase {
            CubicPhase::SlowStart(start) => {
                window.grow_in_slow_start(start, now, acked, rtt);
                if !window.in_slow_start() {
                    let cwnd = window.cwnd();
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

impl<S: SlowStart> Controller for Cubic<S> {
    #[inline]
    fn on_sent(&mut self, now: Time, packet: SentPacket, _app: AppState) -> Token {
        let was_idle = packet.unacked <= u64::from(packet.bytes);
        match &mut self.phase {
            CubicPhase::SlowStart(start) => start.on_sent(packet.bytes),
            CubicPhase::Avoidance(curve) if was_idle => curve.skip(now),
            CubicPhase::Avoidance(_) => {}
        }
        self.window.on_sent(now, packet)
    }

    fn on_feedback(&mut self, now: Time, feedback: &Feedback<'_>) {
        let reaction = self.window.on_feedback(now, feedback);
        self.react(now, reaction, feedback);
    }

    //= rfc9438 4.9.2-3
    fn on_spurious(&mut self, now: Time, packets: &[Lost]) {
        if self.window.on_spurious(packets) {
            if self.window.in_slow_start() {
                self.phase = CubicPhase::SLOW_START;
            } else {
                let (cwnd, mss) = (self.window.cwnd(), self.window.mss());
                self.avoid(Curve::undone(self.undo, now, cwnd, mss));
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
            PathEvent::Drained | PathEvent::ClassicEcn => {}
            PathEvent::Resume(hint) => self.take_in_hint(hint),
        }
    }

    #[inline]
    fn control(&self) -> Control {
        self.window.control()
    }

    fn has_left_start(&self) -> bool {
        !self.window.is_initial()
    }

    fn snapshot(&self) -> Snapshot {
        self.window.snapshot(match &self.phase {
            CubicPhase::SlowStart(start) if self.window.is_initial() => start.state(),
            CubicPhase::SlowStart(_) => "SlowStart",
            CubicPhase::Avoidance(_) => "CongestionAvoidance",
        })
    }

    fn on_deferred(&mut self) {
        self.window.on_deferred();
    }
}

#[cfg(test)]
mod tests;
