//! The emulator's path and the simulator's decide alike: the same packets at the same times, and the same
//! seed, and each packet has the same fate at the same nanosecond.
#![cfg(target_os = "linux")]
#[path = "../../emu/tests/common/mod.rs"]
mod common;

use std::collections::HashMap;

use uncork_emu::{
    Arrival, BackSpec, Body, Cause, Direction, EmulationSpec, Fate, FlowKey, HostSpec, Network,
};
use uncork_path::{
    AggregationSpec, Buffer, DroppedBy, Ecn, JitterDistribution, JitterSpec, LinkSpec,
    LossPosition, Packet, PathSpec, RateSpec, RateStep,
};
use uncork_sim::{CarriedPacket, Carrier, FlowSpec, RunSpec, Workload};
use uncork_units::{Rate, Rng, Time, TimeDelta};

/// A packet that comes to the path.
type Offer = (Time, Arrival<()>);

/// What became of a packet; whether it says CE if it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Arrived(Time, bool),
    Dropped(Cause),
}

impl End {
    fn of_emulated(fate: Fate, ecn: Ecn) -> Self {
        match fate {
            Fate::Arrives(time) => Self::Arrived(time, ecn == Ecn::Ce),
            Fate::Dropped(cause) => Self::Dropped(cause),
        }
    }

    fn of_simulated(fate: uncork_sim::Fate, ecn: Ecn) -> Self {
        use uncork_sim::Fate;
        match fate {
            Fate::Arrived { at, marked, .. } => Self::Arrived(at, marked || ecn == Ecn::Ce),
            Fate::Dropped(DroppedBy::Queue) => Self::Dropped(Cause::Queue),
            Fate::Dropped(DroppedBy::Policer) => Self::Dropped(Cause::Policer),
            Fate::Lost => Self::Dropped(Cause::Loss),
        }
    }
}

/// Which packet it is.
#[derive(Clone, Copy)]
struct Number(usize);

impl Body for Number {}

/// What the emulator's path does, in virtual time.
fn emulated(spec: &EmulationSpec, offers: &[Offer]) -> Vec<Option<End>> {
    let mut network = Network::new(spec);
    let mut ends = vec![None; offers.len()];
    let mut fate = |_, packet: Packet<Number>, fate| {
        ends[packet.body.0] = Some(End::of_emulated(fate, packet.ecn));
    };
    for (number, (now, Arrival { direction, flow, bytes, ecn, .. })) in offers.iter().enumerate() {
        let (direction, flow, bytes, ecn) = (*direction, *flow, *bytes, *ecn);
        network.advance(*now, &mut fate);
        let arrival = Arrival { direction, flow, bytes, ecn, body: Number(number) };
        network.offer(*now, arrival, &mut fate);
    }
    network.advance(Time::NEVER, &mut fate);
    ends
}

/// What the simulator's event loop does. Flows are numbered as they come.
fn simulated(spec: &EmulationSpec, offers: &[Offer]) -> Vec<Option<End>> {
    let mut keys: Vec<FlowKey> = Vec::new();
    let mut packets = Vec::new();
    for (at, arrival) in offers {
        let flow = keys.iter().position(|key| *key == arrival.flow).unwrap_or_else(|| {
            keys.push(arrival.flow);
            keys.len() - 1
        });
        let packet = CarriedPacket {
            flow: flow as u32,
            to_client: arrival.direction == Direction::Down,
            bytes: arrival.bytes,
            ecn: arrival.ecn,
        };
        packets.push((*at, packet));
    }
    let cc = "reno".parse().expect("a controller");
    let flow = |key: FlowKey| FlowSpec {
        path: spec.hosts[key.host as usize].path,
        rtt: spec.hosts[key.host as usize].rtt,
        host: Some(spec.hosts[key.host as usize].number.unwrap_or(key.host)),
        ..FlowSpec::new(cc, Workload::Transfer(1))
    };
    let run = RunSpec {
        links: spec.links.clone(),
        paths: spec.paths.clone(),
        clients: Vec::new(),
        commands: Vec::new(),
        flows: keys.into_iter().map(flow).collect(),
        seed: spec.seed,
        warmup: Time::ZERO,
        end: Time::ZERO + TimeDelta::from_secs(1),
        sample_every: None,
    };
    run.check().expect("a run");
    carried(&run, &packets)
}

