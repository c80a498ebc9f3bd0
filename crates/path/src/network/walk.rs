//! The walk of packets over links and delay lines, event by event.

use std::convert::Infallible;

use uncork_units::{Rate, Time, TimeDelta};

use super::flow::Flows;
use super::schedule::{Schedule, Source};
use super::spec::{Body, Cause, Direction, Fate, FlowPath, NetworkSpec, Offer};
use super::way::Way;
use crate::links::Links;
use crate::{LossSpec, Packet};

/// The next thing to do. Packets stay in the network until the caller takes them: they are large.
#[derive(Clone, Copy, Debug)]
pub enum Event<E> {
    /// Nothing: a packet left a link.
    Internal,
    /// Call [`Network::arrive_down`] with this.
    Down(Line),
    /// Call [`Network::arrive_up`] with this.
    Up(Line),
    /// An event of the caller, which must call [`Network::again`].
    Host(E),
}

/// A delay line at whose end a packet has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Line(u32);

/// Takes the packets that are dropped on the way.
pub trait DropSink<D, U> {
    /// A packet to a client is dropped.
    fn down(&mut self, packet: Packet<D>, cause: Cause);
    /// A packet to a server is dropped.
    fn up(&mut self, packet: Packet<U>, cause: Cause);
}

impl<B, F: FnMut(Direction, Packet<B>, Fate)> DropSink<B, B> for F {
    fn down(&mut self, packet: Packet<B>, cause: Cause) {
        self(Direction::Down, packet, Fate::Dropped(cause));
    }

    fn up(&mut self, packet: Packet<B>, cause: Cause) {
        self(Direction::Up, packet, Fate::Dropped(cause));
    }
}

/// The links, delay lines and random losses of paths. `D` and `U` are the bodies of packets to clients and to
/// servers, `E` the events of the caller.
#[derive(Debug)]
pub struct Network<D, U = D, E = Infallible> {
    down: Way<D, true>,
    up: Way<U, false>,
    flows: Flows,
    schedule: Schedule<E>,
}

impl<D: Body, U: Body, E: Copy> Network<D, U, E> {
    /// The paths of `spec`, without flows and packets.
    pub fn new(spec: NetworkSpec<'_>) -> Self {
        let NetworkSpec { links, paths, packet_bytes, ack_bytes, seed } = spec;
        let down = Links::to_clients(links, paths, packet_bytes, seed);
        Self {
            down: Way::new(down),
            up: Way::new(Links::to_servers(paths, ack_bytes, seed)),
            flows: Flows::new(paths.to_vec(), seed),
            schedule: Schedule::new(),
        }
    }

    /// Reserves memory for exactly `flows` more flows.
    pub fn reserve(&mut self, flows: usize) {
        self.flows.reserve(flows);
    }

    /// Adds a flow and gives its number, counted from 0.
    pub fn add_flow(&mut self, flow: FlowPath) -> u32 {
        self.flows.add(flow, &mut self.down.lines, &mut self.up.lines)
    }

    /// The time of the next event, unless more packets come; [`Time::NEVER`] if there is none.
    pub fn next_event(&self) -> Time {
        let (at_links, at_lines) = self.schedule.next_times();
        at_lines.min(at_links)
    }

    /// A time before which nothing arrives, unless more packets come; [`Time::NEVER`] if nothing travels. Events at
    /// links until then may be handled later: a packet that leaves a link takes at least the shortest delay of all
    /// flows to arrive.
    pub fn next_arrival(&self) -> Time {
        let (at_links, at_lines) = self.schedule.next_times();
        if at_links == Time::NEVER {
            return at_lines;
        }
        at_lines.min(at_links + self.flows.shortest_delay)
    }

    /// Bytes that each link has sent in a direction, in the order of the specification: shared links, then
    /// the paths' own.
    pub fn sent(&self, direction: Direction) -> Vec<u64> {
        match direction {
            Direction::Down => self.down.links.sent().collect(),
            Direction::Up => self.up.links.sent().collect(),
        }
    }

