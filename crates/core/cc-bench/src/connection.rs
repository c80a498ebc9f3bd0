//! The closed loop of a simulated connection.

use std::hint::black_box;

use crate::{PACKET, RTT, Subject, Tally, Timer};

/// Packets per batch, sent at one time: the usual limit of segmentation offload.
const BATCH: usize = 10;
/// Nanoseconds between two batches that are not blocked.
const BATCH_GAP: u64 = 10_000;
/// Think time of an application-limited connection in nanoseconds, from the ACK of the last packet to the
/// next write.
const THINKING: u64 = 5_000_000;

/// The load of a connection.
#[derive(Clone, Copy, Debug)]
pub struct BenchLoad {
    /// Path capacity in packets, without a queue. The host keeps up to 1.5 times as many in flight.
    pub flight: usize,
    /// Packets acknowledged before the host sends again.
    pub burst: usize,
    /// Packets per ACK.
    pub packets_per_ack: usize,
    /// Whether the application writes one burst at a time and waits for its delivery.
    pub app_limited: bool,
}

impl BenchLoad {
    /// A backlogged sender that receives the ACKs of half of its flight before it sends again.
    pub const fn backlogged(flight: usize, packets_per_ack: usize) -> Self {
        Self { flight, burst: flight * 3 / 4, packets_per_ack, app_limited: false }
    }

    /// An application that writes `burst` packets at a time, on a path of `flight` packets.
    pub const fn app_limited(flight: usize, burst: usize) -> Self {
        Self { flight, burst, packets_per_ack: 1, app_limited: true }
    }

    /// 1.5 times the path's capacity. Between that and half of it, BBR completes each of its phases.
    const fn most_in_flight(&self) -> usize {
        self.flight + self.flight / 2
    }

    /// Nanoseconds per packet at the bottleneck.
    fn gap(&self) -> u64 {
        RTT.as_nanos() / self.flight as u64
    }

    /// Round trips between two losses: NewReno then oscillates between half of the flight and all of it.
    pub const fn loss_interval(&self) -> u64 {
        self.flight as u64 / 2
    }
}

/// Time spent in the controller.
#[derive(Clone, Copy, Debug, Default)]
pub struct Costs {
    /// Per packet sent.
    pub sent: Tally,
    /// Per ACK.
    pub ack: Tally,
}

/// A connection controlled by a [`Subject`].
#[derive(Debug)]
pub struct Connection<S: Subject> {
    subject: S,
    load: BenchLoad,
    now: u64,
    last_ack: u64,
    next_loss: u64,
    next_number: u64,
    flight: Vec<S::Packet>,
    sent_at: Vec<u64>,
    /// Times of the calls of one phase, precomputed.
    calls: Vec<S::Now>,
}

impl<S: Subject> Connection<S> {
    /// A new connection.
    pub fn new(subject: S, load: BenchLoad) -> Self {
        Self {
            subject,
            load,
            now: 0,
            last_ack: 0,
            next_loss: RTT.times(40).as_nanos(),
            next_number: 0,
            flight: Vec::with_capacity(2 * load.flight),
            sent_at: Vec::with_capacity(2 * load.flight),
            calls: Vec::with_capacity(2 * load.flight),
        }
    }

    /// The controller.
    pub fn subject(&self) -> &S {
        &self.subject
    }

    /// Packets in flight.
    pub fn in_flight(&self) -> usize {
        self.flight.len()
    }

    /// Changes the load.
    pub fn set_load(&mut self, load: BenchLoad) {
        self.load = load;
    }

    /// Runs for `round_trips` and adds the measured times to `costs`.
    pub fn run(&mut self, round_trips: u64, timer: Timer, costs: &mut Costs) {
        let end = self.now + RTT.times(round_trips).as_nanos();
        while self.now < end {
            self.receive(timer, &mut costs.ack);
            self.send(timer, &mut costs.sent);
        }
    }

