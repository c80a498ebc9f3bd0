//! What happens to messages on their way from clients to servers.

use uncork_path::{Ecn, Packet};
use uncork_units::Time;

use crate::flow::{Server, Upstream};
use crate::run::Simulation;
use crate::schedule::Source;
use crate::segments::HEADER_BYTES;

impl Simulation<'_> {
    /// A message leaves a client.
    pub(crate) fn reply(&mut self, index: u32, message: Upstream) {
        // RFC 3168 §6.1.1 for a SYN, §6.1.4 for acknowledgements.
        self.reply_as(index, message, HEADER_BYTES, Ecn::NotEct);
    }

    /// A message leaves a client in a packet of `bytes` that says `ecn`.
    #[inline]
    pub(crate) fn reply_as(&mut self, index: u32, message: Upstream, bytes: u32, ecn: Ecn) {
        let Some(flow) = self.flows.get_mut(index) else { return };
        flow.travelling += 1;
        let Some(link) = self.uplinks.first(flow.spec.path) else {
            self.propagate_back(index, message, bytes);
            return;
        };
        let was_idle = self.uplinks.next_departure(link) == Time::NEVER;
        let packet = Packet { flow: index, host: flow.host, bytes, ecn, body: message };
        let mut dropped = |packet, by| self.flows.note_ack_drop(&packet, by);
        self.uplinks.offer(self.now, link, packet, &mut dropped);
        let next = self.uplinks.next_departure(link);
        if was_idle && next < Time::NEVER {
            self.schedule.at(next, Source::Uplink(link));
        }
    }

    pub(crate) fn on_uplink_departure(&mut self, link: u32) {
        let mut dropped = |packet, by| self.flows.note_ack_drop(&packet, by);
        let departure = self.uplinks.depart(self.now, link, &mut dropped);
        self.schedule.again_or_done(self.uplinks.next_departure(link));
        let packet = departure.map(|departure| departure.packet);
        if let Some(Packet { flow, bytes, ecn, body, .. }) = packet {
            if let Some(carried) = self.flows.carried.as_mut().filter(|_| ecn == Ecn::Ce) {
                carried.mark_upstream(&body);
            }
            self.propagate_back(flow, body, bytes);
        }
    }

    /// A message has crossed the uplink.
    fn propagate_back(&mut self, index: u32, message: Upstream, bytes: u32) {
        if let Some((time, line)) = self.to_servers.enter(self.now, index, message, bytes) {
            self.schedule.at(time, Source::Upstream(line));
        }
    }

    pub(crate) fn on_upstream(&mut self, line: u32) {
        let arrived = self.to_servers.arrive(self.now, line);
        self.schedule.again_or_done(self.to_servers.next_arrival(line));
        let Some((index, arrived)) = arrived else { return };
        if let (Some(carried), Upstream::Get(get)) = (&mut self.flows.carried, &arrived) {
            return carried.arrive_upstream(self.now, get);
        }
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
