//! The interface every algorithm implements.

use core::fmt;

use uncork_units::{Rate, Ratio, Time, TimeDelta};

use crate::ack_frequency::AckFrequency;
use crate::event::{AppState, Feedback, Lost, PathEvent, SentPacket, Timeout, Token};
use crate::inheritance::Inheritance;
use crate::resume::ResumePhase;

/// Settings for building a controller: the state of a connection before its first packet.
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
    /// RTT of the handshake, if measured.
    pub initial_rtt: Option<TimeDelta>,
    /// Whether the host paces by itself when [`Control::pacing_rate`] is `None`. QUIC hosts do (RFC
    /// 9002 §7.7); most kernels do not.
    pub paced: bool,
    /// Whether packets in flight may still wait below the host's transport to be cut into segments, as
    /// TCP's do in the queueing discipline and in segmentation offload. BBR then allows three bursts in
    /// flight, otherwise one (draft-ietf-ccwg-bbr-06 §5.5.8).
    pub segmentation_offload: bool,
    /// Whether marks mean a shallow threshold, as in L4S (RFC 9331) and DCTCP: the host sends ECT(1), or
    /// knows its network. BBRv2 and BBRv3 then answer in proportion to the share of marked packets, as in
    /// Linux; otherwise a mark counts as a loss for them. The other controllers do not distinguish.
    pub scalable_marks: bool,
    /// Longest step of the clock that gives the controller its times: zero if it is at most a quarter of
    /// the shortest RTT. See [`Self::with_clock_granularity`].
    pub clock_granularity: TimeDelta,
    /// Measurements of an earlier controller on the same connection.
    pub inherited: Option<Inheritance>,
    /// Seed of the controller's random choices.
    pub seed: u64,
    /// The current time.
    pub now: Time,
}

impl Settings {
    /// A connection without measurements, with the initial window of RFC 6928. Give each connection
    /// its own seed, so that connections do not probe in sync.
    pub fn new(mss: u32, seed: u64, now: Time) -> Self {
        let segment = u64::from(mss);
        let initial_window = (10 * segment).min((2 * segment).max(14_600));
        Self {
            mss,
            initial_window,
            initial_rtt: None,
            paced: false,
            segmentation_offload: false,
            scalable_marks: false,
            clock_granularity: TimeDelta::ZERO,
            inherited: None,
            seed,
            now,
        }
    }

    /// Sets the initial window to `bytes`.
    #[must_use]
    pub const fn with_initial_window(mut self, bytes: u64) -> Self {
        self.initial_window = bytes;
        self
    }

    /// Sets the RTT of the handshake.
    #[must_use]
    pub fn with_initial_rtt(mut self, rtt: impl Into<TimeDelta>) -> Self {
        self.initial_rtt = Some(rtt.into());
        self
    }

    /// Sets [`Self::paced`].
    #[must_use]
    pub const fn with_paced(mut self, paced: bool) -> Self {
        self.paced = paced;
        self
    }

    /// Sets [`Self::segmentation_offload`].
    #[must_use]
    pub const fn with_segmentation_offload(mut self, offload: bool) -> Self {
        self.segmentation_offload = offload;
        self
    }

    /// Sets [`Self::scalable_marks`].
    #[must_use]
    pub const fn with_scalable_marks(mut self, scalable: bool) -> Self {
        self.scalable_marks = scalable;
        self
    }

    /// Sets [`Self::clock_granularity`], for a host clock with steps longer than a quarter of the
    /// shortest RTT, such as the ticks of a timer. BBR then measures the delivery rate over several steps,
    /// and takes each RTT for one step longer than it reads, so its queue may hold one step more. Without
    /// it, BBR learns the step only from RTTs of zero.
    #[must_use]
    pub fn with_clock_granularity(mut self, step: impl Into<TimeDelta>) -> Self {
        self.clock_granularity = step.into();
        self
    }

    /// RTT of the handshake as a model may use it: one of zero only says that the clock is coarse.
    pub(crate) fn usable_initial_rtt(&self) -> Option<TimeDelta> {
        let measured = self.initial_rtt.filter(|rtt| !rtt.is_zero());
        measured.map(|rtt| rtt + self.clock_granularity)
    }

    /// Sets the measurements of an earlier controller.
    #[must_use]
    pub const fn with_inherited(mut self, inherited: Inheritance) -> Self {
        self.inherited = Some(inherited);
        self
    }
}

/// The limits within which the host may send.
//= bbr-06 2-2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Control {
    /// Congestion window: the maximum number of bytes in flight. Probes after a timeout may exceed it
    /// (RFC 9002 §7.5).
    pub cwnd: u64,
    /// Pacing rate. `None` means that ACKs alone clock the sender; a host that must not send bursts
    /// (RFC 9002 §7.7) then chooses its own rate, such as 5/4 of the window per smoothed RTT.
    pub pacing_rate: Option<Rate>,
    /// Maximum bytes to send back to back when pacing.
    pub send_quantum: u64,
}

impl Control {
    /// A window of `cwnd` bytes without pacing.
    pub const fn new(cwnd: u64) -> Self {
        Self { cwnd, pacing_rate: None, send_quantum: cwnd }
    }

    /// Adds pacing at `rate`, in bursts of at most `send_quantum` bytes.
    #[must_use]
    pub const fn with_pacing(mut self, rate: Rate, send_quantum: u64) -> Self {
        self.pacing_rate = Some(rate);
        self.send_quantum = send_quantum;
        self
    }
}

