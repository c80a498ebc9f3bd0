//! The receiver's counters (RFC 9768 §3.2), and when it must report them.

use uncork_path::Ecn;

use super::feedback::{AccEcnFeedback, CE, ECT0, ECT1, wrapped};

/// Initial values: a middlebox that clears the ACE field or the option does not go unnoticed.
const INITIAL_PACKETS: u8 = 5;
const INITIAL_BYTES: [u32; 3] = [1, 0, 1];
/// Maximum number of marks without an ACK: the n of §3.2.2.5.1.
const MARKS_PER_ACK: u8 = 2;
/// SACK blocks next to the option: it takes precedence over a third, not over the second (§3.2.3.3).
const SACK_BLOCKS: usize = 2;
/// Fields of the option that fit into 40 bytes next to timestamps and as many SACK blocks as the index. A full option
/// takes 11 bytes and each field less saves 3.
const ROOM: [u8; SACK_BLOCKS + 1] = [3, 3, 2];

/// What a client that has negotiated AccECN counts.
#[derive(Clone, Debug)]
pub(crate) struct EcnCounters {
    /// Segments with CE, plus 5; they wrap in the ACE field.
    ce_packets: u8,
    /// Payload bytes that came with ECT(1), CE and ECT(0); they wrap in the option.
    bytes: [u32; 3],
    /// Whether the segment before came with CE.
    after_mark: bool,
    marks_since_ack: u8,
    /// Whether the option reaches the server.
    with_option: bool,
    /// What the latest option, or the initial value, says of ECT(0): the first field to be left out.
    reported_ect0: u32,
}

impl EcnCounters {
    //= rfc9768 3.2.1-1
    pub(crate) fn new(with_option: bool) -> Self {
        Self {
            ce_packets: INITIAL_PACKETS,
            bytes: INITIAL_BYTES,
            after_mark: false,
            marks_since_ack: 0,
            with_option,
            reported_ect0: INITIAL_BYTES[ECT0],
        }
    }

    /// A segment of `bytes` arrived, new or not. Returns whether it must be acknowledged at once: when CE starts or, beyond
    /// the rule but as in Linux, stops. Linux also does so when ECT(0) follows ECT(1) or Not-ECT.
    //= rfc9768 3.2-1 3.2-2 3.2.2.5.1-1 3.2.2.5.1-2 3.2.2.5.1-3
    pub(crate) fn on_segment(&mut self, ecn: Ecn, bytes: u32) -> bool {
        let is_mark = ecn == Ecn::Ce;
        let changed = std::mem::replace(&mut self.after_mark, is_mark) != is_mark;
        let place = match ecn {
            Ecn::NotEct => return changed,
            Ecn::Ect0 => ECT0,
            Ecn::Ect1 => ECT1,
            Ecn::Ce => CE,
        };
        self.bytes[place] = self.bytes[place].wrapping_add(bytes);
        if is_mark {
            self.ce_packets = self.ce_packets.wrapping_add(1);
            self.marks_since_ack = self.marks_since_ack.saturating_add(1);
        }
        changed || self.marks_since_ack >= MARKS_PER_ACK
    }

    /// The maximum of SACK blocks in an ACK.
    //= rfc9768 3.2.3.3-1
    pub(crate) fn max_sack_blocks(&self) -> usize {
        if self.with_option { SACK_BLOCKS } else { usize::MAX }
    }

    /// For an ACK with this many SACK blocks.
    //= rfc9768 3.2-3 3.2.2.2-1 3.2.3.1-1
    pub(crate) fn report(&mut self, sack_blocks: usize) -> AccEcnFeedback {
        self.marks_since_ack = 0;
        let fields = if self.with_option { self.fields(sack_blocks) } else { 0 };
        AccEcnFeedback { ace: self.ce_packets % 8, fields, bytes: self.bytes.map(wrapped) }
    }

    /// The fields of the option. Without room for a counter that has changed the whole option is left out.
    //= rfc9768 3.2.3.3-2 3.2.3.3-3 3.2.3.3-4
    fn fields(&mut self, sack_blocks: usize) -> u8 {
        let room = ROOM.get(sack_blocks).copied().unwrap_or(0);
        let has_ect0 = usize::from(room) > ECT0;
        if !has_ect0 && self.bytes[ECT0] != self.reported_ect0 {
            return 0;
        }
        self.reported_ect0 = self.bytes[ECT0];
        room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields of `report` and whether each segment is acknowledged at once.
    fn after(segments: &[Ecn]) -> (EcnCounters, Vec<bool>) {
        let mut counters = EcnCounters::new(true);
        let at_once = segments.iter().map(|ecn| counters.on_segment(*ecn, 1000)).collect();
        (counters, at_once)
    }

    #[test]
    //= rfc9768 3.2-1 3.2-2 3.2-3 3.2.1-1 3.2.2.2-1 3.2.3.1-1 3.2.3.3-2 test
    fn segments_of_each_kind_are_counted_apart() {
        let (mut counters, _) = after(&[]);
        let report = counters.report(0);
        assert_eq!(
            (report.ace, [0, 1, 2].map(|place| report.field(place))),
            (5, [Some(1), Some(0), Some(1)])
        );
        let (mut counters, _) =
            after(&[Ecn::Ect1, Ecn::Ce, Ecn::Ect0, Ecn::NotEct, Ecn::Ce, Ecn::Ce, Ecn::Ect1]);
        let report = counters.report(1);
        assert_eq!(report.ace, 0, "5 + 3");
        let fields = [0, 1, 2].map(|place| report.field(place));
        assert_eq!(fields, [Some(2001), Some(3000), Some(1001)]);
    }

    #[test]
    //= rfc9768 3.2.2.5.1-1 3.2.2.5.1-2 3.2.2.5.1-3 test
    fn the_start_and_end_of_ce_and_every_second_mark_are_acknowledged_at_once() {
        let (mut counters, at_once) =
            after(&[Ecn::Ect1, Ecn::Ect1, Ecn::Ce, Ecn::Ect1, Ecn::Ect0, Ecn::Ect0]);
        assert_eq!(at_once, [false, false, true, true, false, false]);
        counters.report(0);
        let marks = [Ecn::Ce; 4].map(|ecn| {
            let at_once = counters.on_segment(ecn, 1000);
            if at_once {
                counters.report(0);
            }
            at_once
        });
        assert_eq!(marks, [true, false, true, false]);
    }

    #[test]
    //= rfc9768 3.2.3.3-1 3.2.3.3-3 3.2.3.3-4 test
    fn next_to_sack_blocks_the_option_has_the_fields_that_fit() {
        let (mut counters, _) = after(&[Ecn::Ce]);
        assert_eq!([0, 1, 2].map(|blocks| counters.report(blocks).fields), [3, 3, 2]);
        counters.on_segment(Ecn::Ect0, 1000);
        assert_eq!([2, 1, 2].map(|blocks| counters.report(blocks).fields), [0, 3, 2]);
        assert_eq!(counters.max_sack_blocks(), 2);
        let mut removed = EcnCounters::new(false);
        assert_eq!((removed.report(0).fields, removed.max_sack_blocks()), (0, usize::MAX));
    }
}
