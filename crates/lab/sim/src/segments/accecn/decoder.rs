//! What a sender deems to be marked (RFC 9768 §3.2.2.5.2, appendix A.2, and `__tcp_accecn_process` of Linux 7.0).

use super::super::MSS_BYTES;
use super::feedback::{AccEcnFeedback, CE, ECT0, added};

/// The ACE field counts modulo this.
const CYCLE: u32 = 8;
/// From this many packets on, Linux estimates how often the field has cycled by the share of marked bytes.
const ESTIMATE_FROM: u32 = 2 * CYCLE;
/// Marked segments may be this much smaller than full ones (SAFETY_FACTOR of appendix A.2.2).
const SAFETY_FACTOR: u64 = 2;
/// The gain of the average of packets per ACK is 1/64, and the average is kept in 64ths.
const AVERAGE_BITS: u32 = 6;
/// Packets per ACK above which ACKs are thinned as a rule, so that one for many packets does not show that others were lost.
const THINNED: u32 = 4 << AVERAGE_BITS;

/// A server's view of its client's counters.
#[derive(Clone, Debug)]
pub(crate) struct EcnDecoder {
    /// The ACE field before.
    ace: u8,
    /// The option's counters before.
    ce_bytes: u32,
    ect0_bytes: u32,
    /// Whether the ACK before had the counter of CE.
    had_option: bool,
    /// The average of packets per ACK, in 64ths; zero before the first.
    packets_per_ack: u32,
    /// What has been acknowledged since the field was last decoded.
    packets: u32,
    bytes: u64,
}

impl Default for EcnDecoder {
    //= rfc9768 3.2.1-1
    fn default() -> Self {
        Self {
            ace: 5,
            ce_bytes: 0,
            ect0_bytes: 1,
            had_option: true,
            packets_per_ack: 0,
            packets: 0,
            bytes: 0,
        }
    }
}

