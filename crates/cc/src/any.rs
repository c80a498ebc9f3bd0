//! One type for all algorithms: dispatch by `match`, no allocation.

use uncork_units::Time;

use crate::ack_frequency::AckFrequency;
use crate::bbr1::Bbr1;
use crate::bbr3::Bbr3;
use crate::controller::{Control, Controller, Settings, Snapshot};
use crate::cubic::Cubic;
use crate::event::{AppState, Feedback, Lost, PathEvent, SentPacket, Timeout, Token};
use crate::newreno::NewReno;
use crate::spec::{Algorithm, CcSpec};

/// Any controller of this crate, by value.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AnyController {
    /// NewReno.
    Reno(NewReno),
    /// CUBIC.
    Cubic(Cubic),
    /// BBR version 1.
    Bbr1(Bbr1),
    /// BBR version 3, or 2.
    Bbr3(Bbr3),
}

impl CcSpec {
    /// A controller for a new connection.
    pub fn build(&self, settings: &Settings) -> AnyController {
        match self.algorithm() {
            Algorithm::Reno => AnyController::Reno(NewReno::new(settings)),
            Algorithm::Cubic => AnyController::Cubic(Cubic::new(settings, self.has("rfc8312"))),
            Algorithm::Bbr1 => AnyController::Bbr1(Bbr1::new(settings)),
            Algorithm::Bbr2 => AnyController::Bbr3(Bbr3::v2(settings)),
            Algorithm::Bbr3 => {
                let bbr = Bbr3::new(settings, self.has("strict_draft"))
                    .with_rtt_fairness(self.has("rtt_fair"))
                    .with_loss_floor(self.has("loss_floor"));
                AnyController::Bbr3(bbr)
            }
        }
    }
}

macro_rules! dispatch {
    ($self:expr, $controller:ident => $call:expr) => {
        match $self {
            AnyController::Reno($controller) => $call,
            AnyController::Cubic($controller) => $call,
            AnyController::Bbr1($controller) => $call,
            AnyController::Bbr3($controller) => $call,
        }
    };
}

impl Controller for AnyController {
    fn on_sent(&mut self, now: Time, packet: SentPacket, app: AppState) -> Token {
        dispatch!(self, controller => controller.on_sent(now, packet, app))
    }

    fn on_feedback(&mut self, now: Time, feedback: &Feedback<'_>) {
        dispatch!(self, controller => controller.on_feedback(now, feedback));
    }

    fn on_spurious(&mut self, now: Time, packets: &[Lost]) {
        dispatch!(self, controller => controller.on_spurious(now, packets));
    }

    fn on_timeout(&mut self, now: Time, timeout: Timeout) {
        dispatch!(self, controller => controller.on_timeout(now, timeout));
    }

    fn on_path(&mut self, now: Time, event: PathEvent) {
        dispatch!(self, controller => controller.on_path(now, event));
    }

    fn control(&self) -> Control {
        dispatch!(self, controller => controller.control())
    }

    fn ack_frequency(&self) -> Option<AckFrequency> {
        dispatch!(self, controller => controller.ack_frequency())
    }

    fn snapshot(&self) -> Snapshot {
        dispatch!(self, controller => controller.snapshot())
    }
}
