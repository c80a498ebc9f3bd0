//! Segmentation offload: several segments leave as one packet, sized as in Linux 6.
//!
//! Not modelled: the allowance that Linux adds below 3 ms of min_rtt (`tcp_tso_rtt_log`), and the short
//! segment at the end of a message, which Linux puts into the packet of those before.

use uncork_cc::Controller;
use uncork_units::{Ratio, Time, TimeDelta};

use super::{MSS_BYTES, Segment, Sender};

/// Maximum segments of a packet: 64 KiB (`GSO_LEGACY_MAX_SIZE`).
const MAX_SEGMENTS: u64 = 65_536 / MSS_BYTES as u64;
/// Minimum segments of a full packet (`tcp_min_tso_segs`).
const MIN_SEGMENTS: u64 = 2;
/// A full packet is what leaves in this time (`sk_pacing_shift`).
const PACKET_TIME: TimeDelta = TimeDelta::from_nanos(1_000_000_000 >> 10);
/// Windows per round trip that leave without pacing (`tcp_pacing_ca_ratio`).
const UNPACED: Ratio = Ratio::new(6, 5);
/// The part of the window that leaves without waiting for a full packet (`tcp_tso_win_divisor`).
const WINDOW_PART: u64 = 3;
/// Nothing waits if the packet before left longer ago (`tcp_tso_should_defer`).
const RECENT: TimeDelta = TimeDelta::from_millis(1);

impl<C: Controller> Sender<C> {
    /// Segments of a full packet (`tcp_tso_autosize`).
    fn packet_segments(&self) -> u64 {
        let bytes = if self.control.pacing_rate.is_some() {
            self.control.send_quantum
        } else {
            let window = u128::from(self.control.cwnd) * u128::from(PACKET_TIME.as_nanos());
            let share = window / u128::from(self.rtt.smoothed().as_nanos().max(1));
            UNPACED.of(u64::try_from(share).unwrap_or(u64::MAX))
        };
        (bytes / u64::from(MSS_BYTES)).clamp(MIN_SEGMENTS, MAX_SEGMENTS)
    }

    /// Whether the new segment `seq` waits until there is room for a full packet, because the next
    /// ACK will make more (`tcp_tso_should_defer`).
    pub(super) fn defers(&self, now: Time, seq: u64) -> bool {
        let repeats = seq < self.board.next();
        if repeats || self.recovery_point.is_some() || self.board.in_flight() == 0 {
            return false;
        }
        let mss = u64::from(MSS_BYTES);
        let window = self.control.cwnd / mss;
        let advertised = self.window_end / mss;
        let room = window.saturating_sub(self.board.in_flight().div_ceil(mss));
        let room = room.min(advertised.saturating_sub(seq));
        let enough = self.packet_segments().min(window / WINDOW_PART);
        let has_more = self.stream.segments() - seq > room;
        room < enough && has_more && now <= self.last_sent + RECENT
    }

