//! Events that a host reports to a controller.

use uncork_units::{Time, TimeDelta};

use crate::resume::ResumeHint;

/// A packet that is being sent.
//= bbr-06 2-2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentPacket {
    /// Size in bytes.
    pub bytes: u32,
    /// Bytes in flight including this packet: sent, and neither acknowledged nor declared lost.
    pub in_flight: u64,
    /// Bytes unacknowledged including this packet: bytes in flight plus bytes declared lost and not
    /// yet retransmitted. A connection is idle when this is zero.
    pub unacked: u64,
}

/// Whether the application has more data to send after this packet.
///
/// This excludes the pacer, the congestion window and the receiver's window: a sender that waits
/// for one of them is not application-limited. The sampler works that out itself. A host that does
/// not know yet reports [`Self::Backlogged`], then [`PathEvent::Drained`] when it finds no more
/// data.
//= bbr-06 4.1.1.3-4 4.1.2.4-4
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppState {
    /// New data or retransmissions are waiting to be sent.
    Backlogged,
    /// Nothing is waiting: the application must write before another packet can leave.
    Drained,
}

/// Per-packet state of a controller. The host stores it with the packet and returns it in [`Acked`]
/// or [`Lost`], so the controller needs no packet table. A host that keeps packets for a while
/// after declaring them lost keeps their tokens too, for [`crate::Controller::on_spurious`].
//= bbr-06 4.1.2.2-2 4.2-1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Departure time of the packet.
    pub(crate) send_time: Time,
    /// C.delivered at departure.
    pub(crate) delivered: u64,
    /// C.delivered_time at departure.
    pub(crate) delivered_time: Time,
    /// P.send_time - P.first_send_time: how long the preceding flight took to send.
    pub(crate) send_elapsed: TimeDelta,
    /// C.lost at departure.
    pub(crate) lost: u64,
    /// Bytes in flight at departure, this packet included. The top bit is the application-limited
    /// flag.
    tx_in_flight_and_limit: u64,
}

/// The state of a host's own delivery-rate sampler, as TCP in Linux has one, stamped on a packet when
/// it leaves.
#[derive(Clone, Copy, Debug)]
pub struct Stamp {
    /// Departure time of the packet.
    pub send_time: Time,
    /// C.delivered at departure, in bytes.
    pub delivered: u64,
    /// C.delivered_time at departure.
    pub delivered_time: Time,
    /// P.send_time - P.first_send_time: how long the preceding flight took to send.
    pub send_elapsed: TimeDelta,
    /// C.lost at departure, in bytes.
    pub lost: u64,
    /// Bytes in flight at departure, this packet included.
    pub tx_in_flight: u64,
    /// P.is_app_limited.
    pub is_app_limited: bool,
}

const APP_LIMITED: u64 = 1 << 63;

const _: () = assert!(size_of::<Token>() <= 48, "hosts keep one token per packet in flight");

impl Token {
    #[inline]
    pub(crate) fn new(
        send_time: Time,
        sampler: (u64, Time, TimeDelta, u64),
        tx_in_flight: u64,
        is_app_limited: bool,
    ) -> Self {
        let (delivered, delivered_time, send_elapsed, lost) = sampler;
        let limit = if is_app_limited { APP_LIMITED } else { 0 };
        Self {
            send_time,
            delivered,
            delivered_time,
            send_elapsed,
            lost,
            tx_in_flight_and_limit: tx_in_flight.min(APP_LIMITED - 1) | limit,
        }
    }

    /// Creates a token for your own controller. The first word is the departure time in
    /// nanoseconds; the controller defines the others. Also restores the result of [`Self::words`].
    pub const fn from_words(words: [u64; 6]) -> Self {
        let [send_time, delivered, delivered_time, send_elapsed, lost, tx_in_flight_and_limit] =
            words;
        Self {
            send_time: Time::from_nanos(send_time),
            delivered,
            delivered_time: Time::from_nanos(delivered_time),
            send_elapsed: TimeDelta::from_nanos(send_elapsed),
            lost,
            tx_in_flight_and_limit,
        }
    }

    /// The token as words, for hosts written in another language.
    pub const fn words(&self) -> [u64; 6] {
        [
            self.send_time.as_nanos(),
            self.delivered,
            self.delivered_time.as_nanos(),
            self.send_elapsed.as_nanos(),
            self.lost,
            self.tx_in_flight_and_limit,
        ]
    }

