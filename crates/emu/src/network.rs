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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    links: Links<B>,
    uplinks: Links<B>,
    flows: Flows<B>,
    schedule: Schedule,
    /// From the last link to the other side.
    shortest_way: TimeDelta,
    /// Bytes that each link has sent: those to the near side, then those to the far side.
    sent: [Vec<u64>; 2],
}

impl<B: Body> Network<B> {
    /// The paths of `spec`, with nothing on them.
    pub fn new(spec: &EmulationSpec) -> Self {
        let (paths, seed) = (spec.paths.clone(), spec.seed);
        let uplinks = paths.iter().filter(|path| path.uplink.is_some()).count();
        Self {
            links: Links::to_clients(&spec.links, &paths, spec.mtu, seed),
            uplinks: Links::to_servers(&paths, EmulationSpec::ACK_BYTES, seed),
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

    /// The flows, in order of their numbers; those that share a number with an earlier one are left out.
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
        let capacity = |time| match direction {
            Direction::Down => self.links.capacity(link, time),
            Direction::Up => self.uplinks.capacity(link, time),
        };
        capacity(to).saturating_sub(capacity(from))
    }

    /// All that happens by `now`, in order. Packets whose fate is decided by then go to `fate`.
    pub fn advance(&mut self, now: Time, fate: &mut impl FnMut(Direction, Packet<B>, Fate)) {
        while let Some((time, source)) = self.schedule.pop(now) {
            match source {
                Source::Link(link) => self.on_link(time, link, fate),
                Source::Uplink(link) => self.on_uplink(time, link, fate),
                Source::Down(flow) => self.on_near_side(time, flow, fate),
                Source::Up(flow) => {
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
        let (path, one_way) = (host.path, host.one_way(&self.paths));
        let (spec, back, seed) = (&self.paths[path], self.back, self.seed);
        let begin = |number| Flow::new(spec, one_way, back, (number, seed));
        let flow = self.flows.number(key, begin);
        let packet = Packet { flow, host: key.host, bytes, ecn, body };
        if direction == Direction::Up {
            match self.uplinks.first(path) {
                Some(link) => self.offer_up(now, link, packet, fate),
                None => self.propagate_up(now, packet, fate),
            }
            return;
        }
        let early = spec.loss_position == LossPosition::Before;
        if early && self.flows.get_mut(flow).loss.strikes() {
            fate(direction, packet, Fate::Dropped(Cause::Loss));
        } else if let Some(link) = self.links.first(path) {
            self.offer_down(now, link, packet, fate);
        }
    }

    fn offer_down(
        &mut self,
        now: Time,
        link: u32,
        packet: Packet<B>,
        fate: &mut impl FnMut(Direction, Packet<B>, Fate),
    ) {
        let was_idle = self.links.next_departure(link) == Time::NEVER;
        self.links.offer(now, link, packet, &mut dropped(Direction::Down, fate));
        if was_idle {
            self.schedule.at(self.links.next_departure(link), Source::Link(link));
        }
    }

    fn offer_up(
        &mut self,
        now: Time,
        link: u32,
        packet: Packet<B>,
        fate: &mut impl FnMut(Direction, Packet<B>, Fate),
    ) {
        let was_idle = self.uplinks.next_departure(link) == Time::NEVER;
        self.uplinks.offer(now, link, packet, &mut dropped(Direction::Up, fate));
        if was_idle {
            self.schedule.at(self.uplinks.next_departure(link), Source::Uplink(link));
        }
    }

    fn on_link(&mut self, now: Time, link: u32, fate: &mut impl FnMut(Direction, Packet<B>, Fate)) {
        let departure = self.links.depart(now, link, &mut dropped(Direction::Down, fate));
        self.schedule.at(self.links.next_departure(link), Source::Link(link));
        let Some(Departure { mut packet, queued_for }) = departure else { return };
        packet.body.crossed(queued_for);
        self.sent[Direction::Down as usize][link as usize] += u64::from(packet.bytes);
        if let Some(next) = self.links.after(link, || self.hosts[packet.host as usize].path) {
            self.offer_down(now, next, packet, fate);
            return;
        }
        if let Some(next) = self.flows.get_mut(packet.flow).down.enter(now, packet) {
            self.schedule.at(next, Source::Down(packet.flow));
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
        self.schedule.at(flow.down.next_arrival(), Source::Down(index));
        let path = &self.paths[self.hosts[packet.host as usize].path];
        let struck = path.loss_position == LossPosition::After && flow.loss.strikes();
        let end = if struck { Fate::Dropped(Cause::Loss) } else { Fate::Arrives(now) };
        fate(Direction::Down, packet, end);
    }

    fn on_uplink(
        &mut self,
        now: Time,
        link: u32,
        fate: &mut impl FnMut(Direction, Packet<B>, Fate),
    ) {
        let departure = self.uplinks.depart(now, link, &mut dropped(Direction::Up, fate));
        self.schedule.at(self.uplinks.next_departure(link), Source::Uplink(link));
        let Some(packet) = departure.map(|departure| departure.packet) else { return };
        self.sent[Direction::Up as usize][link as usize] += u64::from(packet.bytes);
        self.propagate_up(now, packet, fate);
    }

    fn propagate_up(
        &mut self,
        now: Time,
        packet: Packet<B>,
        fate: &mut impl FnMut(Direction, Packet<B>, Fate),
    ) {
        let flow = self.flows.get_mut(packet.flow);
        if flow.loss_back.strikes() {
            fate(Direction::Up, packet, Fate::Dropped(Cause::Loss));
            return;
        }
        if let Some(next) = flow.up.enter_sized(now, packet, packet.bytes) {
            self.schedule.at(next, Source::Up(packet.flow));
        }
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
