//! CAKE's queues.

use uncork_units::{Rng, Time};

use super::CakeSpec;
use super::hosts::Hosts;
use crate::Packet;
use crate::queue::drr::{Drr, Shares};
use crate::queue::fq_codel::{hash, key};
use crate::queue::{CodelSpec, Queued};

const FLOWS: usize = 1024;
const WAYS: usize = 8;

/// Flow queues with fair sharing among hosts.
#[derive(Clone, Debug)]
pub struct Cake<T> {
    codel: CodelSpec,
    limit_bytes: u64,
    /// The hash perturbation, drawn at the first packet.
    perturbation: Option<u64>,
    /// The flow that last used each queue.
    tags: Vec<Option<u64>>,
    hosts: Hosts,
    drr: Drr<T>,
}

impl<T> Cake<T> {
    /// Queues with a common limit of `limit_bytes`.
    pub fn new(spec: CakeSpec, limit_bytes: u64) -> Self {
        Self {
            codel: spec.codel(),
            limit_bytes,
            perturbation: None,
            tags: vec![None; FLOWS],
            hosts: Hosts::new(FLOWS),
            drr: Drr::new(FLOWS),
        }
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
        let flow = self.classify(&packet, rng);
        self.drr.enqueue(flow, Queued { since: now, packet }, &mut self.hosts, rng);
        while self.drr.bytes() > self.limit_bytes {
            if let Some(queued) = self.drr.pop(self.drr.fattest()) {
                dropped(queued.packet);
            }
        }
    }

    /// The packet that leaves at `now`. Packets that CoDel drops before it are passed to `dropped`.
    pub fn dequeue(
        &mut self,
        now: Time,
        rng: &mut Rng,
        dropped: &mut impl FnMut(Packet<T>),
    ) -> Option<Queued<T>> {
        self.drr.dequeue(now, &self.codel, &mut self.hosts, rng, dropped)
    }

    /// The queue for the packet's flow: its current one, else an idle one of its set, else a shared
    /// one.
    fn classify(&mut self, packet: &Packet<T>, rng: &mut Rng) -> usize {
        let perturbation = *self.perturbation.get_or_insert_with(|| rng.next_u64());
        let first = hash(packet, perturbation, FLOWS as u64) as usize;
        let tag = Some(key(packet));
        let mut ways = (0..WAYS).map(|way| first - first % WAYS + (first + way) % WAYS);
        let own = ways.clone().find(|flow| self.tags[*flow] == tag);
        let idle = || ways.find(|flow| self.drr.is_idle(*flow));
        let flow = own.or_else(idle).unwrap_or(first);
        if own.is_none() {
            self.give(flow, packet);
        }
        flow
    }

