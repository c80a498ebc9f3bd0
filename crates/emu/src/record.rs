//! What went over the path, packet by packet, so that it can be played again.

use uncork_path::{Ecn, Fate};
use uncork_units::Time;

use crate::network::Arrival;

/// A packet that came to the path, and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRecord {
    /// When it came.
    pub came: Time,
    /// What it was.
    pub arrival: Arrival<()>,
    /// What became of it, and what it then said of congestion; `None` if it was still on its way.
    pub end: Option<(Fate, Ecn)>,
}

/// The packets in the order in which they came; none if they are not recorded.
#[derive(Debug)]
pub(crate) struct Record {
    packets: Option<Vec<PacketRecord>>,
}

impl Record {
    pub(crate) fn new(wanted: bool) -> Self {
        Self { packets: wanted.then(Vec::new) }
    }

    /// A packet comes; gives its number.
    pub(crate) fn begin(&mut self, came: Time, arrival: Arrival<()>) -> u64 {
        let Some(packets) = &mut self.packets else { return 0 };
        packets.push(PacketRecord { came, arrival, end: None });
        packets.len() as u64 - 1
    }

    /// The packet of this number has come to its end.
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
