//! The links between servers and clients, and which packets cross which of them.

use uncork_units::{Time, TimeDelta};

use crate::{Bottleneck, Cause, Departure, LinkSpec, Packet, PathSpec, Policer};

/// Streams of the seed for the queues of links, apart from each other for each link.
const DOWN_STREAM: u64 = 4 << 32;
const UP_STREAM: u64 = 5 << 32;

/// Links in one direction, and the route of each path over them.
#[derive(Debug)]
pub(crate) struct Links<T> {
    all: Vec<Link<T>>,
    /// The number of shared links, which come first.
    shared: u32,
    routes: Vec<Route>,
}

/// The links that a path crosses, in this order. No link is crossed twice.
type Route = Vec<u32>;

#[derive(Debug)]
struct Link<T> {
    policer: Option<Policer>,
    bottleneck: Bottleneck<T>,
    /// Bytes that it has sent.
    sent: u64,
}

impl<T> Links<T> {
    /// The links to the clients, for packets of `packet_bytes`: the links `shared` come first, which
    /// paths name in [`PathSpec::via`], then each path's own.
    pub(crate) fn to_clients(
        shared: &[LinkSpec],
        paths: &[PathSpec],
        packet_bytes: u32,
        seed: u64,
    ) -> Self {
        let rtt = |link| shared_rtt(paths, link).unwrap_or(TimeDelta::ZERO);
        let rtts = (0..shared.len()).map(rtt);
        let own = paths.iter().map(|path| (&path.link, path.rtt));
        let route = |(index, path): (u32, &PathSpec)| {
            let via = path.via.iter().map(|link| *link as u32);
            via.chain([shared.len() as u32 + index]).collect()
        };
        Self {
            all: build(shared.iter().zip(rtts).chain(own), packet_bytes, (seed, DOWN_STREAM)),
            shared: shared.len() as u32,
            routes: (0..).zip(paths).map(route).collect(),
        }
    }

    /// The links to the servers, for acknowledgements of `ack_bytes`: those of paths that have one.
    pub(crate) fn to_servers(paths: &[PathSpec], ack_bytes: u32, seed: u64) -> Self {
        let own = paths.iter().filter_map(|path| Some((path.uplink.as_ref()?, path.rtt)));
        let mut next = 0..;
        let mut route = |path: &PathSpec| match path.uplink {
            Some(_) => next.by_ref().take(1).collect(),
            None => Route::new(),
        };
        Self {
            all: build(own, ack_bytes, (seed, UP_STREAM)),
            shared: 0,
            routes: paths.iter().map(&mut route).collect(),
        }
    }

    /// The first link of `path`; `None` when nothing is in the way.
    pub(crate) fn first(&self, path: usize) -> Option<u32> {
        self.routes[path].first().copied()
    }

    /// The link after `link` on a path, which is asked for only where several cross it.
    pub(crate) fn after(&self, link: u32, path: impl FnOnce() -> usize) -> Option<u32> {
        if link >= self.shared {
            return None; // A path's own link is its last.
        }
        let route = &self.routes[path()];
        let here = route.iter().position(|hop| *hop == link)?;
        route.get(here + 1).copied()
    }

    /// Bytes that wait in the queues that `path` crosses.
    pub(crate) fn queued_bytes(&self, path: usize) -> u64 {
        let links = self.routes[path].iter().map(|link| &self.all[*link as usize]);
        links.map(|link| link.bottleneck.queued_bytes()).sum()
    }

    /// Bytes that `link` could send from [`Time::ZERO`] until `time`.
    pub(crate) fn capacity(&self, link: u32, time: Time) -> u64 {
        self.all[link as usize].bottleneck.capacity(time)
    }

    /// The own link of `path`, of links to clients.
    pub(crate) fn own_mut(&mut self, path: usize) -> &mut Bottleneck<T> {
        &mut self.all[self.shared as usize + path].bottleneck
    }

    /// Bytes that each link has sent.
    pub(crate) fn sent(&self) -> impl Iterator<Item = u64> {
        self.all.iter().map(|link| link.sent)
    }

    /// When `link` has sent what it is sending; [`Time::NEVER`] when it is idle.
    pub(crate) fn next_departure(&self, link: u32) -> Time {
        self.all[link as usize].bottleneck.next_departure()
    }

