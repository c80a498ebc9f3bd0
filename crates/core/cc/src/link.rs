//! A closed loop in virtual time: one sender with endless data and one FIFO bottleneck with a
//! tail-drop buffer. Kept minimal, to show only the controller's effect on a path.

extern crate std;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::vec::Vec;

use uncork_units::{Rate, Rng, Time, TimeDelta};

use crate::pacer::Pacer;
use crate::{
    Acked, AppState, Controller, Feedback, Lost, RttSample, SentPacket, Snapshot, Timeout, Token,
};

/// Packet size in bytes.
pub(crate) const MSS: u32 = 1_452;
const REORDERING: u64 = 3;

/// The path.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) rate: Rate,
    pub(crate) rtt: TimeDelta,
    /// Buffer size in bytes, including the packet in transmission.
    pub(crate) buffer: u64,
    /// Random loss in ppm, before the buffer.
    pub(crate) loss_ppm: u64,
    /// Packets per ACK.
    pub(crate) ack_every: u64,
    /// Rate changes: time and new rate.
    pub(crate) steps: Vec<(Time, Rate)>,
}

impl Path {
    /// `buffer_millibdp` is the buffer in thousandths of the BDP.
    pub(crate) fn new(rate: Rate, rtt: TimeDelta, buffer_millibdp: u64) -> Self {
        let buffer = rate.bytes_in(rtt) * buffer_millibdp / 1_000;
        Self { rate, rtt, buffer, loss_ppm: 0, ack_every: 1, steps: Vec::new() }
    }

    pub(crate) fn bdp(&self) -> u64 {
        self.rate.bytes_in(self.rtt)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LinkEvent {
    Depart,
    Arrive(u64),
    Send,
    LossTimer(u64),
    AckTimer(u64),
}

struct LinkPacket {
    id: u64,
    token: Token,
}

/// Totals and current state of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkStats {
    pub(crate) sent: u64,
    pub(crate) lost: u64,
    pub(crate) acked_bytes: u64,
    pub(crate) timeouts: u64,
}

/// The closed loop.
pub(crate) struct Loop<C> {
    pub(crate) cc: C,
    pub(crate) now: Time,
    pub(crate) path: Path,
    pub(crate) stats: LinkStats,
    /// Bytes the application has written, excluding retransmissions.
    pub(crate) limit: u64,
    rng: Rng,
    events: BinaryHeap<Reverse<(Time, u64, LinkEvent)>>,
    serial: u64,
    pacer: Pacer,
    send_scheduled: bool,
    next_id: u64,
    flight: VecDeque<LinkPacket>,
    in_flight: u64,
    /// Bytes declared lost and not yet retransmitted.
    unrepaired: u64,
    /// Queue at the bottleneck, the packet in transmission first.
    queue: VecDeque<u64>,
    arrived: Vec<u64>,
    last_lost_id: u64,
    srtt: TimeDelta,
    min_rtt: TimeDelta,
    backoff: u32,
    timer: u64,
    /// Every packet declared lost so far.
    pub(crate) lost_packets: Vec<Lost>,
    /// CE marks that the next ACK reports.
    pub(crate) marks: u32,
    /// Whether the next ACK reports a loss repaired by a probe.
    pub(crate) repaired: bool,
}

impl<C: Controller> Loop<C> {
    pub(crate) fn new(cc: C, path: Path, seed: u64) -> Self {
        let mut this = Self {
            cc,
            now: Time::ZERO,
            path,
            stats: LinkStats::default(),
            limit: u64::MAX,
            rng: Rng::new(seed, 1),
            events: BinaryHeap::new(),
            serial: 0,
            pacer: Pacer::default(),
            send_scheduled: false,
            next_id: 1,
            flight: VecDeque::new(),
            in_flight: 0,
            unrepaired: 0,
            queue: VecDeque::new(),
            arrived: Vec::new(),
            last_lost_id: 0,
            srtt: TimeDelta::ZERO,
            min_rtt: TimeDelta::MAX,
            backoff: 0,
            timer: 0,
            lost_packets: Vec::new(),
            marks: 0,
            repaired: false,
        };
        this.send();
        this
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.cc.snapshot()
    }

