//! Whole paths at work, driven by whatever clock there is.
//!
//! Events happen in the order of their own times, however late [`Network::advance`] is called: a queue sees when a
//! packet came and when the link took it, never when a thread got to run. Equal packets at equal times with an
//! equal seed have equal fates, at the nanosecond.

mod lines;
mod schedule;

use uncork_units::{Time, TimeDelta};

use crate::{
    Departure, DroppedBy, Ecn, JitterSpec, LinkSpec, Links, Loss, LossPosition, LossSpec, Packet,
    PathSpec,
};
use lines::Lines;
use schedule::{Schedule, Source};

/// Streams of the seed that nothing else draws from, apart from each other for each flow.
const LOSS_BACK_STREAM: u64 = 9 << 32;
const JITTER_BACK_STREAM: u64 = 10 << 32;

/// Which way a packet travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// To the clients.
    Down,
    /// To the servers.
    Up,
}

/// What the caller knows a packet by.
pub trait Body {
    /// The packet has waited in a queue on its way to the client, for so long.
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

/// A packet that comes to the path of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Offer<B> {
    /// Where it goes.
    pub direction: Direction,
    /// Its flow, as [`Network::add_flow`] numbered it.
    pub flow: u32,
    /// Bytes with all headers.
    pub bytes: u32,
    /// What its header says of congestion.
    pub ecn: Ecn,
    /// What the caller knows it by.
    pub body: B,
}

/// What the paths of a network consist of.
#[derive(Clone, Copy, Debug)]
pub struct NetworkSpec<'a> {
    /// Links that several paths cross on the way to their own.
    pub links: &'a [LinkSpec],
    /// The paths.
    pub paths: &'a [PathSpec],
    /// A full packet: a buffer in packets holds so many of these.
    pub packet_bytes: u32,
    /// An acknowledgement: the buffer of an uplink in packets holds so many of these.
    pub ack_bytes: u32,
    /// Seed of everything random.
    pub seed: u64,
}

/// Where the packets of a flow travel.
#[derive(Clone, Copy, Debug)]
pub struct FlowPath {
    /// Index of its path.
    pub path: usize,
    /// What queues that share a link out among hosts know its client by.
    pub host: u32,
    /// Round-trip propagation time; `None` takes the path's, in which buffers are measured either way.
    pub rtt: Option<TimeDelta>,
    /// What happens to its packets on the way to the server.
    pub back: BackSpec,
}

/// What happens to packets on the way to servers, besides what their paths say.
#[derive(Clone, Copy, Debug)]
pub struct BackSpec {
    /// Random loss, behind the uplink.
    pub loss: LossSpec,
    /// What is added to the delay of each packet.
    pub jitter: Option<JitterSpec>,
}

impl Default for BackSpec {
    fn default() -> Self {
        Self { loss: LossSpec::EveryNth(0), jitter: None }
    }
}

#[derive(Debug)]
struct Flow {
    path: usize,
    host: u32,
    loss: Loss,
    loss_back: Loss,
    /// Its delay line in each direction.
    lines: [u32; 2],
}

/// Paths at work.
#[derive(Debug)]
pub struct Network<B> {
    paths: Vec<PathSpec>,
    seed: u64,
    /// To the clients, then to the servers; so are lines and bytes.
    links: [Links<B>; 2],
    lines: [Lines<Packet<B>>; 2],
    /// Bytes that each link has sent.
    sent: [Vec<u64>; 2],
    flows: Vec<Flow>,
    schedule: Schedule,
    /// The shortest way of all flows from the last link to the other side.
    shortest_way: TimeDelta,
}

impl<B: Body> Network<B> {
    /// The paths of `spec`, with no flow and nothing on them.
    pub fn new(spec: NetworkSpec<'_>) -> Self {
        let NetworkSpec { links, paths, packet_bytes, ack_bytes, seed } = spec;
        let uplinks = paths.iter().filter(|path| path.uplink.is_some()).count();
        Self {
            links: [
                Links::to_clients(links, paths, packet_bytes, seed),
                Links::to_servers(paths, ack_bytes, seed),
            ],
            lines: [Lines::new(), Lines::new()],
            sent: [vec![0; links.len() + paths.len()], vec![0; uplinks]],
            paths: paths.to_vec(),
            seed,
            flows: Vec::new(),
            schedule: Schedule::default(),
            shortest_way: TimeDelta::MAX,
        }
    }

