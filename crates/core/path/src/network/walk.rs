//! Moves packets over links and delay lines, event by event.

use std::convert::Infallible;

use uncork_units::{Rate, Time, TimeDelta};

use super::flow::Flows;
use super::one_way::OneWay;
use super::schedule::{EventSource, Schedule};
use super::spec::{Body, Cause, Direction, Fate, FlowPath, NetworkSpec, Offer};
use crate::card::Card;
use crate::links::Links;
use crate::{LossPosition, LossSpec, Packet};

/// The next step. Packets are large, so they stay in the network until the caller takes them.
#[derive(Clone, Copy, Debug)]
pub enum Event<E> {
    /// No action needed: a packet left a link.
    Internal,
    /// Call [`Network::arrive_down`] with this.
    Down(Line),
    /// Call [`Network::arrive_up`] with this.
    Up(Line),
    /// An event of the caller, which must then call [`Network::again`].
    Host(E),
}

/// A delay line with a packet that has arrived at its end.
#[derive(Clone, Copy, Debug)]
pub struct Line(u32);

/// The events of a network that are still to come.
#[derive(Debug)]
pub struct PendingEvents<E>(Schedule<E>);

impl<E: Copy> Default for PendingEvents<E> {
    fn default() -> Self {
        Self(Schedule::new())
    }
}

/// Receives the packets dropped on the way, and learns of copies.
pub trait DropSink<D, U> {
    /// A packet to a client is dropped.
    fn down(&mut self, packet: Packet<D>, cause: Cause);
    /// A packet to a server is dropped.
    fn up(&mut self, packet: Packet<U>, cause: Cause);
    /// A packet of this flow to a client is delivered twice.
    fn copied_down(&mut self, _flow: u32) {}
}

impl<B, F: FnMut(Direction, Packet<B>, Fate)> DropSink<B, B> for F {
    fn down(&mut self, packet: Packet<B>, cause: Cause) {
        self(Direction::Down, packet, Fate::Dropped(cause));
    }

    fn up(&mut self, packet: Packet<B>, cause: Cause) {
        self(Direction::Up, packet, Fate::Dropped(cause));
    }
}

/// The links, delay lines and random losses of all paths. `D` and `U` are the packet bodies towards
/// clients and servers; `E` is the caller's event type.
#[derive(Debug)]
pub struct Network<D, U = D, E = Infallible> {
    down: OneWay<D, true>,
    up: OneWay<U, false>,
    flows: Flows,
    /// The card of each flow's server, if cards take time.
    cards: Vec<Card<D>>,
    card: Option<Rate>,
    schedule: Schedule<E>,
}

impl<D: Body, U: Body, E: Copy> Network<D, U, E> {
    /// A network for `spec`, without flows and packets.
    pub fn new(spec: NetworkSpec<'_>) -> Self {
        let NetworkSpec { links, paths, packet_bytes, ack_bytes, host_jitter, card, seed } = spec;
        let down = Links::to_clients(links, paths, packet_bytes, seed);
        Self {
            down: OneWay::new(down),
            up: OneWay::new(Links::to_servers(paths, ack_bytes, seed)),
            flows: Flows::new(paths.to_vec(), seed, host_jitter),
            cards: Vec::new(),
            card,
            schedule: Schedule::new(),
        }
    }

    /// Reserves memory for exactly `flows` more flows.
    pub fn reserve(&mut self, flows: usize) {
        self.flows.reserve(flows);
    }

    /// Adds a flow and returns its number, counted from 0.
    pub fn add_flow(&mut self, flow: FlowPath) -> u32 {
        self.cards.extend(self.card.map(Card::new));
        self.flows.add(flow, &mut self.down.lines, &mut self.up.lines)
    }

    /// The time of the next event if no more packets are offered; [`Time::NEVER`] if none.
    pub fn next_event(&self) -> Time {
        let (at_links, at_lines) = self.schedule.next_times();
        at_lines.min(at_links)
    }

