//! What was sent and what became of it.

use std::collections::VecDeque;

use uncork_cc::{Acked, Lost, Token};
use uncork_units::Time;

use super::ack::Ack;
use super::ranges::{Range, RangeSet};

/// The segments between SND.UNA and SND.NXT, and their transmissions in the order in which they
/// left. Both are rings: an ACK costs what it tells, not what is in flight.
#[derive(Debug, Default)]
pub(crate) struct Scoreboard {
    una: u64,
    entries: VecDeque<Entry>,
    sacked: RangeSet,
    sacked_segments: u64,
    /// Transmissions by departure; those that no longer count are skipped when they come up.
    sent: VecDeque<Sent>,
    next_tx: u64,
    /// Segments declared lost and not sent again yet, in the order of that declaration.
    lost: VecDeque<u64>,
    last_lost_tx: Option<u64>,
    in_flight: u64,
    unacked: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    token: Token,
    first_sent: Time,
    /// Number of the newest transmission.
    tx: u64,
    bytes: u32,
    fate: Fate,
    retransmitted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    InFlight,
    Lost,
    Sacked,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    tx: u64,
    seq: u64,
    time: Time,
}

/// A segment that an ACK reports for the first time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivered {
    pub(crate) acked: Acked,
    pub(crate) seq: u64,
    /// Newest transmission of the segment.
    pub(crate) tx: u64,
    pub(crate) retransmitted: bool,
    /// Whether it had been declared lost although an earlier transmission arrived.
    pub(crate) spurious: bool,
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
        self.entries.front().map_or(Time::NEVER, |entry| entry.first_sent)
    }

    /// The next segment to send again, and its size.
    pub(crate) fn next_lost(&mut self) -> Option<(u64, u32)> {
        while let Some(&seq) = self.lost.front() {
            match self.entry(seq) {
                Some(entry) if entry.fate == Fate::Lost => return Some((seq, entry.bytes)),
                _ => self.lost.pop_front(),
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

    /// Bytes in flight and bytes unacknowledged once `seq` will have been sent with `bytes`.
    pub(crate) fn after_sending(&self, seq: u64, bytes: u32) -> (u64, u64) {
        let bytes = u64::from(bytes);
        match self.entry(seq) {
            None => (self.in_flight + bytes, self.unacked + bytes),
            Some(entry) if entry.fate == Fate::Lost => (self.in_flight + bytes, self.unacked),
            Some(_) => (self.in_flight, self.unacked),
        }
    }

    /// Writes down that `seq` leaves now: SND.NXT, or a segment sent before.
    pub(crate) fn on_sent(&mut self, seq: u64, bytes: u32, token: Token) {
        (self.in_flight, self.unacked) = self.after_sending(seq, bytes);
        let tx = self.next_tx;
        self.next_tx += 1;
        self.sent.push_back(Sent { tx, seq, time: token.send_time() });
        let (fate, first_sent) = (Fate::InFlight, token.send_time());
        let sent = Entry { token, first_sent, tx, bytes, fate, retransmitted: false };
        if seq == self.next() {
            self.entries.push_back(sent);
        } else if let Some(entry) = self.entry_mut(seq) {
            *entry = Entry { retransmitted: true, first_sent: entry.first_sent, ..sent };
        }
    }

    /// Takes in an ACK and appends what it delivers to `delivered`, in the order of transmission.
    /// True when SND.UNA advanced.
    pub(crate) fn on_ack(&mut self, ack: &Ack, delivered: &mut Vec<Delivered>) -> bool {
        let advanced = ack.cumulative.min(self.next()) > self.una;
        while self.una < ack.cumulative {
            let Some(entry) = self.entries.pop_front() else { break };
            if entry.fate == Fate::Sacked {
                self.sacked_segments -= 1;
            } else {
                delivered.push(self.deliver(self.una, entry, ack));
            }
            self.una += 1;
        }
        self.sacked.remove_below(self.una);
        for block in ack.sack_blocks() {
            self.on_sack_block(*block, ack, delivered);
        }
        if delivered.len() > 1 {
            delivered.sort_unstable_by_key(|segment| segment.tx);
        }
        advanced
    }

    fn on_sack_block(&mut self, block: Range, ack: &Ack, delivered: &mut Vec<Delivered>) {
        let block = Range { start: block.start.max(self.una), end: block.end.min(self.next()) };
        // A set of its own while its holes are filled, so that the rest can be borrowed.
        let mut sacked = std::mem::take(&mut self.sacked);
        sacked.insert(block, |new| {
            for seq in new.start..new.end {
                let index = (seq - self.una) as usize;
                let entry = self.entries[index];
                delivered.push(self.deliver(seq, entry, ack));
                self.entries[index].fate = Fate::Sacked;
                self.sacked_segments += 1;
            }
        });
        self.sacked = sacked;
    }

    fn deliver(&mut self, seq: u64, entry: Entry, ack: &Ack) -> Delivered {
        if entry.fate == Fate::InFlight {
            self.in_flight -= u64::from(entry.bytes);
        }
        self.unacked -= u64::from(entry.bytes);
        // An earlier transmission arrived: the one that was declared lost (Eifel, RFC 3522, by the
        // timestamp echo).
        let earlier_arrived = ack.trigger.0 == seq && ack.trigger.1 < entry.tx;
        Delivered {
            acked: Acked { token: entry.token, bytes: entry.bytes },
            seq,
            tx: entry.tx,
            retransmitted: entry.retransmitted,
            spurious: entry.fate == Fate::Lost || (entry.retransmitted && earlier_arrived),
        }
    }

    /// Goes through the transmissions in flight, oldest first: `judge` gets the number and the
    /// departure of each and says whether it is lost. Stops at the first that is not.
    pub(crate) fn declare_lost(
        &mut self,
        lost: &mut Vec<Lost>,
        mut judge: impl FnMut(u64, Time) -> bool,
    ) {
        while let Some(&Sent { tx, seq, time }) = self.sent.front() {
            if self.is_current(seq, tx) {
                if !judge(tx, time) {
                    return;
                }
                lost.push(self.mark_lost(seq, tx));
            }
            self.sent.pop_front();
        }
    }

    fn is_current(&self, seq: u64, tx: u64) -> bool {
        self.entry(seq).is_some_and(|entry| entry.fate == Fate::InFlight && entry.tx == tx)
    }

    fn mark_lost(&mut self, seq: u64, tx: u64) -> Lost {
        let index = (seq - self.una) as usize;
        let entry = &mut self.entries[index];
        entry.fate = Fate::Lost;
        let (token, bytes) = (entry.token, entry.bytes);
        self.in_flight -= u64::from(bytes);
        self.lost.push_back(seq);
        let contiguous = self.last_lost_tx.is_some_and(|last| last + 1 == tx);
        self.last_lost_tx = Some(tx);
        Lost { token, bytes, contiguous }
    }

    fn entry(&self, seq: u64) -> Option<&Entry> {
        self.entries.get(seq.checked_sub(self.una)? as usize)
    }

    fn entry_mut(&mut self, seq: u64) -> Option<&mut Entry> {
        self.entries.get_mut(seq.checked_sub(self.una)? as usize)
    }
}