    /// The token of a packet that carries the stamps of the host's own delivery-rate sampler. For
    /// controllers of this crate that sample the delivery rate.
    pub fn stamped(stamp: Stamp) -> Self {
        let Stamp { send_time, delivered, delivered_time, send_elapsed, lost, .. } = stamp;
        let sampler = (delivered, delivered_time, send_elapsed, lost);
        Self::new(send_time, sampler, stamp.tx_in_flight, stamp.is_app_limited)
    }

    /// Departure time of the packet.
    pub fn send_time(&self) -> Time {
        self.send_time
    }

    /// P.tx_in_flight: bytes in flight at departure, this packet included.
    pub(crate) fn tx_in_flight(&self) -> u64 {
        self.tx_in_flight_and_limit & !APP_LIMITED
    }

    /// P.is_app_limited.
    pub(crate) fn is_app_limited(&self) -> bool {
        self.tx_in_flight_and_limit & APP_LIMITED != 0
    }
}

/// One packet or several, acknowledged for the first time by this feedback. A host that knows the
/// number of packets only, as in a kernel, gives the bytes of all with the token of the newest. They
/// count as the number of packets that carry these bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acked {
    /// The token from [`crate::Controller::on_sent`].
    pub token: Token,
    /// Its size in bytes.
    pub bytes: u32,
}

/// A packet newly declared lost, or several, as in [`Acked`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The token from [`crate::Controller::on_sent`].
    pub token: Token,
    /// Its size in bytes.
    pub bytes: u32,
    /// Whether the packet sent just before it was also declared lost, in this feedback or an
    /// earlier one. A run of such packets is one range.
    pub contiguous: bool,
}

/// An RTT measurement from this feedback.
//= bbr-06 5.5.7.1-1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttSample {
    /// The sample: now minus the departure of the newest packet acknowledged. The peer's reported
    /// ACK delay is not subtracted.
    pub latest: TimeDelta,
    /// RFC 6298 SRTT (RFC 9002 smoothed_rtt), this sample included.
    pub smoothed: TimeDelta,
    /// Smallest sample of the connection, this one included.
    pub min: TimeDelta,
}

/// Everything reported by one ACK or one loss timer.
///
/// A controller processes it in a fixed order: rate sample, losses, model, control. A loss timer
/// produces a feedback with nothing acknowledged.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Feedback<'a> {
    /// Packets acknowledged, in order of transmission. Includes packets declared lost earlier that
    /// turn out to have arrived.
    pub acked: &'a [Acked],
    /// Packets declared lost, in order of transmission.
    pub lost: &'a [Lost],
    /// The RTT, if the feedback measured one.
    pub rtt: Option<RttSample>,
    /// Packets reported as Congestion Experienced since the last feedback.
    pub ce_packets: u32,
    /// Bytes in flight after this feedback.
    pub in_flight: u64,
    /// Bytes unacknowledged after this feedback, counted as in [`SentPacket::unacked`].
    pub unacked: u64,
    /// Whether the oldest unacknowledged packet was acknowledged (TCP: SND.UNA advanced). RFC 9937
    /// lets the sender catch up only on such ACKs.
    pub una_advanced: bool,
    /// When the oldest data still unacknowledged was first sent (QUIC: the oldest packet neither
    /// acknowledged nor declared lost); [`Time::NEVER`] if there is none. TCP stays in recovery
    /// until this passes the time of the first loss.
    pub oldest_sent: Time,
    /// Whether a tail-loss probe repaired a loss that was never declared (RFC 8985 §7.4.2). Always
    /// false in QUIC, where a probe has its own packet number, so the loss is declared.
    pub repaired_by_probe: bool,
}

impl<'a> Feedback<'a> {
    /// A feedback without RTT and CE marks. It assumes that each loss is repaired by a separate
    /// packet: the losses of this feedback are not retransmitted yet, earlier ones are. The oldest
    /// packet counts as acknowledged if no packet still in flight left before `acked`.
    ///
    /// ```
    /// # use uncork_cc::{Feedback, RttSample, units::{Time, TimeDelta}};
    /// # let rtt = TimeDelta::from_millis(20);
    /// let feedback = Feedback::new(&[], &[], 0, Time::NEVER)
    ///     .with_rtt(RttSample { latest: rtt, smoothed: rtt, min: rtt })
    ///     .with_ce_packets(1);
    /// # assert_eq!((feedback.rtt.map(|rtt| rtt.min), feedback.ce_packets), (Some(rtt), 1));
    /// ```
    #[inline]
    pub fn new(acked: &'a [Acked], lost: &'a [Lost], in_flight: u64, oldest_sent: Time) -> Self {
        let first = acked.first().map(|packet| packet.token.send_time);
        Self {
            acked,
            lost,
            rtt: None,
            ce_packets: 0,
            in_flight,
            unacked: in_flight.saturating_add(lost_bytes(lost)),
            una_advanced: first.is_some_and(|sent| sent <= oldest_sent),
            oldest_sent,
            repaired_by_probe: false,
        }
    }

