//! The controllers of `noq-proto`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use noq_proto::RttEstimator;
use noq_proto::congestion::{
    Bbr3Config, Controller, ControllerFactory, CubicConfig, NewRenoConfig,
};

use crate::{PACKET, Subject, handshake};

/// A controller of `noq-proto`, called as its `Connection` calls it.
#[derive(Debug)]
pub struct Noq {
    controller: Box<dyn Controller>,
    rtt: RttEstimator,
    epoch: Instant,
}

impl Noq {
    /// Its NewReno.
    pub fn reno() -> Self {
        Self::new(NewRenoConfig::default())
    }

    /// Its CUBIC.
    pub fn cubic() -> Self {
        Self::new(CubicConfig::default())
    }

    /// Its BBRv3.
    pub fn bbr3() -> Self {
        Self::new(Bbr3Config::default())
    }

    fn new(factory: impl ControllerFactory) -> Self {
        let epoch = handshake::epoch();
        let controller = Arc::new(factory).build(epoch, PACKET as u16);
        Self { controller, rtt: handshake::noq_rtt(epoch), epoch }
    }
}

impl Subject for Noq {
    type Now = Instant;
    type Packet = (Instant, u64);

    fn at(&self, nanos: u64) -> Instant {
        self.epoch + Duration::from_nanos(nanos)
    }

    fn window(&self) -> u64 {
        self.controller.window()
    }

    fn sent(&mut self, now: Instant, number: u64, _in_flight: u64, _drained: bool) -> Self::Packet {
        self.controller.on_packet_sent(now, PACKET as u16, number);
        (now, number)
    }

    fn batch_sent(&mut self, now: Instant, bytes: u64, number: u64) {
        self.controller.on_sent(now, bytes, number);
    }

    fn blocked(&mut self) {
        self.controller.on_cwnd_limited();
    }

    fn acked(
        &mut self,
        now: Instant,
        acked: &[Self::Packet],
        rest: &[Self::Packet],
        app_limited: bool,
    ) {
        for (sent, number) in acked {
            let bytes = u64::from(PACKET);
            self.controller.on_ack(now, *sent, bytes, *number, app_limited, &self.rtt);
        }
        let in_flight = rest.len() as u64 * u64::from(PACKET);
        let largest = acked.last().map(|(_, number)| *number);
        self.controller.on_end_acks(now, in_flight, app_limited, largest);
    }

    fn lost(
        &mut self,
        now: Instant,
        (sent, number): Self::Packet,
        acked: &[Self::Packet],
        rest: &[Self::Packet],
    ) {
        self.acked(now, acked, rest, false);
        self.controller.on_packet_lost(PACKET as u16, number, now);
        let bytes = u64::from(PACKET);
        self.controller.on_congestion_event(now, sent, false, false, bytes, number);
    }

    fn is_settled(&self) -> bool {
        let metrics = self.controller.metrics();
        match metrics.ssthresh {
            Some(ssthresh) => metrics.congestion_window >= ssthresh,
            None => format!("{:?}", self.controller).contains("state: Probe"),
        }
    }

    fn state_bytes(&self) -> u64 {
        allocation_counter::measure(|| drop(self.controller.clone_box())).bytes_total
    }
}
