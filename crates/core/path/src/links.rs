//! The links between servers and clients, and the route of each path over them.

use uncork_units::{Time, TimeDelta};

use crate::{Bottleneck, Cause, Departure, LinkRate, LinkSpec, Packet, PathSpec, Policer};

/// Seed streams for the links' queues, separate for each link.
const DOWN_STREAM: u64 = 4 << 32;
const UP_STREAM: u64 = 5 << 32;
/// One for the queue, one for a random rate.
const STREAMS_PER_LINK: u64 = 2;

/// Links in one direction, and the route of each path over them.
#[derive(Debug)]
pub(crate) struct Links<T> {
    all: Vec<PathLink<T>>,
    /// The number of shared links, which come first.
    shared: u32,
    routes: Vec<PathRoute>,
}

/// The links of a path in order. No link occurs twice.
type PathRoute = Vec<u32>;

#[derive(Debug)]
struct PathLink<T> {
    policer: Option<Policer>,
    bottleneck: Bottleneck<T>,
    /// Bytes that it has sent.
    sent: u64,
}

impl<T> Links<T> {
    /// The links to the clients, for packets of `packet_bytes`: first the links `shared`, to which
    /// paths refer in [`PathSpec::via`], then each path's own.
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

    /// The links to the servers, for ACKs of `ack_bytes`: those of paths with an uplink.
    pub(crate) fn to_servers(paths: &[PathSpec], ack_bytes: u32, seed: u64) -> Self {
        let own = paths.iter().filter_map(|path| Some((path.uplink.as_ref()?, path.rtt)));
        let mut next = 0..;
        let mut route = |path: &PathSpec| match path.uplink {
            Some(_) => next.by_ref().take(1).collect(),
            None => PathRoute::new(),
        };
        Self {
            all: build(own, ack_bytes, (seed, UP_STREAM)),
            shared: 0,
            routes: paths.iter().map(&mut route).collect(),
        }
    }

    /// The first link of `path`; `None` if there is none.
    pub(crate) fn first(&self, path: usize) -> Option<u32> {
        self.routes[path].first().copied()
    }

    /// The link after `link` on a path. `path` is only called if several paths cross the link.
    pub(crate) fn after(&self, link: u32, path: impl FnOnce() -> usize) -> Option<u32> {
        if link >= self.shared {
            return None; // A path's own link is its last.
        }
        let route = &self.routes[path()];
        let here = route.iter().position(|hop| *hop == link)?;
        route.get(here + 1).copied()
    }

    /// Bytes waiting in the queues along `path`.
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

    /// When `link` finishes its current transmission; [`Time::NEVER`] if idle.
    pub(crate) fn next_departure(&self, link: u32) -> Time {
        self.all[link as usize].bottleneck.next_departure()
    }

    /// A packet arrives at `link`. It, or others in its place, may be passed to `dropped`.
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

/// The rate of a link toward the clients in a run with `seed`, as [`crate::Network`] builds it. `place`: shared links come first,
/// then the own link of each path.
pub fn link_rate(link: &LinkSpec, place: usize, seed: u64) -> LinkRate {
    link.seeded_rate((seed, DOWN_STREAM + STREAMS_PER_LINK * place as u64))
}

fn build<'a, T>(
    links: impl Iterator<Item = (&'a LinkSpec, TimeDelta)>,
    packet_bytes: u32,
    (seed, stream): (u64, u64),
) -> Vec<PathLink<T>> {
    let link = |(index, (spec, rtt)): (u64, (&LinkSpec, TimeDelta))| PathLink {
        policer: spec.policer.map(Policer::new),
        bottleneck: spec.build(packet_bytes, rtt, (seed, stream + STREAMS_PER_LINK * index)),
        sent: 0,
    };
    (0..).zip(links).map(link).collect()
}

/// The RTT for a shared link's buffer: the longest of the paths that cross it, or `None`.
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

    /// The links that a packet crosses on a path.
    fn crossed(links: &Links<()>, path: usize) -> Vec<u32> {
        std::iter::successors(links.first(path), |link| links.after(*link, || path)).collect()
    }

    /// Offers packets at time zero: which were dropped, and why.
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
    fn path_crosses_shared_links_in_its_order_then_its_own() {
        let paths = [&[][..], &[0], &[2, 0, 1], &[1, 2]].map(|via| path(via, false));
        let links = to_clients(&[(); 3].map(|()| link(10, 9)), &paths);
        let routes: Vec<Vec<u32>> = (0..4).map(|path| crossed(&links, path)).collect();
        assert_eq!(routes, [vec![3], vec![0, 4], vec![2, 0, 1, 5], vec![1, 2, 6]]);
        assert_eq!(links.after(2, || 1), None, "a link outside the path");
    }

    #[test]
    fn only_paths_with_an_uplink_use_one() {
        let paths = vec![path(&[0], true), path(&[0], false), path(&[], true)];
        let links = to_servers(&paths);
        let routes: Vec<Vec<u32>> = (0..3).map(|path| crossed(&links, path)).collect();
        assert_eq!(routes, [vec![0], vec![], vec![1]]);
    }

    /// A buffer in packets counts full packets towards the clients and ACKs towards the servers.
    /// One more packet is in transmission.
    #[test]
    fn buffers_in_packets_use_the_packet_size_of_their_direction() {
        let paths = [path(&[], true)];
        let mut down = to_clients(&[], &paths);
        assert_eq!(offer(&mut down, 0, &[7; 5], PACKET_BYTES), [(7, Cause::Queue)]);
        let mut up = to_servers(&paths);
        assert_eq!(offer(&mut up, 0, &[7; 4], ACK_BYTES), [(7, Cause::Queue)]);
    }

    /// 12 Mbit/s and 40 ms is 60 kB; the path of 10 ms also crosses the link.
    #[test]
    fn shared_buffer_uses_the_longest_rtt() {
        let shared = LinkSpec::new(Rate::from_mbit(12), Buffer::MilliBdp(1000));
        let far = PathSpec { rtt: TimeDelta::from_millis(40), ..path(&[0], false) };
        let other = PathSpec { rtt: TimeDelta::from_millis(90), ..path(&[], false) };
        let mut links = to_clients(&[shared], &[path(&[0], false), far, other]);
        let dropped = offer(&mut links, 0, &[1; 50], PACKET_BYTES);
        assert_eq!((dropped.len(), links.queued_bytes(0)), (50 - 1 - 40, 60_000));
    }

    #[test]
    fn queued_bytes_count_for_the_paths_that_cross_the_link() {
        let paths = vec![path(&[0], false), path(&[1, 0], false), path(&[], false)];
        let mut links = to_clients(&[(); 2].map(|()| link(10, 9)), &paths);
        for (link, flows) in [(0, 3), (1, 5), (2, 2), (3, 4)] {
            assert_eq!(offer(&mut links, link, &vec![0; flows], 1000), []);
        }
        // One of each is in transmission; the paths' own links are 2, 3 and 4.
        assert_eq!([0, 1, 2].map(|path| links.queued_bytes(path)), [3000, 9000, 0]);
    }

    #[test]
    fn policer_precedes_the_queue() {
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

    /// Each random link is independent of the others, in both directions.
    #[test]
    fn links_have_independent_random_streams() {
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
        // The capacity that results are measured by is that of the link at work.
        let rate = link_rate(&own[0].link, 2, 1);
        let minute = Time::ZERO + TimeDelta::from_secs(60);
        assert_eq!(rate.capacity(minute), down.capacity(2, minute));
    }
}
