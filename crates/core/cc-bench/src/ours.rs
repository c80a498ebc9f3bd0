//! The controllers of `uncork-cc`.

use uncork_cc::{
    Acked, Algorithm, AnyController, AppState, CcSpec, Controller, Feedback, Lost, RttSample,
    SentPacket, Settings,
};
use uncork_units::Time;

use crate::{PACKET, RTT, Subject};

/// Packets of Prague for each marked one.
const PER_MARK: usize = 50;

/// A controller of `uncork-cc`.
#[derive(Debug)]
pub struct Ours {
    cc: AnyController,
    /// Packets since the latest marked one; `None` for controllers without marks.
    unmarked: Option<usize>,
}

impl Ours {
    /// The controller of a new connection. Prague's packets are marked: without marks it is CUBIC.
    pub fn new(algorithm: Algorithm) -> Self {
        let is_marked = algorithm == Algorithm::Prague;
        let settings = Settings::new(PACKET, 1, Time::ZERO)
            .with_initial_rtt(RTT)
            .with_scalable_marks(is_marked);
        let cc = CcSpec::new(algorithm).build(&settings);
        Self { cc, unmarked: is_marked.then_some(0) }
    }

    /// Marked packets among the next `acked`.
    fn marks(&mut self, acked: usize) -> u32 {
        let Some(unmarked) = &mut self.unmarked else { return 0 };
        *unmarked += acked;
        let marks = *unmarked / PER_MARK;
        *unmarked %= PER_MARK;
        marks as u32
    }

    fn feedback(&mut self, now: Time, acked: &[Acked], lost: &[Lost], rest: &[Acked]) {
        let in_flight = rest.len() as u64 * u64::from(PACKET);
        let oldest = rest.first().map_or(Time::NEVER, |packet| packet.token.send_time());
        let marks = self.marks(acked.len());
        let mut feedback = Feedback::new(acked, lost, in_flight, oldest).with_ce_packets(marks);
        feedback.rtt = Some(RttSample { latest: RTT, smoothed: RTT, min: RTT });
        self.cc.on_feedback(now, &feedback);
    }
}

impl Subject for Ours {
    type Now = Time;
    type Packet = Acked;

    fn at(&self, nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    fn window(&self) -> u64 {
        self.cc.control().cwnd
    }

    fn sent(&mut self, now: Time, _number: u64, in_flight: u64, drained: bool) -> Acked {
        let packet = SentPacket { bytes: PACKET, in_flight, unacked: in_flight };
        let app = if drained { AppState::Drained } else { AppState::Backlogged };
        Acked { token: self.cc.on_sent(now, packet, app), bytes: PACKET }
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
        !matches!(self.cc.snapshot().state, "Startup" | "Drain" | "SlowStart")
    }

    fn state_bytes(&self) -> u64 {
        let size = match &self.cc {
            AnyController::Reno(controller) => size_of_val(controller),
            AnyController::Cubic(controller) => size_of_val(controller),
            AnyController::LinuxCubic(controller) => size_of_val(controller),
            AnyController::Bbr1(controller) => size_of_val(controller),
            AnyController::Bbr3(controller) => size_of_val(controller),
            AnyController::Prague(controller) => size_of_val(controller),
            any => size_of_val(any),
        };
        size as u64
    }
}