    /// Adds an RTT measurement.
    #[must_use]
    pub const fn with_rtt(mut self, rtt: RttSample) -> Self {
        self.rtt = Some(rtt);
        self
    }

    /// Sets the number of packets reported as Congestion Experienced.
    #[must_use]
    pub const fn with_ce_packets(mut self, packets: u32) -> Self {
        self.ce_packets = packets;
        self
    }

    /// Sets the bytes unacknowledged ([`Self::unacked`]).
    #[must_use]
    pub const fn with_unacked(mut self, bytes: u64) -> Self {
        self.unacked = bytes;
        self
    }

    /// Sets [`Self::una_advanced`].
    #[must_use]
    pub const fn with_una_advanced(mut self, advanced: bool) -> Self {
        self.una_advanced = advanced;
        self
    }

    /// Sets [`Self::repaired_by_probe`].
    #[must_use]
    pub const fn with_repaired_by_probe(mut self, repaired: bool) -> Self {
        self.repaired_by_probe = repaired;
        self
    }

    /// Whether it reports packets sent before `since`.
    pub(crate) fn reaches_back_before(&self, since: Time) -> bool {
        let acked = self.acked.first().map(|packet| packet.token.send_time);
        let lost = self.lost.first().map(|packet| packet.token.send_time);
        acked.is_some_and(|sent| sent < since) || lost.is_some_and(|sent| sent < since)
    }

    /// The part about packets sent at `since` or later. Use it when earlier packets belong to
    /// another path or another controller. If none of the later packets is acknowledged, the RTT,
    /// the marks and the repair by a probe are dropped too.
    #[must_use]
    pub fn since(&self, since: Time) -> Self {
        let acked = self.acked.partition_point(|packet| packet.token.send_time < since);
        let lost = self.lost.partition_point(|packet| packet.token.send_time < since);
        let mut rest = Self { acked: &self.acked[acked..], lost: &self.lost[lost..], ..*self };
        if rest.acked.is_empty() {
            rest.rtt = None;
            rest.ce_packets = 0;
            rest.repaired_by_probe = false;
        }
        rest
    }

    /// Bytes newly acknowledged.
    #[inline]
    pub fn acked_bytes(&self) -> u64 {
        match self.acked {
            [only] => u64::from(only.bytes),
            packets => packets.iter().map(|packet| u64::from(packet.bytes)).sum(),
        }
    }

    /// Packets newly acknowledged, of at most `mss` bytes.
    pub(crate) fn acked_packets(&self, mss: u64) -> u64 {
        self.acked.iter().map(|acked| packets(acked.bytes, mss)).sum()
    }

    /// Packets newly declared lost, of at most `mss` bytes.
    pub(crate) fn lost_packets(&self, mss: u64) -> u64 {
        lost_packets(self.lost, mss)
    }

    /// Bytes newly declared lost.
    pub fn lost_bytes(&self) -> u64 {
        lost_bytes(self.lost)
    }
}

#[inline]
fn lost_bytes(lost: &[Lost]) -> u64 {
    if lost.is_empty() {
        return 0;
    }
    lost.iter().map(|packet| u64::from(packet.bytes)).sum()
}

/// Packets of at most `mss` bytes in `lost`.
pub(crate) fn lost_packets(lost: &[Lost], mss: u64) -> u64 {
    lost.iter().map(|lost| packets(lost.bytes, mss)).sum()
}

/// How many packets of at most `mss` bytes carry `bytes`; an empty one counts, too.
fn packets(bytes: u32, mss: u64) -> u64 {
    u64::from(bytes).div_ceil(mss.max(1)).max(1)
}

/// A timer expired without an ACK. Report it before the feedback with the packets declared lost
/// because of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Timeout {
    /// A probe timeout (RFC 8985 §7, RFC 9002 §6.2): a probe is sent; it is not a congestion
    /// signal.
    Probe,
    /// TCP's retransmission timeout (RFC 6298): everything in flight is presumed lost. QUIC has
    /// none.
    Retransmission,
    /// Persistent congestion (RFC 9002 §7.6).
    Persistent,
}

