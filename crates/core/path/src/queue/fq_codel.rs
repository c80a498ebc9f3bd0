//! FQ-CoDel: fair queueing with one CoDel per flow (RFC 8290).
//!
//! Flows are hashed to the configured number of queues, with a perturbation drawn once (RFC 8290
//! §4.1); two flows may share a queue. When packets or bytes exceed the limit, half of the packets
//! of the queue with the most bytes, at most 64, are dropped from its head (§4.1; Linux counts that
//! half in bytes and adds the number to CoDel's `count`, which the RFC does not). The link's buffer
//! replaces Linux's memory limit, in bytes on the wire.

use std::fmt;

use uncork_units::{ByteCount, Rng, Time};

use super::codel::CodelSpec;
use super::drr::{Drr, Equal, QUANTUM};
use super::params::{ParamWriter, Params};
use super::{QueueError, Queued};
use crate::Packet;

/// Parameters of FQ-CoDel, with the defaults of RFC 8290 §5.2; the quantum excludes the frame
/// header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCodelSpec {
    /// Number of queues.
    pub flows: u32,
    /// Quantum in bytes.
    pub quantum: ByteCount,
    /// Maximum packets queued.
    pub limit: u32,
    /// CoDel's parameters.
    pub codel: CodelSpec,
}

impl Default for FqCodelSpec {
    fn default() -> Self {
        Self {
            flows: 1024,
            quantum: ByteCount::new(QUANTUM),
            limit: 10_240,
            codel: CodelSpec { ecn: true, ..CodelSpec::default() },
        }
    }
}

const KEYS: [&str; 7] = ["flows", "quantum", "limit", "target", "interval", "ecn", "noecn"];

impl FqCodelSpec {
    /// Parses the parameters after `fq_codel`.
    pub(super) fn parse(list: Option<&str>) -> Result<Self, QueueError> {
        const QUANTA: (ByteCount, ByteCount) = (ByteCount::new(256), ByteCount::new(1 << 20));
        let mut spec = Self::default();
        for param in Params::new("fq_codel", &KEYS, list) {
            let param = param?;
            match param.key {
                "flows" => {
                    spec.flows = param.read(&(1..=65_536), "a number from 1 to 65536")?;
                }
                "limit" => {
                    let expected = "a number of packets from 1 to 1000000";
                    spec.limit = param.read(&(1..=1_000_000), expected)?;
                }
                "quantum" => {
                    let expected = "a size from 256B to 1MiB, such as 1500B";
                    spec.quantum = param.read(&(QUANTA.0..=QUANTA.1), expected)?;
                }
                _ => spec.codel.set(&param)?,
            }
        }
        Ok(spec)
    }
}

impl fmt::Display for FqCodelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = Self::default();
        let mut list = ParamWriter::new(f, "fq_codel")?;
        list.value("flows", &self.flows, &default.flows)?;
        list.value("quantum", &self.quantum, &default.quantum)?;
        list.value("limit", &self.limit, &default.limit)?;
        self.codel.write(&mut list, &default.codel)
    }
}

/// Flow queues with one CoDel each.
#[derive(Clone, Debug)]
pub struct FqCodel<T> {
    spec: FqCodelSpec,
    limit_bytes: u64,
    /// The hash perturbation, drawn at the first packet.
    perturbation: Option<u64>,
    drr: Drr<T>,
}

/// Maximum packets dropped at once when the limit is exceeded (RFC 8290 §4.1).
const BATCH: usize = 64;

impl<T> FqCodel<T> {
    /// Queues with a common limit of `limit_bytes`.
    pub fn new(spec: FqCodelSpec, limit_bytes: u64) -> Self {
        Self { spec, limit_bytes, perturbation: None, drr: Drr::new(spec.flows.max(1) as usize) }
    }

    /// Bytes waiting.
    pub fn bytes(&self) -> u64 {
        self.drr.bytes()
    }

    /// Packets waiting.
    pub fn packets(&self) -> usize {
        self.drr.packets()
    }

