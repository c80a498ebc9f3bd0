//! Hosts' timers.

use uncork_cc::ControllerSpec;
use uncork_units::Time;

use crate::flow::{Server, Upstream};
use crate::run::{Simulation, Wake};

impl<S: ControllerSpec> Simulation<'_, S> {
    pub(crate) fn on_sender_timer(&mut self, index: u32) {
        if let Some(flow) = self.flows.get_mut(index) {
            flow.sender_timer.on_entry();
            match &mut flow.server {
                Server::Handshake { retry, retries } if *retry <= self.now => {
                    let retries = *retries + 1;
                    self.send_syn_ack(index, retries);
                }
                Server::Listening | Server::Handshake { .. } => {}
                Server::Established(sender) => {
                    sender.on_timer(self.now, &mut self.scratch);
                    self.send(index);
                }
            }
        }
        let next = self.new_sender_deadline(index);
        self.network.again(next);
        self.reduce(index);
    }

    pub(crate) fn on_receiver_timer(&mut self, index: u32) {
        if let Some(flow) = self.flows.get_mut(index) {
            flow.receiver_timer.on_entry();
            if let Some(ack) = flow.client.on_timer(self.now) {
                self.reply(index, Upstream::Ack(ack));
            }
        }
        let next = self.new_receiver_deadline(index);
        self.network.again(next);
    }

    pub(crate) fn arm_sender(&mut self, index: u32) {
        let deadline = self.new_sender_deadline(index);
        if deadline < Time::NEVER {
            self.network.schedule(deadline, Wake::Sender(index));
        }
    }

    pub(crate) fn arm_receiver(&mut self, index: u32) {
        let deadline = self.new_receiver_deadline(index);
        if deadline < Time::NEVER {
            self.network.schedule(deadline, Wake::Receiver(index));
        }
    }

    /// The server's deadline if it needs a new schedule entry; [`Time::NEVER`] otherwise.
    fn new_sender_deadline(&mut self, index: u32) -> Time {
        let now = self.now;
        let Some(flow) = self.flows.get_mut(index) else { return Time::NEVER };
        let deadline = flow.next_sender_timer().max(now);
        let needed = !flow.is_over(now) && flow.sender_timer.needs_entry(deadline);
        if needed { deadline } else { Time::NEVER }
    }

    /// The client's deadline if it needs a new schedule entry; [`Time::NEVER`] otherwise.
    fn new_receiver_deadline(&mut self, index: u32) -> Time {
        let Some(flow) = self.flows.get_mut(index) else { return Time::NEVER };
        let deadline = flow.client.next_timer().max(self.now);
        if flow.receiver_timer.needs_entry(deadline) { deadline } else { Time::NEVER }
    }
}
