//! State of each segment and transmission.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use uncork_cc::{Acked, Lost, Token};
use uncork_units::Time;

use super::ack::Ack;
use super::ranges::{Range, SegmentRanges};

/// Capacity kept by an idle connection, in segments.
const IDLE_CAPACITY: usize = 1;

/// The segments between SND.UNA and SND.NXT, and their transmissions in order of departure. Both
/// are ring buffers: the cost of an ACK depends on what it acknowledges, not on the flight size.
///
/// With thousands of flows each entry is in no cache. So an entry is one line, and what only repaired
/// segments need is elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Scoreboard {
    una: u64,
    entries: VecDeque<ScoreboardEntry>,
    sacked: SegmentRanges,
    sacked_segments: u64,
    /// The segments of transmissions in order of departure, up to the newest; stale ones are skipped.
    sent: VecDeque<u64>,
    next_tx: u64,
    /// Segments declared lost and not yet retransmitted, lowest first, because SND.UNA waits for
    /// them.
    lost: BinaryHeap<Reverse<u64>>,
    /// Segments sent more than once, by number. Never iterated over.
    repaired: ByNumber<Repaired>,
    /// Transmissions, by number, that were declared lost and then retransmitted. They may still
    /// have arrived. Never iterated over.
    superseded: ByNumber<Superseded>,
    /// The transmission after the one last declared lost; 0 before a loss.
    after_lost_tx: u64,
    in_flight: u64,
    unacked: u64,
}

/// The keys are counted up by the simulator itself, so nothing needs the standard hasher's protection.
type ByNumber<T> = HashMap<u64, T, BuildHasherDefault<NumberHasher>>;

/// Fibonacci hashing of one number: neighbours differ in the upper bits as in the lower, and a map uses both.
#[derive(Debug, Default)]
struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        self.0 = (self.0 ^ number).wrapping_mul(GOLDEN);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct ScoreboardEntry {
    /// Of the newest transmission.
    token: Token,
    /// Its number.
    tx: u64,
    bytes: u32,
    fate: SegmentState,
    retransmitted: bool,
}

const _: () = assert!(size_of::<ScoreboardEntry>() == 64, "a cache line");

#[derive(Clone, Copy, Debug)]
struct Repaired {
    first_sent: Time,
    /// Number of the newest transmission declared lost before the current one; a probe repeats a
    /// segment that was not declared lost.
    superseded: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Superseded {
    token: Token,
    /// The previous one of the same segment.
    before: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SegmentState {
    InFlight,
    Lost,
    Sacked,
}

/// A segment acknowledged for the first time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivered {
    pub(crate) acked: Acked,
    pub(crate) seq: u64,
    /// Newest transmission of the segment.
    pub(crate) tx: u64,
    pub(crate) retransmitted: bool,
    /// Whether an earlier transmission may have arrived instead of the newest (Karn's problem).
    pub(crate) ambiguous: bool,
    /// The transmission that arrived, if it had been declared lost.
    pub(crate) spurious: Option<Token>,
}

impl Scoreboard {
    /// SND.UNA.
    pub(crate) fn una(&self) -> u64 {
        self.una
    }

    /// SND.NXT.
    pub(crate) fn next(&self) -> u64 {
        self.una + self.entries.len() as u64
    }

    /// Bytes in flight: neither delivered nor declared lost.
    //= bbr-06 2.2-10
    //= rfc9937 6.2-3
    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Bytes not known to be delivered.
    pub(crate) fn unacked(&self) -> u64 {
        self.unacked
    }

    /// Segments above SND.UNA that have arrived.
    pub(crate) fn sacked_segments(&self) -> u64 {
        self.sacked_segments
    }

    /// When the oldest unacknowledged segment first left.
    pub(crate) fn oldest_sent(&self) -> Time {
        self.entries.front().map_or(Time::NEVER, |entry| self.repairs(self.una, entry).first_sent)
    }

    /// Number of the newest transmission of SND.UNA, if any data is unacknowledged.
    pub(crate) fn una_tx(&self) -> Option<u64> {
        self.entries.front().map(|entry| entry.tx)
    }

    /// The next segment to retransmit, and its size. Most often nothing is lost.
    #[inline]
    pub(crate) fn next_lost(&mut self) -> Option<(u64, u32)> {
        if self.lost.is_empty() { None } else { self.lowest_lost() }
    }

    #[inline(never)]
    fn lowest_lost(&mut self) -> Option<(u64, u32)> {
        while let Some(&Reverse(seq)) = self.lost.peek() {
            match self.entry(seq) {
                Some(entry) if entry.fate == SegmentState::Lost => return Some((seq, entry.bytes)),
                _ => self.lost.pop(),
            };
        }
        None
    }