    /// Adds a packet. Above the limit, packets of the flow with the most bytes are passed to
    /// `dropped`.
    pub fn enqueue(
        &mut self,
        now: Time,
        packet: Packet<T>,
        rng: &mut Rng,
        dropped: &mut impl FnMut(Packet<T>),
    ) {
        if u64::from(packet.bytes) > self.limit_bytes {
            dropped(packet);
            return;
        }
        let flow = self.hash(&packet, rng);
        let queued = Queued { since: now, packet };
        self.drr.enqueue(flow, queued, &mut self.spec.shares(), rng);
        while self.drr.bytes() > self.limit_bytes || self.drr.packets() > self.spec.limit as usize {
            self.drop_batch(dropped);
        }
    }

    /// The packet that leaves at `now`. Packets that CoDel drops before it are passed to `dropped`.
    pub fn dequeue(
        &mut self,
        now: Time,
        rng: &mut Rng,
        dropped: &mut impl FnMut(Packet<T>),
    ) -> Option<Queued<T>> {
        self.drr.dequeue(now, &self.spec.codel, &mut self.spec.shares(), rng, dropped)
    }

    /// The queue of the packet's flow.
    fn hash(&mut self, packet: &Packet<T>, rng: &mut Rng) -> usize {
        let perturbation = *self.perturbation.get_or_insert_with(|| rng.next_u64());
        hash(packet, perturbation, u64::from(self.spec.flows)) as usize
    }

    fn drop_batch(&mut self, dropped: &mut impl FnMut(Packet<T>)) {
        let flow = self.drr.fattest();
        for _ in 0..self.drr.packets_of(flow).div_ceil(2).min(BATCH) {
            if let Some(queued) = self.drr.pop(flow) {
                dropped(queued.packet);
            }
        }
    }
}

impl FqCodelSpec {
    fn shares(&self) -> Equal {
        Equal(self.quantum.as_u64().clamp(1, 1 << 20))
    }
}

/// The key of the packet's flow.
pub(super) fn key<T>(packet: &Packet<T>) -> u64 {
    u64::from(packet.host) << 32 | u64::from(packet.flow)
}

