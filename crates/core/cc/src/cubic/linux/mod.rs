//! CUBIC as in Linux 6.18: `net/ipv4/tcp_cubic.c` and the window code around it.
//!
//! It differs from RFC 9438 in this:
//!
//! - The window is a whole number of segments, and a reduction rounds down.
//! - W_est grows by 8/15 of a segment per round, however large it is, as in RFC 8312 §4.2. RFC 9438
//!   §4.3 lets it grow by a whole segment once it is back at the window of the loss.
//! - The curve is evaluated at most once per clock tick, and together with W_est only every eighth
//!   tick while the window stays the same.
//! - Until the first loss, and after a timeout, the window grows by at least a twentieth per round.
//! - Slow start ends by the original HyStart (`hystart.rs`), also after a timeout.
//!
//! Recovery, its end, and its undo are those of all loss-based controllers of this crate
//! (`../../loss_window.rs`).

mod growth;
mod hystart;

use uncork_units::Time;
use uncork_units::wide::saturating_mul;

use crate::controller::{Control, Controller, Settings, Snapshot};
use crate::event::{AppState, Feedback, Lost, PathEvent, RttSample, SentPacket, Timeout, Token};
use crate::inheritance::Inheritance;
use crate::loss_window::{Congestion, LossReaction, LossWindow};
use growth::Growth;
use hystart::{AckTiming, HyStart};

/// CUBIC as in Linux 6.18.
#[derive(Clone, Debug)]
pub struct LinuxCubic {
    window: LossWindow,
    growth: Growth,
    hystart: HyStart,
    /// Acknowledged bytes that do not fill a segment yet.
    residue: u64,
    /// When the last packet left.
    last_sent: Time,
}

const _: () = assert!(size_of::<LinuxCubic>() <= 320, "servers keep one per connection");

impl LinuxCubic {
    /// Creates a controller for a new connection.
    pub fn new(settings: &Settings) -> Self {
        Self {
            window: LossWindow::new(settings),
            growth: Growth::default(),
            hystart: HyStart::default(),
            residue: 0,
            last_sent: settings.now,
        }
    }

    /// State handed over to another controller.
    pub(crate) fn bequeath(&self, rtt: RttSample) -> Inheritance {
        self.window.bequeath(rtt)
    }

    /// Whether the window is below ssthresh, in whole segments: after a change of the MTU ssthresh is
    /// no multiple of one, and the window always is.
    fn in_slow_start(&self) -> bool {
        let (cwnd, ssthresh) = (self.window.cwnd(), self.window.ssthresh());
        self.window.is_initial() || self.segments(cwnd) < self.segments(ssthresh)
    }

    /// A window in whole segments.
    fn segments(&self, bytes: u64) -> u64 {
        (bytes / self.window.mss()).max(1)
    }

    /// The window after the congestion event, in bytes. Linux reduces `snd_cwnd`, used or not.
    fn reduced(&mut self, event: Congestion) -> u64 {
        self.growth.on_congestion(self.segments(event.cwnd)) * self.window.mss()
    }

    /// `cubictcp_cong_avoid()`: slow start up to ssthresh, congestion avoidance with the rest.
    fn grow(&mut self, now: Time, feedback: &Feedback<'_>) {
        let mss = self.window.mss();
        let bytes = self.residue.saturating_add(feedback.acked_bytes());
        self.residue = bytes % mss;
        let mut acked = bytes / mss;
        let mut cwnd = self.segments(self.window.cwnd());
        if self.in_slow_start() {
            self.watch_slow_start(now, cwnd, feedback);
        }
        if self.in_slow_start() {
            let growth = acked.min((self.window.ssthresh() / mss).saturating_sub(cwnd));
            cwnd = cwnd.saturating_add(growth);
            acked -= growth;
        }
        if acked > 0 {
            cwnd = self.growth.on_ack(now, acked, cwnd);
        }
        self.window.set_cwnd(saturating_mul(cwnd, mss));
    }

    /// HyStart may end slow start at the window before this ACK.
    fn watch_slow_start(&mut self, now: Time, cwnd: u64, feedback: &Feedback<'_>) {
        let delay_min = self.growth.delay_min();
        let (Some(rtt), Some(newest)) = (feedback.rtt, feedback.acked.last()) else { return };
        if delay_min == 0 {
            return;
        }
        let ends = self.hystart.on_ack(&AckTiming {
            now,
            rtt,
            delay_min,
            cwnd: self.window.cwnd(),
            segments: cwnd,
            is_paced: self.window.is_paced(),
            prior_delivered: newest.token.delivered,
            delivered: self.window.delivered(),
        });
        if ends {
            self.window.end_slow_start();
        }
    }

    /// The state `TCP_CA_Loss` resets all that CUBIC knows of the path.
    fn collapse(&mut self, now: Time, event: Option<Congestion>, segments: u64) {
        let reduction = event.map(|event| (event, self.reduced(event)));
        self.growth = Growth::default();
        self.hystart = HyStart::default();
        self.window.collapse(now, reduction, segments);
    }
}

impl Controller for LinuxCubic {
    #[inline]
    fn on_sent(&mut self, now: Time, packet: SentPacket, _app: AppState) -> Token {
        if packet.unacked <= u64::from(packet.bytes) {
            self.growth.skip(self.last_sent, now);
        }
        self.last_sent = now;
        self.window.on_sent(now, packet)
    }

    fn on_feedback(&mut self, now: Time, feedback: &Feedback<'_>) {
        if let Some(rtt) = feedback.rtt {
            self.growth.measure_delay(now, rtt.latest);
        }
        match self.window.on_feedback(now, feedback) {
            LossReaction::Congestion(event) => {
                let ssthresh = self.reduced(event);
                self.window.reduce(event, ssthresh, feedback);
            }
            LossReaction::Grow(_) | LossReaction::Recovered => self.grow(now, feedback),
            LossReaction::Converged | LossReaction::Underused | LossReaction::Hold => {}
        }
    }

    fn on_spurious(&mut self, _now: Time, packets: &[Lost]) {
        self.window.on_spurious(packets);
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
                self.growth = Growth::default();
            }
            PathEvent::Migrated => {
                self.window.on_migration(now);
                self.growth = Growth::default();
                self.hystart = HyStart::default();
            }
            PathEvent::Drained | PathEvent::ClassicEcn => {}
            PathEvent::Resume(hint) => self.window.offer(hint),
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
        let is_growing = self.in_slow_start();
        self.window.snapshot(if is_growing { "SlowStart" } else { "CongestionAvoidance" })
    }

    fn on_deferred(&mut self) {
        self.window.on_deferred();
    }
}

#[cfg(test)]
mod tests;
