//! Recording of the packets over the path, for replay.

use uncork_path::{Ecn, Fate};
use uncork_units::Time;

use crate::network::Arrival;

/// A packet that arrived at the path, and its fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRecord {
    /// Arrival time.
    pub came: Time,
    /// The packet.
    pub arrival: Arrival<()>,
    /// Its fate and its ECN field at that point; `None` if it was still in flight.
    pub end: Option<(Fate, Ecn)>,
}

/// The packets in order of arrival; empty without recording.
#[derive(Debug)]
pub(crate) struct Record {
    packets: Option<Vec<PacketRecord>>,
}

impl Record {
    pub(crate) fn new(wanted: bool) -> Self {
        Self { packets: wanted.then(Vec::new) }
    }

    /// Records a packet's arrival; returns its number.
    pub(crate) fn begin(&mut self, came: Time, arrival: Arrival<()>) -> u64 {
        let Some(packets) = &mut self.packets else { return 0 };
        packets.push(PacketRecord { came, arrival, end: None });
        packets.len() as u64 - 1
    }

    /// Records the fate of the packet with this number.
    pub(crate) fn end(&mut self, number: u64, fate: Fate, ecn: Ecn) {
        let packet = self.packets.as_mut().and_then(|all| all.get_mut(number as usize));
        if let Some(packet) = packet {
            packet.end = Some((fate, ecn));
        }
    }

    pub(crate) fn into_packets(self) -> Vec<PacketRecord> {
        self.packets.unwrap_or_default()
    }
}