/// A number in `0..buckets` for the packet's flow, computed with the random generator's mixing
/// function.
pub(super) fn hash<T>(packet: &Packet<T>, perturbation: u64, buckets: u64) -> u64 {
    Rng::new(perturbation, key(packet)).below(buckets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ecn;
    use std::collections::BTreeMap;
    use uncork_units::TimeDelta;

    const NOW: Time = Time::ZERO;

    /// An FQ-CoDel and its random generator. Time stands still, so CoDel does not drop.
    struct Rig {
        queue: FqCodel<u32>,
        rng: Rng,
        lost: Vec<u32>,
    }

    impl Rig {
        fn new(spec: FqCodelSpec) -> Self {
            Self { queue: FqCodel::new(spec, 1 << 30), rng: Rng::new(1, 0), lost: Vec::new() }
        }

        fn send(&mut self, flow: u32, bytes: u32) {
            let packet = Packet { flow, host: 0, bytes, ecn: Ecn::Ect0, body: flow };
            let lost = &mut |packet: Packet<u32>| self.lost.push(packet.flow);
            self.queue.enqueue(NOW, packet, &mut self.rng, lost);
        }

        fn next(&mut self) -> Option<Packet<u32>> {
            let drop = &mut |_| panic!("time stands still");
            self.queue.dequeue(NOW, &mut self.rng, drop).map(|queued| queued.packet)
        }

        fn flows(&mut self, count: usize) -> Vec<u32> {
            (0..count).map_while(|_| self.next().map(|packet| packet.flow)).collect()
        }
    }

    /// At every instant: a turn ends with the packet that uses it up, so it exceeds the quantum by
    /// less than a packet, and one of two flows may be a turn ahead.
    #[test]
    fn backlogged_flows_get_equal_bytes() {
        let mut rig = Rig::new(FqCodelSpec::default());
        let sizes = [1500, 1000, 333, 64, 40];
        for (flow, bytes) in (0..).zip(sizes) {
            for _ in 0..150_000 / bytes {
                rig.send(flow, bytes);
            }
        }
        let mut sent = [0_u32; 5];
        for _ in 0..2000 {
            let packet = rig.next().expect("backlogged");
            sent[packet.flow as usize] += packet.bytes;
            let (least, most) = (sent.iter().min(), sent.iter().max());
            assert!(most.expect("five") - least.expect("five") < 1500 + 1500, "{sent:?}");
        }
        assert!(sent.iter().all(|sent| *sent > 20 * 1500), "{sent:?}");
    }

    /// RFC 8290 §1.3: a sparse flow does not wait for bulk flows, only for the packet in
    /// transmission.
    #[test]
    fn sparse_flow_has_priority() {
        let mut rig = Rig::new(FqCodelSpec::default());
        for flow in (0..10).cycle().take(1000) {
            rig.send(flow, 1500);
        }
        rig.flows(100);
        for _ in 0..20 {
            rig.send(99, 200);
            assert_eq!(rig.flows(1), [99]);
            // Enough departures for it to be found empty at the head of both lists.
            rig.flows(30);
        }
    }

    /// RFC 8290 §4.2: an emptied new flow moves to the old flows. If it sends again at once, it
    /// waits for the others' turns.
    #[test]
    fn flow_that_returns_at_once_is_not_new() {
        let mut rig = Rig::new(FqCodelSpec::default());
        for flow in (0..3).cycle().take(30) {
            rig.send(flow, 1500);
        }
        assert_eq!(rig.flows(5), [0, 1, 2, 0, 1]);
        rig.send(99, 100);
        // The next departure finds the flow empty and moves it behind 1, 2 and 0; 1 has had its
        // turn.
        assert_eq!(rig.flows(2), [99, 2]);
        rig.send(99, 100);
        assert_eq!(rig.flows(4), [0, 99, 1, 2]);
    }

    /// Beyond one quantum, a new flow is treated like any other.
    #[test]
    fn a_new_flow_has_one_quantum_of_priority() {
        let mut rig = Rig::new(FqCodelSpec::default());
        for flow in (0..3).cycle().take(30) {
            rig.send(flow, 1500);
        }
        // The last of them has had its turn and moves behind the new flow.
        assert_eq!(rig.flows(6), [0, 1, 2, 0, 1, 2]);
        for _ in 0..10 {
            rig.send(99, 750);
        }
        assert_eq!(rig.flows(8), [99, 99, 0, 1, 99, 99, 2, 0]);
    }

    #[test]
    fn overload_drops_half_of_the_largest_flow_but_at_most_64_packets() {
        for (limit, lost) in [(100, 46), (10_240, 64)] {
            let mut rig = Rig::new(FqCodelSpec { limit, ..FqCodelSpec::default() });
            // 9 packets of another flow, 91 of the largest flow, and one too many.
            for flow in std::iter::repeat_n(1, 9).chain(std::iter::repeat_n(2, limit as usize - 9))
            {
                rig.send(flow, 1500);
            }
            assert_eq!(rig.lost, [0_u32; 0]);
            rig.send(1, 1500);
            assert_eq!(rig.lost, vec![2; lost], "limit {limit}");
            assert_eq!(rig.queue.packets(), limit as usize + 1 - lost);
        }
    }

    /// The largest flow and the buffer limit are determined in bytes, not packets.
    #[test]
    fn the_buffer_limits_bytes() {
        let mut rig = Rig::new(FqCodelSpec::default());
        rig.queue.limit_bytes = 30_000;
        for (flow, bytes, count) in [(1, 40, 100), (2, 1500, 17)] {
            for _ in 0..count {
                rig.send(flow, bytes);
            }
        }
        assert_eq!((rig.lost.len(), rig.queue.bytes()), (0, 29_500));
        rig.send(1, 501);
        assert_eq!((rig.lost.clone(), rig.queue.bytes()), (vec![2; 9], 30_001 - 9 * 1500));
        rig.send(3, 30_001);
        assert_eq!((rig.lost.len(), rig.queue.bytes()), (10, 30_001 - 9 * 1500));
    }

    /// A buffer holds a packet of exactly its size, but not a larger one.
    #[test]
    fn packet_of_the_exact_buffer_size_is_accepted() {
        let mut rig = Rig::new(FqCodelSpec::default());
        rig.queue.limit_bytes = 1500;
        for bytes in [1501, 1500] {
            rig.send(bytes, bytes);
        }
        assert_eq!((rig.lost, rig.queue.bytes()), (vec![1501], 1500));
    }

    /// With 1000 balls in 1024 bins, 638 bins are occupied on average; the variance is 1024 (e^-a -
    /// (1 + a) e^-2a) with a = 1000/1024, 10.0 squared. Five standard deviations are allowed.
    #[test]
    fn flows_spread_like_balls_in_bins() {
        let mut first: BTreeMap<u64, u64> = BTreeMap::new();
        for perturbation in 0..50 {
            let packet = |flow| Packet { flow, host: 0, bytes: 0, ecn: Ecn::Ect0, body: () };
            let mut used = vec![false; 1024];
            for flow in 0..1000 {
                used[hash(&packet(flow), perturbation, 1024) as usize] = true;
            }
            let used = used.iter().filter(|used| **used).count();
            assert!(used.abs_diff(638) <= 50, "{used} at {perturbation}");
            *first.entry(hash(&packet(0), perturbation, 1024)).or_default() += 1;
        }
        assert!(first.len() > 40, "the perturbation moves flows: {first:?}");
    }

    /// One full packet uses up a new flow's turn, like a frame of 1514 bytes with Linux's quantum.
    #[test]
    fn a_new_flow_sends_one_full_packet_in_its_first_turn() {
        let mut rig = Rig::new(FqCodelSpec::default());
        for flow in (0..3).cycle().take(30) {
            rig.send(flow, 1500);
        }
        assert_eq!(rig.flows(3), [0, 1, 2]);
        for _ in 0..3 {
            rig.send(99, 1500);
        }
        assert_eq!(rig.flows(8), [99, 0, 1, 2, 99, 0, 1, 2]);
    }

    /// ECN is on: packets of a standing queue are marked, and no others.
    #[test]
    fn the_flow_with_a_standing_queue_is_marked() {
        let mut rig = Rig::new(FqCodelSpec::default());
        let mut marks: BTreeMap<u32, u32> = BTreeMap::new();
        for millis in 0..1000_u64 {
            let now = NOW + TimeDelta::from_millis(millis);
            // Flow 2 sends at a tenth of the link's rate, flow 1 at the full rate.
            let flows = if millis % 10 == 0 { [1, 2].as_slice() } else { &[1] };
            for flow in flows {
                let packet =
                    Packet { flow: *flow, host: 0, bytes: 1500, ecn: Ecn::Ect0, body: *flow };
                rig.queue.enqueue(now, packet, &mut rig.rng, &mut |_| panic!("there is room"));
            }
            let drop = &mut |_| panic!("marked, not dropped");
            let left = rig.queue.dequeue(now, &mut rig.rng, drop).expect("a packet");
            if left.packet.ecn == Ecn::Ce {
                *marks.entry(left.packet.flow).or_default() += 1;
            }
        }
        assert_eq!(marks.keys().copied().collect::<Vec<_>>(), [1]);
        assert!(marks[&1] > 10, "{marks:?}");
    }

    /// With one packet queued at each departure there are no drops, however long it waits. With a
    /// second flow more than one packet is queued, so each flow sometimes loses its only packet.
    #[test]
    fn one_mtu_in_total_is_not_dropped() {
        for flows in [1, 2] {
            let mut rig = Rig::new(FqCodelSpec::default());
            let mut lost = 0;
            for step in 0..100_u32 {
                let now = NOW + TimeDelta::from_millis(50 * u64::from(step));
                for flow in 0..flows {
                    let packet = Packet { flow, host: 0, bytes: 1500, ecn: Ecn::NotEct, body: 0 };
                    rig.queue.enqueue(now, packet, &mut rig.rng, &mut |_| panic!("there is room"));
                }
                while rig.queue.packets() > flows as usize {
                    rig.queue.dequeue(now, &mut rig.rng, &mut |_| lost += 1);
                }
            }
            assert_eq!(lost > 0, flows > 1, "{flows} flows lost {lost}");
        }
    }
}
