//! The stack's congestion controller interface.

use std::any::Any;
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use noq_proto::{EcnCodepoint, RttEstimator};

use uncork_cc::EcnMode;

use crate::congestion::PathCongestion;
use crate::handle::{Handle, SharedPath};

/// The controller of one path of a connection.
#[derive(Debug)]
struct Adapter {
    connection: Handle,
    path: Arc<SharedPath>,
}

/// Builds a connection's controllers, one for each path.
pub(crate) struct Factory(pub(crate) Handle);

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let path = self.0.new_path(now, current_mtu);
        Box::new(Adapter { connection: self.0.clone(), path })
    }
}

impl Adapter {
    fn settled(&self) -> MutexGuard<'_, PathCongestion> {
        let mut path = self.path.lock();
        path.settle(self.connection.observed());
        path
    }
}

impl Controller for Adapter {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        let now = self.connection.time(now);
        self.connection.use_path(&self.path);
        self.path.lock().on_sent(self.connection.observed(), now, pn, bytes);
    }

    fn on_ack(&mut self, now: Instant, _: Instant, _: u64, pn: u64, _: bool, _: &RttEstimator) {
        let now = self.connection.time(now);
        self.path.lock().on_acked(self.connection.observed(), now, pn);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        _in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        let now = self.connection.time(now);
        let observed = self.connection.observed();
        self.path.lock().on_acks_end(observed, now, largest_packet_num_acked, app_limited);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        _sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        _lost_bytes: u64,
        _largest_lost_pn: u64,
    ) {
        let now = self.connection.time(now);
        self.path.lock().on_congestion(now, is_persistent_congestion, is_ecn);
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: Instant) {
        let now = self.connection.time(now);
        self.path.lock().on_lost(now, pn, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.path.lock().on_mtu(new_mtu);
    }

    fn ecn_codepoint(&self) -> Option<EcnCodepoint> {
        match self.settled().ecn() {
            EcnMode::None => None,
            EcnMode::Classic => Some(EcnCodepoint::Ect0),
            EcnMode::L4s => Some(EcnCodepoint::Ect1),
        }
    }

    fn on_ecn_validation_failed(&mut self) {
        self.settled().on_ecn_validation_failed();
    }

    fn window(&self) -> u64 {
        self.settled().window()
    }

    fn metrics(&self) -> ControllerMetrics {
        let control = self.settled().control();
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = control.cwnd;
        metrics.pacing_rate = control.pacing_rate.map(uncork_units::Rate::bytes_per_sec);
        metrics.send_quantum = control.pacing_rate.map(|_| control.send_quantum);
        metrics
    }

    /// The peer's port changed, not its host: the measurements still hold.
    fn clone_box(&self) -> Box<dyn Controller> {
        let path = self.connection.same_path(&self.path);
        Box::new(Self { connection: self.connection.clone(), path })
    }

    fn initial_window(&self) -> u64 {
        self.path.lock().initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
