//! Packets from servers to clients.

use uncork_cc::ControllerSpec;
use uncork_path::{Cause, Line, Packet};

use crate::flow::{Downstream, Flow, Upstream};
use crate::run::Simulation;
use crate::segments::{HEADER_BYTES, Reply, Segment};

impl<S: ControllerSpec> Simulation<'_, S> {
    /// Sends what the flow's server may send now, and schedules the next check.
    pub(crate) fn pump(&mut self, index: u32) {
        self.send(index);
        self.arm_sender(index);
    }

    /// Sends what the flow's server may send now.
    pub(crate) fn send(&mut self, index: u32) {
        if self.flows.get(index).is_none_or(|flow| flow.is_over(self.now)) {
            return;
        }
        let now = self.now;
        while let Some(segment) = self.flows.get_mut(index).and_then(|flow| flow.poll_segment(now))
        {
            if segment.more == 0 {
                self.offer_data(index, segment);
            } else {
                segment.packets(self.spec.offload).for_each(|it| self.offer_data(index, it));
            }
        }
    }

    #[inline]
    fn offer_data(&mut self, index: u32, packet: Segment) {
        let Some(flow) = self.flows.get_mut(index) else { return };
        let segments = 1 + u32::from(packet.more);
        self.packets += u64::from(segments);
        let bytes = segments * (packet.bytes + HEADER_BYTES);
        let offer = flow.offer(bytes, Downstream::data(packet));
        self.network.offer_down(self.now, offer, &mut self.flows);
        if self.spec.card.is_some() {
            self.wait_for_card(index);
        }
    }

    /// The flow's server sends no more until its card has sent what it has.
    #[cold]
    fn wait_for_card(&mut self, index: u32) {
        let idle_from = self.network.card_idle_from(index);
        if let Some(sender) = self.flows.get_mut(index).and_then(Flow::sender_mut) {
            sender.wait_for_card(idle_from);
        }
    }

    pub(crate) fn send_syn_ack(&mut self, index: u32, retries: u32) {
        let Some(flow) = self.flows.get_mut(index) else { return };
        flow.answer_syn(self.now, retries);
        let offer = flow.offer(HEADER_BYTES, Downstream::SynAck(self.now));
        self.network.offer_down(self.now, offer, &mut self.flows);
    }

    /// A packet reaches the end of its path, where it may be lost.
    pub(crate) fn on_downstream(&mut self, line: Line) {
        let Some((packet, is_lost)) = self.network.arrive_down(self.now, line) else { return };
        let Packet { flow: index, ecn, body, .. } = packet;
        let Some(flow) = self.flows.get_mut(index) else { return };
        if let Downstream::Data { queued_for, .. } = body {
            flow.queueing.record(queued_for.as_nanos());
        }
        if is_lost {
            flow.note_drop(&body, Cause::Loss);
            return self.reduce(index);
        }
        flow.travelling -= 1;
        match body {
            Downstream::SynAck(sent) => {
                let get = flow.connect(self.now);
                self.reply(index, Upstream::Request(sent, get));
                self.arm_app(index);
            }
            Downstream::Data { mut segment, .. } => {
                segment.ecn = ecn;
                self.on_data(index, segment);
            }
        }
        self.reduce(index);
    }

    /// Data that arrives after the end of the flow is ignored.
    fn on_data(&mut self, index: u32, segment: Segment) {
        let Some(flow) = self.flows.get_mut(index) else { return };
        if flow.is_over(self.now) {
            return;
        }
        let reply = flow.client.on_segment(self.now, segment);
        if self.now < self.spec.warmup {
            flow.delivered_early = flow.client.delivered_bytes();
        }
        let (makes_requests, may_end) = (flow.app.requests().is_some(), flow.may_end());
        match reply {
            Reply::Now(ack) => self.reply(index, Upstream::Ack(ack)),
            Reply::Later => self.arm_receiver(index),
        }
        if makes_requests {
            self.advance_client(index);
        }
        if may_end {
            self.note_end(index);
        }
    }

    /// Counts the flow as finished if it has just ended.
    pub(crate) fn note_end(&mut self, index: u32) {
        let ended = self.flows.get_mut(index).is_some_and(|flow| flow.has_finished(self.now));
        if ended {
            self.unfinished -= 1;
            self.last = if self.unfinished == 0 { self.now } else { self.last };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FlowSpec, RunSpec, Workload};
    use uncork_path::{Buffer, LossPosition, PathSpec};
    use uncork_units::{Rate, Time, TimeDelta};

    /// Every second packet of the SYN/ACK and the ten segments of the initial window is lost,
    /// including the first segment. Lost before the queue they take no room in it; lost after the
    /// link they do.
    #[test]
    fn random_loss_occurs_before_the_queue_or_after_the_link() {
        let end = Time::ZERO + TimeDelta::from_secs(10);
        for (position, queued) in [(LossPosition::Before, 4), (LossPosition::After, 9)] {
            let rtt = TimeDelta::from_millis(100);
            let mut path = PathSpec::new(Rate::from_mbit(1), rtt, Buffer::Packets(20));
            path.loss = "every:2".parse().expect("a loss");
            path.loss_position = position;
            let reno: uncork_cc::CcSpec = "reno".parse().expect("a controller");
            let flow = FlowSpec::new(reno, Workload::Until(end));
            let run = RunSpec::over(path, vec![flow], 1, end);
            let mut simulation = Simulation::new(&run);
            while simulation.packets() == 0 {
                assert!(simulation.step());
            }
            assert_eq!(simulation.packets(), 10);
            assert_eq!(simulation.network.queued_bytes(0), queued * 1500, "{position:?}");
        }
    }
}