/// What becomes of packets, in the order of their times, on the paths of `run`.
fn carried(run: &RunSpec, packets: &[(Time, CarriedPacket)]) -> Vec<Option<End>> {
    let silent = Carrier::silent(run);
    let (mut carrier, mut ends) = (Carrier::new(&silent), vec![None; packets.len()]);
    let mut which = HashMap::new();
    let mut take = |carrier: &mut Carrier<'_>, which: &mut HashMap<u32, usize>| {
        for (number, fate) in carrier.take_fates() {
            let index = which.remove(&number).expect("it was sent");
            ends[index] = Some(End::of_simulated(fate, packets[index].1.ecn));
        }
    };
    for (index, (at, packet)) in packets.iter().enumerate() {
        carrier.advance(*at);
        take(&mut carrier, &mut which);
        let number = carrier.send(*packet);
        which.insert(number, index);
    }
    while carrier.next_event() < Time::NEVER {
        carrier.advance(carrier.next_event());
        take(&mut carrier, &mut which);
    }
    take(&mut carrier, &mut which);
    ends
}

/// Compares packet by packet; gives how many were dropped by whom, and how many were marked.
fn compare(what: &str, offers: &[Offer], one: &[Option<End>], other: &[Option<End>]) -> [usize; 4] {
    for ((offer, one), other) in offers.iter().zip(one).zip(other) {
        assert_eq!(one, other, "{what}: {offer:?}");
    }
    let count = |wanted: &dyn Fn(&Arrival<()>, End) -> bool| {
        let ends = offers.iter().zip(one).filter_map(|((_, offer), end)| Some((offer, (*end)?)));
        ends.filter(|(offer, end)| wanted(offer, *end)).count()
    };
    let dropped = |by| count(&move |_, end| end == End::Dropped(by));
    let marked = count(&|offer, end| offer.ecn != Ecn::Ce && matches!(end, End::Arrived(_, true)));
    [dropped(Cause::Queue), dropped(Cause::Policer), dropped(Cause::Loss), marked]
}

const QUEUES: [&str; 8] = [
    "droptail",
    "codel:target=1ms,interval=10ms,ecn",
    "codel:target=1ms,interval=10ms",
    "fq_codel:target=1ms,interval=10ms",
    "pie:target=2ms,tupdate=5ms,ecn",
    "cake:rtt=10ms",
    "cake:rtt=10ms,noecn",
    "dualpi2",
];

/// Two shared links, two paths that cross both or one, with all that a path may have, as `rng` will.
fn any_spec(rng: &mut Rng, queue: &str) -> EmulationSpec {
    let mut link = |mbit, packets: u64| LinkSpec {
        queue: if rng.below(2) == 0 { queue } else { "droptail" }.parse().expect("a queue"),
        policer: (rng.below(4) == 0).then(|| "11mbit:30kB".parse().expect("a policer")),
        ..LinkSpec::new(Rate::from_mbit(mbit), Buffer::Packets(packets))
    };
    let links = vec![link(24, 40), link(12, 30)];
    let mut own = [link(12, 30), link(6, 50)];
    let step = |millis, rate| RateStep { at: Time::ZERO + TimeDelta::from_millis(millis), rate };
    let steps = [step(300, Rate::ZERO), step(320, Rate::from_mbit(12))].into();
    own[1].rate = RateSpec::Steps { first: Rate::from_mbit(6), steps };
    let uplinks = [link(1, 60), link(2, 500)];
    let mut path = |index: usize| {
        let jitter = JitterSpec {
            distribution: JitterDistribution::Uniform,
            max: TimeDelta::from_millis(3),
            reorder: rng.below(2) == 0,
        };
        let aggregation =
            AggregationSpec { max_packets: 4, ..AggregationSpec::from(TimeDelta::from_millis(2)) };
        let loss = ["0%", "1%", "every:50", "gilbert:mean=1%,burst=5"][rng.below(4) as usize];
        PathSpec {
            link: own[index].clone(),
            via: [vec![0], vec![1, 0]][index].clone(),
            uplink: (rng.below(2) == 0).then(|| uplinks[index].clone()),
            jitter: (rng.below(2) == 0).then_some(jitter),
            aggregation: (rng.below(2) == 0).then_some(aggregation),
            loss: loss.parse().expect("a loss"),
            loss_position: [LossPosition::Before, LossPosition::After][rng.below(2) as usize],
            ..PathSpec::new(Rate::from_mbit(1), TimeDelta::from_millis(10), Buffer::Packets(1))
        }
    };
    let paths = vec![path(0), path(1)];
    let spec = EmulationSpec::over(paths[0].clone(), rng.next_u64());
    let number = Some(rng.below(1 << 31) as u32);
    let of_own = HostSpec { path: 0, rtt: Some(TimeDelta::from_micros(7300)), number };
    let hosts = vec![HostSpec::over(0), HostSpec { number, ..HostSpec::over(1) }, of_own];
    EmulationSpec { links, paths, hosts, ..spec }
}

