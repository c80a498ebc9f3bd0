//! Events that a host reports to a controller.

use uncork_units::{Time, TimeDelta};

use crate::resume::ResumeHint;

/// A packet that leaves now.
//= bbr-06 2-2
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentPacket {
    /// Size in bytes.
    pub bytes: u32,
    /// Bytes in flight once this packet is on its way, itself included: sent, and neither
    /// acknowledged nor declared lost.
    pub in_flight: u64,
    /// Bytes unacknowledged, this packet included: what is in flight and what was declared lost and
    /// has not been sent again. A connection is idle when nothing is unacknowledged.
    pub unacked: u64,
}

/// Whether the application has more for the network after the packet just sent.
///
/// This says nothing about the pacer or the windows, the congestion window and the receiver's: a
/// sender that waits for any of them is not application-limited. The sampler draws that conclusion
/// itself. A host that does not know yet says [`Self::Backlogged`], and [`PathEvent::Drained`] once
/// it has found nothing more to send.
//= bbr-06 4.1.1.3-4 4.1.2.4-4
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppState {
    /// New data, or data to retransmit, waits to be sent.
    Backlogged,
    /// Nothing waits: the next packet needs the application to write first.
    Drained,
}

/// What a controller remembers about a packet. The host stores it with the packet and hands it back in
/// [`Acked`] or [`Lost`], so the controller needs no packet table. A host that keeps packets for a
/// while after declaring them lost keeps their tokens too, for [`crate::Controller::on_spurious`].
//= bbr-06 4.1.2.2-2 4.2-1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// When the packet left.
    pub(crate) send_time: Time,
    /// C.delivered when it left.
    pub(crate) delivered: u64,
    /// C.delivered_time when it left.
    pub(crate) delivered_time: Time,
    /// P.send_time - P.first_send_time: how long the flight before it took to send.
    pub(crate) send_elapsed: TimeDelta,
    /// C.lost when it left.
    pub(crate) lost: u64,
    /// Bytes in flight when it left, itself included; the top bit says "application-limited".
    tx_in_flight_and_limit: u64,
}

const APP_LIMITED: u64 = 1 << 63;

const _: () = assert!(size_of::<Token>() <= 48, "hosts keep one token per packet in flight");

impl Token {
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

    /// A token of a controller of your own: the first word is the time of departure in nanoseconds, the
    /// others are the controller's. Also restores what [`Self::words`] returned.
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

    /// The token as words, for hosts that keep their packets in another language.
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

    /// When the packet left.
    pub fn send_time(&self) -> Time {
        self.send_time
    }

    /// P.tx_in_flight: bytes in flight when the packet left, itself included.
    pub(crate) fn tx_in_flight(&self) -> u64 {
        self.tx_in_flight_and_limit & !APP_LIMITED
    }

    /// P.is_app_limited.
    pub(crate) fn is_app_limited(&self) -> bool {
        self.tx_in_flight_and_limit & APP_LIMITED != 0
    }
}

/// A packet that this feedback acknowledges for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acked {
    /// What [`crate::Controller::on_sent`] returned for it.
    pub token: Token,
    /// Its size in bytes.
    pub bytes: u32,
}

/// A packet that is now declared lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// What [`crate::Controller::on_sent`] returned for it.
    pub token: Token,
    /// Its size in bytes.
    pub bytes: u32,
    /// Whether the packet sent just before it was declared lost too, in this feedback or an earlier
    /// one: a run of such packets is one discontiguous range.
    pub contiguous: bool,
}

/// A round-trip time measured by this feedback.
//= bbr-06 5.5.7.1-1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttSample {
    /// The sample: now minus the departure of the newest packet acknowledged, whatever the peer says
    /// of its own delay.
    pub latest: TimeDelta,
    /// RFC 6298 SRTT (RFC 9002 smoothed_rtt), this sample included.
    pub smoothed: TimeDelta,
    /// Smallest sample of the connection, this one included.
    pub min: TimeDelta,
}

/// Everything that one acknowledgement, or one loss timer, reports.
///
/// A controller processes it in a fixed order: rate sample, losses, model, control. A loss timer gives
/// a feedback with nothing acknowledged.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Feedback<'a> {
    /// Packets acknowledged, in the order of their transmission; one that had been declared lost is
    /// among them when it turns out to have arrived.
    pub acked: &'a [Acked],
    /// Packets declared lost, in the order of their transmission.
    pub lost: &'a [Lost],
    /// Round-trip time, when the feedback measured one.
    pub rtt: Option<RttSample>,
    /// Packets reported as Congestion Experienced since the last feedback.
    pub ce_packets: u32,
    /// Bytes in flight after this feedback.
    pub in_flight: u64,
    /// Bytes unacknowledged after this feedback, counted as in [`SentPacket::unacked`].
    pub unacked: u64,
    /// Whether the oldest unacknowledged packet was among those acknowledged (TCP: SND.UNA
    /// advanced). RFC 9937 lets the sender catch up only on such ACKs.
    pub una_advanced: bool,
    /// When the oldest data that is still unacknowledged first left (QUIC: the oldest packet neither
    /// acknowledged nor declared lost); [`Time::NEVER`] when there is none. TCP repairs losses until
    /// this passes the time of the first of them.
    pub oldest_sent: Time,
    /// Whether a tail-loss probe repaired a loss that was never declared (RFC 8985 §7.4.2). Never in
    /// QUIC, whose probes have packet numbers of their own, so that the loss is declared.
    pub repaired_by_probe: bool,
}