    /// Assigns the queue to the packet's flow and host.
    fn give(&mut self, flow: usize, packet: &Packet<T>) {
        self.tags[flow] = Some(key(packet));
        if self.drr.is_idle(flow) {
            self.drr.forget(flow);
        }
        let competing = self.drr.is_competing(flow);
        if competing {
            self.hosts.leaves(flow);
        }
        self.hosts.assign(flow, packet.host);
        if competing {
            self.hosts.joins(flow);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ecn;
    use uncork_units::TimeDelta;

    const BYTES: u32 = 1500;

    struct Rig {
        queue: Cake<u64>,
        rng: Rng,
        number: u64,
    }

    impl Rig {
        fn new(seed: u64) -> Self {
            let queue = Cake::new(CakeSpec::default(), 1 << 30);
            Self { queue, rng: Rng::new(seed, 0), number: 0 }
        }

        fn send(&mut self, host: u32, flow: u32, bytes: u32) {
            let packet = Packet { flow, host, bytes, ecn: Ecn::NotEct, body: self.number };
            self.number += 1;
            let drop = &mut |_| panic!("there is room");
            self.queue.enqueue(Time::ZERO, packet, &mut self.rng, drop);
        }

        /// Time stands still, so CoDel does not drop.
        fn next(&mut self) -> Packet<u64> {
            let drop = &mut |_| panic!("time stands still");
            self.queue.dequeue(Time::ZERO, &mut self.rng, drop).expect("backlogged").packet
        }

        /// Each of `flows` is always backlogged with packets of its size. Returns each one's bytes
        /// out of `count` packets.
        fn shares(&mut self, flows: &[(u32, u32)], count: usize) -> Vec<f64> {
            for _ in 0..20 {
                for (flow, (host, bytes)) in (0..).zip(flows) {
                    self.send(*host, flow, *bytes);
                }
            }
            let mut sent = vec![0_u32; flows.len()];
            for _ in 0..count {
                let Packet { host, flow, bytes, .. } = self.next();
                sent[flow as usize] += bytes;
                self.send(host, flow, bytes);
            }
            let all: u32 = sent.iter().sum();
            sent.iter().map(|sent| f64::from(*sent) / f64::from(all)).collect()
        }
    }

    #[test]
    fn two_hosts_get_half_each_regardless_of_flows() {
        for seed in 0..5 {
            let mut flows = vec![(7, BYTES)];
            flows.extend([(8, BYTES); 10]);
            let shares = Rig::new(seed).shares(&flows, 20_000);
            assert!((shares[0] - 0.5).abs() < 0.005, "{shares:?}");
            for share in &shares[1..] {
                assert!((share - 0.05).abs() < 0.002, "{shares:?}");
            }
        }
    }

    /// Three hosts with 1, 2 and 5 flows and various packet sizes get a third each.
    #[test]
    fn shares_are_counted_in_bytes() {
        let hosts = [1, 2, 2, 3, 3, 3, 3, 3];
        let sizes = [100, 1500, 300, 1500, 1000, 700, 64, 9000];
        let flows: Vec<(u32, u32)> = hosts.into_iter().zip(sizes).collect();
        let shares = Rig::new(1).shares(&flows, 100_000);
        let sharers = |host| hosts.iter().filter(|other| **other == host).count() as f64;
        for (share, host) in shares.iter().zip(hosts) {
            assert!((share * 3.0 * sharers(host) - 1.0).abs() < 0.02, "{shares:?}");
        }
    }

    #[test]
    fn sparse_flow_has_priority_and_does_not_count_for_its_host() {
        let mut rig = Rig::new(1);
        rig.shares(&[(1, BYTES), (2, BYTES), (2, BYTES)], 100);
        rig.send(2, 99, 200);
        assert_eq!(rig.next().flow, 99);
        assert_eq!(*rig.queue.hosts.index.get(&2).expect("known"), 1);
        assert_eq!(rig.queue.hosts.competing, [1, 2]);
        // A flow found empty only waits; once it has more packets it competes.
        rig.next();
        assert_eq!(rig.queue.hosts.competing, [1, 2]);
        rig.send(2, 99, 200);
        assert_eq!(rig.queue.hosts.competing, [1, 3]);
    }

    /// Every flow that joins also leaves, so hosts regain their full share when others stop.
    #[test]
    fn hosts_are_counted_down_when_their_flows_end() {
        let mut rig = Rig::new(1);
        rig.shares(&[(1, BYTES), (2, BYTES), (2, BYTES)], 1000);
        while rig.queue.packets() > 0 {
            rig.next();
        }
        assert_eq!(rig.queue.dequeue(Time::ZERO, &mut rig.rng, &mut |_| {}), None);
        assert_eq!(rig.queue.hosts.competing, [0, 0]);
    }

    /// 100 flows in 128 sets: nine share a set once in 10^7 runs. With 1024 queues and no sets,
    /// five collisions would be expected.
    #[test]
    fn a_hundred_flows_do_not_collide() {
        for seed in 0..20 {
            let mut rig = Rig::new(seed);
            for flow in 0..100 {
                rig.send(0, flow, BYTES);
                rig.send(0, flow, BYTES);
            }
            let used = (0..FLOWS).filter(|flow| rig.queue.drr.packets_of(*flow) == 2).count();
            assert_eq!(used, 100, "seed {seed}");
        }
    }

    /// With more flows than queues, flows share queues, and the hosts' counts still match.
    #[test]
    fn flows_beyond_the_queues_share() {
        let mut rig = Rig::new(3);
        for round in 0..4 {
            for flow in 0..2000 {
                rig.send((flow + round) % 5, flow, BYTES);
            }
            for _ in 0..1500 {
                rig.next();
            }
        }
        while rig.queue.packets() > 0 {
            rig.next();
        }
        assert_eq!(rig.queue.dequeue(Time::ZERO, &mut rig.rng, &mut |_| {}), None);
        assert_eq!(rig.queue.hosts.competing, [0; 5]);
    }

    #[test]
    fn overload_drops_single_packets_of_the_largest_flow() {
        let mut rig = Rig::new(1);
        rig.queue.limit_bytes = 20 * u64::from(BYTES);
        for flow in std::iter::repeat_n(1, 5).chain(std::iter::repeat_n(2, 15)) {
            rig.send(0, flow, BYTES);
        }
        let mut lost = Vec::new();
        for number in 20..25 {
            let packet = Packet { flow: 1, host: 0, bytes: BYTES, ecn: Ecn::Ect0, body: number };
            let lost = &mut |packet: Packet<u64>| lost.push(packet.body);
            rig.queue.enqueue(Time::ZERO, packet, &mut rig.rng, lost);
        }
        // From the head of flow 2, until flow 1 has as many bytes.
        assert_eq!(lost, [5, 6, 7, 8, 9]);
    }

    /// A buffer holds a packet of exactly its size, but not a larger one.
    #[test]
    fn packet_of_the_exact_buffer_size_is_accepted() {
        let mut rig = Rig::new(1);
        rig.queue.limit_bytes = u64::from(BYTES);
        let large = Packet { flow: 1, host: 0, bytes: BYTES + 1, ecn: Ecn::Ect0, body: 7 };
        let mut lost = Vec::new();
        rig.queue.enqueue(Time::ZERO, large, &mut rig.rng, &mut |packet| lost.push(packet.body));
        rig.send(0, 2, BYTES);
        assert_eq!((lost, rig.queue.bytes()), (vec![7], u64::from(BYTES)));
    }

    /// When packets of `flow` are dropped while it arrives twice as fast as it leaves, in ms.
    /// Afterwards the queue runs empty.
    fn overload(queue: &mut Cake<u64>, flow: u32, from: u64, millis: u64) -> Vec<u64> {
        let mut rng = Rng::new(1, 0);
        let at = |millis| Time::ZERO + TimeDelta::from_millis(millis);
        let packet = Packet { flow, host: 0, bytes: BYTES, ecn: Ecn::NotEct, body: 0 };
        let mut drops = Vec::new();
        for now in from..from + millis {
            for _ in 0..2 {
                queue.enqueue(at(now), packet, &mut rng, &mut |_| panic!("there is room"));
            }
            queue.dequeue(at(now), &mut rng, &mut |_| drops.push(now));
        }
        while queue.dequeue(at(from + millis), &mut rng, &mut |_| {}).is_some() {}
        drops
    }

    /// A flow that returns to its queue keeps its CoDel state; a different flow starts with a fresh
    /// one.
    #[test]
    fn queue_resets_codel_for_a_new_flow() {
        let place = |flow| {
            let packet = Packet { flow, host: 0, bytes: BYTES, ecn: Ecn::NotEct, body: () };
            hash(&packet, 5, FLOWS as u64)
        };
        let other = (1..1 << 20).find(|flow| place(*flow) == place(0)).expect("a collision");
        for (flow, spacing) in [(0, 1..50), (other, 100..101)] {
            let mut queue = Cake::new(CakeSpec::default(), 1 << 30);
            queue.perturbation = Some(5);
            overload(&mut queue, 0, 0, 1000);
            let drops = overload(&mut queue, flow, 1100, 500);
            assert!(spacing.contains(&(drops[1] - drops[0])), "flow {flow}: {drops:?}");
        }
    }
}
