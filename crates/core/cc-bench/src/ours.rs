//! The controllers of `uncork-cc`.

use uncork_cc::{
    Acked, Algorithm, AnyController, AppState, CcSpec, Controller, Feedback, Lost, RttSample,
    SentPacket, Settings,
};
use uncork_units::Time;

use crate::{PACKET, RTT, Subject};

/// A controller of `uncork-cc`.
#[derive(Debug)]
pub struct Ours(AnyController);

impl Ours {
    /// The controller of a new connection.
    pub fn new(algorithm: Algorithm) -> Self {
        let mut settings = Settings::new(PACKET, 1, Time::ZERO);
        settings.initial_rtt = Some(RTT);
        Self(CcSpec::new(algorithm).build(&settings))
    }

    fn feedback(&mut self, now: Time, acked: &[Acked], lost: &[Lost], rest: &[Acked]) {
        let in_flight = rest.len() as u64 * u64::from(PACKET);
        let oldest = rest.first().map_or(Time::NEVER, |packet| packet.token.send_time());
        let mut feedback = Feedback::new(acked, lost, in_flight, oldest);
        feedback.rtt = Some(RttSample { latest: RTT, smoothed: RTT, min: RTT });
        self.0.on_feedback(now, &feedback);
    }
}

impl Subject for Ours {
    type Now = Time;
    type Packet = Acked;

    fn at(&self, nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    fn window(&self) -> u64 {
        self.0.control().cwnd
    }

    fn sent(&mut self, now: Time, _number: u64, in_flight: u64, drained: bool) -> Acked {
        let packet = SentPacket { bytes: PACKET, in_flight, unacked: in_flight };
        let app = if drained { AppState::Drained } else { AppState::Backlogged };
        Acked { token: self.0.on_sent(now, packet, app), bytes: PACKET }
    }

    fn batch_sent(&mut self, _now: Time, _bytes: u64, _number: u64) {}

    fn acked(&mut self, now: Time, acked: &[Acked], rest: &[Acked], _app_limited: bool) {
        self.feedback(now, acked, &[], rest);
    }

    fn lost(&mut self, now: Time, lost: Acked, acked: &[Acked], rest: &[Acked]) {
        let lost = Lost { token: lost.token, bytes: lost.bytes, contiguous: false };
        self.feedback(now, acked, &[lost], rest);
    }

    fn is_settled(&self) -> bool {
        !matches!(self.0.snapshot().state, "Startup" | "Drain" | "SlowStart")
    }

    fn state_bytes(&self) -> u64 {
        let size = match &self.0 {
            AnyController::Reno(controller) => size_of_val(controller),
            AnyController::Cubic(controller) => size_of_val(controller),
            AnyController::LinuxCubic(controller) => size_of_val(controller),
            AnyController::Bbr1(controller) => size_of_val(controller),
            AnyController::Bbr3(controller) => size_of_val(controller),
            any => size_of_val(any),
        };
        size as u64
    }
}
