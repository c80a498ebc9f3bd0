//! The types of the interface. Times and durations are in nanoseconds, sizes in bytes, rates in bytes per
//! second.

use std::ffi::c_char;

use uncork_units::{Rate, Time, TimeDelta};

use crate::convert::{elements, state_text};

/// A probe timeout (RFC 8985 section 7, RFC 9002 section 6.2).
pub const UNCORK_TIMEOUT_PROBE: u32 = 0;
/// TCP's retransmission timeout (RFC 6298).
pub const UNCORK_TIMEOUT_RETRANSMISSION: u32 = 1;
/// Persistent congestion (RFC 9002 section 7.6).
pub const UNCORK_TIMEOUT_PERSISTENT: u32 = 2;

/// Capacity for the name of a state, including the terminating NUL.
pub const UNCORK_STATE_CAPACITY: usize = 32;

/// The result of a call.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CStatus {
    /// Success.
    Ok = 0,
    /// A required pointer is NULL.
    NullPointer = 1,
    /// Unknown controller or option.
    BadSpec = 2,
    /// A value is out of range.
    BadArgument = 3,
}

/// Settings of a connection before its first packet. Set all fields to zero except `mss`, `seed` and
/// `now_ns`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct CSettings {
    /// Sender maximum segment size.
    pub mss: u32,
    /// Whether the host paces on its own while the controller sets no rate, as in QUIC.
    pub paced: bool,
    /// Whether the host sends ECT(1), so that marks mean a queue for L4S (RFC 9331). Prague, BBRv2 and BBRv3 then answer in
    /// proportion to the share of marked packets; otherwise a mark counts as a loss. Call `uncork_cc_on_classic_ecn` when
    /// the host stops to send ECT(1).
    pub scalable_marks: bool,
    /// 0 for the initial window of RFC 6928.
    pub initial_window: u64,
    /// Round-trip time of the handshake; 0 if it was not measured.
    pub initial_rtt_ns: u64,
    /// Seed of the controller's random choices. Use a different one per connection.
    pub seed: u64,
    /// The current time since an epoch of the host's choice.
    pub now_ns: u64,
    /// Longest step of the clock behind all times of this interface; 0 if it is at most a quarter of the
    /// shortest round-trip time. BBR needs to know longer ones.
    pub clock_granularity_ns: u64,
}

impl CSettings {
    pub(crate) fn read(&self) -> Result<uncork_cc::Settings, &'static str> {
        if self.mss == 0 {
            return Err("settings.mss is 0: use the largest packet in bytes");
        }
        let now = Time::from_nanos(self.now_ns);
        let mut settings = uncork_cc::Settings::new(self.mss, self.seed, now)
            .with_paced(self.paced)
            .with_scalable_marks(self.scalable_marks);
        if self.initial_window != 0 {
            settings.initial_window = self.initial_window;
        }
        settings.clock_granularity = TimeDelta::from_nanos(self.clock_granularity_ns);
        if self.initial_rtt_ns != 0 {
            settings.initial_rtt = Some(TimeDelta::from_nanos(self.initial_rtt_ns));
        }
        Ok(settings)
    }
}

/// The controller's record of a packet. Copy it as a whole; the words are opaque to the host.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CToken {
    /// Opaque.
    pub words: [u64; 6],
}

impl CToken {
    fn read(self) -> uncork_cc::Token {
        uncork_cc::Token::from_words(self.words)
    }
}

/// A packet that is being sent.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct CSentPacket {
    /// Its size.
    pub bytes: u32,
    /// Bytes in flight including this packet: sent, and neither acknowledged nor declared lost.
    pub in_flight: u64,
    /// Unacknowledged bytes including this packet: in flight, or declared lost and not yet retransmitted.
    pub unacked: u64,
}

impl CSentPacket {
    pub(crate) fn read(self) -> uncork_cc::SentPacket {
        let Self { bytes, in_flight, unacked } = self;
        uncork_cc::SentPacket { bytes, in_flight, unacked }
    }
}

/// A packet that is acknowledged for the first time.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct CAcked {
    /// From `uncork_cc_on_sent`.
    pub token: CToken,
    /// Its size.
    pub bytes: u32,
}

impl CAcked {
    pub(crate) fn read(&self) -> uncork_cc::Acked {
        uncork_cc::Acked { token: self.token.read(), bytes: self.bytes }
    }
}

/// A packet that is declared lost.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct CLost {
    /// From `uncork_cc_on_sent`.
    pub token: CToken,
    /// Its size.
    pub bytes: u32,
    /// Whether the packet sent just before it was declared lost too.
    pub contiguous: bool,
}

impl CLost {
    pub(crate) fn read(&self) -> uncork_cc::Lost {
        let Self { token, bytes, contiguous } = *self;
        uncork_cc::Lost { token: token.read(), bytes, contiguous }
    }
}

