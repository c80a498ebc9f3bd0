//! The client: tracks arrived segments and sends ACKs.

use uncork_path::{Ecn, Step};
use uncork_units::{Time, TimeDelta};

use super::Segment;
use super::accecn::{EcnCounters, EcnEcho};
use super::ack::{Ack, SACK_BLOCKS};
use super::ranges::{Range, SegmentRanges};
use super::stream::Stream;
use crate::spec::{AccEcn, AckPolicy, FlowSpec};

/// Linux's minimum delayed-ACK timeout.
const DELAYED_ACK: TimeDelta = TimeDelta::from_millis(40);
/// Blocks that a receiver remembers, as in Linux: one more than fit.
const REMEMBERED_BLOCKS: usize = SACK_BLOCKS + 1;
/// Like Linux, acknowledges each of the first segments at once, to help the server's slow start.
const QUICK_ACKS: u32 = 16;

#[derive(Debug)]
pub(crate) struct Receiver {
    /// The data that was requested.
    expected: Stream,
    next: u64,
    above: SegmentRanges,
    /// Blocks reported first in recent ACKs, newest first. Those not above `next` are obsolete.
    reported: [Range; REMEMBERED_BLOCKS],
    delivered_bytes: u64,
    marked: u32,
    /// The ECN field of the last segment.
    ecn: Ecn,
    /// What AccECN counts, if it was negotiated.
    counters: Option<Box<EcnCounters>>,
    policy: AckPolicy,
    window: u64,
    /// Later windows, and the next of them.
    window_steps: Option<Box<(Vec<Step<u64>>, usize)>>,
    /// The newest segment with a delayed ACK, and the deadline of the first.
    delayed: Option<(Segment, Time)>,
    /// How many ACKs are delayed.
    held: u32,
    quick_acks: u32,
    /// [`Time::NEVER`] before it.
    first_byte: Time,
    /// [`Time::NEVER`] before it.
    complete: Time,
}

fn known(time: Time) -> Option<Time> {
    (time < Time::NEVER).then_some(time)
}

/// Whether a segment is acknowledged now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Now(Ack),
    Later,
}

impl Receiver {
    pub(crate) fn new(expected: Stream, policy: AckPolicy) -> Self {
        Self {
            expected,
            next: 0,
            above: SegmentRanges::default(),
            reported: [Range::default(); REMEMBERED_BLOCKS],
            delivered_bytes: 0,
            marked: 0,
            ecn: Ecn::NotEct,
            counters: None,
            policy,
            window: FlowSpec::WIDE_OPEN,
            window_steps: None,
            delayed: None,
            held: 0,
            quick_acks: QUICK_ACKS,
            first_byte: Time::NEVER,
            complete: Time::NEVER,
        }
    }

    /// The receive window in bytes, and later ones in order of time.
    pub(crate) fn with_window(self, window: u64, steps: &[Step<u64>]) -> Self {
        let window_steps = (!steps.is_empty()).then(|| Box::new((steps.to_vec(), 0)));
        Self { window, window_steps, ..self }
    }

    /// Reports marks as negotiated.
    pub(crate) fn with_accecn(self, accecn: AccEcn) -> Self {
        let counters = || Box::new(EcnCounters::new(accecn == AccEcn::Option));
        Self { counters: (accecn != AccEcn::None).then(counters), ..self }
    }

    /// Payload bytes received, without duplicates.
    pub(crate) fn delivered_bytes(&self) -> u64 {
        self.delivered_bytes
    }

    /// Segments received with CE.
    pub(crate) fn marked(&self) -> u64 {
        u64::from(self.marked)
    }

    /// When the first byte arrived.
    pub(crate) fn first_byte(&self) -> Option<Time> {
        known(self.first_byte)
    }

    /// Expects a message of `bytes`.
    pub(crate) fn expect_message(&mut self, bytes: u64) {
        self.expected.append(bytes);
        if bytes > 0 {
            self.complete = Time::NEVER;
        }
    }