    /// A packet arrives at `link`; it, or others in its stead, may go to `dropped`.
    pub(crate) fn offer(
        &mut self,
        now: Time,
        link: u32,
        packet: Packet<T>,
        dropped: &mut impl FnMut(Packet<T>, Cause),
    ) {
        let link = &mut self.all[link as usize];
        if link.policer.as_mut().is_some_and(|policer| !policer.admits(now, packet.bytes)) {
            dropped(packet, Cause::Policer);
            return;
        }
        let mut by_queue = |packet| dropped(packet, Cause::Queue);
        link.bottleneck.offer(now, packet, &mut by_queue);
    }

    /// The packet that has left `link` by `now`.
    pub(crate) fn depart(
        &mut self,
        now: Time,
        link: u32,
        dropped: &mut impl FnMut(Packet<T>, Cause),
    ) -> Option<Departure<T>> {
        let link = &mut self.all[link as usize];
        let departure = link.bottleneck.depart(now, &mut |packet| dropped(packet, Cause::Queue))?;
        link.sent += u64::from(departure.packet.bytes);
        Some(departure)
    }
}

fn build<'a, T>(
    links: impl Iterator<Item = (&'a LinkSpec, TimeDelta)>,
    packet_bytes: u32,
    (seed, stream): (u64, u64),
) -> Vec<Link<T>> {
    let link = |(index, (spec, rtt)): (u64, (&LinkSpec, TimeDelta))| Link {
        policer: spec.policer.map(Policer::new),
        bottleneck: spec.build(packet_bytes, rtt, (seed, stream + 2 * index)),
        sent: 0,
    };
    (0..).zip(links).map(link).collect()
}

