//! What happens to messages on their way from clients to servers.

#[cfg(test)]
use uncork_path::Direction;
use uncork_path::{Departure, Ecn, Packet};
use uncork_units::Time;

use crate::flow::{Server, Upstream};
use crate::run::Simulation;
use crate::schedule::Source;
use crate::segments::HEADER_BYTES;

impl Simulation<'_> {
    /// A message leaves a client.
    pub(crate) fn reply(&mut self, index: u32, message: Upstream) {
        // RFC 3168 §6.1.1 for a SYN, §6.1.4 for acknowledgements.
        let (bytes, ecn) = (HEADER_BYTES, Ecn::NotEct);
        let Some(flow) = self.flows.get_mut(index) else { return };
        flow.travelling += 1;
        #[cfg(test)]
        self.log.offer(self.now, (Direction::Up, index), bytes, ecn);
        let Some(link) = self.uplinks.first(flow.spec.path) else {
            self.propagate_back(index, message);
            return;
        };
        let was_idle = self.uplinks.next_departure(link) == Time::NEVER;
        let packet = Packet { flow: index, host: flow.host, bytes, ecn, body: message };
        let mut dropped = |packet, _| self.flows.note_ack_drop(&packet);
        self.uplinks.offer(self.now, link, packet, &mut dropped);
        let next = self.uplinks.next_departure(link);
        if was_idle && next < Time::NEVER {
            self.schedule.at(next, Source::Uplink(link));
        }
    }

    pub(crate) fn on_uplink_departure(&mut self, link: u32) {
        let mut dropped = |packet, _| self.flows.note_ack_drop(&packet);
        let departure = self.uplinks.depart(self.now, link, &mut dropped);
        self.schedule.again_or_done(self.uplinks.next_departure(link));
        if let Some(Departure { packet: Packet { flow, body, .. }, .. }) = departure {
            self.propagate_back(flow, body);
        }
    }

    /// A message has crossed the uplink.
    fn propagate_back(&mut self, index: u32, message: Upstream) {
        if let Some((time, line)) = self.to_servers.enter(self.now, index, message, HEADER_BYTES) {
            self.schedule.at(time, Source::Upstream(line));
        }
    }

    pub(crate) fn on_upstream(&mut self, line: u32) {
        let arrived = self.to_servers.arrive(self.now, line);
        self.schedule.again_or_done(self.to_servers.next_arrival(line));
        let Some((index, arrived)) = arrived else { return };
        #[cfg(test)]
        self.log.arrival(self.now, (Direction::Up, index), false);
        let Some(flow) = self.flows.get_mut(index) else { return };
        flow.travelling -= 1;
        match (arrived, &mut flow.server) {
            (Upstream::Syn, Server::Established(_)) => {}
            (Upstream::Syn, _) => {
                self.send_syn_ack(index, 0);
                self.arm_sender(index);
            }
            (Upstream::Request(syn_ack, get), _) => self.on_request(index, syn_ack, get),
            (Upstream::Get(get), _) => {
                flow.take_request(get);
                self.pump(index);
            }
            (Upstream::Ack(ack), Server::Established(sender)) => {
                if let Some(rtt) = sender.on_ack(self.now, &ack, &mut self.scratch) {
                    flow.rtts.record(rtt.as_nanos());
                }
                if sender.is_done() {
                    flow.rest();
                    self.to_clients.rest(index);
                    self.to_servers.rest(index);
                }
                self.pump(index);
            }
            (Upstream::Ack(_), _) => {}
        }
        self.flows.reduce(self.now, index);
    }
}
