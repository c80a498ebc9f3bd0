//! Events of applications.

use uncork_cc::ControllerSpec;
use uncork_units::Time;

use crate::app::{App, Get};
use crate::flow::Upstream;
use crate::run::{Simulation, Wake};

impl<S: ControllerSpec> Simulation<'_, S> {
    /// The handshake ends, possibly with a request.
    pub(crate) fn on_request(&mut self, index: u32, syn_ack: Time, get: Option<Get>) {
        let Some(flow) = self.flows.get_mut(index) else { return };
        flow.establish(self.now, syn_ack);
        if let Some(get) = get {
            flow.take_request(get);
        }
        self.write_media(index);
        self.pump(index);
    }

    pub(crate) fn on_app_timer(&mut self, index: u32) {
        self.network.again(Time::NEVER);
        let Some(flow) = self.flows.get_mut(index) else { return };
        flow.app_timer.on_entry();
        if matches!(flow.app, App::Media { .. }) {
            self.write_media(index);
            self.pump(index);
        } else {
            self.advance_client(index);
            self.note_end(index);
        }
        self.reduce(index);
    }

    /// The server's application writes the data due now.
    fn write_media(&mut self, index: u32) {
        let Some(flow) = self.flows.get_mut(index) else { return };
        let bytes = if flow.sender().is_some() { flow.app.newly_written(self.now) } else { 0 };
        if let Some(sender) = flow.sender_mut() {
            sender.write_message(bytes);
            flow.client.expect_message(bytes);
        }
        self.arm_app(index);
    }

    /// The client handles arrived data and due actions.
    pub(crate) fn advance_client(&mut self, index: u32) {
        let Some(flow) = self.flows.get_mut(index) else { return };
        let App::Client(requests) = &mut flow.app else { return };
        if !flow.connected || requests.done().is_some() {
            return;
        }
        let get = requests.advance(self.now, &mut flow.client);
        if let Some(get) = get {
            self.reply(index, Upstream::Get(get));
        }
        self.arm_app(index);
    }

    pub(crate) fn arm_app(&mut self, index: u32) {
        let Some(flow) = self.flows.get_mut(index) else { return };
        if flow.is_over(self.now) {
            return;
        }
        let deadline = flow.app.next_timer(self.now).max(self.now);
        if flow.app_timer.needs_entry(deadline) {
            self.network.schedule(deadline, Wake::App(index));
        }
    }
}
