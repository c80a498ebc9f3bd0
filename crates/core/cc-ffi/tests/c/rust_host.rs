//! The host of `examples/host.c` in Rust, without the C interface.

use std::collections::VecDeque;
use std::fmt::Write;

use uncork_cc::pacer::Pacer;
use uncork_cc::{
    Acked, AnyController, AppState, CcSpec, Controller, Feedback, Lost, RttSample, SentPacket,
    Settings, Timeout, Token,
};
use uncork_units::{Time, TimeDelta};

const MSS: u32 = 1_200;
const SERVICE: TimeDelta = TimeDelta::from_micros(960);
const RTT: TimeDelta = TimeDelta::from_millis(20);
const QUEUE_PACKETS: u64 = 30;
const MARK_PACKETS: u64 = 2;
const TIMEOUT: TimeDelta = TimeDelta::from_secs(1);
const END_MS: u64 = 3_000;
const REORDERING: u64 = 3;

struct Packet {
    number: u64,
    ack: Time,
    is_marked: bool,
    token: Token,
}

struct Host {
    cc: AnyController,
    pacer: Pacer,
    now: Time,
    link_free: Time,
    timeout: Time,
    next_number: u64,
    last_lost: Option<u64>,
    delivered: u64,
    lost: u64,
    rtt: Option<RttSample>,
    flight: VecDeque<Packet>,
    sends_ect1: bool,
}

/// The output of `host.c` for this controller, which may be followed by `ect1`.
pub(crate) fn output(arguments: &[&str]) -> String {
    let spec: CcSpec = arguments[0].parse().expect("a controller");
    let sends_ect1 = arguments[1..] == ["ect1"];
    let settings = Settings::new(MSS, 1, Time::ZERO).with_scalable_marks(sends_ect1);
    let mut host = Host {
        cc: spec.build(&settings),
        pacer: Pacer::default(),
        now: Time::ZERO,
        link_free: Time::ZERO,
        timeout: Time::NEVER,
        next_number: 0,
        last_lost: None,
        delivered: 0,
        lost: 0,
        rtt: None,
        flight: VecDeque::new(),
        sends_ect1,
    };
    host.run()
}

impl Host {
    fn in_flight(&self) -> u64 {
        self.flight.len() as u64 * u64::from(MSS)
    }

    fn run(&mut self) -> String {
        let (mut output, mut line) = (String::new(), 100);
        while line <= END_MS {
            let is_due = self.next_ack() <= self.now;
            let release = if is_due { Time::NEVER } else { self.send() };
            let next = self.next_ack().min(self.timeout).min(release);
            while line <= END_MS && Time::ZERO + TimeDelta::from_millis(line) < next {
                self.print_line(&mut output, line);
                line += 100;
            }
            self.now = next;
            if next == self.next_ack() {
                self.on_ack();
            } else if next == self.timeout {
                self.on_timeout();
            }
        }
        output
    }

    fn next_ack(&self) -> Time {
        self.flight.iter().map(|packet| packet.ack).min().unwrap_or(Time::NEVER)
    }

    /// When the packet that enters the queue now will be acknowledged, and whether the queue marks it.
    fn enqueue(&mut self) -> (Time, bool) {
        let free = self.link_free.max(self.now);
        let waiting = free.since(self.now).as_nanos() / SERVICE.as_nanos();
        let is_marked = self.sends_ect1 && waiting >= MARK_PACKETS;
        if waiting >= QUEUE_PACKETS {
            return (Time::NEVER, is_marked);
        }
        self.link_free = free + SERVICE;
        (self.link_free + RTT, is_marked)
    }

    fn send(&mut self) -> Time {
        loop {
            let control = self.cc.control();
            if self.in_flight() + u64::from(MSS) > control.cwnd {
                self.pacer.end_burst();
                return Time::NEVER;
            }
            let release = self.pacer.release(self.now, &control);
            if release > self.now {
                return release;
            }
            self.pacer.on_sent(self.now, u64::from(MSS), &control);
            let in_flight = self.in_flight() + u64::from(MSS);
            let sent = SentPacket { bytes: MSS, in_flight, unacked: in_flight };
            let token = self.cc.on_sent(self.now, sent, AppState::Backlogged);
            let (number, (ack, is_marked)) = (self.next_number, self.enqueue());
            self.next_number += 1;
            self.flight.push_back(Packet { number, ack, is_marked, token });
            if self.timeout == Time::NEVER {
                self.timeout = self.now + TIMEOUT;
            }
        }
    }

    fn on_ack(&mut self) {
        let place = self.flight.iter().position(|packet| packet.ack != Time::NEVER);
        let Some(packet) = place.and_then(|place| self.flight.remove(place)) else { return };
        let (mut lost, mut kept) = (Vec::new(), VecDeque::new());
        for older in std::mem::take(&mut self.flight) {
            if older.number + REORDERING <= packet.number {
                lost.push(self.declare_lost(&older));
            } else {
                kept.push_back(older);
            }
        }
        self.flight = kept;
        self.delivered += u64::from(MSS);
        let latest = self.now.since(packet.token.send_time());
        let smoothed = self.rtt.map_or(latest, |rtt| {
            TimeDelta::from_nanos((rtt.smoothed.as_nanos() * 7 + latest.as_nanos()) / 8)
        });
        let min = self.rtt.map_or(latest, |rtt| rtt.min.min(latest));
        self.rtt = Some(RttSample { latest, smoothed, min });
        let acked = [Acked { token: packet.token, bytes: MSS }];
        self.report(&acked, u32::from(packet.is_marked), &lost, self.rtt);
    }

    fn declare_lost(&mut self, packet: &Packet) -> Lost {
        let before = self.last_lost.replace(packet.number);
        self.lost += u64::from(MSS);
        let contiguous = before.is_some_and(|before| before + 1 == packet.number);
        Lost { token: packet.token, bytes: MSS, contiguous }
    }

    fn on_timeout(&mut self) {
        self.cc.on_timeout(self.now, Timeout::Retransmission);
        let flight = std::mem::take(&mut self.flight);
        let lost: Vec<Lost> = flight.iter().map(|packet| self.declare_lost(packet)).collect();
        self.report(&[], 0, &lost, None);
    }

    fn report(&mut self, acked: &[Acked], marks: u32, lost: &[Lost], rtt: Option<RttSample>) {
        let oldest = self.flight.front().map_or(Time::NEVER, |packet| packet.token.send_time());
        let mut feedback = Feedback::new(acked, lost, self.in_flight(), oldest)
            .with_una_advanced(!acked.is_empty())
            .with_ce_packets(marks);
        feedback.rtt = rtt;
        self.cc.on_feedback(self.now, &feedback);
        self.timeout = if self.flight.is_empty() { Time::NEVER } else { self.now + TIMEOUT };
        self.sends_ect1 &= !self.cc.found_classic_queue();
    }

    fn print_line(&self, output: &mut String, ms: u64) {
        let (cwnd, state) = (self.cc.control().cwnd, self.cc.snapshot().state);
        let (in_flight, delivered, lost) = (self.in_flight(), self.delivered, self.lost);
        writeln!(output, "{ms} {cwnd} {in_flight} {delivered} {lost} {state}").expect("a string");
    }
}