    /// No packet arrives before this time, if no more packets are offered; [`Time::NEVER`] if none
    /// is in flight. Link events until then may be handled later: after a link, a packet takes at
    /// least the shortest delay of all flows to arrive.
    pub fn next_arrival(&self) -> Time {
        let (at_links, at_lines) = self.schedule.next_times();
        if at_links == Time::NEVER {
            return at_lines;
        }
        at_lines.min(at_links + self.flows.shortest_delay)
    }

    /// Bytes that each link has sent in a direction, in the order of the specification: shared
    /// links, then the paths' own.
    pub fn sent(&self, direction: Direction) -> Vec<u64> {
        match direction {
            Direction::Down => self.down.links.sent().collect(),
            Direction::Up => self.up.links.sent().collect(),
        }
    }

    /// Bytes that a link, given by its index in [`Self::sent`], could send in a time span.
    pub fn capacity(&self, direction: Direction, link: u32, from: Time, to: Time) -> u64 {
        let capacity = |time| match direction {
            Direction::Down => self.down.links.capacity(link, time),
            Direction::Up => self.up.links.capacity(link, time),
        };
        capacity(to).saturating_sub(capacity(from))
    }

    /// Bytes waiting in the queues along `path` towards its clients.
    pub fn queued_bytes(&self, path: usize) -> u64 {
        self.down.links.queued_bytes(path)
    }

    /// When the network card of the flow's server will have sent all that it has.
    pub fn card_idle_from(&self, flow: u32) -> Time {
        self.cards.get(flow as usize).map_or(Time::ZERO, Card::idle_from)
    }

    /// Sets the rate of the own link of `path` from now on.
    pub fn set_rate(&mut self, path: usize, rate: Rate) {
        self.down.links.own_mut(path).set_rate(rate);
    }

    /// Replaces the random loss of all flows towards the clients from now on, with the same
    /// streams.
    pub fn set_loss(&mut self, loss: LossSpec) {
        self.flows.set_loss(loss);
    }

    /// Packets towards the servers arrive at multiples of `slot` from now on; zero disables this.
    pub fn aggregate(&mut self, slot: TimeDelta) {
        self.up.lines.all.iter_mut().for_each(|line| line.aggregate(slot));
    }

    /// Frees the memory of a flow's empty delay lines.
    pub fn shrink_empty_lines(&mut self, flow: u32) {
        let [down, up] = self.flows.get(flow).lines;
        self.down.lines.all[down as usize].shrink_if_empty();
        self.up.lines.all[up as usize].shrink_if_empty();
    }

    /// A flow has sent its last packet: frees its memory.
    pub fn end_flow(&mut self, flow: u32) {
        self.flows.end(flow);
    }

    /// Schedules an event of the caller at `time`.
    pub fn schedule(&mut self, time: Time, event: E) {
        self.schedule.at(time, EventSource::Host(event));
    }

    /// Reschedules the latest [`Event::Host`] returned by [`Self::step`] at `time`; [`Time::NEVER`]
    /// drops it.
    pub fn again(&mut self, time: Time) {
        self.schedule.again(time);
    }

    /// Exchanges the events to come. A caller can then simulate parts of the network that share neither links nor flows
    /// one after the other.
    pub fn exchange(&mut self, events: &mut PendingEvents<E>) {
        std::mem::swap(&mut self.schedule, &mut events.0);
    }

    /// The next event and its time, if due by `until`. Packets dropped in it are passed to `drops`.
    #[expect(clippy::inline_always, reason = "1.5 % of a simulation's instructions")]
    #[inline(always)]
    pub fn step(
        &mut self,
        until: Time,
        drops: &mut impl DropSink<D, U>,
    ) -> Option<(Time, Event<E>)> {
        let (now, source) = self.schedule.next().filter(|(time, _)| *time <= until)?;
        let event = match source {
            EventSource::LinkDown(link) => {
                self.on_link_down(now, link, drops);
                Event::Internal
            }
            EventSource::LinkUp(link) => {
                self.on_link_up(now, link, drops);
                Event::Internal
            }
            EventSource::Card(flow) => {
                self.on_card(now, flow, drops);
                Event::Internal
            }
            EventSource::LineDown(line) => Event::Down(Line(line)),
            EventSource::LineUp(line) => Event::Up(Line(line)),
            EventSource::Host(event) => Event::Host(event),
        };
        Some((now, event))
    }

