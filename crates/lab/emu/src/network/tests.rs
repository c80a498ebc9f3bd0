use super::*;
use uncork_path::{
    Buffer, Cause, JitterDistribution, JitterSpec, LinkSpec, LossPosition, PathSpec,
};
use uncork_units::{Rate, TimeDelta};

/// A packet's number and its queueing delay.
#[derive(Clone, Copy, Debug)]
struct Number(u32, TimeDelta);

impl Body for Number {
    fn crossed(&mut self, waited: TimeDelta) {
        self.1 += waited;
    }
}

/// 12 Mbit/s is a packet of 1500 bytes per millisecond; 10 ms each way.
fn spec() -> EmulationSpec {
    let rtt = TimeDelta::from_millis(20);
    EmulationSpec::over(PathSpec::new(Rate::from_mbit(12), rtt, Buffer::Packets(2)), 1)
}

fn arrival(direction: Direction, body: u32) -> Arrival<Number> {
    let flow = FlowKey { host: 0, v6: false, protocol: 6, client_port: 1, server_port: 2 };
    Arrival { direction, flow, bytes: 1500, ecn: Ecn::Ect0, body: Number(body, TimeDelta::ZERO) }
}

fn at(millis: u64) -> Time {
    Time::ZERO + TimeDelta::from_millis(millis)
}

/// Offers packets at their times and returns the fate of each.
fn fates(
    spec: &EmulationSpec,
    offers: impl IntoIterator<Item = (Time, Arrival<Number>)>,
) -> Vec<(u32, Fate)> {
    let mut network = Network::new(spec);
    let mut fates = Vec::new();
    let mut fate = |_, packet: Packet<Number>, fate| fates.push((packet.body.0, fate));
    for (now, arrival) in offers {
        network.paths.advance(now, &mut fate);
        network.offer(now, arrival, &mut fate);
    }
    network.paths.advance(Time::NEVER, &mut fate);
    fates
}

#[test]
fn packets_wait_for_the_link_and_travel() {
    let offers = (0..4).map(|body| (at(0), arrival(Direction::Down, body)));
    let arrives = |body, millis| (body, Fate::Arrives(at(millis)));
    assert_eq!(
        fates(&spec(), offers),
        [(3, Fate::Dropped(Cause::Queue)), arrives(0, 11), arrives(1, 12), arrives(2, 13)]
    );
}

/// Independent of when the path is advanced.
#[test]
fn fates_depend_on_packet_times_only() {
    let mut network = Network::new(&spec());
    let mut fates = Vec::new();
    let mut fate = |_, packet: Packet<Number>, fate| fates.push((packet.body.0, fate));
    network.offer(at(0), arrival(Direction::Down, 0), &mut fate);
    network.offer(at(0), arrival(Direction::Down, 1), &mut fate);
    assert_eq!(network.paths.next_arrival(), at(11));
    network.paths.advance(at(1000), &mut fate);
    assert_eq!(fates, [(0, Fate::Arrives(at(11))), (1, Fate::Arrives(at(12)))]);
    assert_eq!(network.paths.next_arrival(), Time::NEVER);
    assert_eq!(network.paths.sent(Direction::Down), [3000]);
    assert_eq!(network.paths.capacity(Direction::Down, 0, at(1), at(3)), 3000);
}

#[test]
fn uplink_is_unlimited_unless_it_has_a_link() {
    let offers = || (0..2).map(|body| (at(0), arrival(Direction::Up, body)));
    let arrives = |body, millis| (body, Fate::Arrives(at(millis)));
    assert_eq!(fates(&spec(), offers()), [arrives(0, 10), arrives(1, 10)]);
    let mut slow = spec();
    slow.paths[0].uplink =
        Some(LinkSpec::new(Rate::from_mbit(6), Buffer::Bytes("9kB".parse().expect("valid"))));
    assert_eq!(fates(&slow, offers()), [arrives(0, 12), arrives(1, 14)]);
}

#[test]
fn loss_before_the_queue_costs_no_capacity() {
    let mut spec = spec();
    spec.paths[0].loss = "every:2".parse().expect("a loss");
    for (position, last) in [(LossPosition::Before, 12), (LossPosition::After, 13)] {
        spec.paths[0].loss_position = position;
        let offers = (0..3).map(|body| (at(0), arrival(Direction::Down, body)));
        let fates = fates(&spec, offers);
        assert!(fates.contains(&(1, Fate::Dropped(Cause::Loss))), "{fates:?}");
        assert_eq!(fates.last(), Some(&(2, Fate::Arrives(at(last)))));
    }
}

