//! A small transport that follows the contract of `Controller`.

mod loss_detection;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use uncork_cc::pacer::Pacer;
use uncork_cc::{AppState, CcSpec, PathEvent, RttSample, SentPacket, Settings, Timeout};
use uncork_units::{Rng, Time, TimeDelta};

use super::Switches;
use super::compare::{Memory, Pair, Report, Verdict};
use super::network::{Fate, Network};

/// Maximum packets per script.
const PACKETS: usize = 6_000;
/// Maximum duration of a script in seconds.
const SECONDS: u64 = 60;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    InFlight,
    Lost,
    Done,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    memory: Memory,
    status: Status,
    was_lost: bool,
    is_dropped: bool,
    is_marked: bool,
    /// Index of the data it carries.
    data: usize,
    is_probe: bool,
}

/// Data written by the application, one packet's worth.
#[derive(Clone, Copy, Debug)]
struct Data {
    bytes: u32,
    first_left: Time,
    is_acked: bool,
    copies_in_flight: u32,
}

/// How the application writes.
#[derive(Clone, Copy, Debug)]
enum App {
    Bulk,
    /// This many bytes at this interval.
    Chunks {
        bytes: u64,
        every: TimeDelta,
    },
}

pub(crate) struct Host {
    pub(crate) pair: Pair,
    rng: Rng,
    network: Network,
    now: Time,
    is_tcp: bool,
    mss: u32,
    sent: Vec<Sent>,
    data: Vec<Data>,
    to_resend: VecDeque<usize>,
    in_flight: u64,
    /// All packets before this one are no longer in flight.
    oldest: usize,
    /// All data before this is acknowledged.
    una: usize,
    largest_acked: Option<usize>,
    acks: BinaryHeap<Reverse<(Time, usize)>>,
    pacer: Pacer,
    app: App,
    unsent: u64,
    next_write: Time,
    next_change: Time,
    rtt: Option<RttSample>,
    /// When the last packet was sent or the last ACK arrived.
    last_activity: Time,
    timeouts: u32,
}

impl Host {
    pub(crate) fn new(spec: CcSpec, switches: Switches, seed: u64) -> Self {
        let mut rng = Rng::new(seed, 1);
        let mss = [536, 1_200, 1_448, 1_452][rng.below(4) as usize];
        let network = Network::new(Rng::new(seed, 2));
        let initial_rtt = (rng.below(2) == 0).then(|| TimeDelta::from_millis(1 + rng.below(400)));
        let now = Time::from_nanos(rng.below(1_000_000_000));
        let mut settings = Settings::new(mss, seed, now);
        settings.initial_window = 10 * u64::from(mss);
        settings.initial_rtt = initial_rtt;
        Self {
            pair: Pair::new(spec, &settings, switches),
            rng,
            network,
            now,
            is_tcp: seed % 2 == 0,
            mss,
            sent: Vec::new(),
            data: Vec::new(),
            to_resend: VecDeque::new(),
            in_flight: 0,
            oldest: 0,
            una: 0,
            largest_acked: None,
            acks: BinaryHeap::new(),
            pacer: Pacer::default(),
            app: App::Bulk,
            unsent: u64::MAX,
            next_write: Time::NEVER,
            next_change: now + TimeDelta::from_secs(1),
            rtt: initial_rtt.map(|rtt| RttSample { latest: rtt, smoothed: rtt, min: rtt }),
            last_activity: now,
            timeouts: 0,
        }
    }

    /// Runs the script of this seed while the two models can be compared.
    pub(crate) fn run(&mut self) {
        let end = self.now + TimeDelta::from_secs(SECONDS);
        while self.sent.len() < PACKETS && self.now < end && self.pair.verdict == Verdict::Agreed {
            let release = self.release();
            if release == self.now {
                self.send(false);
                continue;
            }
            let ack = self.acks.peek().map_or(Time::NEVER, |Reverse((at, _))| *at);
            let (loss, probe) = (self.loss_timer(), self.probe_timer());
            let other = self.next_write.min(self.next_change);
            self.now = release.min(ack).min(loss).min(probe).min(other).max(self.now);
            if self.now == ack {
                self.on_ack();
            } else if self.now == loss {
                let lost = self.detect_losses();
                self.report(Report { lost, ..Report::default() });
            } else if self.now == probe {
                self.on_probe_timer();
            } else if self.now == self.next_write {
                self.write();
            } else if self.now == self.next_change {
                self.change();
            }
        }
    }

