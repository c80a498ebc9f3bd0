//! Messages from clients to servers.

use uncork_cc::ControllerSpec;
use uncork_path::{Ecn, Line, Offer, Packet};

use crate::flow::{Server, Upstream};
use crate::run::Simulation;
use crate::segments::HEADER_BYTES;

impl<S: ControllerSpec> Simulation<'_, S> {
    /// A message leaves a client.
    pub(crate) fn reply(&mut self, index: u32, message: Upstream) {
        // RFC 3168 §6.1.1 for a SYN, §6.1.4 for ACKs.
        let (bytes, ecn) = (HEADER_BYTES, Ecn::NotEct);
        let Some(flow) = self.flows.get_mut(index) else { return };
        flow.travelling += 1;
        let offer = Offer { flow: index, bytes, ecn, body: message };
        self.network.offer_up(self.now, offer, &mut self.flows);
    }

    /// A message reaches a server.
    pub(crate) fn on_upstream(&mut self, line: Line) {
        let Some(packet) = self.network.arrive_up(self.now, line) else { return };
        let Packet { flow: index, body, .. } = packet;
        let Some(flow) = self.flows.get_mut(index) else { return };
        flow.travelling -= 1;
        match (body, &mut flow.server) {
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
                if flow.ecn == Ecn::Ect1 && sender.leaves_ect1(self.now) {
                    flow.ecn = Ecn::Ect0;
                }
                if sender.is_done() {
                    flow.rest();
                    self.network.shrink_empty_lines(index);
                }
                self.pump(index);
            }
            (Upstream::Ack(_), _) => {}
        }
        self.reduce(index);
    }
}
