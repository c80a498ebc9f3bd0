//! The simulator's walk of the path beside that of [`uncork_path::Network`], which carries packets for all other
//! engines: equal packets at equal times arrive at equal times.

use uncork_path::{
    AggregationSpec, BackSpec, Body, Buffer, Direction, Ecn, Fate, FlowPath, JitterDistribution,
    JitterSpec, LinkSpec, LossPosition, Network, NetworkSpec, Offer, Packet, PathSpec,
};
use uncork_units::{Rate, Rng, Time, TimeDelta};

use crate::run::Simulation;
use crate::segments::{HEADER_BYTES, PACKET_BYTES};
use crate::spec::{FlowSpec, RunSpec, Workload};

/// What a simulation put on its paths, and what arrived.
#[derive(Debug, Default)]
pub(crate) struct Log {
    offers: Vec<(Time, Offer<Sent>)>,
    arrivals: Vec<Arrival>,
}

/// When what arrived where, and whether it was marked on its way to the client.
type Arrival = (Time, Direction, u32, bool);

impl Log {
    pub(crate) fn offer(
        &mut self,
        now: Time,
        (direction, flow): (Direction, u32),
        bytes: u32,
        ecn: Ecn,
    ) {
        self.offers.push((now, Offer { direction, flow, bytes, ecn, body: Sent }));
    }

    pub(crate) fn arrival(&mut self, now: Time, (direction, flow): (Direction, u32), marked: bool) {
        self.arrivals.push((now, direction, flow, marked));
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent;

impl Body for Sent {}

const QUEUES: [&str; 7] = [
    "droptail",
    "codel:target=1ms,interval=10ms,ecn",
    "fq_codel:target=1ms,interval=10ms",
    "pie:target=2ms,tupdate=5ms,ecn",
    "cake:rtt=10ms",
    "cake:rtt=10ms,noecn",
    "dualpi2",
];

/// A link whose packets take no round number of nanoseconds: events of links and hosts do not coincide.
fn link(rng: &mut Rng, queue: &str, kbit: u64) -> LinkSpec {
    let rate = Rate::from_bits_per_sec(kbit * 1000 + rng.below(1000));
    LinkSpec {
        queue: if rng.below(2) == 0 { queue } else { "droptail" }.parse().expect("a queue"),
        policer: (rng.below(4) == 0).then(|| "11mbit:30kB".parse().expect("a policer")),
        ..LinkSpec::new(rate, Buffer::Packets(10 + rng.below(40)))
    }
}

/// A path with all that a path may have, as `rng` will.
fn path(rng: &mut Rng, queue: &str, via: Vec<usize>) -> PathSpec {
    let (distribution, max) = (JitterDistribution::Uniform, TimeDelta::from_millis(3));
    let jitter = JitterSpec { distribution, max, reorder: rng.below(2) == 0 };
    let turns = AggregationSpec::from(TimeDelta::from_nanos(2_000_003));
    let loss = ["0%", "1%", "every:50", "gilbert:mean=1%,burst=5"][rng.below(4) as usize];
    let rtt = TimeDelta::from_nanos(10_000_000 + 2 * rng.below(1_000_000));
    PathSpec {
        link: link(rng, queue, 12_000),
        via,
        uplink: (rng.below(2) == 0).then(|| link(rng, queue, 500)),
        jitter: (rng.below(2) == 0).then_some(jitter),
        aggregation: (rng.below(2) == 0).then_some(turns),
        loss: loss.parse().expect("a loss"),
        loss_position: [LossPosition::Before, LossPosition::After][rng.below(2) as usize],
        ..PathSpec::new(Rate::from_mbit(1), rtt, Buffer::Packets(1))
    }
}

/// Six flows over two paths that cross a shared link, or two.
fn any_run(rng: &mut Rng, queue: &str) -> RunSpec {
    let links = vec![link(rng, queue, 24_000), link(rng, queue, 15_000)];
    let paths = vec![path(rng, queue, vec![0]), path(rng, queue, vec![1, 0])];
    let end = Time::ZERO + TimeDelta::from_secs(2);
    let mut flow = |index: usize| FlowSpec {
        path: index % 2,
        start: Time::from_nanos(rng.below(100_000_000)),
        rtt: (index > 3).then(|| TimeDelta::from_nanos(7_300_000 + 2 * rng.below(1000))),
        ecn: [Ecn::NotEct, Ecn::Ect0][index / 2 % 2],
        ..FlowSpec::new(
            ["cubic", "bbr3", "reno"][index % 3].parse().expect("a cc"),
            Workload::Until(end),
        )
    };
    let flows = (0..6).map(&mut flow).collect();
    let run = RunSpec::over(paths[0].clone(), flows, rng.next_u64(), end);
    RunSpec { links, paths, ..run }
}

/// What arrives of what the simulation sent, over a network.
fn replayed(run: &RunSpec, offers: &[(Time, Offer<Sent>)]) -> Vec<Arrival> {
    let RunSpec { links, paths, seed, .. } = run;
    let (packet_bytes, ack_bytes) = (PACKET_BYTES, HEADER_BYTES);
    let mut network =
        Network::new(NetworkSpec { links, paths, packet_bytes, ack_bytes, seed: *seed });
    for (index, flow) in (0..).zip(&run.flows) {
        let (path, host, rtt) = (flow.path, run.host_of(index), flow.rtt);
        network.add_flow(FlowPath { path, host, rtt, back: BackSpec::default() });
    }
    let mut arrivals = Vec::new();
    let mut fate = |direction, packet: Packet<Sent>, fate| {
        if let Fate::Arrives(time) = fate {
            let marked = direction == Direction::Down && packet.ecn == Ecn::Ce;
            arrivals.push((time, direction, packet.flow, marked));
        }
    };
    for (now, offer) in offers {
        network.advance(*now, &mut fate);
        network.offer(*now, *offer, &mut fate);
    }
    network.advance(Time::NEVER, &mut fate);
    arrivals
}

#[test]
fn a_network_carries_packets_as_the_simulator_does() {
    let (mut arrived, mut marked) = (0, 0);
    for (round, queue) in (0..6).flat_map(|round| QUEUES.map(|queue| (round, queue))) {
        let run = any_run(&mut Rng::new(7, round), queue);
        run.check().expect("a run");
        let mut simulation = Simulation::new(&run);
        while simulation.step() {}
        let Log { offers, mut arrivals } = std::mem::take(&mut simulation.log);
        let mut expected = replayed(&run, &offers);
        expected.retain(|(time, ..)| *time < run.end);
        arrivals.retain(|(time, ..)| *time < run.end);
        expected.sort_unstable();
        arrivals.sort_unstable();
        assert!(offers.len() > arrivals.len(), "some are lost");
        assert_eq!(arrivals, expected, "{queue}, round {round}");
        arrived += arrivals.len();
        marked += arrivals.iter().filter(|(.., marked)| *marked).count();
    }
    assert!(arrived > 20_000 && marked > 300, "{arrived} arrived, {marked} marked");
}
