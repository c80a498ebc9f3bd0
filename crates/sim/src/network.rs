//! The links between servers and clients, and which packets cross which of them.

use uncork_path::{Bottleneck, Departure, LinkSpec, Packet, Policer};
use uncork_units::{Time, TimeDelta};

use crate::segments::{HEADER_BYTES, PACKET_BYTES};
use crate::spec::RunSpec;

/// Streams of the seed for the queues of links, apart from each other for each link.
const DOWN_STREAM: u64 = 4 << 32;
const UP_STREAM: u64 = 5 << 32;

/// Links in one direction, and the route of each path over them.
#[derive(Debug)]
pub(crate) struct Links<T> {
    all: Vec<Link<T>>,
    /// Those before this one are shared.
    shared: u32,
    routes: Vec<Route>,
}

/// The links that a path crosses, in this order. No link is crossed twice.
type Route = Vec<u32>;

#[derive(Debug)]
struct Link<T> {
    policer: Option<Policer>,
    bottleneck: Bottleneck<T>,
}

/// Who dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DroppedBy {
    Queue,
    Policer,
}

impl<T> Links<T> {
    /// The links to the clients: those that are shared come first, then each path's own.
    pub(crate) fn to_clients(run: &RunSpec) -> Self {
        let shared = run
            .links
            .iter()
            .enumerate()
            .map(|(index, link)| (link, run.shared_rtt(index).unwrap_or(TimeDelta::ZERO)));
        let own = run.paths.iter().map(|path| (&path.link, path.rtt));
        let route = |(index, path): (u32, &uncork_path::PathSpec)| {
            path.via
                .iter()
                .map(|link| *link as u32)
                .chain([run.links.len() as u32 + index])
                .collect()
        };
        Self {
            all: build(shared.chain(own), PACKET_BYTES, (run.seed, DOWN_STREAM)),
            shared: run.links.len() as u32,
            routes: (0..).zip(&run.paths).map(route).collect(),
        }
    }

    /// The links to the servers: those of paths that have one.
    pub(crate) fn to_servers(run: &RunSpec) -> Self {
        let own = run.paths.iter().filter_map(|path| Some((path.uplink.as_ref()?, path.rtt)));
        let mut next = 0..;
        let mut route = |path: &uncork_path::PathSpec| match path.uplink {
            Some(_) => next.by_ref().take(1).collect(),
            None => Route::new(),
        };
        Self {
            all: build(own, HEADER_BYTES, (run.seed, UP_STREAM)),
            shared: 0,
            routes: run.paths.iter().map(&mut route).collect(),
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

    /// The links that have a bottleneck to change, the shared ones first.
    pub(crate) fn bottleneck_mut(&mut self, link: u32) -> &mut Bottleneck<T> {
        &mut self.all[link as usize].bottleneck
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
        dropped: &mut impl FnMut(u32, DroppedBy),
    ) {
        let link = &mut self.all[link as usize];
        if link.policer.as_mut().is_some_and(|policer| !policer.admits(now, packet.bytes)) {
            dropped(packet.flow, DroppedBy::Policer);
            return;
        }
        let mut by_queue = |packet: Packet<T>| dropped(packet.flow, DroppedBy::Queue);
        link.bottleneck.offer(now, packet, &mut by_queue);
    }

    /// The packet that has left `link` by `now`.
    pub(crate) fn depart(
        &mut self,
        now: Time,
        link: u32,
        dropped: &mut impl FnMut(u32, DroppedBy),
    ) -> Option<Departure<T>> {
        let mut by_queue = |packet: Packet<T>| dropped(packet.flow, DroppedBy::Queue);
        self.all[link as usize].bottleneck.depart(now, &mut by_queue)
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
    };
    (0..).zip(links).map(link).collect()
}