#[test]
fn uplink_may_lose_and_reorder() {
    let mut spec = spec();
    let distribution = JitterDistribution::Uniform;
    let jitter = JitterSpec { distribution, max: TimeDelta::from_millis(50), reorder: true };
    spec.back = BackSpec { loss: "every:4".parse().expect("a loss"), jitter: Some(jitter) };
    let offers = (0..40).map(|body| (at(u64::from(body)), arrival(Direction::Up, body)));
    let fates = fates(&spec, offers);
    let lost: Vec<u32> = fates
        .iter()
        .filter(|(_, fate)| *fate == Fate::Dropped(Cause::Loss))
        .map(|(body, _)| *body)
        .collect();
    assert_eq!(lost, (0..10).map(|n| 4 * n + 3).collect::<Vec<_>>());
    let arrived: Vec<(u32, Time)> = fates
        .iter()
        .filter_map(|(body, fate)| match fate {
            Fate::Arrives(time) => Some((*body, *time)),
            Fate::Dropped(_) => None,
        })
        .collect();
    assert_eq!(arrived.len(), 30);
    assert!(arrived.is_sorted_by_key(|(_, time)| *time));
    assert!(!arrived.is_sorted_by_key(|(body, _)| *body), "packets overtake");
    let taken = |(body, time): &(u32, Time)| time.since(at(u64::from(*body))).as_micros();
    assert!(arrived.iter().all(|packet| (10_000..=60_000).contains(&taken(packet))));
}

#[test]
fn hosts_have_their_own_paths_and_share_a_link() {
    let mut spec = spec();
    spec.links = vec![LinkSpec::new(Rate::from_mbit(120), Buffer::Packets(10))];
    spec.paths[0].via = vec![0];
    spec.paths.push(PathSpec { rtt: TimeDelta::from_millis(40), ..spec.paths[0].clone() });
    spec.hosts = [0, 1].map(HostSpec::over).to_vec();
    let to = |host| {
        let mut arrival = arrival(Direction::Down, host);
        arrival.flow.host = host;
        (at(0), arrival)
    };
    let micros = |micros| Fate::Arrives(Time::ZERO + TimeDelta::from_micros(micros));
    assert_eq!(fates(&spec, [to(0), to(1)]), [(0, micros(11_100)), (1, micros(21_200))]);
}

/// In both directions, with any RTT of their common path.
#[test]
fn hosts_may_have_different_rtts() {
    let mut spec = spec();
    let near = HostSpec { rtt: Some(TimeDelta::from_millis(4)), ..HostSpec::over(0) };
    spec.hosts = vec![HostSpec::over(0), near];
    assert_eq!(spec.shortest_way(), TimeDelta::from_millis(2));
    let mut offers = Vec::new();
    for (body, direction) in [Direction::Down, Direction::Up].into_iter().enumerate() {
        for host in 0..2 {
            let mut arrival = arrival(direction, 2 * body as u32 + host);
            arrival.flow.host = host;
            offers.push((at(0), arrival));
        }
    }
    let arrives = |body, millis| (body, Fate::Arrives(at(millis)));
    assert_eq!(
        fates(&spec, offers),
        [arrives(3, 2), arrives(1, 4), arrives(2, 10), arrives(0, 11)]
    );
}

/// 1500 bytes take 0.5 ms on the shared link and 1 ms on the path's own link; the uplink is
/// unlimited.
#[test]
fn packets_report_their_queueing_delay_on_all_links() {
    let mut spec = spec();
    spec.links = vec![LinkSpec::new(Rate::from_mbit(24), Buffer::Packets(10))];
    spec.paths[0].via = vec![0];
    let mut network = Network::new(&spec);
    let mut waited = Vec::new();
    let mut fate = |_, packet: Packet<Number>, _| waited.push(packet.body.1.as_micros());
    for body in 0..3 {
        network.offer(at(0), arrival(Direction::Down, body), &mut fate);
    }
    network.offer(at(0), arrival(Direction::Up, 3), &mut fate);
    network.paths.advance(Time::NEVER, &mut fate);
    assert_eq!(waited, [0, 0, 500 + 500, 1000 + 1000], "uplink packets come first");
}

#[test]
fn queues_mark_ecn_capable_packets() {
    let mut spec = spec();
    spec.paths[0].link.buffer = Buffer::Packets(1000);
    spec.paths[0].link.queue = "codel:ecn".parse().expect("a queue");
    let mut network = Network::new(&spec);
    let mut marked = 0;
    let mut fate = |_, packet: Packet<Number>, fate| {
        assert!(matches!(fate, Fate::Arrives(_)));
        marked += u32::from(packet.ecn == Ecn::Ce);
    };
    for body in 0..500 {
        network.offer(at(0), arrival(Direction::Down, body), &mut fate);
    }
    network.paths.advance(Time::NEVER, &mut fate);
    assert!(marked > 5, "{marked}");
}