/// The state of a controller, for logs, plots and tests. A field is `None` if the algorithm has no
/// such value or has not measured it yet.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Snapshot {
    /// Name of the state in the specification, such as `ProbeBW_UP` or `SlowStart`.
    pub state: &'static str,
    /// Whether the sender is in loss recovery.
    pub in_recovery: bool,
    /// Slow-start threshold in bytes.
    pub ssthresh: Option<u64>,
    /// BBR.max_bw.
    pub max_bw: Option<Rate>,
    /// BBR.bw: the bandwidth the model currently allows.
    pub bw: Option<Rate>,
    /// BBR.min_rtt.
    pub min_rtt: Option<TimeDelta>,
    /// Current pacing gain.
    pub pacing_gain: Option<Ratio>,
    /// Current window gain by the specification. An option may override it.
    pub cwnd_gain: Option<Ratio>,
    /// BBR.bw_shortterm, if finite.
    pub bw_shortterm: Option<Rate>,
    /// BBR.inflight_shortterm in bytes, if finite.
    pub inflight_shortterm: Option<u64>,
    /// BBR.inflight_longterm in bytes, if finite.
    pub inflight_longterm: Option<u64>,
    /// Phase of a Careful Resume, if there is one. Safe Retreat is reported until the connection
    /// migrates to another path.
    pub resume: Option<ResumePhase>,
    /// Packet-timed round trips so far.
    pub round_count: u64,
}

impl Snapshot {
    /// A snapshot with only a state. The other fields are public and can be set afterwards.
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
/// The host calls, in order of time:
///
/// - [`Self::on_sent`] for each packet that counts as in flight, when it leaves (pure ACKs do not
///   count). A retransmission is a separate packet with its own token.
/// - For an ACK: [`Self::on_spurious`] if it shows that packets declared lost had arrived, then
///   [`Self::on_feedback`] once, with everything the ACK acknowledges and everything it causes to
///   be declared lost.
/// - For a timer that declares packets lost: [`Self::on_feedback`] with nothing acknowledged.
/// - For a timeout: [`Self::on_timeout`], then [`Self::on_feedback`] with the packets declared lost
///   because of it. Persistent congestion is detected on an ACK; call its [`Self::on_feedback`]
///   afterwards.
///
/// Each call may change the result of [`Self::control`]. Time must not go backwards.
///
/// # Writing your own controller
///
/// A controller creates the [`Token`]s that it gets back ([`Token::from_words`]):
///
/// ```
/// use uncork_cc::units::Time;
/// use uncork_cc::{
///     AppState, Control, Controller, Feedback, PathEvent, SentPacket, Snapshot, Timeout, Token,
/// };
///
/// /// Ten packets in flight, always.
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
    /// Called when a packet leaves. The host stores the token with the packet and returns it once
    /// the packet is acknowledged or lost.
    fn on_sent(&mut self, now: Time, packet: SentPacket, app: AppState) -> Token;

    /// Processes one ACK or one loss timer, with everything it reports.
    fn on_feedback(&mut self, now: Time, feedback: &Feedback<'_>);

    /// Packets declared lost earlier turn out to have been delivered. Each token is reported once.
    /// The default does nothing.
    fn on_spurious(&mut self, _now: Time, _packets: &[Lost]) {}

    /// A timer expired without an acknowledgement.
    fn on_timeout(&mut self, now: Time, timeout: Timeout);

    /// The path changed.
    fn on_path(&mut self, now: Time, event: PathEvent);

    /// The limits within which the host may send from now on.
    fn control(&self) -> Control;

    /// The ACK frequency the receiver should use in the controller's current state. `None` leaves
    /// it to the transport's rules (RFC 5681 §4.2, RFC 9000 §13.2.2). For hosts that can request an
    /// ACK frequency from their peer; one call per round trip is enough.
    fn ack_frequency(&self) -> Option<AckFrequency> {
        None
    }

    /// Whether marks have come from a queue that is not for L4S, and count as losses for the rest of the connection. A
    /// host that sends ECT(1) then changes to ECT(0) (RFC 9331 §4.3).
    fn found_classic_queue(&self) -> bool {
        false
    }

    /// Whether the first slow start or Startup is over, for [`crate::StartObserver`]. A controller that does not say so
    /// never leaves it.
    fn has_left_start(&self) -> bool {
        false
    }

    /// The controller's state, for logs, plots and tests.
    fn snapshot(&self) -> Snapshot;

    /// The host keeps data back that the window has room for, to send it in one burst with what the
    /// next ACKs allow (segmentation offload). The window limits it all the same, and may grow. For
    /// hosts that do so. The default does nothing.
    fn on_deferred(&mut self) {}
}

/// Names a controller and builds it for each connection. [`crate::CcSpec`] implements this for the
/// controllers of this crate. Implement it for your own controller to use it with generic hosts
/// such as `uncork-sim`.
pub trait ControllerSpec: Copy + fmt::Debug {
    /// The type of controller it builds.
    type Controller: Controller + fmt::Debug;

    /// The name shown in results.
    fn name(&self) -> impl fmt::Display;

    /// Builds a controller for a new connection.
    fn build(&self, settings: &Settings) -> Self::Controller;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initial_window_follows_rfc_6928() {
        let window = |mss| Settings::new(mss, 1, Time::ZERO).initial_window;
        assert_eq!(window(1_200), 12_000);
        assert_eq!(window(1_460), 14_600);
        assert_eq!(window(1_500), 14_600);
        assert_eq!(window(8_960), 17_920);
        assert_eq!(window(u32::MAX), 2 * u64::from(u32::MAX));
    }
}