    /// Adds to the packet that begins with `first` the segments that may leave with it.
    #[inline(never)]
    pub(super) fn fill(&mut self, now: Time, first: &mut Segment) {
        let most = self.packet_segments() - 1;
        while u64::from(first.more) < most && first.bytes == MSS_BYTES {
            let next = first.seq + u64::from(first.more) + 1;
            let Some((seq, bytes)) = self.next_segment() else { return };
            let repeats = seq < self.board.next();
            let follows = seq == next && repeats == first.repeats && bytes == MSS_BYTES;
            if !follows || !self.has_room(bytes) || self.pacer.release(now, &self.control) > now {
                return;
            }
            self.send(now, seq, bytes, false);
            first.more += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use uncork_cc::{
        AppState, Control, ControllerSpec, Feedback, PathEvent, SentPacket, Settings, Snapshot,
        Timeout, Token,
    };
    use uncork_units::Rate;

    use super::*;
    use crate::offload::Offload;
    use crate::segments::Ack;
    use crate::segments::ranges::Range;
    use crate::segments::sender::{AckScratch, Host};
    use crate::segments::stream::Stream;
    use crate::spec::AccEcn;

    const RTT: TimeDelta = TimeDelta::from_millis(50);

    /// A constant window of `segments`. Counts deferred packets.
    #[derive(Clone, Copy, Debug)]
    struct Fixed {
        segments: u64,
        deferred: u32,
    }

    impl ControllerSpec for Fixed {
        type Controller = Self;

        fn name(&self) -> impl fmt::Display {
            "fixed"
        }

        fn build(&self, settings: &Settings) -> Self {
            assert!(settings.segmentation_offload, "the controller knows of it");
            *self
        }
    }

    impl Controller for Fixed {
        fn on_sent(&mut self, now: Time, _: SentPacket, _: AppState) -> Token {
            Token::from_words([now.as_nanos(), 0, 0, 0, 0, 0])
        }

        fn on_feedback(&mut self, _: Time, _: &Feedback<'_>) {}

        fn on_timeout(&mut self, _: Time, _: Timeout) {}

        fn on_path(&mut self, _: Time, _: PathEvent) {}

        fn control(&self) -> Control {
            Control::new(self.segments * u64::from(MSS_BYTES))
        }

        fn snapshot(&self) -> Snapshot {
            Snapshot::of_state("Fixed")
        }

        fn on_deferred(&mut self) {
            self.deferred += 1;
        }
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + TimeDelta::from_millis(millis)
    }

    fn sender(segments: u64, data: u64) -> Sender<Fixed> {
        let stream = Stream::of(data * u64::from(MSS_BYTES));
        let cc = Fixed { segments, deferred: 0 };
        let host = Host {
            handshake_rtt: RTT,
            initial_window: None,
            offload: Offload::Card,
            scalable_marks: false,
            accecn: AccEcn::None,
            seed: 1,
        };
        Sender::new(at(0), cc, stream, u64::MAX, host)
    }

    fn burst(sender: &mut Sender<Fixed>, now: Time) -> Vec<Segment> {
        std::iter::from_fn(|| sender.poll_segment(now)).collect()
    }

    fn sizes(packets: &[Segment]) -> Vec<u8> {
        packets.iter().map(|packet| packet.more + 1).collect()
    }

    /// 6/5 of what a window of 50 ms sends in a millisecond.
    #[test]
    fn packets_hold_what_leaves_in_a_millisecond() {
        for (window, most) in [(10, 2), (100, 2), (1_000, 23), (10_000, 45)] {
            assert_eq!(sender(window, 1).packet_segments(), most, "{window}");
        }
        let mut paced = sender(100, 1);
        let quantum = 8 * u64::from(MSS_BYTES);
        paced.control = paced.control.with_pacing(Rate::from_mbit(100), quantum);
        assert_eq!(paced.packet_segments(), 8);
    }

    /// A full packet of this window holds 23 segments.
    #[test]
    fn new_data_waits_for_room_for_a_full_packet() {
        let mut sender = sender(1_000, 2_000);
        let sent = burst(&mut sender, at(0));
        assert_eq!(sizes(&sent), [23; 43], "with room for eleven more");
        let mut acknowledge = |now: Time, cumulative: u64| {
            let trigger = Segment { seq: cumulative - 1, more: 0, ..sent[0] };
            let ack = Ack::new(cumulative, [], trigger);
            sender.on_ack(now, &ack, &mut AckScratch::default());
            sender.last_sent = at(50);
            sizes(&burst(&mut sender, now))
        };
        assert_eq!(acknowledge(at(50), 10), [] as [u8; 0], "room for 21");
        assert_eq!(acknowledge(at(50), 23), [23]);
        assert_eq!(acknowledge(at(52), 33), [21], "the packet before left more than 1 ms ago");
        assert_eq!(sender.controller().deferred, 3);
    }

    #[test]
    fn the_end_of_the_data_does_not_wait() {
        let mut sender = sender(1_000, 1_005);
        let sent = burst(&mut sender, at(0));
        let ack = Ack::new(10, [], Segment { seq: 9, more: 0, ..sent[0] });
        sender.on_ack(at(50), &ack, &mut AckScratch::default());
        sender.last_sent = at(50);
        assert_eq!(sizes(&burst(&mut sender, at(50))), [16]);
    }

    /// Segments 0 to 22 were one packet, which is lost.
    #[test]
    fn a_lost_packet_is_repaired_as_one() {
        let mut sender = sender(1_000, 2_000);
        let sent = burst(&mut sender, at(0));
        let last = Segment { seq: 45, tx: 45, more: 0, ..sent[1] };
        let ack = Ack::new(0, [Range { start: 23, end: 46 }], last);
        sender.on_ack(at(50), &ack, &mut AckScratch::default());
        let again = sender.poll_segment(at(50)).expect("the window has room");
        assert_eq!((again.seq, again.more, again.repeats), (0, 22, true));
        let new = sender.poll_segment(at(50)).expect("the window has room");
        assert_eq!((new.seq, new.repeats), (989, false), "old and new data do not mix");
    }
}
