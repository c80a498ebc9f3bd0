//! One type for all algorithms: dispatches by `match`, without allocating.

use core::fmt;

use uncork_units::Time;

use crate::ack_frequency::AckFrequency;
use crate::bbr1::Bbr1;
use crate::bbr3::Bbr3;
use crate::controller::{Control, Controller, ControllerSpec, Settings, Snapshot};
use crate::cubic::{Cubic, LinuxCubic};
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
    /// CUBIC as in Linux.
    LinuxCubic(LinuxCubic),
    /// BBR version 1.
    Bbr1(Bbr1),
    /// BBR version 3, or 2.
    Bbr3(Bbr3),
}

impl CcSpec {
    /// Builds a controller for a new connection.
    pub fn build(&self, settings: &Settings) -> AnyController {
        match self.algorithm() {
            Algorithm::Reno => AnyController::Reno(NewReno::new(settings)),
            Algorithm::Cubic if self.has("linux") => {
                AnyController::LinuxCubic(LinuxCubic::new(settings))
            }
            Algorithm::Cubic => AnyController::Cubic(Cubic::new(settings)),
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

impl ControllerSpec for CcSpec {
    type Controller = AnyController;

    fn name(&self) -> impl fmt::Display {
        *self
    }

    fn build(&self, settings: &Settings) -> AnyController {
        Self::build(self, settings)
    }
}

/// A controller (or [`ControllerSpec`]) of one of two types. Use it to compare your own with those
/// of this crate.
#[derive(Clone, Copy, Debug)]
pub enum Either<A, B> {
    /// The first kind.
    A(A),
    /// The second kind.
    B(B),
}

impl<A: fmt::Display, B: fmt::Display> fmt::Display for Either<A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::A(it) => it.fmt(f),
            Self::B(it) => it.fmt(f),
        }
    }
}

impl<A: ControllerSpec, B: ControllerSpec> ControllerSpec for Either<A, B> {
    type Controller = Either<A::Controller, B::Controller>;

    fn name(&self) -> impl fmt::Display {
        match self {
            Self::A(it) => Either::A(it.name()),
            Self::B(it) => Either::B(it.name()),
        }
    }

    fn build(&self, settings: &Settings) -> Self::Controller {
        match self {
            Self::A(it) => Either::A(it.build(settings)),
            Self::B(it) => Either::B(it.build(settings)),
        }
    }
}

/// Calls the method on the controller in the enum's active variant.
macro_rules! dispatch {
    ($enum:ty, [$($generic:ident),*], $variants:tt) => {
        impl<$($generic: Controller),*> Controller for $enum {
            fn on_sent(&mut self, now: Time, packet: SentPacket, app: AppState) -> Token {
                dispatch!(self, $variants, it => it.on_sent(now, packet, app))
            }

            fn on_feedback(&mut self, now: Time, feedback: &Feedback<'_>) {
                dispatch!(self, $variants, it => it.on_feedback(now, feedback));
            }

            fn on_spurious(&mut self, now: Time, packets: &[Lost]) {
                dispatch!(self, $variants, it => it.on_spurious(now, packets));
            }

            fn on_timeout(&mut self, now: Time, timeout: Timeout) {
                dispatch!(self, $variants, it => it.on_timeout(now, timeout));
            }

            fn on_path(&mut self, now: Time, event: PathEvent) {
                dispatch!(self, $variants, it => it.on_path(now, event));
            }

            fn control(&self) -> Control {
                dispatch!(self, $variants, it => it.control())
            }

            fn ack_frequency(&self) -> Option<AckFrequency> {
                dispatch!(self, $variants, it => it.ack_frequency())
            }

            fn snapshot(&self) -> Snapshot {
                dispatch!(self, $variants, it => it.snapshot())
            }

            fn on_deferred(&mut self) {
                dispatch!(self, $variants, it => it.on_deferred());
            }
        }
    };
    ($self:expr, [$($variant:ident),*], $it:ident => $call:expr) => {
        match $self {
            $(Self::$variant($it) => $call,)*
        }
    };
}

dispatch!(AnyController, [], [Reno, Cubic, LinuxCubic, Bbr1, Bbr3]);
dispatch!(Either<A, B>, [A, B], [A, B]);
