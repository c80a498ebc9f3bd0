//! Drop-tail: a FIFO that drops arriving packets that do not fit.

use std::collections::VecDeque;

use uncork_units::Time;

use super::Queued;
use crate::Packet;

/// A FIFO that holds a limited number of bytes.
#[derive(Clone, Debug)]
pub struct DropTail<T> {
    limit_bytes: u64,
    bytes: u64,
    packets: VecDeque<Queued<T>>,
}

impl<T> DropTail<T> {
    /// A queue for at most `limit_bytes` bytes.
    pub fn new(limit_bytes: u64) -> Self {
        Self { limit_bytes, bytes: 0, packets: VecDeque::new() }
    }

    /// Bytes waiting.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Packets waiting.
    pub fn packets(&self) -> usize {
        self.packets.len()
    }

    /// Arrival time of the oldest packet.
    pub(super) fn head(&self) -> Option<Time> {
        self.packets.front().map(|queued| queued.since)
    }

    /// Whether a packet of `bytes` fits.
    pub(super) fn fits(&self, bytes: u32) -> bool {
        self.bytes + u64::from(bytes) <= self.limit_bytes
    }

    /// Adds a packet, or passes it to `dropped` if it does not fit.
    pub fn enqueue(&mut self, now: Time, packet: Packet<T>, dropped: &mut impl FnMut(Packet<T>)) {
        if !self.fits(packet.bytes) {
            dropped(packet);
            return;
        }
        self.bytes += u64::from(packet.bytes);
        self.packets.push_back(Queued { since: now, packet });
    }

    /// The oldest packet.
    pub fn dequeue(&mut self) -> Option<Queued<T>> {
        let queued = self.packets.pop_front()?;
        self.bytes -= u64::from(queued.packet.bytes);
        Some(queued)
    }
}