    /// Bytes that a link, by its index in [`Self::sent`], could send from one time to another.
    pub fn capacity(&self, direction: Direction, link: u32, from: Time, to: Time) -> u64 {
        let capacity = |time| match direction {
            Direction::Down => self.down.links.capacity(link, time),
            Direction::Up => self.up.links.capacity(link, time),
        };
        capacity(to).saturating_sub(capacity(from))
    }

    /// Bytes that wait in the queues that `path` crosses on the way to its clients.
    pub fn queued_bytes(&self, path: usize) -> u64 {
        self.down.links.queued_bytes(path)
    }

    /// The own link of `path` has another rate from now on.
    pub fn set_rate(&mut self, path: usize, rate: Rate) {
        self.down.links.own_mut(path).set_rate(rate);
    }

    /// All flows have another random loss on the way to the clients from now on, from the same streams.
    pub fn set_loss(&mut self, loss: LossSpec) {
        self.flows.set_loss(loss);
    }

    /// Packets to the servers arrive at multiples of `slot` from now on; zero ends this.
    pub fn aggregate(&mut self, slot: TimeDelta) {
        self.up.lines.all.iter_mut().for_each(|line| line.aggregate(slot));
    }

    /// Frees the memory of a flow's delay lines that are empty.
    pub fn shrink_empty_lines(&mut self, flow: u32) {
        let [down, up] = self.flows.get(flow).lines;
        self.down.lines.all[down as usize].shrink_if_empty();
        self.up.lines.all[up as usize].shrink_if_empty();
    }

    /// A flow has sent its last packet: frees its memory.
    pub fn end_flow(&mut self, flow: u32) {
        self.flows.end(flow);
    }

    /// An event of the caller at `time`.
    pub fn schedule(&mut self, time: Time, event: E) {
        self.schedule.at(time, Source::Host(event));
    }

    /// The [`Event::Host`] that [`Self::step`] gave last happens again at `time`; [`Time::NEVER`] is not again.
    pub fn again(&mut self, time: Time) {
        self.schedule.again(time);
    }

    /// The next event, if it is due by `until`, and its time. Packets that are dropped in it go to `drops`.
    #[expect(clippy::inline_always, reason = "1.5 % of a simulation's instructions")]
    #[inline(always)]
    pub fn step(
        &mut self,
        until: Time,
        drops: &mut impl DropSink<D, U>,
    ) -> Option<(Time, Event<E>)> {
        let (now, source) = self.schedule.next().filter(|(time, _)| *time <= until)?;
        let event = match source {
            Source::LinkDown(link) => {
                self.on_link_down(now, link, drops);
                Event::Internal
            }
            Source::LinkUp(link) => {
                self.on_link_up(now, link, drops);
                Event::Internal
            }
            Source::LineDown(line) => Event::Down(Line(line)),
            Source::LineUp(line) => Event::Up(Line(line)),
            Source::Host(event) => Event::Host(event),
        };
        Some((now, event))
    }

    /// The packet that has come to the end of its path to a client, and whether random loss drops it there. There is
    /// none if it has been taken earlier, after it overtook another one.
    #[inline]
    pub fn arrive_down(&mut self, now: Time, line: Line) -> Option<(Packet<D>, bool)> {
        let packet = self.down.arrive((now, line.0), &mut self.schedule)?;
        let is_lost = self.flows.loses_after_links(packet.flow);
        Some((packet, is_lost))
    }

    /// The packet that has reached a server, if it has not been taken earlier.
    #[inline]
    pub fn arrive_up(&mut self, now: Time, line: Line) -> Option<Packet<U>> {
        self.up.arrive((now, line.0), &mut self.schedule)
    }

    /// A packet leaves a server. It, or others instead of it, may be dropped.
    #[inline]
    pub fn offer_down(&mut self, now: Time, offer: Offer<D>, drops: &mut impl DropSink<D, U>) {
        let (path, packet) = self.packet(offer);
        if self.flows.loses_before_links(packet.flow) {
            return drops.down(packet, Cause::Loss);
        }
        // Every path has a link to its clients.
        if let Some(link) = self.down.links.first(path as usize) {
            let dropped = &mut |packet, cause| drops.down(packet, cause);
            self.down.offer((now, link), packet, &mut self.schedule, dropped);
        }
    }

