//! One type for all algorithms: dispatches by `match`, without allocating.

use core::fmt;

use uncork_units::Time;

use crate::ack_frequency::AckFrequency;
use crate::bbr1::Bbr1;
use crate::bbr3::Bbr3;
use crate::controller::{Control, Controller, ControllerSpec, Settings, Snapshot};
use crate::cubic::{Cubic, LinuxCubic};
use crate::event::{AppState, Feedback, Lost, PathEvent, RttSample, SentPacket, Timeout, Token};
use crate::inheritance::Inheritance;
use crate::newreno::NewReno;
use crate::prague::Prague;
use crate::spec::{Algorithm, CcSpec, LINUX, RAPID, SEARCH};
use crate::start::{RapidStart, Search};

/// Any controller of this crate, by value.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AnyController {
    /// NewReno.
    Reno(NewReno),
    /// NewReno that starts with SEARCH.
    SearchReno(NewReno<Search>),
    /// NewReno that starts with Rapid Start.
    RapidReno(NewReno<RapidStart>),
    /// CUBIC.
    Cubic(Cubic),
    /// CUBIC that starts with SEARCH.
    SearchCubic(Cubic<Search>),
    /// CUBIC that starts with Rapid Start.
    RapidCubic(Cubic<RapidStart>),
    /// CUBIC as in Linux.
    LinuxCubic(LinuxCubic),
    /// BBR version 1.
    Bbr1(Bbr1),
    /// BBR version 3, or 2.
    Bbr3(Bbr3),
    /// Prague.
    Prague(Prague),
}