    fn write(&mut self) {
        if let App::Chunks { bytes, every } = self.app {
            self.unsent = self.unsent.saturating_add(bytes);
            self.next_write = self.now + every;
        }
    }

    /// Changes the network conditions and the application, and sometimes migrates.
    fn change(&mut self) {
        self.next_change = self.now + self.network.change(self.now);
        match self.rng.below(12) {
            0 => {
                self.app = App::Chunks {
                    bytes: 1 + self.rng.below(60_000),
                    every: TimeDelta::from_millis(1 + self.rng.below(300)),
                };
            }
            1 => {
                let every = TimeDelta::from_millis(3_000 + self.rng.below(4_000));
                self.app = App::Chunks { bytes: 1 + self.rng.below(400_000), every };
            }
            _ => self.app = App::Bulk,
        }
        (self.unsent, self.next_write) = match self.app {
            App::Bulk => (u64::MAX, Time::NEVER),
            App::Chunks { .. } => (0, self.now),
        };
        match self.rng.below(120) {
            0 => self.migrate(),
            1..=4 => {
                self.mss = [536, 1_200, 1_448, 8_948][self.rng.below(4) as usize];
                self.pair.on_path(self.now, PathEvent::MtuChanged { mss: self.mss });
            }
            _ => {}
        }
    }

    fn migrate(&mut self) {
        for packet in &mut self.sent {
            packet.status = Status::Done;
        }
        for data in &mut self.data {
            data.is_acked = true;
        }
        self.acks.clear();
        self.to_resend.clear();
        self.in_flight = 0;
        (self.oldest, self.una) = (self.sent.len(), self.data.len());
        self.largest_acked = None;
        self.rtt = None;
        self.pair.on_path(self.now, PathEvent::Migrated);
    }

    fn unacked(&self) -> u64 {
        let lost = self.to_resend.iter().map(|data| u64::from(self.data[*data].bytes));
        self.in_flight + lost.sum::<u64>()
    }

    /// When the next packet may leave.
    fn release(&mut self) -> Time {
        let control = self.pair.control();
        let bytes = match self.to_resend.front() {
            Some(data) => u64::from(self.data[*data].bytes),
            None => self.unsent.min(u64::from(self.mss)),
        };
        if bytes == 0 || self.in_flight + bytes > control.cwnd {
            self.pacer.end_burst();
            return Time::NEVER;
        }
        self.pacer.release(self.now, &control)
    }

    fn send(&mut self, is_probe: bool) {
        let data = if is_probe {
            self.sent[self.oldest..].iter().rfind(|p| p.status == Status::InFlight).map(|p| p.data)
        } else {
            self.to_resend.pop_front()
        };
        let data = data.unwrap_or_else(|| {
            let bytes = self.unsent.min(u64::from(self.mss));
            self.unsent = if self.unsent == u64::MAX { u64::MAX } else { self.unsent - bytes };
            let (bytes, first_left) = (bytes as u32, self.now);
            self.data.push(Data { bytes, first_left, is_acked: false, copies_in_flight: 0 });
            self.data.len() - 1
        });
        self.data[data].copies_in_flight += 1;
        let bytes = self.data[data].bytes;
        self.in_flight += u64::from(bytes);
        let is_drained = self.unsent == 0 && self.to_resend.is_empty();
        let app = if is_drained { AppState::Drained } else { AppState::Backlogged };
        let packet = SentPacket { bytes, in_flight: self.in_flight, unacked: self.unacked() };
        let control = self.pair.control();
        let memory = self.pair.on_sent(self.now, packet, app);
        self.pacer.on_sent(self.now, u64::from(bytes), &control);
        self.last_activity = self.now;
        let (is_dropped, is_marked) = match self.network.transmit(self.now, u64::from(bytes)) {
            Fate::Dropped => (true, false),
            Fate::Acked { at, is_marked } => {
                self.acks.push(Reverse((at, self.sent.len())));
                (false, is_marked)
            }
        };
        let status = Status::InFlight;
        let sent = Sent { memory, status, was_lost: false, is_dropped, is_marked, data, is_probe };
        self.sent.push(sent);
    }