    /// Queueing delay of a packet that arrives now.
    pub(crate) fn queue_delay(&self) -> TimeDelta {
        self.path.rate.time_for(self.queue.len() as u64 * u64::from(MSS))
    }

    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Runs up to `until`, calling `watch` after every event.
    pub(crate) fn run(&mut self, until: Time, mut watch: impl FnMut(&Self)) {
        while let Some(&Reverse((at, _, event))) = self.events.peek() {
            if at > until {
                break;
            }
            self.events.pop();
            self.now = at;
            self.apply_steps();
            match event {
                LinkEvent::Depart => self.depart(),
                LinkEvent::Arrive(id) => self.on_arrival(id),
                LinkEvent::Send => {
                    self.send_scheduled = false;
                    self.send();
                }
                LinkEvent::LossTimer(serial) => self.on_timer(serial),
                LinkEvent::AckTimer(id) => {
                    if self.arrived.first().is_some_and(|first| *first <= id) {
                        self.on_ack();
                    }
                }
            }
            watch(self);
        }
        self.now = until;
    }

    /// Runs until `done` or `until`; returns whether `done` became true.
    pub(crate) fn run_until(&mut self, until: Time, mut done: impl FnMut(&Self) -> bool) -> bool {
        while let Some(&Reverse((at, ..))) = self.events.peek() {
            if at > until {
                return false;
            }
            self.run(at, |_| {});
            if done(self) {
                return true;
            }
        }
        false
    }

    /// Reports that all packets declared lost so far arrived late.
    pub(crate) fn deliver_lost_packets(&mut self) {
        let late = core::mem::take(&mut self.lost_packets);
        self.cc.on_spurious(self.now, &late);
        let acked: Vec<_> =
            late.iter().map(|&Lost { token, bytes, .. }| Acked { token, bytes }).collect();
        let bytes = late.len() as u64 * u64::from(MSS);
        self.in_flight += bytes; // `report` takes them out again
        self.unrepaired = self.unrepaired.saturating_sub(bytes);
        self.report(&acked, &[], None);
    }

    /// The application writes `bytes`. After the first call it sends only data written this way.
    pub(crate) fn write(&mut self, bytes: u64) {
        let written = self.stats.acked_bytes + self.in_flight;
        let endless = self.limit == u64::MAX;
        self.limit = if endless { written + u64::from(MSS) } else { self.limit } + bytes;
        self.send();
    }

    fn schedule(&mut self, at: Time, event: LinkEvent) {
        self.serial += 1;
        self.events.push(Reverse((at, self.serial, event)));
    }

    fn apply_steps(&mut self) {
        while let Some(&(at, rate)) = self.path.steps.first() {
            if at > self.now {
                break;
            }
            self.path.rate = rate;
            self.path.steps.remove(0);
        }
    }

    fn send(&mut self) {
        loop {
            let control = self.cc.control();
            let bytes = u64::from(MSS);
            let has_data = self.stats.acked_bytes + self.in_flight < self.limit;
            if !has_data || self.in_flight + bytes > control.cwnd {
                self.pacer.end_burst();
                return;
            }
            let release = self.pacer.release(self.now, &control);
            if release > self.now {
                if !self.send_scheduled {
                    self.send_scheduled = true;
                    self.schedule(release, LinkEvent::Send);
                }
                return;
            }
            self.pacer.on_sent(self.now, bytes, &control);
            self.transmit();
        }
    }

    fn transmit(&mut self) {
        let id = self.next_id;
        self.next_id += 1;
        self.in_flight += u64::from(MSS);
        self.unrepaired = self.unrepaired.saturating_sub(u64::from(MSS));
        self.stats.sent += 1;
        let (in_flight, unacked) = (self.in_flight, self.in_flight + self.unrepaired);
        let packet = SentPacket { bytes: MSS, in_flight, unacked };
        let more = self.stats.acked_bytes + self.in_flight < self.limit;
        let app = if more { AppState::Backlogged } else { AppState::Drained };
        let token = self.cc.on_sent(self.now, packet, app);
        self.flight.push_back(LinkPacket { id, token });
        self.enqueue(id);
        if self.flight.len() == 1 {
            self.arm_timer();
        }
    }

    fn enqueue(&mut self, id: u64) {
        let bytes = (self.queue.len() as u64 + 1) * u64::from(MSS);
        let dropped = self.rng.below(1_000_000) < self.path.loss_ppm;
        if dropped || (bytes > self.path.buffer && !self.queue.is_empty()) {
            return;
        }
        self.queue.push_back(id);
        if self.queue.len() == 1 {
            self.serve();
        }
    }

