//! State that a controller hands over to its successor on an open connection.

use uncork_units::{Rate, TimeDelta};

use crate::any::AnyController;
use crate::event::RttSample;

/// Measurements of a controller in a form that any other can use: [`Settings::inherited`].
///
/// [`Token`]s are not handed over: packets sent before the change are reported to neither
/// controller ([`Feedback::since`]).
///
/// [`Settings::inherited`]: crate::Settings::inherited
/// [`Token`]: crate::Token
/// [`Feedback::since`]: crate::Feedback::since
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inheritance {
    /// Bytes that may be in flight; once the pipe is full, the bytes that fill it.
    pub window: u64,
    /// The shortest round-trip time.
    pub min_rtt: TimeDelta,
    /// The delivery rate of the path.
    pub bw: Rate,
    /// Whether slow start, or Startup, is over.
    pub has_filled_pipe: bool,
}

impl Inheritance {
    /// From a model-based controller. Its window includes room for delayed and aggregated ACKs,
    /// which a loss-based successor would fill, so the window handed over is the BDP.
    pub(crate) fn of_model(bw: Rate, min_rtt: TimeDelta, is_full: bool, cwnd: u64) -> Self {
        let has_filled_pipe = is_full && !bw.is_zero() && min_rtt != TimeDelta::MAX;
        let window = if has_filled_pipe { bw.bytes_in(min_rtt).min(cwnd) } else { cwnd };
        Self { window, min_rtt, bw, has_filled_pipe }
    }
}

impl AnyController {
    /// The state for this controller's successor. `rtt` is the connection's last measurement.
    pub fn bequeath(&self, rtt: RttSample) -> Inheritance {
        match self {
            Self::Reno(reno) => reno.bequeath(rtt),
            Self::Cubic(cubic) => cubic.bequeath(rtt),
            Self::LinuxCubic(cubic) => cubic.bequeath(rtt),
            Self::Bbr1(bbr) => bbr.bequeath(),
            Self::Bbr3(bbr) => bbr.bequeath(),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;
    use crate::script::{Host, MSS, segments, settings};
    use crate::{CcSpec, Controller, Settings};

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