/// The round-trip time in which the buffer of a shared link is measured: the longest of the paths
/// that cross it, if any does.
pub fn shared_rtt(paths: &[PathSpec], link: usize) -> Option<TimeDelta> {
    let crossing = paths.iter().filter(|path| path.via.contains(&link));
    crossing.map(|path| path.rtt).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Buffer, Ecn, LteSpec, RateSpec};
    use uncork_units::{Rate, Ratio};

    const PACKET_BYTES: u32 = 1500;
    const ACK_BYTES: u32 = 52;
    const RTT: TimeDelta = TimeDelta::from_millis(10);

    fn link(mbit: u64, packets: u64) -> LinkSpec {
        LinkSpec::new(Rate::from_mbit(mbit), Buffer::Packets(packets))
    }

    fn path(via: &[usize], uplink: bool) -> PathSpec {
        let mut path = PathSpec::new(Rate::from_mbit(12), RTT, Buffer::Packets(3));
        path.via = via.to_vec();
        path.uplink = uplink.then(|| link(1, 2));
        path
    }

    fn to_clients(shared: &[LinkSpec], paths: &[PathSpec]) -> Links<()> {
        Links::to_clients(shared, paths, PACKET_BYTES, 1)
    }

    fn to_servers(paths: &[PathSpec]) -> Links<()> {
        Links::to_servers(paths, ACK_BYTES, 1)
    }

    fn packet(flow: u32, bytes: u32) -> Packet<()> {
        Packet { flow, host: 0, bytes, ecn: Ecn::NotEct, body: () }
    }

    /// The links that a path crosses, as a packet is led over them.
    fn crossed(links: &Links<()>, path: usize) -> Vec<u32> {
        std::iter::successors(links.first(path), |link| links.after(*link, || path)).collect()
    }

    /// Offers packets at the beginning: whose were dropped, and by whom.
    fn offer(links: &mut Links<()>, link: u32, flows: &[u32], bytes: u32) -> Vec<(u32, Cause)> {
        let mut dropped = Vec::new();
        for flow in flows {
            let packet = packet(*flow, bytes);
            links
                .offer(Time::ZERO, link, packet, &mut |packet, by| dropped.push((packet.flow, by)));
        }
        dropped
    }

    #[test]
    fn a_path_crosses_shared_links_in_its_own_order_and_its_own_link_last() {
        let paths = [&[][..], &[0], &[2, 0, 1], &[1, 2]].map(|via| path(via, false));
        let links = to_clients(&[(); 3].map(|()| link(10, 9)), &paths);
        let routes: Vec<Vec<u32>> = (0..4).map(|path| crossed(&links, path)).collect();
        assert_eq!(routes, [vec![3], vec![0, 4], vec![2, 0, 1, 5], vec![1, 2, 6]]);
        assert_eq!(links.after(2, || 1), None, "a link that the path does not cross");
    }

    #[test]
    fn only_paths_with_an_uplink_cross_one() {
        let paths = vec![path(&[0], true), path(&[0], false), path(&[], true)];
        let links = to_servers(&paths);
        let routes: Vec<Vec<u32>> = (0..3).map(|path| crossed(&links, path)).collect();
        assert_eq!(routes, [vec![0], vec![], vec![1]]);
    }

    /// A buffer in packets is one of full packets on the way to clients, and of acknowledgements on the
    /// way back; besides it, one is on the wire.
    #[test]
    fn buffers_are_counted_in_what_travels_there() {
        let paths = [path(&[], true)];
        let mut down = to_clients(&[], &paths);
        assert_eq!(offer(&mut down, 0, &[7; 5], PACKET_BYTES), [(7, Cause::Queue)]);
        let mut up = to_servers(&paths);
        assert_eq!(offer(&mut up, 0, &[7; 4], ACK_BYTES), [(7, Cause::Queue)]);
    }

    /// 12 Mbit/s and 40 ms are 60 kB; the path of 10 ms crosses it, too.
    #[test]
    fn a_shared_buffer_is_measured_in_the_longest_round_trip() {
        let shared = LinkSpec::new(Rate::from_mbit(12), Buffer::MilliBdp(1000));
        let far = PathSpec { rtt: TimeDelta::from_millis(40), ..path(&[0], false) };
        let other = PathSpec { rtt: TimeDelta::from_millis(90), ..path(&[], false) };
        let mut links = to_clients(&[shared], &[path(&[0], false), far, other]);
        let dropped = offer(&mut links, 0, &[1; 50], PACKET_BYTES);
        assert_eq!((dropped.len(), links.queued_bytes(0)), (50 - 1 - 40, 60_000));
    }

    #[test]
    fn what_waits_counts_for_the_paths_that_cross_the_link() {
        let paths = vec![path(&[0], false), path(&[1, 0], false), path(&[], false)];
        let mut links = to_clients(&[(); 2].map(|()| link(10, 9)), &paths);
        for (link, flows) in [(0, 3), (1, 5), (2, 2), (3, 4)] {
            assert_eq!(offer(&mut links, link, &vec![0; flows], 1000), []);
        }
        // One of each is on the wire; the own links are 2, 3 and 4.
        assert_eq!([0, 1, 2].map(|path| links.queued_bytes(path)), [3000, 9000, 0]);
    }

    #[test]
    fn a_policer_stands_before_the_queue() {
        let mut policed = link(12, 3);
        policed.policer = Some("1mbit:3000B".parse().expect("a policer"));
        let mut links = to_clients(&[policed], &[path(&[0], false)]);
        let dropped = offer(&mut links, 0, &[1, 2, 3], PACKET_BYTES);
        assert_eq!(dropped, [(3, Cause::Policer)]);
        let left = links.depart(Time::ZERO, 0, &mut |_, _| panic!("nothing is dropped"));
        assert_eq!((left, links.next_departure(0)), (None, Time::ZERO + TimeDelta::from_millis(1)));
        let left = links.depart(links.next_departure(0), 0, &mut |_, _| panic!("no drop"));
        assert_eq!(left.map(|left| left.packet), Some(packet(1, PACKET_BYTES)));
    }

    /// Links that are random are so each on its own, whatever direction they are for.
    #[test]
    fn links_draw_from_streams_of_their_own() {
        let lte = LteSpec {
            mean: Rate::from_mbit(10),
            variation: Ratio::new(1, 1),
            correlation: TimeDelta::from_secs(1),
            outage_every: TimeDelta::ZERO,
            outage: TimeDelta::ZERO,
            length: TimeDelta::from_secs(60),
        };
        let random = || LinkSpec { rate: RateSpec::Lte(lte), ..link(10, 9) };
        let own = PathSpec { link: random(), uplink: Some(random()), ..path(&[0, 1], false) };
        let own = [own];
        let (mut down, mut up) = (to_clients(&[random(), random()], &own), to_servers(&own));
        for link in 0..3 {
            offer(&mut down, link, &[0], PACKET_BYTES);
        }
        offer(&mut up, 0, &[0], PACKET_BYTES);
        let mut ends: Vec<Time> = (0..3).map(|link| down.next_departure(link)).collect();
        ends.push(up.next_departure(0));
        ends.sort_unstable();
        ends.dedup();
        assert_eq!(ends.len(), 4, "{ends:?}");
    }
}
