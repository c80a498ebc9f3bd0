//! Drop-tail: first in, first out, and what does not fit is lost.

use std::collections::VecDeque;

use uncork_units::Time;

use crate::Packet;

/// A FIFO that holds a limited number of bytes.
#[derive(Clone, Debug)]
pub struct DropTail<T> {
    limit_bytes: u64,
    bytes: u64,
    packets: VecDeque<(Time, Packet<T>)>,
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

    /// Takes a packet in; false when it does not fit and is lost.
    pub fn enqueue(&mut self, now: Time, packet: Packet<T>) -> bool {
        let bytes = self.bytes + u64::from(packet.bytes);
        if bytes > self.limit_bytes {
            return false;
        }
        self.bytes = bytes;
        self.packets.push_back((now, packet));
        true
    }

    /// The oldest packet and when it came.
    pub fn dequeue(&mut self) -> Option<(Time, Packet<T>)> {
        let (since, packet) = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.bytes);
        Some((since, packet))
    }
}
