//! The controllers of `quinn-proto`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{
    Bbr, BbrConfig, Controller, ControllerFactory, CubicConfig, NewRenoConfig,
};

use crate::{PACKET, Subject, handshake};

/// A controller of `quinn-proto`, called as its `Connection` calls it.
pub struct Quinn {
    controller: Box<dyn Controller>,
    rtt: RttEstimator,
    epoch: Instant,
}

impl Quinn {
    /// Its NewReno.
    pub fn reno() -> Self {
        Self::new(NewRenoConfig::default())
    }

    /// Its CUBIC.
    pub fn cubic() -> Self {
        Self::new(CubicConfig::default())
    }

    /// Its BBRv1.
    pub fn bbr() -> Self {
        Self::new(BbrConfig::default())
    }

    fn new(factory: impl ControllerFactory) -> Self {
        let epoch = handshake::epoch();
        let controller = Arc::new(factory).build(epoch, PACKET as u16);
        Self { controller, rtt: handshake::quinn_rtt(epoch), epoch }
    }
}

impl Subject for Quinn {
    type Now = Instant;
    type Packet = (Instant, u64);

    fn at(&self, nanos: u64) -> Instant {
        self.epoch + Duration::from_nanos(nanos)
    }

    fn window(&self) -> u64 {
        self.controller.window()
    }

    fn sent(&mut self, now: Instant, number: u64, _in_flight: u64, _drained: bool) -> Self::Packet {
        (now, number)
    }

    fn batch_sent(&mut self, now: Instant, bytes: u64, number: u64) {
        self.controller.on_sent(now, bytes, number);
    }

    fn acked(
        &mut self,
        now: Instant,
        acked: &[Self::Packet],
        rest: &[Self::Packet],
        app_limited: bool,
    ) {
        for (sent, _) in acked {
            self.controller.on_ack(now, *sent, u64::from(PACKET), app_limited, &self.rtt);
        }
        let in_flight = rest.len() as u64 * u64::from(PACKET);
        let largest = acked.last().map(|(_, number)| *number);
        self.controller.on_end_acks(now, in_flight, app_limited, largest);
    }

    fn lost(
        &mut self,
        now: Instant,
        (sent, _): Self::Packet,
        acked: &[Self::Packet],
        rest: &[Self::Packet],
    ) {
        self.acked(now, acked, rest, false);
        self.controller.on_congestion_event(now, sent, false, u64::from(PACKET));
    }

    fn is_settled(&self) -> bool {
        let metrics = self.controller.metrics();
        match self.controller.clone_box().into_any().downcast::<Bbr>() {
            Ok(bbr) => format!("{bbr:?}").contains("mode: Probe"),
            Err(_) => {
                metrics.ssthresh.is_some_and(|ssthresh| metrics.congestion_window >= ssthresh)
            }
        }
    }

    fn state_bytes(&self) -> u64 {
        allocation_counter::measure(|| drop(self.controller.clone_box())).bytes_total
    }
}