/// A round-trip time.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct CRtt {
    /// Now minus the send time of the newest acknowledged packet.
    pub latest_ns: u64,
    /// SRTT including this sample.
    pub smoothed_ns: u64,
    /// Minimum of the connection including this sample.
    pub min_ns: u64,
}

impl CRtt {
    /// None if all fields are zero. On a coarse clock some may be.
    fn read(&self) -> Option<uncork_cc::RttSample> {
        let &Self { latest_ns, smoothed_ns, min_ns } = self;
        (latest_ns.max(smoothed_ns).max(min_ns) != 0).then(|| uncork_cc::RttSample {
            latest: TimeDelta::from_nanos(latest_ns),
            smoothed: TimeDelta::from_nanos(smoothed_ns),
            min: TimeDelta::from_nanos(min_ns),
        })
    }
}

/// The packets and measurements of one acknowledgement or one loss timer.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CFeedback {
    /// In transmission order; may be NULL if the count is 0.
    pub acked: *const CAcked,
    /// Number of elements of `acked`.
    pub acked_count: usize,
    /// In transmission order; may be NULL if the count is 0.
    pub lost: *const CLost,
    /// Number of elements of `lost`.
    pub lost_count: usize,
    /// The round-trip time; all zero if none was measured.
    pub rtt: CRtt,
    /// Packets reported as Congestion Experienced since the last feedback.
    pub ce_packets: u32,
    /// Whether the oldest unacknowledged packet was acknowledged.
    pub una_advanced: bool,
    /// Whether a tail-loss probe repaired a loss that was never declared.
    pub repaired_by_probe: bool,
    /// Bytes in flight after this feedback.
    pub in_flight: u64,
    /// Unacknowledged bytes after this feedback.
    pub unacked: u64,
    /// Send time of the oldest packet still in flight; `UINT64_MAX` if there is none.
    pub oldest_sent_ns: u64,
}

impl CFeedback {
    /// # Safety
    /// `acked` is NULL or has `acked_count` elements.
    pub(crate) unsafe fn acked_packets(&self) -> Option<&[CAcked]> {
        // SAFETY: passed on.
        unsafe { elements(self.acked, self.acked_count) }
    }

    /// # Safety
    /// `lost` is NULL or has `lost_count` elements.
    pub(crate) unsafe fn lost_packets(&self) -> Option<&[CLost]> {
        // SAFETY: passed on.
        unsafe { elements(self.lost, self.lost_count) }
    }

    pub(crate) fn read<'a>(
        &self,
        acked: &'a [uncork_cc::Acked],
        lost: &'a [uncork_cc::Lost],
    ) -> uncork_cc::Feedback<'a> {
        let oldest = Time::from_nanos(self.oldest_sent_ns);
        let mut feedback = uncork_cc::Feedback::new(acked, lost, self.in_flight, oldest)
            .with_unacked(self.unacked)
            .with_una_advanced(self.una_advanced)
            .with_ce_packets(self.ce_packets)
            .with_repaired_by_probe(self.repaired_by_probe);
        feedback.rtt = self.rtt.read();
        feedback
    }
}

/// The limits for sending.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CControl {
    /// Maximum bytes in flight.
    pub cwnd: u64,
    /// Pacing rate; 0 for no pacing (ACK clocking only).
    pub pacing_rate: u64,
    /// Maximum bytes to send back to back when pacing.
    pub send_quantum: u64,
}

impl CControl {
    pub(crate) fn of(control: &uncork_cc::Control) -> Self {
        Self {
            cwnd: control.cwnd,
            pacing_rate: control.pacing_rate.map_or(0, |rate| rate.bytes_per_sec().max(1)),
            send_quantum: control.send_quantum,
        }
    }
}

/// The state of a controller. Values that it does not have are 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CSnapshot {
    /// Name of the state in the specification, with a terminating NUL.
    pub state: [c_char; UNCORK_STATE_CAPACITY],
    /// Whether losses are being repaired.
    pub in_recovery: bool,
    /// Slow-start threshold; 0 before the first congestion.
    pub ssthresh: u64,
    /// BBR.max_bw.
    pub max_bw: u64,
    /// BBR.min_rtt.
    pub min_rtt_ns: u64,
    /// Packet-timed round trips so far.
    pub round_count: u64,
}

impl CSnapshot {
    pub(crate) fn of(snapshot: &uncork_cc::Snapshot) -> Self {
        Self {
            state: state_text(snapshot.state),
            in_recovery: snapshot.in_recovery,
            ssthresh: snapshot.ssthresh.unwrap_or(0),
            max_bw: snapshot.max_bw.map_or(0, Rate::bytes_per_sec),
            min_rtt_ns: snapshot.min_rtt.map_or(0, TimeDelta::as_nanos),
            round_count: snapshot.round_count,
        }
    }
}