impl CcSpec {
    /// Builds a controller for a new connection.
    pub fn build(&self, settings: &Settings) -> AnyController {
        match self.algorithm() {
            Algorithm::Reno if self.has(SEARCH) => {
                AnyController::SearchReno(NewReno::with_start(settings))
            }
            Algorithm::Reno if self.has(RAPID) => {
                AnyController::RapidReno(NewReno::with_start(settings))
            }
            Algorithm::Reno => AnyController::Reno(NewReno::new(settings)),
            Algorithm::Cubic if self.has(SEARCH) => {
                AnyController::SearchCubic(Cubic::with_start(settings))
            }
            Algorithm::Cubic if self.has(RAPID) => {
                AnyController::RapidCubic(Cubic::with_start(settings))
            }
            Algorithm::Cubic if self.has(LINUX) => {
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
            Algorithm::Prague => AnyController::Prague(Prague::new(settings)),
        }
    }
}

impl AnyController {
    /// The state for this controller's successor. `rtt` is the connection's last measurement.
    pub fn bequeath(&self, rtt: RttSample) -> Inheritance {
        match self {
            Self::Reno(reno) => reno.bequeath(rtt),
            Self::SearchReno(reno) => reno.bequeath(rtt),
            Self::RapidReno(reno) => reno.bequeath(rtt),
            Self::Cubic(cubic) => cubic.bequeath(rtt),
            Self::SearchCubic(cubic) => cubic.bequeath(rtt),
            Self::RapidCubic(cubic) => cubic.bequeath(rtt),
            Self::LinuxCubic(cubic) => cubic.bequeath(rtt),
            Self::Bbr1(bbr) => bbr.bequeath(),
            Self::Bbr3(bbr) => bbr.bequeath(),
            Self::Prague(prague) => prague.bequeath(rtt),
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
            #[inline]
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

            #[inline]
            fn control(&self) -> Control {
                dispatch!(self, $variants, it => it.control())
            }

            fn ack_frequency(&self) -> Option<AckFrequency> {
                dispatch!(self, $variants, it => it.ack_frequency())
            }

            fn found_classic_queue(&self) -> bool {
                dispatch!(self, $variants, it => it.found_classic_queue())
            }

            fn has_left_start(&self) -> bool {
                dispatch!(self, $variants, it => it.has_left_start())
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

dispatch!(
    AnyController,
    [],
    [Reno, SearchReno, RapidReno, Cubic, SearchCubic, RapidCubic, LinuxCubic, Bbr1, Bbr3, Prague]
);
dispatch!(Either<A, B>, [A, B], [A, B]);

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use uncork_units::{Rate, TimeDelta};

    use super::*;
    use crate::script::{Host, MSS, segments, settings};

    const RTT: TimeDelta = TimeDelta::from_millis(100);

    /// 100 segments on a path of 100 ms.
    fn inherited(has_filled_pipe: bool) -> Inheritance {
        let window = segments(100);
        Inheritance { window, min_rtt: RTT, bw: Rate::of(window, RTT), has_filled_pipe }
    }

    fn heir(cc: &str, has_filled_pipe: bool) -> Host<AnyController> {
        let spec: CcSpec = cc.parse().expect("a controller");
        let inherited = Some(inherited(has_filled_pipe));
        Host::new(spec.build(&Settings { inherited, ..settings(10) }))
    }

    #[test]
    fn successor_continues_from_the_inherited_state() {
        for (cc, state) in [
            ("reno", "CongestionAvoidance"),
            ("cubic", "CongestionAvoidance"),
            ("bbr1", "Drain"),
            ("bbr2", "Drain"),
            ("bbr3", "Drain"),
        ] {
            let host = heir(cc, true);
            let (control, snapshot) = (host.cc.control(), host.cc.snapshot());
            assert_eq!((control.cwnd, snapshot.state), (segments(100), state), "{cc}");
            if let Some(max_bw) = snapshot.max_bw {
                assert_eq!((max_bw, snapshot.min_rtt), (inherited(true).bw, Some(RTT)), "{cc}");
                assert!(control.pacing_rate < Some(max_bw), "{cc}");
            }
        }
    }

    /// As after ProbeRTT or a timeout of the controller before.
    #[test]
    fn successor_with_a_cut_window_returns_to_what_the_path_carries_by_slow_start() {
        for cc in ["reno", "cubic"] {
            let inherited = Some(Inheritance { window: segments(10), ..inherited(true) });
            let spec: CcSpec = cc.parse().expect("a controller");
            let mut host = Host::new(spec.build(&Settings { inherited, ..settings(10) }));
            (0..6).for_each(|_| host.round());
            let snapshot = host.cc.snapshot();
            assert_eq!(
                (host.cwnd() / segments(100), snapshot.state),
                (1, "CongestionAvoidance"),
                "{cc}"
            );
        }
    }

    #[test]
    fn unfilled_pipe_keeps_growing() {
        for (cc, state) in [
            ("reno", "SlowStart"),
            ("cubic", "SlowStart"),
            ("bbr1", "Startup"),
            ("bbr3", "Startup"),
        ] {
            let mut host = heir(cc, false);
            assert_eq!(host.cc.snapshot().state, state, "{cc}");
            assert_eq!(host.cwnd(), segments(100), "{cc}");
            host.fill();
            host.advance(RTT);
            host.ack(100);
            assert!(host.cwnd() > segments(100), "{cc}: {}", host.cwnd() / u64::from(MSS));
        }
    }

    /// Each controller hands on what it received; model-based ones hand on at most the BDP.
    #[test]
    fn handover_preserves_the_measurements() {
        let rtt = RttSample { latest: RTT, smoothed: RTT, min: RTT };
        let left: Vec<_> = ["reno", "cubic", "bbr1", "bbr3"]
            .into_iter()
            .map(|cc| heir(cc, true).cc.bequeath(rtt))
            .collect();
        assert!(left.iter().all(|left| left.has_filled_pipe && left.min_rtt == RTT), "{left:?}");
        assert!(left.iter().all(|left| left.bw == inherited(true).bw), "{left:?}");
        let windows: Vec<u64> = left.iter().map(|left| left.window / u64::from(MSS)).collect();
        assert!(windows.iter().all(|window| (99..=100).contains(window)), "{windows:?}");
        let fresh = heir("bbr3", false).cc.bequeath(rtt);
        assert_eq!((fresh.window, fresh.has_filled_pipe), (segments(100), false));
    }
}