    /// Delivers the ACKs of the oldest packets, at most a burst of them.
    fn receive(&mut self, timer: Timer, tally: &mut Tally) {
        let packets = self.flight.len().min(self.load.burst);
        if packets > 0 && self.now >= self.next_loss {
            self.lose(packets);
            return;
        }
        let per_ack = self.load.packets_per_ack;
        self.calls.clear();
        for ack in self.sent_at[..packets].chunks(per_ack) {
            for sent in ack {
                self.last_ack =
                    (self.last_ack + self.load.gap()).max(sent + RTT.as_nanos()).max(self.now);
            }
            self.now = self.last_ack;
            self.calls.push(self.subject.at(self.now));
        }
        let Self { subject, flight, calls, load, .. } = self;
        let ((), time) = timer.time(|| {
            let mut rest = flight.as_slice();
            let mut left = packets;
            for now in calls.iter() {
                let (acked, after) = rest.split_at(per_ack.min(left));
                left -= acked.len();
                rest = after;
                subject.acked(*now, black_box(acked), rest, load.app_limited);
            }
        });
        tally.add(time, self.calls.len() as u64);
        self.forget(packets);
    }

    /// Delivers one ACK of `packets` packets, except the oldest, which is lost.
    fn lose(&mut self, packets: usize) {
        self.next_loss = self.now + RTT.times(self.load.loss_interval()).as_nanos();
        self.now = self.now.max(self.sent_at[packets - 1] + RTT.as_nanos());
        self.last_ack = self.now;
        let (settled, rest) = self.flight.split_at(packets);
        self.subject.lost(self.subject.at(self.now), settled[0], &settled[1..], rest);
        self.forget(packets);
    }

    fn forget(&mut self, packets: usize) {
        self.flight.drain(..packets);
        self.sent_at.drain(..packets);
    }

    /// Sends until the flight is complete, the application has no more data, or the window is full.
    fn send(&mut self, timer: Timer, tally: &mut Tally) {
        if self.load.app_limited {
            self.now += THINKING;
        }
        let most = if self.load.app_limited { self.load.burst } else { self.load.most_in_flight() };
        let wanted = most.saturating_sub(self.flight.len());
        self.calls.clear();
        for batch in 0..wanted.div_ceil(BATCH) as u64 {
            self.calls.push(self.subject.at(self.now + batch * BATCH_GAP));
        }
        let first = self.flight.len();
        let ((), time) = timer.time(|| self.send_batches(wanted));
        let sent = self.flight.len() - first;
        tally.add(time, sent as u64);
        let batch_of = |packet: usize| (packet / BATCH) as u64 * BATCH_GAP;
        self.sent_at.extend((0..sent).map(|packet| self.now + batch_of(packet)));
        self.now += batch_of(sent) + BATCH_GAP;
    }

    fn send_batches(&mut self, wanted: usize) {
        let mut left = wanted;
        for now in &self.calls {
            let mut batch = 0;
            while batch < BATCH.min(left) {
                let in_flight = (self.flight.len() as u64 + 1) * u64::from(PACKET);
                if in_flight > self.subject.window() {
                    self.subject.blocked();
                    break;
                }
                let drained = self.load.app_limited && left - batch == 1;
                let packet = self.subject.sent(*now, self.next_number, in_flight, drained);
                self.flight.push(black_box(packet));
                self.next_number += 1;
                batch += 1;
            }
            if batch > 0 {
                let bytes = batch as u64 * u64::from(PACKET);
                self.subject.batch_sent(*now, bytes, self.next_number - 1);
            }
            if batch < BATCH.min(left) {
                break;
            }
            left -= batch;
        }
    }
}

#[cfg(test)]
mod tests {
    use uncork_cc::Algorithm;

    use super::*;
    use crate::Ours;

    #[test]
    fn every_controller_settles_within_the_paths_capacity() {
        for algorithm in Algorithm::ALL {
            let mut connection =
                Connection::new(Ours::new(algorithm), BenchLoad::backlogged(128, 1));
            let mut costs = Costs::default();
            connection.run(150, Timer::calibrated(), &mut costs);
            assert!(connection.subject().is_settled(), "{}", algorithm.name());
            assert!((4..=192).contains(&connection.in_flight()), "{}", algorithm.name());
        }
    }

    #[test]
    fn a_limited_application_has_only_what_it_wrote_in_flight() {
        let mut connection =
            Connection::new(Ours::new(Algorithm::Bbr3), BenchLoad::app_limited(128, 20));
        for _ in 0..50 {
            connection.run(1, Timer::calibrated(), &mut Costs::default());
            assert!(connection.in_flight() <= 20);
        }
    }
}