    /// The packet at the end of its path to a client, and whether random loss drops it there.
    /// `None` if it was taken earlier because it overtook another one.
    #[inline]
    pub fn arrive_down(&mut self, now: Time, line: Line) -> Option<(Packet<D>, bool)> {
        let packet = self.down.arrive((now, line.0), &mut self.schedule)?;
        let is_lost = self.flows.loses_after_links(now, packet.flow);
        Some((packet, is_lost))
    }

    /// The packet that has reached a server, unless it was taken earlier.
    #[inline]
    pub fn arrive_up(&mut self, now: Time, line: Line) -> Option<Packet<U>> {
        self.up.arrive((now, line.0), &mut self.schedule)
    }

    /// A packet leaves a server. It, or others in its place, may be dropped.
    #[inline]
    pub fn offer_down(&mut self, now: Time, offer: Offer<D>, drops: &mut impl DropSink<D, U>) {
        let (path, packet) = self.packet(offer);
        let Some(card) = self.cards.get_mut(packet.flow as usize) else {
            return self.cross_links(now, path, packet, drops);
        };
        let flow = packet.flow;
        if let Some(next) = card.send(now, packet) {
            self.schedule.at(next, EventSource::Card(flow));
        }
    }

    /// The card of a flow's server has sent a packet.
    #[inline(never)]
    fn on_card(&mut self, now: Time, flow: u32, drops: &mut impl DropSink<D, U>) {
        let Some(card) = self.cards.get_mut(flow as usize) else { return };
        let packet = card.depart(now);
        self.schedule.again(card.next_departure());
        if let Some(packet) = packet {
            let path = self.flows.get(flow).path;
            self.cross_links(now, path, packet, drops);
        }
    }

    /// A packet comes to the first link of its path to the client.
    #[expect(clippy::inline_always, reason = "1 % of a simulation's instructions")]
    #[inline(always)]
    fn cross_links(
        &mut self,
        now: Time,
        path: u32,
        mut packet: Packet<D>,
        drops: &mut impl DropSink<D, U>,
    ) {
        let flow = self.flows.get(packet.flow);
        let max_packet = flow.max_packet;
        if flow.ecn_changes == Some(LossPosition::Before) {
            packet.ecn = self.flows.changed_ecn(packet.flow, packet.ecn);
        }
        if packet.bytes > max_packet {
            return drops.down(packet, Cause::Loss);
        }
        if self.flows.loses_before_links(now, packet.flow) {
            return drops.down(packet, Cause::Loss);
        }
        // Every path has a link to its clients.
        if let Some(link) = self.down.links.first(path as usize) {
            let dropped = &mut |packet, cause| drops.down(packet, cause);
            self.down.offer((now, link), packet, &mut self.schedule, dropped);
        }
    }

    /// A packet leaves a client. It, or others in its place, may be dropped.
    #[inline]
    pub fn offer_up(&mut self, now: Time, offer: Offer<U>, drops: &mut impl DropSink<D, U>) {
        let (path, packet) = self.packet(offer);
        let Some(link) = self.up.links.first(path as usize) else {
            return self.propagate_up(now, packet, drops);
        };
        let dropped = &mut |packet, cause| drops.up(packet, cause);
        self.up.offer((now, link), packet, &mut self.schedule, dropped);
    }

    /// The path of an offer and its packet.
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
        let departed = down.depart((now, link), path, schedule, dropped);
        if let Some(mut packet) = departed {
            let flow = flows.get(packet.flow);
            let [line, _] = flow.lines;
            if flow.ecn_changes == Some(LossPosition::After) {
                packet.ecn = flows.changed_ecn(packet.flow, packet.ecn);
            }
            let copied = flows.duplicates(packet.flow).then(|| packet.body.copied()).flatten();
            let copy = copied.map(|body| packet.with_body(body));
            down.propagate((now, line), packet, schedule);
            if let Some(copy) = copy {
                drops.copied_down(copy.flow);
                down.propagate((now, line), copy, schedule);
            }
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
        if self.flows.loses_behind_uplink(now, packet.flow) {
            return drops.up(packet, Cause::Loss);
        }
        let [_, line] = self.flows.get(packet.flow).lines;
        self.up.propagate((now, line), packet, &mut self.schedule);
    }
}

