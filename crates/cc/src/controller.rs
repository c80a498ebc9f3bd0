//! The interface every algorithm implements.

use core::fmt;

use uncork_units::{Rate, Ratio, Time, TimeDelta};

use crate::ack_frequency::AckFrequency;
use crate::event::{AppState, Feedback, Lost, PathEvent, SentPacket, Timeout, Token};
use crate::inheritance::Inheritance;
use crate::resume::ResumePhase;

/// How a controller is built: the state of a connection before its first packet.
///
/// ```
/// use std::time::Duration;
/// use uncork_cc::Settings;
/// use uncork_cc::units::Time;
///
/// let settings = Settings::new(1_200, 7, Time::ZERO)
///     .with_initial_window(24_000)
///     .with_initial_rtt(Duration::from_millis(30));
/// # assert_eq!(settings.initial_window, 24_000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// Sender maximum segment size in bytes.
    pub mss: u32,
    /// Initial window in bytes.
    pub initial_window: u64,
    /// Round-trip time of the handshake, where one was measured.
    pub initial_rtt: Option<TimeDelta>,
    /// Whether the host paces by itself when [`Control::pacing_rate`] is `None`, as QUIC hosts do (RFC
    /// 9002 §7.7) and kernels mostly do not.
    pub paced: bool,
    /// What an earlier controller of the same connection has learned.
    pub inherited: Option<Inheritance>,
    /// Seed of the controller's random choices.
    pub seed: u64,
    /// The time now.
    pub now: Time,
}

impl Settings {
    /// A connection that has measured nothing yet, with the initial window of RFC 6928. Give each
    /// connection a seed of its own, so that connections do not probe in step.
    pub fn new(mss: u32, seed: u64, now: Time) -> Self {
        let segment = u64::from(mss);
        let initial_window = (10 * segment).min((2 * segment).max(14_600));
        Self { mss, initial_window, initial_rtt: None, paced: false, inherited: None, seed, now }
    }

    /// With an initial window of `bytes`.
    #[must_use]
    pub const fn with_initial_window(mut self, bytes: u64) -> Self {
        self.initial_window = bytes;
        self
    }

    /// With the round-trip time of the handshake.
    #[must_use]
    pub fn with_initial_rtt(mut self, rtt: impl Into<TimeDelta>) -> Self {
        self.initial_rtt = Some(rtt.into());
        self
    }

    /// For a host that paces by itself if [`Self::paced`].
    #[must_use]
    pub const fn with_paced(mut self, paced: bool) -> Self {
        self.paced = paced;
        self
    }

    /// With what another controller of the connection has learned.
    #[must_use]
    pub const fn with_inherited(mut self, inherited: Inheritance) -> Self {
        self.inherited = Some(inherited);
        self
    }
}

/// How the host may send.
//= bbr-06 2-2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Control {
    /// Congestion window: the most bytes that may be in flight. Probes after a timeout may exceed it
    /// (RFC 9002 §7.5).
    pub cwnd: u64,
    /// Rate to pace at; `None` lets ACKs alone clock the sender. A host that must not send bursts
    /// (RFC 9002 §7.7) then paces at a rate of its own, such as 5/4 of the window per smoothed RTT.
    pub pacing_rate: Option<Rate>,
    /// The most bytes to send back to back when pacing.
    pub send_quantum: u64,
}

impl Control {
    /// A window of `cwnd` bytes without pacing.
    pub const fn new(cwnd: u64) -> Self {
        Self { cwnd, pacing_rate: None, send_quantum: cwnd }
    }

    /// Paced at `rate`, in bursts of at most `send_quantum` bytes.
    #[must_use]
    pub const fn with_pacing(mut self, rate: Rate, send_quantum: u64) -> Self {
        self.pacing_rate = Some(rate);
        self.send_quantum = send_quantum;
        self
    }
}

/// The state of a controller, for logs, plots and tests. `None` where an algorithm has no such value
/// or has not measured it yet.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Snapshot {
    /// State by the specification's name, such as `ProbeBW_UP` or `SlowStart`.
    pub state: &'static str,
    /// Whether losses are being repaired.
    pub in_recovery: bool,
    /// Slow-start threshold in bytes.
    pub ssthresh: Option<u64>,
    /// BBR.max_bw.
    pub max_bw: Option<Rate>,
    /// BBR.bw: what the model allows now.
    pub bw: Option<Rate>,
    /// BBR.min_rtt.
    pub min_rtt: Option<TimeDelta>,
    /// Current pacing gain.
    pub pacing_gain: Option<Ratio>,
    /// Current window gain by the specification; an option may go by another rule.
    pub cwnd_gain: Option<Ratio>,
    /// BBR.bw_shortterm, where it binds.
    pub bw_shortterm: Option<Rate>,
    /// BBR.inflight_shortterm in bytes, where it binds.
    pub inflight_shortterm: Option<u64>,
    /// BBR.inflight_longterm in bytes, where it binds.
    pub inflight_longterm: Option<u64>,
    /// How far a careful resume has come, while there is one; a Safe Retreat is reported until the
    /// connection moves to another path.
    pub resume: Option<ResumePhase>,
    /// Packet-timed round trips so far.
    pub round_count: u64,
}

