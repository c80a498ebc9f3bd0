//! The path itself: `uncork-path`'s elements, driven by whatever clock there is.
//!
//! Events happen in the order of their own times, however late they are looked after: a queue sees when
//! a packet came and when the link took it, never when a thread got to run. Given the same packets at the
//! same times, and the same seed, the decisions are those of `uncork-sim`, whose elements, routes and
//! streams of random numbers these are; a flow's number there is its place in order of appearance here.

use uncork_path::{Departure, DroppedBy, Ecn, Links, LossPosition, Packet, PathSpec};
use uncork_units::{Time, TimeDelta};

use crate::flows::{Flow, FlowKey, Flows};
use crate::schedule::{Schedule, Source};
use crate::{BackSpec, EmulationSpec, HostSpec};

/// Which way a packet travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// To the near side, where clients are.
    Down,
    /// To the far side, where servers are.
    Up,
}

/// A packet that comes to the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival<B> {
    /// Where it is going.
    pub direction: Direction,
    /// Whose it is. The host must be one of the emulation's.
    pub flow: FlowKey,
    /// Bytes with the IP header.
    pub bytes: u32,
    /// What its header says of congestion.
    pub ecn: Ecn,
    /// What the caller knows it by.
    pub body: B,
}

/// What the caller knows a packet by.
pub trait Body: Copy {
    /// The packet has waited in a queue on its way to the near side, for so long.
    fn crossed(&mut self, _waited: TimeDelta) {}
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It reaches the other side at this time.
    Arrives(Time),
    /// It never does.
    Dropped(Cause),
}

/// Why a packet is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A queue is full, or its discipline says so.
    Queue,
    /// A policer has too few tokens.
    Policer,
    /// Random loss.
    Loss,
}

impl From<DroppedBy> for Cause {
    fn from(by: DroppedBy) -> Self {
        match by {
            DroppedBy::Queue => Self::Queue,
            DroppedBy::Policer => Self::Policer,
        }
    }
}

/// Paths at work.
#[derive(Debug)]
pub struct Network<B> {
    paths: Vec<PathSpec>,
    hosts: Vec<HostSpec>,
    back: BackSpec,
    seed: u64,
    /// To the near side, then to the far side.
    links: [Links<B>; 2],
    flows: Flows<B>,
    schedule: Schedule,
    /// From the last link to the other side.
    shortest_way: TimeDelta,
    /// Bytes that each of them has sent.
    sent: [Vec<u64>; 2],
}

impl<B: Body> Network<B> {
    /// The paths of `spec`, with nothing on them.
    pub fn new(spec: &EmulationSpec) -> Self {
        let (paths, seed) = (spec.paths.clone(), spec.seed);
        let uplinks = paths.iter().filter(|path| path.uplink.is_some()).count();
        Self {
            links: [
                Links::to_clients(&spec.links, &paths, spec.mtu, seed),
                Links::to_servers(&paths, EmulationSpec::ACK_BYTES, seed),
            ],
            sent: [vec![0; spec.links.len() + paths.len()], vec![0; uplinks]],
            paths,
            hosts: spec.hosts.clone(),
            back: spec.back,
            seed,
            flows: Flows::new(),
            schedule: Schedule::default(),
            shortest_way: spec.shortest_way(),
        }
    }

    /// A time before which nothing arrives, unless more packets come; [`Time::NEVER`] if nothing
    /// travels. What happens at links until then may as well be looked after later: it takes a packet
    /// that leaves a link at least this long to arrive.
    pub fn next_arrival(&self) -> Time {
        let (at_links, at_lines) = self.schedule.next();
        at_lines.min(at_links + self.shortest_way)
    }

    /// Flows seen so far.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// The flows, in order of their numbers. Where there are too many, one stands for several.
    pub(crate) fn flow_keys(&self) -> Vec<FlowKey> {
        self.flows.keys()
    }

    /// Bytes that each link has sent in a direction, in the order of the specification: the shared
    /// ones, then those of the paths that have one.
    pub fn sent(&self, direction: Direction) -> &[u64] {
        &self.sent[direction as usize]
    }

    /// Bytes that the link of index `link` in [`Self::sent`] could send within a span.
    pub fn capacity(&self, direction: Direction, link: u32, from: Time, to: Time) -> u64 {
        let links = &self.links[direction as usize];
        links.capacity(link, to).saturating_sub(links.capacity(link, from))
    }

