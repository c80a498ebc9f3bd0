//! What happens to packets on their way from servers to clients.

#[cfg(test)]
use uncork_path::Direction;
use uncork_path::{Ecn, LossPosition, Packet};
use uncork_units::Time;

use crate::flow::{Downstream, Upstream};
use crate::run::Simulation;
use crate::schedule::Source;
use crate::segments::{HEADER_BYTES, Reply, Segment};

/// What a packet says of ECN, of a flow that says `ecn`. RFC 3168 forbids ECT on a SYN/ACK (§6.1.1) and on
/// what is sent again (§6.1.5), and so does Linux (`tcp_ecn_send`). RFC 8311 §4.3 lets experiments set it
/// on both; Linux does so for controllers that need ECN on all packets (`tcp_ca_needs_ecn`), which are
/// those of L4S and of data centres.
const fn ecn_of(ecn: Ecn, body: &Downstream) -> Ecn {
    match (ecn, body) {
        (Ecn::Ect0, Downstream::SynAck(_)) => Ecn::NotEct,
        (Ecn::Ect0, Downstream::Data { segment, .. }) if segment.repeats => Ecn::NotEct,
        _ => ecn,
    }
}

impl Simulation<'_> {
    /// Sends what the flow's server may send now, and looks when it may send more.
    pub(crate) fn pump(&mut self, index: u32) {
        self.send(index);
        self.arm_sender(index);
    }

    /// Sends what the flow's server may send now.
    pub(crate) fn send(&mut self, index: u32) {
        if self.flows.get(index).is_none_or(|flow| flow.is_over(self.now)) {
            return;
        }
        while let Some(segment) =
            self.flows.get_mut(index).and_then(|flow| flow.poll_segment(self.now))
        {
            self.packets += 1;
            self.transmit(index, segment.bytes + HEADER_BYTES, Downstream::data(segment));
        }
    }

    pub(crate) fn send_syn_ack(&mut self, index: u32, retries: u32) {
        let Some(flow) = self.flows.get_mut(index) else { return };
        flow.answer_syn(self.now, retries);
        self.transmit(index, HEADER_BYTES, Downstream::SynAck(self.now));
    }

    /// A packet leaves a server.
    fn transmit(&mut self, index: u32, bytes: u32, body: Downstream) {
        let Some(flow) = self.flows.get_mut(index) else { return };
        let path = flow.spec.path;
        let ecn = ecn_of(flow.spec.ecn, &body);
        #[cfg(test)]
        self.log.offer(self.now, (Direction::Down, index), bytes, ecn);
        if self.spec.paths[path].loss_position == LossPosition::Before && flow.is_struck(&body) {
            return;
        }
        flow.travelling += 1;
        let packet = Packet { flow: index, host: flow.host, bytes, ecn, body };
        if let Some(link) = self.links.first(path) {
            self.offer(link, packet);
        }
    }

    /// A packet arrives at a link on its way to a client.
    fn offer(&mut self, link: u32, packet: Packet<Downstream>) {
        let was_idle = self.links.next_departure(link) == Time::NEVER;
        let mut dropped = |packet, by| self.flows.note_drop(&packet, by);
        self.links.offer(self.now, link, packet, &mut dropped);
        let next = self.links.next_departure(link);
        if link == 0 {
            self.schedule.link_at(next);
        } else if was_idle && next < Time::NEVER {
            self.schedule.at(next, Source::Link(link));
        }
    }

    pub(crate) fn on_departure(&mut self, link: u32) {
        let mut dropped = |packet, by| self.flows.note_drop(&packet, by);
        let departure = self.links.depart(self.now, link, &mut dropped);
        let next = self.links.next_departure(link);
        if link == 0 {
            self.schedule.link_at(next);
        } else {
            self.schedule.again_or_done(next);
        }
        let Some(departure) = departure else { return };
        let mut packet = departure.packet;
        packet.body.crossed(departure.queued_for);
        match self.links.after(link, || self.spec.flows[packet.flow as usize].path) {
            Some(next) => self.offer(next, packet),
            None => self.propagate(packet),
        }
    }

    /// A packet has crossed all links on its way to the client. Its flow is not looked at before it
    /// arrives there: each look costs time where there are many.
    fn propagate(&mut self, Packet { flow, ecn, mut body, .. }: Packet<Downstream>) {
        if let Downstream::Data { segment, .. } = &mut body {
            segment.ce = ecn == Ecn::Ce;
        }
        if let Some((time, line)) = self.to_clients.enter(self.now, flow, body, 0) {
            self.schedule.at(time, Source::Downstream(line));
        }
    }

    pub(crate) fn on_downstream(&mut self, line: u32) {
        // Nothing is due if a packet has overtaken the one that this entry was made for, and the entry
        // made for that packet has taken over.
        let Some((index, arrived)) = self.to_clients.arrive(self.now, line) else {
            return self.schedule.done();
        };
        self.schedule.again_or_done(self.to_clients.next_arrival(line));
        let Some(flow) = self.flows.get_mut(index) else { return };
        flow.travelling -= 1;
        if let Downstream::Data { queued_for, .. } = arrived {
            flow.queueing.record(queued_for.as_nanos());
        }
        let path = &self.spec.paths[flow.spec.path];
        if path.loss_position == LossPosition::After && flow.is_struck(&arrived) {
            return self.flows.reduce(self.now, index);
        }
        #[cfg(test)]
        self.log.arrival(self.now, (Direction::Down, index), arrived.is_marked());
        match arrived {
            Downstream::SynAck(sent) => {
                let get = flow.connect(self.now);
                self.reply(index, Upstream::Request(sent, get));
                self.arm_app(index);
            }
            Downstream::Data { segment, .. } => self.on_data(index, segment),
        }
        self.flows.reduce(self.now, index);
    }

    /// What arrives when the flow is over counts for nothing.
    fn on_data(&mut self, index: u32, segment: Segment) {
        let Some(flow) = self.flows.get_mut(index) else { return };
        if flow.is_over(self.now) {
            return;
        }
        let reply = flow.client.on_segment(self.now, segment);
        if self.now < self.spec.warmup {
            flow.delivered_early = flow.client.delivered_bytes();
        }
        match reply {
            Reply::Now(ack) => self.reply(index, Upstream::Ack(ack)),
            Reply::Later => self.arm_receiver(index),
        }
        self.advance_client(index);
        self.note_end(index);
    }

    /// Takes note if the flow has just come to its end.
    pub(crate) fn note_end(&mut self, index: u32) {
        let ended = self.flows.get_mut(index).is_some_and(|flow| flow.has_finished(self.now));
        self.unfinished -= usize::from(ended);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FlowSpec, RunSpec, Workload};
    use uncork_path::{Buffer, PathSpec};
    use uncork_units::{Rate, TimeDelta};

    /// Of the SYN/ACK and the ten segments of the first window every second is lost, the first segment
    /// among them. Before the queue these take no room in it, after the link they do.
    #[test]
    fn random_loss_strikes_before_the_queue_or_after_the_link() {
        let end = Time::ZERO + TimeDelta::from_secs(10);
        for (position, queued) in [(LossPosition::Before, 4), (LossPosition::After, 9)] {
            let rtt = TimeDelta::from_millis(100);
            let mut path = PathSpec::new(Rate::from_mbit(1), rtt, Buffer::Packets(20));
            path.loss = "every:2".parse().expect("a loss");
            path.loss_position = position;
            let reno = "reno".parse().expect("a controller");
            let flow = FlowSpec::new(reno, Workload::Until(end));
            let run = RunSpec::over(path, vec![flow], 1, end);
            let mut simulation = Simulation::new(&run);
            while simulation.packets() == 0 {
                assert!(simulation.step());
            }
            assert_eq!(simulation.packets(), 10);
            assert_eq!(simulation.links.queued_bytes(0), queued * 1500, "{position:?}");
        }
    }

    #[test]
    fn only_new_data_is_ecn_capable_but_for_l4s() {
        let data = |repeats| {
            let segment =
                Segment { seq: 0, tx: 0, sent: Time::ZERO, bytes: 1448, repeats, ce: false };
            Downstream::Data { segment, queued_for: TimeDelta::ZERO }
        };
        let kinds = [Downstream::SynAck(Time::ZERO), data(true), data(false)];
        for (ecn, says) in [
            (Ecn::NotEct, [Ecn::NotEct; 3]),
            (Ecn::Ect0, [Ecn::NotEct, Ecn::NotEct, Ecn::Ect0]),
            (Ecn::Ect1, [Ecn::Ect1; 3]),
        ] {
            assert_eq!(kinds.each_ref().map(|body| ecn_of(ecn, body)), says, "{ecn:?}");
        }
    }
}