    /// A packet leaves a client. It, or others instead of it, may be dropped.
    #[inline]
    pub fn offer_up(&mut self, now: Time, offer: Offer<U>, drops: &mut impl DropSink<D, U>) {
        let (path, packet) = self.packet(offer);
        let Some(link) = self.up.links.first(path as usize) else {
            return self.propagate_up(now, packet, drops);
        };
        let dropped = &mut |packet, cause| drops.up(packet, cause);
        self.up.offer((now, link), packet, &mut self.schedule, dropped);
    }

    /// The path of an offer, and its packet.
    #[inline]
    fn packet<B>(&self, offer: Offer<B>) -> (u32, Packet<B>) {
        let Offer { flow: number, bytes, ecn, body } = offer;
        let flow = self.flows.get(number);
        (flow.path, Packet { flow: number, host: flow.host, bytes, ecn, body })
    }

    #[inline]
    fn on_link_down(&mut self, now: Time, link: u32, drops: &mut impl DropSink<D, U>) {
        let Self { down, flows, schedule, .. } = self;
        let path = |flow| flows.get(flow).path;
        let dropped = &mut |packet, cause| drops.down(packet, cause);
        if let Some(packet) = down.depart((now, link), path, schedule, dropped) {
            let [line, _] = flows.get(packet.flow).lines;
            down.propagate((now, line), packet, schedule);
        }
    }

    #[inline]
    fn on_link_up(&mut self, now: Time, link: u32, drops: &mut impl DropSink<D, U>) {
        let Self { up, flows, schedule, .. } = self;
        let path = |flow| flows.get(flow).path;
        let dropped = &mut |packet, cause| drops.up(packet, cause);
        if let Some(packet) = up.depart((now, link), path, schedule, dropped) {
            self.propagate_up(now, packet, drops);
        }
    }

    #[expect(clippy::inline_always, reason = "0.3 % of a simulation's instructions")]
    #[inline(always)]
    fn propagate_up(&mut self, now: Time, packet: Packet<U>, drops: &mut impl DropSink<D, U>) {
        if self.flows.loses_behind_uplink(packet.flow) {
            return drops.up(packet, Cause::Loss);
        }
        let [_, line] = self.flows.get(packet.flow).lines;
        self.up.propagate((now, line), packet, &mut self.schedule);
    }
}

/// Networks with one kind of packet and without events of the caller.
impl<B: Body> Network<B> {
    /// Handles everything that happens by `now`, in order. Packets that arrive or are dropped go to `fate`.
    pub fn advance(&mut self, now: Time, fate: &mut impl FnMut(Direction, Packet<B>, Fate)) {
        while let Some((time, event)) = self.step(now, fate) {
            match event {
                Event::Internal => {}
                Event::Down(line) => {
                    let Some((packet, is_lost)) = self.arrive_down(time, line) else { continue };
                    let lost = Fate::Dropped(Cause::Loss);
                    fate(Direction::Down, packet, if is_lost { lost } else { Fate::Arrives(time) });
                }
                Event::Up(line) => {
                    if let Some(packet) = self.arrive_up(time, line) {
                        fate(Direction::Up, packet, Fate::Arrives(time));
                    }
                }
            }
        }
    }

    /// A packet comes, after everything by `now` has been handled. It, or others instead of it, may be dropped and
    /// go to `fate`.
    pub fn offer(
        &mut self,
        now: Time,
        direction: Direction,
        offer: Offer<B>,
        fate: &mut impl FnMut(Direction, Packet<B>, Fate),
    ) {
        match direction {
            Direction::Down => self.offer_down(now, offer, fate),
            Direction::Up => self.offer_up(now, offer, fate),
        }
    }
}