    /// Delivers all ACKs due now as a single one.
    fn on_ack(&mut self) {
        let mut acked = Vec::new();
        while let Some(Reverse((at, index))) = self.acks.peek().copied()
            && at == self.now
        {
            self.acks.pop();
            acked.push(index);
        }
        acked.sort_unstable();
        let una = self.una;
        let mut report = Report::default();
        let mut spurious = Vec::new();
        for &index in &acked {
            let packet = self.sent[index];
            if packet.status == Status::InFlight {
                self.leave_flight(index);
            } else {
                spurious.push((packet.memory, index > 0 && self.sent[index - 1].was_lost));
            }
            self.sent[index].status = Status::Done;
            self.data[packet.data].is_acked = true;
            self.to_resend.retain(|data| *data != packet.data);
            report.acked.push(packet.memory);
            report.ce_packets += u32::from(packet.is_marked);
            report.repaired_by_probe |=
                self.is_tcp && packet.is_probe && self.repaired(packet.data);
        }
        while self.data.get(self.una).is_some_and(|data| data.is_acked) {
            self.una += 1;
        }
        let newest = acked[acked.len() - 1];
        self.largest_acked = self.largest_acked.max(Some(newest));
        report.rtt = self.measure(newest);
        report.una_advanced = self.una > una;
        if !spurious.is_empty() {
            self.pair.on_spurious(self.now, &spurious);
        }
        report.lost = self.detect_losses();
        if self.is_persistent(&report.lost) {
            self.pair.on_timeout(self.now, Timeout::Persistent);
        }
        (self.timeouts, self.last_activity) = (0, self.now);
        self.report(report);
    }

    /// Whether a probe repaired a loss: the original packet was lost but not declared lost.
    fn repaired(&mut self, data: usize) -> bool {
        let original = (self.oldest..self.sent.len()).find(|index| {
            let packet = &self.sent[*index];
            packet.data == data && packet.is_dropped && packet.status == Status::InFlight
        });
        if let Some(original) = original {
            self.leave_flight(original);
            self.sent[original].status = Status::Done;
        }
        original.is_some()
    }

    fn leave_flight(&mut self, index: usize) {
        let packet = self.sent[index];
        self.in_flight -= u64::from(packet.memory.bytes);
        self.data[packet.data].copies_in_flight -= 1;
    }

    /// RFC 6298, and Karn's rule for TCP.
    fn measure(&mut self, newest: usize) -> Option<RttSample> {
        let packet = self.sent[newest];
        if self.is_tcp && packet.memory.token.send_time() != self.data[packet.data].first_left {
            return None;
        }
        let latest = self.now.since(packet.memory.token.send_time());
        let sample = match self.rtt {
            None => RttSample { latest, smoothed: latest, min: latest },
            Some(RttSample { smoothed, min, .. }) => RttSample {
                latest,
                smoothed: (smoothed.times(7) + latest).divided_by(8),
                min: min.min(latest),
            },
        };
        self.rtt = Some(sample);
        Some(sample)
    }

    fn report(&mut self, report: Report) {
        while self.sent.get(self.oldest).is_some_and(|p| p.status != Status::InFlight) {
            self.oldest += 1;
        }
        let oldest_sent = if self.is_tcp {
            self.data.get(self.una).map(|data| data.first_left)
        } else {
            self.sent.get(self.oldest).map(|packet| packet.memory.token.send_time())
        };
        let (in_flight, unacked) = (self.in_flight, self.unacked());
        let oldest_sent = oldest_sent.unwrap_or(Time::NEVER);
        self.pair.on_feedback(self.now, &Report { in_flight, unacked, oldest_sent, ..report });
    }
}