/// Bursts of six flows in both directions. Many come at the very time at which a link finishes a packet.
fn any_offers(rng: &mut Rng) -> Vec<Offer> {
    let mut now = Time::ZERO;
    let offer = |_| {
        if rng.below(3) == 0 {
            now += TimeDelta::from_micros(250 * rng.below(12));
        }
        let flow = rng.below(6);
        let direction = [Direction::Down, Direction::Down, Direction::Up][rng.below(3) as usize];
        let bytes = [1500, 1500, 750, 52, 40 + rng.below(1460) as u32][rng.below(5) as usize];
        let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1][rng.below(3) as usize];
        let host = (flow / 2) as u32;
        let flow = FlowKey { host, v6: false, protocol: 6, near_port: flow as u16, far_port: 80 };
        (now, Arrival { direction, flow, bytes, ecn, body: () })
    };
    (0..2500).map(offer).collect()
}

#[test]
fn made_up_packets_end_in_the_same_way() {
    let mut total = [0; 4];
    for (round, queue) in (0..16).flat_map(|round| QUEUES.map(|queue| (round, queue))) {
        let mut rng = Rng::new(7, round);
        let spec = any_spec(&mut rng, queue);
        let offers = any_offers(&mut rng);
        let [one, other] = [emulated(&spec, &offers), simulated(&spec, &offers)];
        assert!(one.iter().all(Option::is_some), "all come to an end");
        let counts = compare(&format!("{queue}, round {round}"), &offers, &one, &other);
        total.iter_mut().zip(counts).for_each(|(total, count)| *total += count);
    }
    println!("dropped by queue, policer, at random; marked: {total:?}");
    assert!(total.iter().all(|count| *count > 300), "{total:?}");
}

/// Real TCP and datagrams, in real time, as they were recorded.
#[test]
fn a_recorded_run_ends_in_the_same_way_in_the_simulator() {
    for queue in ["codel:target=1ms,interval=10ms,ecn", "cake:rtt=10ms"] {
        let mut spec = common::path(20, 10, 60);
        spec.record = true;
        spec.hosts = vec![HostSpec::over(0); 2];
        spec.back = BackSpec::default();
        let over = &mut spec.paths[0];
        over.link.queue = queue.parse().expect("a queue");
        over.loss = "0.5%".parse().expect("a loss");
        let (distribution, max) = (JitterDistribution::Uniform, TimeDelta::from_millis(3));
        over.jitter = Some(JitterSpec { distribution, max, reorder: true });
        let buffer = Buffer::Bytes("60kB".parse().expect("a size"));
        over.uplink = Some(LinkSpec::new(Rate::from_mbit(5), buffer));
        let Some(passages) = common::recorded(&spec) else { return };
        let offers: Vec<Offer> = passages.iter().map(|one| (one.came, one.arrival)).collect();
        let real =
            passages.iter().map(|one| one.end.map(|(fate, ecn)| End::of_emulated(fate, ecn)));
        let real: Vec<_> = real.collect();
        let mut simulated = simulated(&spec, &offers);
        // What was still on its way at the end had no end there.
        for (simulated, real) in simulated.iter_mut().zip(&real) {
            *simulated = simulated.filter(|_| real.is_some());
        }
        let counts = compare(queue, &offers, &real, &simulated);
        println!("{queue}: {} packets, dropped, marked: {counts:?}", offers.len());
        assert!(offers.len() > 4000 && counts[0] + counts[2] > 10 && counts[3] > 0, "{counts:?}");
    }
}