    /// The number that the next transmission will have.
    pub(crate) fn next_tx(&self) -> u64 {
        self.next_tx
    }

    /// The last segment sent, for a tail-loss probe.
    pub(crate) fn last(&self) -> Option<(u64, u32)> {
        self.entries.back().map(|entry| (self.next() - 1, entry.bytes))
    }

    /// Bytes in flight and bytes unacknowledged after sending `seq` with `bytes`.
    pub(crate) fn after_sending(&self, seq: u64, bytes: u32) -> (u64, u64) {
        let bytes = u64::from(bytes);
        match self.entry(seq) {
            None => (self.in_flight + bytes, self.unacked + bytes),
            Some(entry) if entry.fate == SegmentState::Lost => {
                (self.in_flight + bytes, self.unacked)
            }
            Some(_) => (self.in_flight, self.unacked),
        }
    }

    /// Records that `seq` is sent now: SND.NXT or a retransmission.
    pub(crate) fn on_sent(&mut self, seq: u64, bytes: u32, token: Token) {
        (self.in_flight, self.unacked) = self.after_sending(seq, bytes);
        let tx = self.next_tx;
        self.next_tx += 1;
        self.sent.push_back(seq);
        let fate = SegmentState::InFlight;
        if seq == self.next() {
            let entry = ScoreboardEntry { token, tx, bytes, fate, retransmitted: false };
            self.entries.push_back(entry);
        } else if let Some(&old) = self.entry(seq) {
            self.supersede(seq, old);
            let index = (seq - self.una) as usize;
            self.entries[index] = ScoreboardEntry { token, tx, fate, retransmitted: true, ..old };
        }
    }

    /// A segment is sent again. Its newest transmission was `old`.
    #[inline(never)]
    fn supersede(&mut self, seq: u64, old: ScoreboardEntry) {
        let mut repaired = self.repairs(seq, &old);
        if old.fate == SegmentState::Lost {
            let lost = Superseded { token: old.token, before: repaired.superseded };
            self.superseded.insert(old.tx, lost);
            repaired.superseded = Some(old.tx);
        }
        self.repaired.insert(seq, repaired);
    }

    /// The repairs of `seq`, which has `entry`.
    #[inline]
    fn repairs(&self, seq: u64, entry: &ScoreboardEntry) -> Repaired {
        let none = Repaired { first_sent: entry.token.send_time(), superseded: None };
        if entry.retransmitted { self.known_repairs(seq).unwrap_or(none) } else { none }
    }

    #[inline(never)]
    fn known_repairs(&self, seq: u64) -> Option<Repaired> {
        self.repaired.get(&seq).copied()
    }

    /// Processes an ACK and appends the segments it delivers to `delivered`, in order of
    /// transmission. Returns true if SND.UNA advanced.
    #[inline]
    pub(crate) fn on_ack(&mut self, ack: &Ack, delivered: &mut Vec<Delivered>) -> bool {
        let advanced = ack.cumulative.min(self.next()) > self.una;
        while self.una < ack.cumulative {
            let Some(entry) = self.entries.pop_front() else { break };
            if entry.fate == SegmentState::Sacked {
                self.sacked_segments -= 1;
            } else {
                delivered.push(self.deliver(self.una, entry, ack));
            }
            if entry.retransmitted {
                self.repaired.remove(&self.una);
            }
            self.una += 1;
        }
        self.sacked.remove_below(self.una);
        for block in ack.sack_blocks() {
            self.on_sack_block(block, ack, delivered);
        }
        if self.entries.is_empty() {
            self.rest();
        }
        if delivered.len() > 1 {
            delivered.sort_unstable_by_key(|segment| segment.tx);
        }
        advanced
    }

    /// Everything is delivered. Frees buffers sized for a full window, because the connection may
    /// be idle for long.
    fn rest(&mut self) {
        self.sent.clear();
        self.lost.clear();
        self.entries.shrink_to(IDLE_CAPACITY);
        self.sent.shrink_to(IDLE_CAPACITY);
        self.lost.shrink_to(IDLE_CAPACITY);
        self.repaired.shrink_to_fit();
        self.superseded.shrink_to_fit();
        self.sacked.shrink();
    }

    fn on_sack_block(&mut self, block: Range, ack: &Ack, delivered: &mut Vec<Delivered>) {
        let block = Range { start: block.start.max(self.una), end: block.end.min(self.next()) };
        let known = self.sacked.containing(block.start);
        if known.is_some_and(|known| block.end <= known.end) {
            return;
        }
        // Taken out temporarily, so that the rest can be borrowed.
        let mut sacked = std::mem::take(&mut self.sacked);
        sacked.insert(block, |new| {
            for seq in new.start..new.end {
                let index = (seq - self.una) as usize;
                let entry = self.entries[index];
                delivered.push(self.deliver(seq, entry, ack));
                self.entries[index].fate = SegmentState::Sacked;
                self.sacked_segments += 1;
            }
        });
        self.sacked = sacked;
    }