/// Networks with one packet type and without caller events.
impl<B: Body> Network<B> {
    /// Handles all events up to `now` in order. Packets that arrive or are dropped are passed to
    /// `fate`.
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

    /// Offers a packet, after handling all events up to `now`. It, or others in its place, may be
    /// dropped and passed to `fate`.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BackSpec, Buffer, Ecn, EcnChange, HostJitter, PathSpec};

    #[derive(Clone, Copy, Debug)]
    struct Number(u64);

    impl Body for Number {
        fn copied(&self) -> Option<Self> {
            Some(*self)
        }
    }

    /// What arrives of packets with these sizes, sent to the client 1 ms apart, in order.
    fn arrived(change: impl FnOnce(&mut PathSpec), sizes: &[u32]) -> Vec<(u64, Ecn)> {
        let rtt = TimeDelta::from_millis(10);
        let mut path = PathSpec::new(Rate::from_mbit(100), rtt, Buffer::Packets(10));
        change(&mut path);
        let mut network: Network<Number> = Network::new(NetworkSpec {
            links: &[],
            paths: &[path],
            packet_bytes: 1500,
            ack_bytes: 52,
            host_jitter: HostJitter::NONE,
            card: None,
            seed: 1,
        });
        network.add_flow(FlowPath { path: 0, host: 0, rtt: None, back: BackSpec::default() });
        let mut arrived = Vec::new();
        let mut fate = |_, packet: Packet<Number>, fate| {
            if matches!(fate, Fate::Arrives(_)) {
                arrived.push((packet.body.0, packet.ecn));
            }
        };
        for (number, bytes) in (0..).zip(sizes) {
            let now = Time::ZERO + TimeDelta::from_millis(number);
            network.advance(now, &mut fate);
            let offer = Offer { flow: 0, bytes: *bytes, ecn: Ecn::Ect0, body: Number(number) };
            network.offer(now, Direction::Down, offer, &mut fate);
        }
        network.advance(Time::NEVER, &mut fate);
        arrived
    }

    #[test]
    fn a_copy_follows_its_packet() {
        let every_other = |path: &mut PathSpec| path.duplicates = LossSpec::EveryNth(2);
        let arrived = arrived(every_other, &[1500; 4]);
        assert_eq!(arrived, [0, 1, 1, 2, 3, 3].map(|number| (number, Ecn::Ect0)));
    }

    #[test]
    fn packets_above_the_largest_size_are_lost() {
        let arrived = arrived(|path| path.max_packet = Some(1400), &[1400, 1401, 52, 9000]);
        assert_eq!(arrived, [0, 2].map(|number| (number, Ecn::Ect0)));
    }

    #[test]
    fn the_ecn_field_is_changed_at_either_place() {
        for position in [LossPosition::Before, LossPosition::After] {
            let change = |path: &mut PathSpec| {
                path.ecn_change = Some(EcnChange::Bleach);
                path.ecn_position = position;
            };
            assert_eq!(arrived(change, &[1500]), [(0, Ecn::NotEct)]);
        }
    }

    #[test]
    fn a_middlebox_marks_every_third_packet() {
        let change = |path: &mut PathSpec| {
            path.ecn_change = Some("ce:every:3".parse().expect("a change"));
        };
        let fields: Vec<Ecn> = arrived(change, &[1500; 6]).iter().map(|(_, ecn)| *ecn).collect();
        assert_eq!(fields, [Ecn::Ect0, Ecn::Ect0, Ecn::Ce, Ecn::Ect0, Ecn::Ect0, Ecn::Ce]);
    }
}