    /// One more flow. Gives its number: flows are numbered from 0.
    pub fn add_flow(&mut self, flow: FlowPath) -> u32 {
        let FlowPath { path: index, host, rtt, back } = flow;
        let (path, seed, number) = (&self.paths[index], self.seed, self.flows.len() as u32);
        let one_way = rtt.unwrap_or(path.rtt).divided_by(2);
        self.shortest_way = self.shortest_way.min(one_way);
        let down = || path.downstream_of(number, one_way, seed);
        let up = || {
            let mut up = path.upstream(one_way);
            if let Some(jitter) = back.jitter {
                up.jitter(jitter, seed, JITTER_BACK_STREAM + u64::from(number));
            }
            up
        };
        let own = [path.jitter.is_some(), path.aggregation.is_some() || back.jitter.is_some()];
        let [to_clients, to_servers] = &mut self.lines;
        let lines = [
            to_clients.add((index, one_way), own[0], down),
            to_servers.add((index, one_way), own[1], up),
        ];
        let loss = path.loss_of(number, seed);
        let loss_back = Loss::new(back.loss, seed, LOSS_BACK_STREAM + u64::from(number));
        self.flows.push(Flow { path: index, host, loss, loss_back, lines });
        number
    }

    /// When something happens on a path next, unless more packets come; [`Time::NEVER`] if nothing travels.
    pub fn next_event(&self) -> Time {
        let (at_links, at_lines) = self.schedule.next();
        at_lines.min(at_links)
    }

    /// A time before which nothing arrives, unless more packets come; [`Time::NEVER`] if nothing
    /// travels. What happens at links until then may as well be looked after later: it takes a packet
    /// that leaves a link at least this long to arrive.
    pub fn next_arrival(&self) -> Time {
        let (at_links, at_lines) = self.schedule.next();
        if at_links == Time::NEVER { at_lines } else { at_lines.min(at_links + self.shortest_way) }
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

    /// Bytes that wait in the queues that `path` crosses on the way to its clients.
    pub fn queued_bytes(&self, path: usize) -> u64 {
        self.links[Direction::Down as usize].queued_bytes(path)
    }

    /// All that happens by `now`, in order. Packets whose fate is decided by then go to `fate`.
    pub fn advance(&mut self, now: Time, fate: &mut impl FnMut(Direction, Packet<B>, Fate)) {
        while let Some((time, source)) = self.schedule.pop(now) {
            match source {
                Source::Link(direction, link) => self.on_link(time, (direction, link), fate),
                Source::Line(direction, line) => self.on_line(time, (direction, line), fate),
            }
        }
    }

    /// A packet comes, after all that [`Self::advance`] was told of. It, or others in its stead, may
    /// be dropped and go to `fate`.
    pub fn offer(
        &mut self,
        now: Time,
        offer: Offer<B>,
        fate: &mut impl FnMut(Direction, Packet<B>, Fate),
    ) {
        let Offer { direction, flow: number, bytes, ecn, body } = offer;
        let flow = &mut self.flows[number as usize];
        let packet = Packet { flow: number, host: flow.host, bytes, ecn, body };
        let position = self.paths[flow.path].loss_position;
        let early = direction == Direction::Down && position == LossPosition::Before;
        if early && flow.loss.strikes() {
            fate(direction, packet, Fate::Dropped(Cause::Loss));
            return;
        }
        match self.links[direction as usize].first(flow.path) {
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
        match links.after(link, || self.flows[packet.flow as usize].path) {
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
        let flow = &mut self.flows[packet.flow as usize];
        if direction == Direction::Up && flow.loss_back.strikes() {
            fate(direction, packet, Fate::Dropped(Cause::Loss));
            return;
        }
        let number = flow.lines[direction as usize];
        let line = self.lines[direction as usize].get_mut(number);
        let bytes = packet.bytes;
        if let Some(next) = line.enter_sized(now, packet, bytes) {
            self.schedule.at(next, Source::Line(direction, number));
        }
    }

    /// A packet comes out of a delay line. Random loss behind the links strikes as packets arrive, in the
    /// order in which they do.
    fn on_line(
        &mut self,
        now: Time,
        (direction, number): (Direction, u32),
        fate: &mut impl FnMut(Direction, Packet<B>, Fate),
    ) {
        let line = self.lines[direction as usize].get_mut(number);
        // Nothing is due if a packet has overtaken the one that this event was for.
        let Some(packet) = line.arrive(now) else { return };
        self.schedule.at(line.next_arrival(), Source::Line(direction, number));
        let flow = &mut self.flows[packet.flow as usize];
        let position = self.paths[flow.path].loss_position;
        let late = direction == Direction::Down && position == LossPosition::After;
        let struck = late && flow.loss.strikes();
        let end = if struck { Fate::Dropped(Cause::Loss) } else { Fate::Arrives(now) };
        fate(direction, packet, end);
    }
}

/// What becomes of packets that a link drops.
fn dropped<B>(
    direction: Direction,
    fate: &mut impl FnMut(Direction, Packet<B>, Fate),
) -> impl FnMut(Packet<B>, DroppedBy) {
    move |packet, by| fate(direction, packet, Fate::Dropped(by.into()))
}