impl EcnDecoder {
    /// An ACK reports `packets` with `bytes`, new ones and duplicates.
    pub(crate) fn acknowledge(&mut self, packets: u32, bytes: u64) {
        self.packets = self.packets.saturating_add(packets);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Whether bytes with ECT(0) have arrived, by this ACK or an earlier one.
    pub(crate) fn counts_ect0(&self) -> bool {
        self.ect0_bytes != Self::default().ect0_bytes
    }

    /// How many of the packets that [`Self::acknowledge`] was given since the last call are deemed to be marked. Never
    /// more than these packets.
    //= rfc9768 3.2.2.2-2 3.2.3.2.5-1
    pub(crate) fn marked(&mut self, feedback: &AccEcnFeedback) -> u32 {
        let marked_bytes = self.marked_bytes(feedback);
        let modulo = u32::from(feedback.ace.wrapping_sub(self.ace)) % CYCLE;
        self.ace = feedback.ace;
        let (packets, bytes) = (std::mem::take(&mut self.packets), std::mem::take(&mut self.bytes));
        self.average(packets);
        if packets < CYCLE {
            return modulo.min(packets);
        }
        match marked_bytes {
            Some(marked) => by_bytes(modulo, u64::from(marked), packets, bytes),
            None if self.packets_per_ack > THINNED => modulo,
            None => safest(modulo, packets),
        }
    }

    /// Bytes with CE since the ACK before. `None` unless both have the counter (appendix A.2.2).
    //= rfc9768 3.2.3.1-2
    fn marked_bytes(&mut self, feedback: &AccEcnFeedback) -> Option<u32> {
        if let Some(ect0) = feedback.field(ECT0) {
            self.ect0_bytes = ect0;
        }
        let now = feedback.field(CE);
        let had_option = std::mem::replace(&mut self.had_option, now.is_some());
        let before = self.ce_bytes;
        self.ce_bytes = now?;
        had_option.then_some(added(self.ce_bytes, before))
    }

    fn average(&mut self, packets: u32) {
        let packets = packets << AVERAGE_BITS;
        let rest = self.packets_per_ack - (self.packets_per_ack >> AVERAGE_BITS);
        self.packets_per_ack = match self.packets_per_ack {
            0 => packets,
            _ => rest + (packets >> AVERAGE_BITS),
        };
    }
}

/// The most marks that the field allows (dSafer.cep of appendix A.2.1).
//= rfc9768 3.2.2.5.2-1 3.2.3.2.3-1
fn safest(modulo: u32, packets: u32) -> u32 {
    packets - (packets - modulo) % CYCLE
}

/// The likely number of marks, given the bytes that were marked (appendix A.2.2; for many packets as Linux).
//= rfc9768 3.2.2.5.2-1
fn by_bytes(modulo: u32, marked_bytes: u64, packets: u32, bytes: u64) -> u32 {
    let safest = safest(modulo, packets);
    if marked_bytes == 0 {
        return modulo;
    }
    if packets >= ESTIMATE_FROM {
        if bytes <= marked_bytes {
            return safest;
        }
        let likely = (marked_bytes * u64::from(packets)).div_ceil(bytes) as u32;
        return safest.min(modulo + likely / CYCLE * CYCLE);
    }
    let full = |packets: u32| u64::from(packets) * u64::from(MSS_BYTES);
    let is_enough = marked_bytes <= full(modulo) && marked_bytes < full(safest) / SAFETY_FACTOR;
    if is_enough { modulo } else { safest }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uncork_path::Ecn;

    use super::super::EcnCounters;
    use super::*;

    /// The marks decoded from an ACK with `ace` for `packets` full segments.
    fn decoded(ace: u8, marked_bytes: Option<u32>, packets: u32) -> u32 {
        let mut decoder = EcnDecoder::default();
        decoder.acknowledge(packets, u64::from(packets * MSS_BYTES));
        let fields = if marked_bytes.is_some() { 3 } else { 0 };
        let bytes = [1, marked_bytes.unwrap_or(0), 1].map(super::super::feedback::wrapped);
        decoder.marked(&AccEcnFeedback { ace, fields, bytes })
    }

    #[test]
    //= rfc9768 3.2.2.2-2 test
    fn of_fewer_than_eight_packets_the_field_says_how_many_are_marked() {
        for (ace, packets, marked) in [(5, 2, 0), (6, 2, 1), (7, 2, 2), (4, 7, 7), (0, 7, 3)] {
            assert_eq!(decoded(ace, None, packets), marked, "{ace} {packets}");
        }
        assert_eq!(decoded(4, None, 2), 2, "no more than are acknowledged");
    }

    /// RFC 9768, appendix A.2.1: 2 more in the field on an ACK for 10 to 17 packets may be 10.
    #[test]
    //= rfc9768 3.2.2.5.2-1 3.2.3.2.3-1 test
    fn of_many_packets_without_the_option_the_field_is_taken_to_have_cycled() {
        for (packets, marked) in [(8, 2), (9, 2), (10, 10), (17, 10), (18, 18)] {
            // The first ACK: the average of packets per ACK is above 4.
            let mut decoder =
                EcnDecoder { packets_per_ack: 2 << AVERAGE_BITS, ..EcnDecoder::default() };
            decoder.acknowledge(packets, u64::from(packets * MSS_BYTES));
            let bytes = [[0; 3]; 3];
            let found = decoder.marked(&AccEcnFeedback { ace: 7, fields: 0, bytes });
            assert_eq!(found, marked, "{packets}");
        }
        assert_eq!(decoded(7, None, 18), 2, "where ACKs are for many packets as a rule");
    }

    #[test]
    //= rfc9768 3.2.3.1-2 3.2.3.2.5-1 test
    fn with_the_option_marks_of_full_segments_are_exact() {
        for packets in 1..=64 {
            for marked in 0..=packets {
                let ace = ((5 + marked) % 8) as u8;
                assert_eq!(decoded(ace, Some(marked * MSS_BYTES), packets), marked, "{packets}");
            }
        }
    }

    /// Segments as (field, full or small) and whether the ACK for it and the held ones before is sent and arrives.
    fn segments() -> impl Strategy<Value = Vec<(bool, bool, u8)>> {
        let is_marked = prop_oneof![Just(false), Just(true), any::<bool>()];
        proptest::collection::vec((is_marked, prop::bool::weighted(0.1), any::<u8>()), 1..400)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        /// The field and the option say anything.
        #[test]
        fn no_feedback_reports_more_marks_than_packets_acknowledged(
            acks in proptest::collection::vec(
                (any::<u8>(), 0_u8..4, any::<[[u8; 3]; 3]>(), 0_u32..100, any::<u16>()),
                1..100,
            ),
        ) {
            let mut decoder = EcnDecoder::default();
            for (ace, fields, bytes, packets, size) in acks {
                decoder.acknowledge(packets, u64::from(packets) * u64::from(size));
                let marked = decoder.marked(&AccEcnFeedback { ace, fields, bytes });
                prop_assert!(marked <= packets, "{marked} of {packets}");
            }
        }

        /// ACKs for one to many segments, and some ACKs are lost: what is decoded differs from the truth by whole cycles
        /// of the field, is right for fewer than eight packets, and without the option misses none where ACKs are not
        /// thinned as a rule. With the option, and full segments, it is exact.
        #[test]
        fn where_acks_are_thinned_or_lost_marks_differ_by_whole_cycles_at_most(
            segments in segments(),
            with_option: bool,
            thinning in 1_u8..40,
        ) {
            let mut counters = EcnCounters::new(with_option);
            let mut decoder = EcnDecoder::default();
            let (mut packets, mut marks, mut all_full) = (0_u32, 0_u32, true);
            for (is_marked, is_small, chance) in segments {
                let ecn = if is_marked { Ecn::Ce } else { Ecn::Ect1 };
                let size = if is_small { 100 } else { MSS_BYTES };
                counters.on_segment(ecn, size);
                decoder.acknowledge(1, u64::from(size));
                (packets, marks) = (packets + 1, marks + u32::from(is_marked));
                all_full &= !is_small;
                if chance % thinning != 0 {
                    continue;
                }
                let found = decoder.marked(&counters.report(0));
                prop_assert!(found <= packets && (found + 8 * packets - marks).is_multiple_of(8));
                if packets < 8 || (with_option && all_full) {
                    prop_assert_eq!(found, marks, "of {}", packets);
                } else if !with_option && decoder.packets_per_ack <= THINNED {
                    prop_assert!(found >= marks, "{} of {}", found, marks);
                }
                (packets, marks, all_full) = (0, 0, true);
            }
        }
    }
}