    /// Payload bytes received in order, without gaps.
    pub(crate) fn in_order_bytes(&self) -> u64 {
        self.expected.passed_bytes()
    }

    /// When the last missing byte of everything requested arrived.
    pub(crate) fn complete(&self) -> Option<Time> {
        known(self.complete)
    }

    /// When the delayed-ACK timer expires.
    pub(crate) fn next_timer(&self) -> Time {
        self.delayed.map_or(Time::NEVER, |(_, due)| due)
    }

    #[inline]
    pub(crate) fn on_segment(&mut self, now: Time, segment: Segment) -> Reply {
        if segment.more > 0 { self.on_packet(now, segment) } else { self.on_one(now, segment) }
    }

    #[expect(
        clippy::inline_always,
        reason = "with Sender::send, 3 % of a simulation's instructions"
    )]
    #[inline(always)]
    fn on_one(&mut self, now: Time, segment: Segment) -> Reply {
        let seq = segment.seq;
        let report_now = self.note_ecn(&segment);
        let had_hole = self.above.first().is_some();
        let duplicate = seq < self.next || self.above.containing(seq).is_some();
        let at_end = segment.push || self.expected.ends_at(seq);
        if !duplicate {
            self.take(now, segment);
        }
        // RFC 5681 §4.2: out-of-order segments and segments that fill a hole are acknowledged at once.
        let in_order = !duplicate && !had_hole && self.above.first().is_none();
        let may_wait = self.held + 1 < self.policy.every;
        if in_order && !report_now && may_wait && self.may_delay(at_end) {
            let delay = self.policy.delay.unwrap_or(DELAYED_ACK);
            let due = self.delayed.map_or(now + delay, |(_, due)| due);
            (self.delayed, self.held) = (Some((segment, due)), self.held + 1);
            return Reply::Later;
        }
        Reply::Now(self.ack(now, segment, duplicate))
    }

    /// The segments of a packet, which the host takes as one (GRO): one ACK for all.
    #[inline(never)]
    fn on_packet(&mut self, now: Time, first: Segment) -> Reply {
        let (mut last, mut duplicate, mut answer) = (first, false, None);
        for index in 0..=u64::from(first.more) {
            last = Segment { seq: first.seq + index, tx: first.tx + index, more: 0, ..first };
            answer = match self.on_one(now, last) {
                Reply::Now(ack) => Some(ack),
                Reply::Later => None,
            };
            duplicate |= answer.is_some_and(|ack| ack.duplicate);
        }
        let ack = answer.unwrap_or_else(|| self.ack(now, last, false));
        Reply::Now(Ack { duplicate, ..ack })
    }

    /// The connection is idle: frees the memory for holes.
    pub(crate) fn rest(&mut self) {
        self.above.shrink();
    }

    /// The delayed-ACK timer expired.
    pub(crate) fn on_timer(&mut self, now: Time) -> Option<Ack> {
        let (segment, _) = self.delayed.filter(|(_, due)| *due <= now)?;
        Some(self.ack(now, segment, false))
    }

    /// Whether the segment is acknowledged at once because of its ECN field.
    #[inline]
    fn note_ecn(&mut self, segment: &Segment) -> bool {
        let last = std::mem::replace(&mut self.ecn, segment.ecn);
        let is_ecn = last.is_capable() || segment.ecn.is_capable();
        is_ecn && self.note_ecn_change(last, segment)
    }

    /// Without AccECN when CE starts or stops, so that marks do not wait for a delayed ACK.
    #[inline(never)]
    fn note_ecn_change(&mut self, last: Ecn, segment: &Segment) -> bool {
        let is_marked = segment.ecn == Ecn::Ce;
        self.marked = self.marked.saturating_add(u32::from(is_marked));
        match &mut self.counters {
            Some(counters) => counters.on_segment(segment.ecn, segment.bytes),
            None => is_marked != (last == Ecn::Ce),
        }
    }

    /// What an ACK with this many SACK blocks says of marks.
    #[inline]
    fn echo(&mut self, sack_blocks: usize) -> EcnEcho {
        match &mut self.counters {
            None => EcnEcho::marks(self.marked),
            Some(counters) => EcnEcho::AccEcn(counters.report(sack_blocks)),
        }
    }

    /// The last segment of a message is acknowledged at once, because its reader empties the
    /// socket, and so is that of a packet of several (`tcp_measure_rcv_mss`).
    fn may_delay(&mut self, at_end: bool) -> bool {
        if self.quick_acks > 0 {
            self.quick_acks -= 1;
            return false;
        }
        !at_end
    }

    fn take(&mut self, now: Time, segment: Segment) {
        self.first_byte = self.first_byte.min(now);
        self.delivered_bytes += u64::from(segment.bytes);
        if segment.seq == self.next {
            self.next += 1;
            if let Some(lowest) = self.above.first().filter(|range| range.start == self.next) {
                self.next = lowest.end;
                self.above.remove_below(lowest.end);
            }
        } else {
            self.above.insert(Range { start: segment.seq, end: segment.seq + 1 }, |_| ());
        }
        self.expected.pass(self.next);
        if self.expected.is_passed() {
            self.complete = self.complete.min(now);
        }
    }

    fn ack(&mut self, now: Time, trigger: Segment, duplicate: bool) -> Ack {
        if let Some((steps, next)) = self.window_steps.as_deref_mut()
            && let Some(window) = Step::take_due(steps, next, now)
        {
            self.window = window;
        }
        let window = self.window;
        (self.delayed, self.held) = (None, 0);
        if self.above.first().is_none() {
            let ecn = self.echo(usize::from(duplicate));
            return Ack { duplicate, ecn, window, ..Ack::new(self.next, [], trigger) };
        }
        self.report_first(trigger.seq);
        // RFC 2883 §4: a D-SACK takes the place of the first block.
        let room =
            self.counters.as_ref().map_or(SACK_BLOCKS, |counters| counters.max_sack_blocks());
        let most = SACK_BLOCKS.min(room) - usize::from(duplicate);
        let blocks = self.reported.into_iter().filter(|block| block.start > self.next).take(most);
        let ack = Ack::new(self.next, blocks, trigger);
        let ecn = self.echo(ack.sack_blocks().count() + usize::from(duplicate));
        Ack { duplicate, ecn, window, ..ack }
    }

    /// RFC 2018 §4: first the block with the newest segment, then the blocks reported first most
    /// recently, unless they are part of it by now. A block changes only when it contains the
    /// newest segment.
    fn report_first(&mut self, newest: u64) {
        let Some(block) = self.above.containing(newest) else { return };
        let [first, ..] = &mut self.reported;
        if first.start == block.start && block.end == newest + 1 {
            *first = block;
            return;
        }
        let mut others = self
            .reported
            .into_iter()
            .filter(|range| range.start > self.next && !block.contains(range.start));
        let mut reported = [block; REMEMBERED_BLOCKS];
        reported[1..].fill_with(|| others.next().unwrap_or_default());
        self.reported = reported;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + TimeDelta::from_millis(millis)
    }

    fn segment(seq: u64) -> Segment {
        Segment::alone(seq, seq, Time::ZERO, 1000)
    }

    /// A receiver of `segments` (endless if `None`) that has received the first 16 and no longer
    /// acknowledges each at once.
    fn past_quick_acks(segments: Option<u64>) -> Receiver {
        past_quick_acks_of(segments, AckPolicy::USUAL)
    }

    fn past_quick_acks_of(segments: Option<u64>, policy: AckPolicy) -> Receiver {
        let stream = segments.map_or_else(Stream::endless, |count| Stream::of(count * 1448));
        let mut receiver = Receiver::new(stream, policy);
        for seq in 0..u64::from(QUICK_ACKS) {
            let Reply::Now(ack) = receiver.on_segment(at(0), segment(seq)) else {
                panic!("segment {seq} is answered at once")
            };
            assert_eq!((ack.cumulative, ack.sack_blocks().count()), (seq + 1, 0));
        }
        receiver
    }

    fn answer(receiver: &mut Receiver, seq: u64) -> Ack {
        match receiver.on_segment(at(1), segment(seq)) {
            Reply::Now(ack) => ack,
            Reply::Later => panic!("segment {seq} is not answered"),
        }
    }

    fn blocks(ack: Ack) -> Vec<(u64, u64)> {
        ack.sack_blocks().map(|block| (block.start, block.end)).collect()
    }

    #[test]
    //= bbr-06 5.5.7.1-1 test
    fn every_second_segment_is_acknowledged_and_a_single_one_after_40_ms() {
        let mut receiver = past_quick_acks(None);
        assert_eq!(receiver.on_segment(at(1), segment(16)), Reply::Later);
        let both = answer(&mut receiver, 17);
        assert_eq!((both.cumulative, both.trigger), (18, segment(17)));
        assert_eq!(receiver.next_timer(), Time::NEVER);
        assert_eq!(receiver.on_segment(at(10), segment(18)), Reply::Later);
        assert_eq!(receiver.next_timer(), at(50));
        assert_eq!(receiver.on_timer(at(49)), None);
        let ack = receiver.on_timer(at(50)).expect("due");
        assert_eq!((ack.cumulative, ack.trigger), (19, segment(18)));
        assert_eq!(receiver.on_timer(at(90)), None);
    }

    /// The delay runs from the first segment, and the ACK's trigger is the last.
    #[test]
    fn every_fourth_segment_is_acknowledged_or_after_100_ms() {
        let policy = AckPolicy { every: 4, delay: Some(TimeDelta::from_millis(100)) };
        let mut receiver = past_quick_acks_of(None, policy);
        for seq in 16..19 {
            assert_eq!(receiver.on_segment(at(seq), segment(seq)), Reply::Later);
        }
        let ack = answer(&mut receiver, 19);
        assert_eq!((ack.cumulative, ack.trigger), (20, segment(19)));
        assert_eq!(receiver.on_segment(at(30), segment(20)), Reply::Later);
        assert_eq!(receiver.on_segment(at(90), segment(21)), Reply::Later);
        assert_eq!(receiver.next_timer(), at(130));
        let ack = receiver.on_timer(at(130)).expect("due");
        assert_eq!((ack.cumulative, ack.trigger), (22, segment(21)));
        assert_eq!(answer(&mut receiver, 23).cumulative, 22, "a hole, at once");
        let mut each = past_quick_acks_of(None, AckPolicy { every: 1, ..policy });
        assert_eq!(answer(&mut each, 16).cumulative, 17);
    }

    /// `tcp_measure_rcv_mss`, `tcp_cleanup_rbuf`. The second segment of a pair does not wait for the next pair,
    /// after any segments.
    #[test]
    fn the_end_of_a_packet_of_several_segments_is_acknowledged_at_once() {
        let mut receiver = past_quick_acks(None);
        let push = |seq| Segment { push: true, ..segment(seq) };
        assert_eq!(receiver.on_segment(at(1), segment(16)), Reply::Later);
        assert_eq!(answer(&mut receiver, 17).cumulative, 18, "the second segment");
        assert!(
            matches!(receiver.on_segment(at(1), push(18)), Reply::Now(ack) if ack.cumulative == 19)
        );
        assert_eq!(receiver.on_segment(at(1), segment(19)), Reply::Later);
    }

    #[test]
    fn a_packet_of_several_segments_is_acknowledged_once() {
        let mut receiver = past_quick_acks(None);
        let mut packet = |seq, more| {
            let first = Segment { more, ..segment(seq) };
            match receiver.on_segment(at(1), first) {
                Reply::Now(ack) => (ack.cumulative, ack.trigger.seq, blocks(ack), ack.duplicate),
                Reply::Later => panic!("packet {seq} is not answered"),
            }
        };
        assert_eq!(packet(16, 2), (19, 18, vec![], false), "an odd number, too");
        assert_eq!(packet(30, 9), (19, 39, vec![(30, 40)], false));
        assert_eq!(packet(19, 10), (40, 29, vec![], false));
        assert_eq!(packet(38, 3), (42, 41, vec![], true), "two of four are duplicates");
        assert_eq!(receiver.next_timer(), Time::NEVER);
    }

    #[test]
    fn holes_are_reported_at_once_until_they_are_filled() {
        let mut receiver = past_quick_acks(None);
        assert_eq!(blocks(answer(&mut receiver, 17)), [(17, 18)]);
        assert_eq!(blocks(answer(&mut receiver, 20)), [(20, 21), (17, 18)]);
        assert_eq!(blocks(answer(&mut receiver, 18)), [(17, 19), (20, 21)]);
        assert_eq!(receiver.in_order_bytes(), 16 * 1448, "16 is missing");
        let filled = answer(&mut receiver, 16);
        assert_eq!((filled.cumulative, blocks(filled)), (19, vec![(20, 21)]));
        assert_eq!(answer(&mut receiver, 19).cumulative, 21);
        assert_eq!(receiver.on_segment(at(1), segment(21)), Reply::Later, "no holes left");
        assert_eq!(receiver.delivered_bytes(), 22_000);
        assert_eq!(receiver.in_order_bytes(), 22 * 1448);
    }

    /// RFC 2018 §4: each block is reported in three consecutive ACKs, so that two of them may be
    /// lost.
    #[test]
    fn ack_repeats_the_blocks_reported_last() {
        let mut receiver = past_quick_acks(None);
        for seq in [18, 20, 22, 24] {
            answer(&mut receiver, seq);
        }
        assert_eq!(blocks(answer(&mut receiver, 26)), [(26, 27), (24, 25), (22, 23)]);
        assert_eq!(blocks(answer(&mut receiver, 25)), [(24, 27), (22, 23), (20, 21)]);
        assert_eq!(blocks(answer(&mut receiver, 22)), [(22, 23), (24, 27)], "next to a D-SACK");
        let filled = answer(&mut receiver, 16);
        assert_eq!((filled.cumulative, blocks(filled)), (17, vec![(22, 23), (24, 27), (20, 21)]));
    }

    #[test]
    fn duplicates_are_acknowledged_at_once_and_not_counted() {
        let mut receiver = past_quick_acks(None);
        answer(&mut receiver, 18);
        for seq in [3, 18] {
            let ack = answer(&mut receiver, seq);
            assert!(ack.duplicate);
            assert_eq!((ack.cumulative, ack.trigger.seq), (16, seq));
        }
        assert_eq!(receiver.delivered_bytes(), 17_000);
    }

    #[test]
    fn last_segment_is_acknowledged_at_once_and_completes_once_all_arrived() {
        let mut receiver = past_quick_acks(Some(18));
        let ack = answer(&mut receiver, 17);
        assert_eq!((ack.cumulative, receiver.complete()), (16, None));
        assert_eq!(receiver.on_segment(at(7), segment(16)), Reply::Now(answer_of_all(18)));
        assert_eq!((receiver.first_byte(), receiver.complete()), (Some(at(0)), Some(at(7))));
        let mut in_order = past_quick_acks(Some(17));
        assert_eq!(answer(&mut in_order, 16).cumulative, 17);
    }

    /// The ACK for `count` segments. The second to last of them arrived last.
    fn answer_of_all(count: u64) -> Ack {
        Ack::new(count, [], segment(count - 2))
    }
}
