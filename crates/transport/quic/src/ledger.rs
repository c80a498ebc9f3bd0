//! Packets in flight, and lost packets that may still turn out to be spurious losses.

use std::collections::VecDeque;

use uncork_cc::{Lost, Token};
use uncork_units::Time;

use crate::observed::Space;

/// A packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) token: Token,
    pub(crate) bytes: u32,
}

/// The packets of one packet number space.
#[derive(Clone, Debug, Default)]
struct NumberSpace {
    /// Indexed by packet number from `first`; `None` for packets not in flight.
    in_flight: VecDeque<Option<Sent>>,
    first: u64,
    /// Packets declared lost, by number.
    lost: VecDeque<(u64, Lost)>,
    last_lost: Option<u64>,
}

impl NumberSpace {
    fn push(&mut self, packet: u64, sent: Sent) {
        if self.in_flight.is_empty() {
            self.first = packet;
        }
        let Some(index) = packet.checked_sub(self.first) else { return };
        // ACK-only packets are not reported, which leaves small gaps.
        while (self.in_flight.len() as u64) < index {
            self.in_flight.push_back(None);
        }
        self.in_flight.push_back(Some(sent));
    }

    fn get(&self, packet: u64) -> Option<Sent> {
        let index = usize::try_from(packet.checked_sub(self.first)?).ok()?;
        *self.in_flight.get(index)?
    }

    fn take(&mut self, packet: u64) -> Option<Sent> {
        let index = usize::try_from(packet.checked_sub(self.first)?).ok()?;
        let sent = self.in_flight.get_mut(index)?.take();
        self.trim();
        sent
    }

    fn trim(&mut self) {
        while let Some(None) = self.in_flight.front() {
            self.in_flight.pop_front();
            self.first += 1;
        }
    }

    fn bytes(&self) -> u64 {
        self.in_flight.iter().flatten().map(|sent| u64::from(sent.bytes)).sum()
    }
}

/// A connection's packets in flight.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    spaces: [NumberSpace; 3],
    /// Bytes in flight.
    bytes: u64,
    /// Bytes with an unknown fate.
    forgotten: u64,
}

impl Ledger {
    /// Bytes in flight.
    pub(crate) fn in_flight(&self) -> u64 {
        self.bytes
    }

    /// Bytes with an unknown fate.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    fn forget(&mut self, bytes: u64) {
        self.bytes -= bytes;
        self.forgotten += bytes;
    }

    /// A packet is sent.
    pub(crate) fn on_sent(&mut self, space: Space, packet: u64, sent: Sent) {
        self.bytes += u64::from(sent.bytes);
        self.spaces[space as usize].push(packet, sent);
    }

    /// A packet is acknowledged.
    pub(crate) fn on_acked(&mut self, space: Space, packet: u64) -> Option<Sent> {
        let sent = self.spaces[space as usize].take(packet)?;
        self.bytes -= u64::from(sent.bytes);
        Some(sent)
    }

    /// A packet is declared lost.
    pub(crate) fn on_lost(&mut self, space: Space, packet: u64) -> Option<Lost> {
        let Sent { token, bytes } = self.on_acked(space, packet)?;
        let numbers = &mut self.spaces[space as usize];
        let contiguous = packet.checked_sub(1).is_some_and(|before| {
            numbers.last_lost == Some(before)
                || numbers.lost.binary_search_by_key(&before, |(lost, _)| *lost).is_ok()
        });
        let lost = Lost { token, bytes, contiguous };
        numbers.last_lost = Some(packet);
        let place = numbers.lost.partition_point(|(other, _)| *other < packet);
        numbers.lost.insert(place, (packet, lost));
        Some(lost)
    }

    /// The space of a packet that a timer declares lost, by its number and size; the first if several match.
    pub(crate) fn space_of(&self, packet: u64, bytes: u32) -> Space {
        let has = |space: &Space| {
            let sent = self.spaces[*space as usize].get(packet);
            sent.is_some_and(|sent| sent.bytes == bytes)
        };
        Space::ALL.into_iter().find(has).unwrap_or(Space::Data)
    }

    /// Removes spuriously lost packets, which have arrived, and passes them to `found`.
    pub(crate) fn take_spurious(
        &mut self,
        space: Space,
        has_arrived: impl Fn(u64) -> bool,
        mut found: impl FnMut(Lost),
    ) {
        self.spaces[space as usize].lost.retain(|(packet, lost)| {
            let spurious = has_arrived(*packet);
            if spurious {
                found(*lost);
            }
            !spurious
        });
    }

    /// Forgets lost packets that were sent before `before`.
    pub(crate) fn forget_lost(&mut self, before: Time) {
        for numbers in &mut self.spaces {
            while numbers.lost.front().is_some_and(|(_, lost)| lost.token.send_time() < before) {
                numbers.lost.pop_front();
            }
        }
    }

    /// Forgets packets below `largest`, which is acknowledged, that were sent before `before`. They would have
    /// been declared lost if they were not MTU probes: the stack does not report the loss of a probe.
    pub(crate) fn forget_unreported(&mut self, space: Space, largest: u64, before: Time) {
        let (numbers, mut bytes) = (&mut self.spaces[space as usize], 0);
        while numbers.first < largest
            && let Some(Some(oldest)) = numbers.in_flight.front()
            && oldest.token.send_time() < before
        {
            bytes += u64::from(oldest.bytes);
            numbers.in_flight.pop_front();
            numbers.first += 1;
            numbers.trim();
        }
        self.forget(bytes);
    }

    /// Forgets a packet number space.
    pub(crate) fn discard(&mut self, space: Space) {
        let numbers = &mut self.spaces[space as usize];
        if !numbers.in_flight.is_empty() {
            let bytes = std::mem::take(numbers).bytes();
            self.forget(bytes);
        }
    }

    /// Adds the packets of another path to the packets of unknown fate. The other path may already
    /// have counted the packets in flight here.
    pub(crate) fn forget_all_of(&mut self, other: &Self) {
        self.forgotten = (other.forgotten + other.bytes).saturating_sub(self.bytes);
    }

    /// Forgets everything that was sent.
    pub(crate) fn clear(&mut self) {
        self.spaces = <[NumberSpace; 3]>::default();
        self.forget(self.bytes);
    }

    /// When the oldest packet in flight was sent.
    pub(crate) fn oldest_sent(&self) -> Time {
        let oldest = self.spaces.iter().filter_map(|numbers| numbers.in_flight.front()?.as_ref());
        oldest.map(|sent| sent.token.send_time()).min().unwrap_or(Time::NEVER)
    }
}
