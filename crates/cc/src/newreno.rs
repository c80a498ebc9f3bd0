//! NewReno: RFC 5681, RFC 6582, RFC 9002 §7.

use uncork_units::Time;

use crate::controller::{Control, Controller, Settings, Snapshot};
use crate::event::{AppState, Feedback, Lost, PathEvent, SentPacket, Timeout, Token};
use crate::loss_window::{LossWindow, Step};

/// NewReno: slow start, a segment per round trip, half the window per congestion event.
///
/// Slow start is the classic one, as in the kernel's Reno: it ends with a loss.
#[derive(Clone, Debug)]
pub struct NewReno {
    window: LossWindow,
    /// Bytes acknowledged since congestion avoidance last added a segment.
    acked: u64,
}

const _: () = assert!(size_of::<NewReno>() <= 192, "servers keep one per connection");

impl NewReno {
    /// A controller for a new connection.
    pub fn new(settings: &Settings) -> Self {
        Self { window: LossWindow::new(settings), acked: 0 }
    }

    fn grow(&mut self, bytes: u64) {
        if self.window.in_slow_start() {
            self.window.slow_start(bytes);
        } else {
            self.avoid_congestion(bytes);
        }
    }

    /// A segment per window acknowledged, counted in bytes (RFC 5681 §3.1, RFC 3465 §2.1).
    fn avoid_congestion(&mut self, bytes: u64) {
        let cwnd = self.window.cwnd();
        self.acked = self.acked.saturating_add(bytes);
        if self.acked >= cwnd {
            self.acked = (self.acked - cwnd).min(cwnd);
            self.window.set_cwnd(cwnd.saturating_add(self.window.mss()));
        }
    }

    /// RFC 5681 §3.1 and §5: one segment after a retransmission timeout; RFC 9002 §7.6.2: two on
    /// persistent congestion.
    fn collapse(&mut self, now: Time, segments: u64) {
        self.acked = 0;
        let reduction = self.window.timeout().map(|event| (event, event.used / 2));
        self.window.collapse(now, reduction, segments);
    }
}

impl Controller for NewReno {
    fn on_sent(&mut self, now: Time, packet: SentPacket, _app: AppState) -> Token {
        self.window.on_sent(now, packet)
    }

    fn on_feedback(&mut self, now: Time, feedback: &Feedback<'_>) {
        match self.window.on_feedback(now, feedback) {
            Step::Congestion(event) => {
                self.acked = 0;
                self.window.reduce(event, event.used / 2, feedback);
            }
            Step::Grow(bytes) => self.grow(bytes),
            Step::Recovered | Step::Underused | Step::Hold => {}
        }
    }

    fn on_spurious(&mut self, _now: Time, packets: &[Lost]) {
        self.window.on_spurious(packets.len() as u32);
    }

    fn on_timeout(&mut self, now: Time, timeout: Timeout) {
        match timeout {
            Timeout::Probe => {}
            Timeout::Retransmission => self.collapse(now, 1),
            Timeout::Persistent => {
                self.collapse(now, 2);
                self.window.confirm();
            }
        }
    }

    fn on_path(&mut self, now: Time, event: PathEvent) {
        match event {
            PathEvent::MtuChanged { mss } => self.window.on_mtu(mss),
            PathEvent::Migrated => self.window.on_migration(now),
        }
    }

    fn control(&self) -> Control {
        self.window.control()
    }

    fn snapshot(&self) -> Snapshot {
        let slow_start = self.window.in_slow_start();
        self.window.snapshot(if slow_start { "SlowStart" } else { "CongestionAvoidance" })
    }
}