impl<'a> Feedback<'a> {
    /// A feedback without round-trip time and CE marks. It assumes that each loss is repaired by a
    /// packet of its own: the losses of this feedback wait to be sent again, earlier ones do not. The
    /// oldest packet counts as acknowledged when no packet still in flight left before `acked`.
    ///
    /// ```
    /// # use uncork_cc::{Feedback, RttSample, units::{Time, TimeDelta}};
    /// # let rtt = TimeDelta::from_millis(20);
    /// let feedback = Feedback::new(&[], &[], 0, Time::NEVER)
    ///     .with_rtt(RttSample { latest: rtt, smoothed: rtt, min: rtt })
    ///     .with_ce_packets(1);
    /// # assert_eq!((feedback.rtt.map(|rtt| rtt.min), feedback.ce_packets), (Some(rtt), 1));
    /// ```
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

    /// With a round-trip time.
    #[must_use]
    pub const fn with_rtt(mut self, rtt: RttSample) -> Self {
        self.rtt = Some(rtt);
        self
    }

    /// With this many packets reported as Congestion Experienced.
    #[must_use]
    pub const fn with_ce_packets(mut self, packets: u32) -> Self {
        self.ce_packets = packets;
        self
    }

    /// With this many bytes unacknowledged ([`Self::unacked`]).
    #[must_use]
    pub const fn with_unacked(mut self, bytes: u64) -> Self {
        self.unacked = bytes;
        self
    }

    /// With [`Self::una_advanced`] as the host knows it.
    #[must_use]
    pub const fn with_una_advanced(mut self, advanced: bool) -> Self {
        self.una_advanced = advanced;
        self
    }

    /// With [`Self::repaired_by_probe`].
    #[must_use]
    pub const fn with_repaired_by_probe(mut self, repaired: bool) -> Self {
        self.repaired_by_probe = repaired;
        self
    }

    /// Whether it reports packets that left before `since`.
    pub(crate) fn reaches_back_before(&self, since: Time) -> bool {
        let acked = self.acked.first().map(|packet| packet.token.send_time);
        let lost = self.lost.first().map(|packet| packet.token.send_time);
        acked.is_some_and(|sent| sent < since) || lost.is_some_and(|sent| sent < since)
    }

    /// The part about packets that left at `since` or later, where earlier packets concern another path
    /// or another controller. If none of the later packets is acknowledged, the round-trip time, the
    /// marks and the repair by a probe are dropped too.
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
    pub fn acked_bytes(&self) -> u64 {
        self.acked.iter().map(|packet| u64::from(packet.bytes)).sum()
    }

    /// Bytes newly declared lost.
    pub fn lost_bytes(&self) -> u64 {
        lost_bytes(self.lost)
    }
}

fn lost_bytes(lost: &[Lost]) -> u64 {
    lost.iter().map(|packet| u64::from(packet.bytes)).sum()
}

/// A timer expired without an acknowledgement. It is reported before the feedback with the
/// packets that are declared lost because of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Timeout {
    /// A probe timeout (RFC 8985 §7, RFC 9002 §6.2): a probe is sent, nothing is concluded.
    Probe,
    /// TCP's retransmission timeout (RFC 6298): what is in flight is presumed lost. QUIC has none.
    Retransmission,
    /// Persistent congestion (RFC 9002 §7.6).
    Persistent,
}

/// Something happened to the path or to the connection's use of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathEvent {
    /// The largest packet is now this many bytes.
    MtuChanged {
        /// Sender maximum segment size, in bytes.
        mss: u32,
    },
    /// The connection moved to another path: all that was learned is void. What becomes of packets
    /// that left on the old path says nothing about the new one (RFC 9000 §9.4): a host need not
    /// report it, and where it does, a token from before this event is ignored. What leaves at the same
    /// instant counts as sent on the new path.
    Migrated,
    /// There was nothing more to send: for hosts that could not know when they reported the last
    /// packet. What is sent later takes it back.
    Drained,
    /// An earlier connection over the same path observed this (RFC 9959). Given before the first
    /// packet, it may let the window jump once the initial window is acknowledged; at a time when
    /// congestion has been met, or Startup left, it is ignored.
    Resume(ResumeHint),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acked(ms: u64) -> Acked {
        let sent = Time::ZERO + TimeDelta::from_millis(ms);
        Acked { token: Token::new(sent, (0, sent, TimeDelta::ZERO, 0), 0, false), bytes: 1 }
    }

    #[test]
    fn a_token_survives_the_round_trip_through_words() {
        let at = |n| Time::from_nanos(n);
        let token = Token::new(at(1), (2, at(3), TimeDelta::from_nanos(4), 5), 6, true);
        assert_eq!(token.words(), [1, 2, 3, 4, 5, 6 | APP_LIMITED]);
        assert_eq!(Token::from_words(token.words()), token);
    }

    #[test]
    fn what_is_lost_now_is_unacknowledged() {
        let Acked { token, bytes } = acked(1);
        let lost = [Lost { token, bytes, contiguous: false }; 2];
        assert_eq!(Feedback::new(&[], &lost, 5, Time::NEVER).unacked, 7);
    }

    #[test]
    fn nothing_of_a_feedback_about_the_old_path_is_left() {
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
    fn the_oldest_packet_is_acknowledged_when_none_before_it_is_left() {
        let advances =
            |acked: &[Acked], oldest: Time| Feedback::new(acked, &[], 1, oldest).una_advanced;
        let at = |ms| acked(ms).token.send_time();
        assert!(advances(&[acked(1), acked(4)], at(2)));
        assert!(advances(&[acked(1)], at(1)), "packets of one batch");
        assert!(advances(&[acked(1)], Time::NEVER), "nothing is left");
        assert!(!advances(&[acked(3), acked(4)], at(2)));
        assert!(!advances(&[], Time::NEVER), "a timer");
    }
}