    fn serve(&mut self) {
        let takes = self.path.rate.time_for(u64::from(MSS));
        self.schedule(self.now + takes, LinkEvent::Depart);
    }

    fn depart(&mut self) {
        if let Some(id) = self.queue.pop_front() {
            self.schedule(self.now + self.path.rtt, LinkEvent::Arrive(id));
        }
        if !self.queue.is_empty() {
            self.serve();
        }
    }

    /// The receiver could ACK `id` now, but may wait for more packets.
    fn on_arrival(&mut self, id: u64) {
        self.arrived.push(id);
        if self.arrived.len() as u64 >= self.path.ack_every {
            self.on_ack();
        } else if self.arrived.len() == 1 {
            self.schedule(self.now + TimeDelta::from_millis(25), LinkEvent::AckTimer(id));
        }
    }

    fn on_ack(&mut self) {
        let arrived = core::mem::take(&mut self.arrived);
        let largest = arrived.last().copied().unwrap_or(0);
        let mut acked = Vec::new();
        let mut lost = Vec::new();
        let mut keep = VecDeque::new();
        while let Some(packet) = self.flight.pop_front() {
            if packet.id > largest {
                self.flight.push_front(packet);
                break;
            }
            if arrived.contains(&packet.id) {
                acked.push(Acked { token: packet.token, bytes: MSS });
            } else if packet.id + REORDERING <= largest {
                lost.push(self.declare_lost(&packet));
            } else {
                keep.push_back(packet);
            }
        }
        while let Some(packet) = keep.pop_back() {
            self.flight.push_front(packet);
        }
        self.backoff = 0;
        let newest = acked.last().map(|packet| packet.token.send_time());
        let rtt = newest.map(|sent| self.measure(sent));
        self.report(&acked, &lost, rtt);
    }

    fn measure(&mut self, sent: Time) -> RttSample {
        let latest = self.now.since(sent);
        self.min_rtt = self.min_rtt.min(latest);
        self.srtt = if self.srtt.is_zero() {
            latest
        } else {
            TimeDelta::from_nanos((self.srtt.as_nanos() * 7 + latest.as_nanos()) / 8)
        };
        RttSample { latest, smoothed: self.srtt, min: self.min_rtt }
    }

    fn declare_lost(&mut self, packet: &LinkPacket) -> Lost {
        let contiguous = self.last_lost_id + 1 == packet.id;
        self.last_lost_id = packet.id;
        Lost { token: packet.token, bytes: MSS, contiguous }
    }

    fn report(&mut self, acked: &[Acked], lost: &[Lost], rtt: Option<RttSample>) {
        let gone = (acked.len() + lost.len()) as u64 * u64::from(MSS);
        self.in_flight -= gone;
        self.unrepaired += lost.len() as u64 * u64::from(MSS);
        self.stats.lost += lost.len() as u64;
        self.stats.acked_bytes += acked.len() as u64 * u64::from(MSS);
        self.lost_packets.extend(lost);
        let oldest = self.flight.front().map_or(Time::NEVER, |first| first.token.send_time());
        let mut feedback = Feedback::new(acked, lost, self.in_flight, oldest)
            .with_unacked(self.in_flight + self.unrepaired)
            .with_ce_packets(core::mem::take(&mut self.marks))
            .with_repaired_by_probe(core::mem::take(&mut self.repaired));
        feedback.rtt = rtt;
        self.cc.on_feedback(self.now, &feedback);
        self.arm_timer();
        self.send();
    }

    fn arm_timer(&mut self) {
        self.timer += 1;
        if !self.flight.is_empty() {
            let base = self.srtt.times(2).max(TimeDelta::from_millis(200));
            let base = if self.srtt.is_zero() { TimeDelta::from_secs(1) } else { base };
            let after = base.times(1 << self.backoff.min(6));
            self.schedule(self.now + after, LinkEvent::LossTimer(self.timer));
        }
    }

    /// The timer expired: everything in flight is lost.
    fn on_timer(&mut self, serial: u64) {
        if serial != self.timer || self.flight.is_empty() {
            return;
        }
        self.stats.timeouts += 1;
        self.backoff += 1;
        self.cc.on_timeout(self.now, Timeout::Retransmission);
        let mut lost = Vec::new();
        while let Some(packet) = self.flight.pop_front() {
            lost.push(self.declare_lost(&packet));
        }
        self.report(&[], &lost, None);
    }
}
