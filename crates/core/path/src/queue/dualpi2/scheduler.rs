//! Scheduler of the two queues (RFC 9332, A.2, §4.2.2).

use crate::Packet;

/// A weighted round robin over bytes: the L queue has priority, but while both queues wait, classic
/// packets get one part in `weight` + 1 of the link.
///
/// As in the reference implementation (A.1), the credit changes only while both queues wait, so
/// that an L queue that is mostly empty is hardly delayed. Dropped packets do not count, because
/// they take no time on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scheduler {
    weight: i64,
    /// Non-negative once the classic queue has been passed over long enough.
    credit: i64,
}

/// The two queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServedQueue {
    /// Low latency.
    Low,
    /// Reno-friendly traffic.
    Classic,
}

impl Scheduler {
    pub(super) fn new(weight: u32) -> Self {
        Self { weight: i64::from(weight), credit: 0 }
    }

    /// Which queue is next when both have packets.
    pub(super) fn next(&self) -> ServedQueue {
        if self.credit >= 0 { ServedQueue::Classic } else { ServedQueue::Low }
    }

    /// `packet` was sent from `side` while the other queue also had packets.
    pub(super) fn sent<T>(&mut self, side: ServedQueue, packet: &Packet<T>) {
        let bytes = i64::from(packet.bytes);
        self.credit += match side {
            ServedQueue::Low => bytes,
            ServedQueue::Classic => -self.weight * bytes,
        };
    }

    /// Both queues are empty: the L queue regains its full turn, in packets of `largest` bytes,
    /// before the next classic packet.
    pub(super) fn reset(&mut self, largest: u32) {
        self.credit = -self.weight * i64::from(largest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ecn;

    fn packet(bytes: u32) -> Packet<()> {
        Packet { flow: 0, host: 0, bytes, ecn: Ecn::Ect1, body: () }
    }

    /// §4.2.2: with a weight of 1/16 a classic packet waits for at most 15 of the largest packets.
    #[test]
    fn classic_packets_get_a_sixteenth() {
        let mut scheduler = Scheduler::new(15);
        scheduler.reset(1500);
        let (mut classic, mut run, mut longest) = (0, 0, 0);
        for _ in 0..1600 {
            let side = scheduler.next();
            scheduler.sent(side, &packet(1500));
            run = if side == ServedQueue::Low { run + 1 } else { 0 };
            classic += usize::from(side == ServedQueue::Classic);
            longest = longest.max(run);
        }
        assert_eq!((classic, longest), (100, 15));
    }

    #[test]
    fn shares_are_counted_in_bytes() {
        let mut scheduler = Scheduler::new(15);
        let mut bytes = [0, 0];
        for _ in 0..100_000 {
            let side = scheduler.next();
            let size = if side == ServedQueue::Low { 1500 } else { 100 };
            scheduler.sent(side, &packet(size));
            bytes[usize::from(side == ServedQueue::Classic)] += size;
        }
        let share = f64::from(bytes[1]) / f64::from(bytes[0] + bytes[1]);
        assert!((share - 1.0 / 16.0).abs() < 1e-4, "{share}");
    }
}