    /// All that happens by `now`, in order. Packets whose fate is decided by then go to `fate`.
    pub fn advance(&mut self, now: Time, fate: &mut impl FnMut(Direction, Packet<B>, Fate)) {
        while let Some((time, source)) = self.schedule.pop(now) {
            match source {
                Source::Link(direction, link) => self.on_link(time, (direction, link), fate),
                Source::Line(Direction::Down, flow) => self.on_near_side(time, flow, fate),
                Source::Line(Direction::Up, flow) => {
                    let line = &mut self.flows.get_mut(flow).up;
                    if let Some(packet) = line.arrive(time) {
                        self.schedule.at(line.next_arrival(), source);
                        fate(Direction::Up, packet, Fate::Arrives(time));
                    }
                }
            }
        }
    }

    /// A packet comes, after all that [`Self::advance`] was told of. It, or others in its stead, may
    /// be dropped and go to `fate`.
    pub fn offer(
        &mut self,
        now: Time,
        arrival: Arrival<B>,
        fate: &mut impl FnMut(Direction, Packet<B>, Fate),
    ) {
        let Arrival { direction, flow: key, bytes, ecn, body } = arrival;
        let host = self.hosts[key.host as usize];
        let (spec, back, seed) = (&self.paths[host.path], self.back, self.seed);
        let begin = |number| Flow::new(host, spec, back, (number, seed));
        let flow = self.flows.number(key, begin);
        let packet = Packet { flow, host: host.number_of(key.host), bytes, ecn, body };
        let early = direction == Direction::Down && spec.loss_position == LossPosition::Before;
        if early && self.flows.get_mut(flow).loss.strikes() {
            fate(direction, packet, Fate::Dropped(Cause::Loss));
            return;
        }
        match self.links[direction as usize].first(host.path) {
            Some(link) => self.enter(now, (direction, link), packet, fate),
            None => self.propagate(now, direction, packet, fate),
        }
    }

    /// A packet comes to a link.
    fn enter(
        &mut self,
        now: Time,
        (direction, link): (Direction, u32),
        packet: Packet<B>,
        fate: &mut impl FnMut(Direction, Packet<B>, Fate),
    ) {
        let links = &mut self.links[direction as usize];
        let was_idle = links.next_departure(link) == Time::NEVER;
        links.offer(now, link, packet, &mut dropped(direction, fate));
        if was_idle {
            self.schedule.at(links.next_departure(link), Source::Link(direction, link));
        }
    }

    /// A link has sent a packet.
    fn on_link(
        &mut self,
        now: Time,
        (direction, link): (Direction, u32),
        fate: &mut impl FnMut(Direction, Packet<B>, Fate),
    ) {
        let links = &mut self.links[direction as usize];
        let departure = links.depart(now, link, &mut dropped(direction, fate));
        self.schedule.at(links.next_departure(link), Source::Link(direction, link));
        let Some(Departure { mut packet, queued_for }) = departure else { return };
        if direction == Direction::Down {
            packet.body.crossed(queued_for);
        }
        self.sent[direction as usize][link as usize] += u64::from(packet.bytes);
        match links.after(link, || self.flows.get_mut(packet.flow).path) {
            Some(next) => self.enter(now, (direction, next), packet, fate),
            None => self.propagate(now, direction, packet, fate),
        }
    }

    /// A packet has crossed all links of its path.
    fn propagate(
        &mut self,
        now: Time,
        direction: Direction,
        packet: Packet<B>,
        fate: &mut impl FnMut(Direction, Packet<B>, Fate),
    ) {
        let flow = self.flows.get_mut(packet.flow);
        let next = match direction {
            Direction::Down => flow.down.enter(now, packet),
            Direction::Up if flow.loss_back.strikes() => {
                fate(direction, packet, Fate::Dropped(Cause::Loss));
                return;
            }
            Direction::Up => flow.up.enter_sized(now, packet, packet.bytes),
        };
        if let Some(next) = next {
            self.schedule.at(next, Source::Line(direction, packet.flow));
        }
    }

    /// Random loss behind the links strikes as packets arrive, in the order in which they do.
    fn on_near_side(
        &mut self,
        now: Time,
        index: u32,
        fate: &mut impl FnMut(Direction, Packet<B>, Fate),
    ) {
        let flow = self.flows.get_mut(index);
        // Nothing is due if a packet has overtaken the one that this event was for.
        let Some(packet) = flow.down.arrive(now) else { return };
        self.schedule.at(flow.down.next_arrival(), Source::Line(Direction::Down, index));
        let is_after = self.paths[flow.path].loss_position == LossPosition::After;
        let struck = is_after && flow.loss.strikes();
        let end = if struck { Fate::Dropped(Cause::Loss) } else { Fate::Arrives(now) };
        fate(Direction::Down, packet, end);
    }
}

/// What becomes of packets that a link drops.
fn dropped<B>(
    direction: Direction,
    fate: &mut impl FnMut(Direction, Packet<B>, Fate),
) -> impl FnMut(Packet<B>, DroppedBy) {
    move |packet, by| fate(direction, packet, Fate::Dropped(by.into()))
}

#[cfg(test)]
mod tests;