    //= rfc9438 4.9.1-1 4.9.2-1
    fn deliver(&mut self, seq: u64, entry: ScoreboardEntry, ack: &Ack) -> Delivered {
        if entry.fate == SegmentState::InFlight {
            self.in_flight -= u64::from(entry.bytes);
        }
        self.unacked -= u64::from(entry.bytes);
        let is_trigger = ack.trigger.seq == seq;
        // Eifel (RFC 3522): the echo is older than the newest transmission.
        let earlier_arrived = is_trigger && ack.trigger.tx < entry.tx;
        Delivered {
            acked: Acked { token: entry.token, bytes: entry.bytes },
            seq,
            tx: entry.tx,
            retransmitted: entry.retransmitted,
            ambiguous: entry.retransmitted && (!is_trigger || earlier_arrived),
            spurious: if entry.retransmitted || entry.fate == SegmentState::Lost {
                self.arrived_after_all(seq, &entry, earlier_arrived.then_some(ack.trigger.tx))
            } else {
                None
            },
        }
    }

    /// The transmission of a delivered segment that had been declared lost but arrived: the
    /// `earlier` one named by the echo, or the newest if it was not retransmitted.
    #[inline(never)]
    fn arrived_after_all(
        &mut self,
        seq: u64,
        entry: &ScoreboardEntry,
        earlier: Option<u64>,
    ) -> Option<Token> {
        let mut named = None;
        let mut next = self.repairs(seq, entry).superseded;
        while let Some(tx) = next {
            let Some(Superseded { token, before }) = self.superseded.remove(&tx) else { break };
            named = named.or((earlier == Some(tx)).then_some(token));
            next = before;
        }
        let is_newest = earlier.is_none() && entry.fate == SegmentState::Lost;
        named.or(is_newest.then_some(entry.token))
    }

    /// Visits the transmissions in flight, oldest first. `judge` receives the number and departure
    /// time of each and returns whether it is lost. Stops at the first that is not.
    pub(crate) fn declare_lost(
        &mut self,
        lost: &mut Vec<Lost>,
        mut judge: impl FnMut(u64, Time) -> bool,
    ) {
        let mut tx = self.next_tx - self.sent.len() as u64;
        while let Some(&seq) = self.sent.front() {
            let entry = self.entry(seq).filter(|entry| entry.fate == SegmentState::InFlight);
            if let Some(current) = entry.filter(|entry| entry.tx == tx) {
                if !judge(tx, current.token.send_time()) {
                    return;
                }
                lost.push(self.mark_lost(seq, tx));
            }
            self.sent.pop_front();
            tx += 1;
        }
    }

    fn mark_lost(&mut self, seq: u64, tx: u64) -> Lost {
        let index = (seq - self.una) as usize;
        let entry = &mut self.entries[index];
        entry.fate = SegmentState::Lost;
        let (token, bytes) = (entry.token, entry.bytes);
        self.in_flight -= u64::from(bytes);
        self.lost.push(Reverse(seq));
        let contiguous = tx > 0 && self.after_lost_tx == tx;
        self.after_lost_tx = tx + 1;
        Lost { token, bytes, contiguous }
    }

    fn entry(&self, seq: u64) -> Option<&ScoreboardEntry> {
        self.entries.get(seq.checked_sub(self.una)? as usize)
    }
}

#[cfg(test)]
mod tests {
    use uncork_cc::{AppState, CcSpec, Controller, SentPacket, Settings};
    use uncork_units::TimeDelta;

    use super::*;
    use crate::segments::Segment;

    fn at(millis: u64) -> Time {
        Time::ZERO + TimeDelta::from_millis(millis)
    }

    /// A controller's token for a packet sent at `now`.
    fn token(now: Time) -> Token {
        let cc: CcSpec = "reno".parse().expect("a controller");
        let settings = Settings::new(1000, 1, now);
        let packet = SentPacket { bytes: 1000, in_flight: 1000, unacked: 1000 };
        cc.build(&settings).on_sent(now, packet, AppState::Backlogged)
    }

    /// Segments 0 to `count` - 1 in flight, a millisecond apart.
    fn sent(count: u64) -> Scoreboard {
        let mut board = Scoreboard::default();
        for seq in 0..count {
            board.on_sent(seq, 1000, token(at(seq)));
        }
        board
    }

    /// The ACK triggered by transmission `tx` of `seq`.
    fn ack(cumulative: u64, sack: Option<Range>, (seq, tx): (u64, u64)) -> Ack {
        let trigger = Segment::alone(seq, tx, Time::ZERO, 1000);
        Ack::new(cumulative, sack, trigger)
    }

