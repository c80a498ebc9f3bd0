//! The state of a running flow.

use uncork_cc::{Control, Controller, ControllerSpec, Snapshot};
use uncork_units::TimeDelta;

use crate::run::Simulation;

/// The state of a flow at one instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowView {
    /// The state of its controller.
    pub snapshot: Snapshot,
    /// Its window and rate.
    pub control: Control,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Smoothed round-trip time (RFC 6298).
    pub smoothed_rtt: TimeDelta,
    /// Payload bytes received by its client, without duplicates.
    pub delivered_bytes: u64,
    /// Payload bytes received in order by its client: what an application can read.
    pub in_order_bytes: u64,
    /// Bytes waiting in the queues of its path.
    pub queue_bytes: u64,
    /// Packets declared lost so far.
    pub packets_lost: u64,
    /// Retransmission timeouts so far.
    pub timeouts: u64,
}

impl<S: ControllerSpec> Simulation<'_, S> {
    /// Whether a flow is over, and all its packets have arrived or are lost.
    pub fn is_over(&self, flow: u32) -> bool {
        self.flows.is_over(flow)
    }

    /// The controller of a flow; `None` as for [`Self::view`].
    pub fn controller(&self, flow: u32) -> Option<&S::Controller> {
        Some(self.flows.get(flow)?.sender()?.controller())
    }

    /// The current state of a flow; `None` before its connection is established, and once it is
    /// over and all its packets have arrived or are lost.
    pub fn view(&self, flow: u32) -> Option<FlowView> {
        let flow = self.flows.get(flow)?;
        let sender = flow.sender()?;
        let counters = sender.counters();
        Some(FlowView {
            snapshot: sender.controller().snapshot(),
            control: sender.control(),
            in_flight: sender.in_flight(),
            smoothed_rtt: sender.smoothed_rtt(),
            delivered_bytes: flow.client.delivered_bytes(),
            in_order_bytes: flow.client.in_order_bytes(),
            queue_bytes: self.network.queued_bytes(flow.spec.path),
            packets_lost: counters.packets_lost,
            timeouts: counters.timeouts,
        })
    }
}
