//! BBR version 3: draft-ietf-ccwg-bbr-06.

use uncork_units::Time;

use crate::controller::{Control, Controller, Settings, Snapshot};
use crate::event::{AppState, Feedback, Lost, PathEvent, SentPacket, Timeout, Token};
use crate::sampler::DeliverySampler;

/// BBR version 3: draft-ietf-ccwg-bbr-06.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    sampler: DeliverySampler,
    cwnd: u64,
}

impl Bbr3 {
    /// A controller for a new connection.
    pub fn new(settings: &Settings, _strict_draft: bool) -> Self {
        Self {
            sampler: DeliverySampler::new(settings.now, settings.initial_rtt),
            cwnd: settings.initial_window,
        }
    }
}

impl Controller for Bbr3 {
    fn on_sent(&mut self, now: Time, packet: SentPacket, app: AppState) -> Token {
        self.sampler.on_sent(now, packet, app, None)
    }

    fn on_feedback(&mut self, now: Time, feedback: &Feedback<'_>) {
        let sample = self.sampler.on_feedback(now, feedback);
        self.cwnd =
            if feedback.lost.is_empty() { self.cwnd + sample.newly_acked } else { self.cwnd / 2 }
                .max(4000);
    }

    fn on_spurious(&mut self, _now: Time, _packets: &[Lost]) {}

    fn on_timeout(&mut self, _now: Time, _timeout: Timeout) {}

    fn on_path(&mut self, _now: Time, _event: PathEvent) {}

    fn control(&self) -> Control {
        Control { cwnd: self.cwnd, pacing_rate: None, send_quantum: self.cwnd }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::of_state("Stub")
    }
}