    fn deliver(board: &mut Scoreboard, ack: &Ack) -> Vec<Delivered> {
        let mut delivered = Vec::new();
        board.on_ack(ack, &mut delivered);
        delivered
    }

    /// Declares everything sent before `tx` lost and returns the segments to retransmit.
    fn lose_before(board: &mut Scoreboard, tx: u64) -> Vec<u64> {
        board.declare_lost(&mut Vec::new(), |sent, _| sent < tx);
        let mut lost: Vec<u64> = board.lost.iter().map(|Reverse(seq)| *seq).collect();
        lost.sort_unstable();
        lost
    }

    #[test]
    //= rfc9937 6.2-3 test
    //= bbr-06 2.2-10 test
    fn bytes_are_in_flight_until_delivered_or_lost_and_unacked_until_delivered() {
        let mut board = sent(4);
        assert_eq!((board.in_flight(), board.unacked()), (4000, 4000));
        let sack = Range { start: 2, end: 4 };
        assert_eq!(deliver(&mut board, &ack(0, Some(sack), (3, 3))).len(), 2);
        assert_eq!((board.in_flight(), board.unacked(), board.sacked_segments()), (2000, 2000, 2));
        assert_eq!(lose_before(&mut board, 2), [0, 1]);
        assert_eq!((board.in_flight(), board.unacked()), (0, 2000));
        assert_eq!(board.next_lost(), Some((0, 1000)));
        board.on_sent(0, 1000, token(at(50)));
        assert_eq!((board.in_flight(), board.unacked()), (1000, 2000));
        assert_eq!(board.next_lost(), Some((1, 1000)));
        assert_eq!(deliver(&mut board, &ack(4, None, (0, 4))).len(), 2);
        assert_eq!((board.in_flight(), board.unacked(), board.sacked_segments()), (0, 0, 0));
        assert_eq!((board.una(), board.next(), board.next_lost()), (4, 4, None));
        assert_eq!(board.oldest_sent(), Time::NEVER);
    }

    #[test]
    //= bbr-06 4.1.3.5-3 4.2-1 4.2-2 test
    fn echo_identifies_the_transmission_that_arrived() {
        for (tx, ambiguous) in [(0, true), (1, false)] {
            let mut board = sent(1);
            assert_eq!(lose_before(&mut board, 1), [0]);
            board.on_sent(0, 1000, token(at(50)));
            let delivered = deliver(&mut board, &ack(1, None, (0, tx)));
            assert!(delivered[0].retransmitted);
            assert_eq!(delivered[0].ambiguous, ambiguous);
            // The token belongs to the transmission declared lost, not to the newest.
            let arrived = delivered[0].spurious.map(|token| token.send_time());
            assert_eq!(arrived, ambiguous.then_some(at(0)));
            assert!(board.superseded.is_empty());
        }
    }

    #[test]
    fn probe_repeats_a_segment_not_declared_lost() {
        let mut board = sent(1);
        board.on_sent(0, 1000, token(at(50)));
        assert_eq!((board.in_flight(), board.unacked()), (1000, 1000));
        let delivered = deliver(&mut board, &ack(1, None, (0, 0)));
        assert!(delivered[0].ambiguous && delivered[0].spurious.is_none());
    }

    #[test]
    //= rfc9438 4.9.1-1 4.9.2-1 test
    fn lost_segments_that_arrive_late_are_not_retransmitted() {
        let mut board = sent(3);
        assert_eq!(lose_before(&mut board, 2), [0, 1]);
        let delivered = deliver(&mut board, &ack(1, None, (0, 0)));
        assert!(delivered[0].spurious.is_some() && !delivered[0].ambiguous);
        assert_eq!(board.next_lost(), Some((1, 1000)));
    }

    #[test]
    fn runs_of_losses_are_distinguished() {
        let mut board = sent(5);
        deliver(&mut board, &ack(0, Some(Range { start: 2, end: 3 }), (2, 2)));
        let mut lost = Vec::new();
        board.declare_lost(&mut lost, |tx, _| tx < 5);
        let contiguous: Vec<bool> = lost.iter().map(|lost| lost.contiguous).collect();
        assert_eq!(contiguous, [false, true, false, true], "segments 0, 1, 3 and 4");
    }

    #[test]
    fn acks_beyond_snd_nxt_deliver_only_sent_segments() {
        let mut board = sent(2);
        let beyond = Range { start: 7, end: 9 };
        assert_eq!(deliver(&mut board, &ack(5, Some(beyond), (8, 9))).len(), 2);
        assert_eq!((board.una(), board.next(), board.in_flight()), (2, 2, 0));
    }
}