/// A change of the path or of how the connection uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathEvent {
    /// The maximum packet size has changed.
    MtuChanged {
        /// Sender maximum segment size, in bytes.
        mss: u32,
    },
    /// The connection migrated to another path, so everything learned is void. Packets sent on the
    /// old path are not evidence about the new one (RFC 9000 §9.4): the host need not report them,
    /// and tokens from before this event are ignored. A packet sent at the same instant counts as
    /// sent on the new path.
    Migrated,
    /// There was no more data to send: for hosts that could not know this when they reported the
    /// last packet. The next packet sent cancels it.
    Drained,
    /// Observations of an earlier connection over the same path (RFC 9959). If given before the
    /// first packet, the window may jump once the initial window is acknowledged. Ignored after
    /// congestion or after Startup.
    Resume(ResumeHint),
    /// The host stops to send ECT(1), because it cannot, or because the feedback is not credible (RFC 9331 §4.3). From now
    /// on marks count as losses, as without [`Settings::scalable_marks`](crate::Settings::scalable_marks).
    ClassicEcn,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acked(ms: u64) -> Acked {
        let sent = Time::ZERO + TimeDelta::from_millis(ms);
        Acked { token: Token::new(sent, (0, sent, TimeDelta::ZERO, 0), 0, false), bytes: 1 }
    }

    #[test]
    fn token_round_trips_through_words() {
        let at = |n| Time::from_nanos(n);
        let token = Token::new(at(1), (2, at(3), TimeDelta::from_nanos(4), 5), 6, true);
        assert_eq!(token.words(), [1, 2, 3, 4, 5, 6 | APP_LIMITED]);
        assert_eq!(Token::from_words(token.words()), token);
    }

    #[test]
    fn stamps_are_the_sampler_s() {
        let at = |n| Time::from_nanos(n);
        let token = Token::stamped(Stamp {
            send_time: at(1),
            delivered: 2,
            delivered_time: at(3),
            send_elapsed: TimeDelta::from_nanos(4),
            lost: 5,
            tx_in_flight: 6,
            is_app_limited: true,
        });
        assert_eq!(token.words(), [1, 2, 3, 4, 5, 6 | APP_LIMITED]);
        assert_eq!((token.tx_in_flight(), token.is_app_limited()), (6, true));
    }

    #[test]
    fn an_entry_counts_as_the_packets_that_carry_its_bytes() {
        let Acked { token, .. } = acked(1);
        let acked = [0, 1, 1_000, 1_001, 3_000].map(|bytes| Acked { token, bytes });
        let lost = [2_000, 10].map(|bytes| Lost { token, bytes, contiguous: false });
        let feedback = Feedback::new(&acked, &lost, 0, Time::NEVER);
        assert_eq!((feedback.acked_packets(1_000), feedback.lost_packets(1_000)), (8, 3));
        assert_eq!(feedback.lost_packets(0), 2_010, "no MSS, no panic");
    }

    #[test]
    fn new_losses_are_unacknowledged() {
        let Acked { token, bytes } = acked(1);
        let lost = [Lost { token, bytes, contiguous: false }; 2];
        assert_eq!(Feedback::new(&[], &lost, 5, Time::NEVER).unacked, 7);
    }

    #[test]
    fn feedback_about_the_old_path_is_dropped() {
        let packets = [acked(1), acked(2)];
        let rtt = TimeDelta::from_millis(9);
        let feedback = Feedback {
            rtt: Some(RttSample { latest: rtt, smoothed: rtt, min: rtt }),
            ce_packets: 1,
            repaired_by_probe: true,
            ..Feedback::new(&packets, &[], 0, Time::NEVER)
        };
        let left = |ms| {
            let rest = feedback.since(acked(ms).token.send_time());
            (rest.acked.len(), rest.rtt.is_some(), rest.ce_packets, rest.repaired_by_probe)
        };
        assert_eq!(left(2), (1, true, 1, true));
        assert_eq!(left(3), (0, false, 0, false));
    }

    #[test]
    fn oldest_packet_is_acknowledged_when_no_earlier_one_is_in_flight() {
        let advances =
            |acked: &[Acked], oldest: Time| Feedback::new(acked, &[], 1, oldest).una_advanced;
        let at = |ms| acked(ms).token.send_time();
        assert!(advances(&[acked(1), acked(4)], at(2)));
        assert!(advances(&[acked(1)], at(1)), "packets of one batch");
        assert!(advances(&[acked(1)], Time::NEVER), "nothing is in flight");
        assert!(!advances(&[acked(3), acked(4)], at(2)));
        assert!(!advances(&[], Time::NEVER), "a timer");
    }
}