impl Snapshot {
    /// A snapshot that knows only its state. Its fields are public, to fill in.
    pub const fn of_state(state: &'static str) -> Self {
        Self {
            state,
            in_recovery: false,
            ssthresh: None,
            max_bw: None,
            bw: None,
            min_rtt: None,
            pacing_gain: None,
            cwnd_gain: None,
            bw_shortterm: None,
            inflight_shortterm: None,
            inflight_longterm: None,
            resume: None,
            round_count: 0,
        }
    }
}

/// A congestion control algorithm.
///
/// The host calls, in the order of time:
///
/// - for each packet that counts as in flight, [`Self::on_sent`] when it leaves (pure ACKs do not
///   count); a retransmission is a packet of its own, with a token of its own;
/// - for an ACK, [`Self::on_spurious`] if it shows that packets declared lost had arrived, then
///   [`Self::on_feedback`] once, with all that it acknowledges and all that it makes count as lost;
/// - for a timer that declares packets lost, [`Self::on_feedback`] with nothing acknowledged;
/// - for a timeout, [`Self::on_timeout`], then [`Self::on_feedback`] with the packets declared lost
///   because of it. Persistent congestion is found by an ACK: its [`Self::on_feedback`] comes after.
///
/// Each of them may change what [`Self::control`] says. Times never go back.
///
/// # A controller of your own
///
/// A controller makes the [`Token`]s that it gets back ([`Token::from_words`]):
///
/// ```
/// use uncork_cc::units::Time;
/// use uncork_cc::{
///     AppState, Control, Controller, Feedback, PathEvent, SentPacket, Snapshot, Timeout, Token,
/// };
///
/// /// Ten packets in flight, whatever happens.
/// struct FixedWindow {
///     mss: u32,
///     delivered: u64,
/// }
///
/// impl Controller for FixedWindow {
///     fn on_sent(&mut self, now: Time, _: SentPacket, _: AppState) -> Token {
///         Token::from_words([now.as_nanos(), self.delivered, 0, 0, 0, 0])
///     }
///     fn on_feedback(&mut self, _: Time, feedback: &Feedback<'_>) {
///         self.delivered += feedback.acked_bytes();
///     }
///     fn on_timeout(&mut self, _: Time, _: Timeout) {}
///     fn on_path(&mut self, _: Time, event: PathEvent) {
///         if let PathEvent::MtuChanged { mss } = event {
///             self.mss = mss;
///         }
///     }
///     fn control(&self) -> Control {
///         Control::new(10 * u64::from(self.mss))
///     }
///     fn snapshot(&self) -> Snapshot {
///         Snapshot::of_state("Fixed")
///     }
/// }
/// # let mut cc = FixedWindow { mss: 1_000, delivered: 0 };
/// # let packet = SentPacket { bytes: 1_000, in_flight: 1_000, unacked: 1_000 };
/// # let token = cc.on_sent(Time::from_nanos(5), packet, AppState::Drained);
/// # assert_eq!(token.send_time(), Time::from_nanos(5));
/// # let acked = [uncork_cc::Acked { token, bytes: 1_000 }];
/// # cc.on_feedback(Time::from_nanos(9), &Feedback::new(&acked, &[], 0, Time::NEVER));
/// # assert_eq!((cc.control().cwnd, cc.delivered), (10_000, 1_000));
/// ```
pub trait Controller {
    /// A packet leaves. The host stores the token with it and hands it back once the packet is
    /// acknowledged or lost.
    fn on_sent(&mut self, now: Time, packet: SentPacket, app: AppState) -> Token;

    /// One acknowledgement or one loss timer, with everything it reports.
    fn on_feedback(&mut self, now: Time, feedback: &Feedback<'_>);

    /// Packets declared lost earlier turn out to have been delivered: the same tokens, each once. By default nothing
    /// is undone.
    fn on_spurious(&mut self, _now: Time, _packets: &[Lost]) {}

    /// A timer expired without an acknowledgement.
    fn on_timeout(&mut self, now: Time, timeout: Timeout);

    /// The path changed.
    fn on_path(&mut self, now: Time, event: PathEvent);

    /// How the host may send from now on.
    fn control(&self) -> Control;

    /// How often the receiver should acknowledge, in the controller's present state; `None` leaves it
    /// to the transport's rules (RFC 5681 §4.2, RFC 9000 §13.2.2). A query of its own, for hosts that
    /// can ask their peer: once a round trip is often enough.
    fn ack_frequency(&self) -> Option<AckFrequency> {
        None
    }

    /// The controller's state, for logs, plots and tests.
    fn snapshot(&self) -> Snapshot;
}

/// Names a controller and builds it for each connection. [`crate::CcSpec`] does this for the controllers of this crate.
/// Implement it for one of your own to use it where a host is generic, as `uncork-sim` is.
pub trait ControllerSpec: Copy + fmt::Debug {
    /// What it builds.
    type Controller: Controller + fmt::Debug;

    /// The name in results.
    fn name(&self) -> impl fmt::Display;

    /// A controller for a new connection.
    fn build(&self, settings: &Settings) -> Self::Controller;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_initial_window_is_that_of_rfc_6928() {
        let window = |mss| Settings::new(mss, 1, Time::ZERO).initial_window;
        assert_eq!(window(1_200), 12_000);
        assert_eq!(window(1_460), 14_600);
        assert_eq!(window(1_500), 14_600);
        assert_eq!(window(8_960), 17_920);
        assert_eq!(window(u32::MAX), 2 * u64::from(u32::MAX));
    }
}
