//! Links that transmit in slots (frame aggregation).

use uncork_units::{Time, TimeDelta};

/// Packets wait for the link's next transmit slot and arrive together, up to the slot's limits, as
/// over Wi-Fi, cable and LTE. `tc-netem` models this with `slot` (Linux commit 836af83b54e3; its
/// Wi-Fi example is 64 kB and 42 packets per slot). An 802.11n A-MPDU holds at most 64 frames, the
/// window of a Block Ack, and 65 535 bytes.
///
/// Slots end at multiples of `slot`, whether anything waits or not. Packets arriving at independent
/// times wait for half a slot on average. A slot carries rate times slot of packets, within the
/// limits. Excess packets wait for a later slot, so the link's capacity is limit / slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AggregationSpec {
    /// From the end of one slot to the end of the next; zero disables aggregation.
    pub slot: TimeDelta,
    /// Maximum packets per slot. The first packet always fits.
    pub max_packets: u32,
    /// Maximum bytes per slot. A larger first packet is sent alone.
    pub max_bytes: u64,
}

impl From<TimeDelta> for AggregationSpec {
    /// Slots of this length without limits.
    fn from(slot: TimeDelta) -> Self {
        Self { slot, max_packets: u32::MAX, max_bytes: u64::MAX }
    }
}

/// The state of an aggregating link.
#[derive(Clone, Debug)]
pub(crate) struct Aggregation {
    spec: AggregationSpec,
    /// End of the slot being filled, and its content so far.
    slot_end: Time,
    packets: u32,
    bytes: u64,
}

impl Aggregation {
    pub(crate) fn new(spec: AggregationSpec) -> Option<Self> {
        let aggregation = Self { spec, slot_end: Time::ZERO, packets: 0, bytes: 0 };
        (!spec.slot.is_zero()).then_some(aggregation)
    }

    /// The end of the slot that carries a packet of `bytes` which is ready at `ready`, behind all
    /// earlier packets.
    pub(crate) fn release_time(&mut self, ready: Time, bytes: u32) -> Time {
        let slot = self.spec.slot;
        let slots = ready.as_nanos().div_ceil(slot.as_nanos());
        let end = Time::from_nanos(slots.saturating_mul(slot.as_nanos()));
        let bytes = u64::from(bytes);
        let fits = self.packets < self.spec.max_packets
            && self.bytes.saturating_add(bytes) <= self.spec.max_bytes;
        if end > self.slot_end {
            (self.slot_end, self.packets, self.bytes) = (end, 0, 0);
        } else if !fits && self.packets > 0 {
            (self.slot_end, self.packets, self.bytes) = (self.slot_end + slot, 0, 0);
        }
        self.packets += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.slot_end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SLOT: TimeDelta = TimeDelta::from_millis(5);

    fn at(micros: u64) -> Time {
        Time::ZERO + TimeDelta::from_micros(micros)
    }

    fn releases(
        spec: impl Into<AggregationSpec>,
        packets: impl Iterator<Item = Time>,
    ) -> Vec<Time> {
        let mut aggregation = Aggregation::new(spec.into()).expect("releases");
        packets.map(|ready| aggregation.release_time(ready, 100)).collect()
    }

    /// One packet every 0.7001 ms: 5 / 0.7001 per slot, each waiting 2.5 ms on average.
    #[test]
    fn slot_carries_its_packets_and_delays_by_half_a_slot() {
        let packets = || (0..700_000).map(|n| Time::from_nanos(n * 700_100));
        let releases = releases(SLOT, packets());
        let batches = releases.chunk_by(|one, other| one == other).count();
        let batch = releases.len() as f64 / batches as f64;
        assert!((batch - 5.0 / 0.7001).abs() < 0.001, "{batch}");
        let waits = packets().zip(&releases).map(|(ready, turn)| turn.since(ready).as_millis_f64());
        let wait = waits.sum::<f64>() / releases.len() as f64;
        assert!((wait - 2.5).abs() < 0.001, "{wait}");
    }

    #[test]
    fn excess_packets_wait_for_the_next_slot() {
        let spec = AggregationSpec { max_packets: 8, ..SLOT.into() };
        let ends = releases(spec, (0..20).map(|_| at(1)));
        let sizes: Vec<usize> =
            ends.chunk_by(|one, other| one == other).map(<[Time]>::len).collect();
        assert_eq!(sizes, [8, 8, 4]);
        assert_eq!([ends[0], ends[8], ends[19]], [at(5000), at(10_000), at(15_000)]);
    }

    #[test]
    fn byte_limit_applies_but_the_first_packet_always_fits() {
        let spec = AggregationSpec { max_bytes: 3000, ..SLOT.into() };
        let mut aggregation = Aggregation::new(spec).expect("releases");
        let ends = [1500, 1500, 1, 4000, 1].map(|bytes| aggregation.release_time(at(1), bytes));
        assert_eq!(ends, [5000, 5000, 10_000, 15_000, 20_000].map(at));
        let nothing = AggregationSpec { max_packets: 0, max_bytes: 0, ..SLOT.into() };
        assert_eq!(releases(nothing, (0..3).map(|_| at(0))), [0, 5000, 10_000].map(at));
    }

    /// Offered twice its capacity: the link delivers its maximum, 8 packets per 5 ms.
    #[test]
    fn overloaded_link_delivers_its_capacity() {
        let spec = AggregationSpec { max_packets: 8, ..SLOT.into() };
        let ends = releases(spec, (0..16_000).map(|n| at(n * 312 + 1)));
        assert_eq!(ends[15_999], at(2000 * 5000));
    }

    #[test]
    fn zero_slot_disables_aggregation() {
        assert!(Aggregation::new(TimeDelta::ZERO.into()).is_none());
        assert_eq!(releases(TimeDelta::MAX, [Time::NEVER].into_iter()), [Time::NEVER]);
    }

    proptest! {
        /// In order, never early, within the limits, and no later than the backlog requires.
        #[test]
        fn slots_keep_their_limits(
            gaps in proptest::collection::vec((0_u64..4000, 1_u32..2000), 1..200),
            max_packets in 1_u32..10,
            max_bytes in 2000_u64..9000,
        ) {
            let spec = AggregationSpec { slot: SLOT, max_packets, max_bytes };
            let mut aggregation = Aggregation::new(spec).expect("releases");
            let (mut now, mut before) = (0, Time::ZERO);
            let (mut packets, mut bytes) = (0, 0);
            for (gap, size) in gaps {
                now += gap;
                let end = aggregation.release_time(at(now), size);
                prop_assert!(end >= before && end >= at(now));
                prop_assert_eq!(end.as_nanos() % SLOT.as_nanos(), 0);
                let full = packets + 1 > max_packets || bytes + u64::from(size) > max_bytes;
                let earliest = at(now.div_ceil(5000) * 5000);
                prop_assert_eq!(
                    end,
                    if earliest > before { earliest } else if full { before + SLOT } else { before }
                );
                if end > before {
                    (packets, bytes) = (0, 0);
                }
                packets += 1;
                bytes += u64::from(size);
                prop_assert!(packets <= max_packets && bytes <= max_bytes);
                before = end;
            }
        }
    }
}
