//! The sender: a host of a [`Controller`].

use std::collections::VecDeque;
use std::io::{self, ErrorKind::TimedOut};
use std::net::UdpSocket;
use std::time::Instant;

use uncork_cc::pacer::Pacer;
use uncork_cc::units::{Rng, Time, TimeDelta};
use uncork_cc::{
    Acked, AnyController, AppState, CcSpec, Controller, Feedback, Lost, RttSample, SentPacket,
    Settings, Timeout, Token,
};

use crate::{CHUNK, HEADER, MAX_RANGES, hear, number};

const PACKET: u32 = (HEADER + CHUNK) as u32;
const PACKET_THRESHOLD: u64 = 3;
const LOSS_PERCENT: u64 = 1;
const DEADLINE: TimeDelta = TimeDelta::from_secs(20);

fn bytes(packets: usize) -> u64 {
    packets as u64 * u64::from(PACKET)
}

/// A packet in flight.
struct Packet {
    number: u64,
    chunk: usize,
    token: Token,
}

pub(crate) struct Sender<'a> {
    data: &'a [u8],
    socket: UdpSocket,
    link: Rng,
    start: Instant,
    cc: AnyController,
    pacer: Pacer,
    next_number: u64,
    /// In order of their numbers.
    flight: VecDeque<Packet>,
    /// Lost chunks to retransmit.
    again: VecDeque<usize>,
    /// The first chunk that has not been sent yet.
    fresh: usize,
    /// Which chunks have arrived.
    arrived: Vec<bool>,
    last_lost: Option<u64>,
    rtt: Option<RttSample>,
    probe_at: Time,
    probes: u32,
    lost: u64,
}

impl<'a> Sender<'a> {
    /// A sender of `data` to the peer that `socket` is connected to.
    #[allow(clippy::disallowed_methods, reason = "a host has a clock")]
    pub(crate) fn new(spec: CcSpec, data: &'a [u8], socket: UdpSocket) -> Self {
        Self {
            data,
            socket,
            link: Rng::new(1, 0),
            start: Instant::now(),
            cc: spec.build(&Settings::new(PACKET, 1, Time::ZERO)),
            pacer: Pacer::default(),
            next_number: 0,
            flight: VecDeque::new(),
            again: VecDeque::new(),
            fresh: 0,
            arrived: vec![false; data.len().div_ceil(CHUNK)],
            last_lost: None,
            rtt: None,
            probe_at: Time::NEVER,
            probes: 0,
            lost: 0,
        }
    }

    fn now(&self) -> Time {
        Time::from_elapsed(self.start.elapsed())
    }

    fn is_drained(&self) -> bool {
        self.again.is_empty() && self.fresh == self.arrived.len()
    }

    fn send_chunk(&mut self, now: Time, chunk: usize) -> io::Result<()> {
        let number = self.next_number;
        self.next_number += 1;
        let mut packet = Vec::with_capacity(HEADER + CHUNK);
        packet.extend(number.to_le_bytes());
        packet.extend((chunk as u64).to_le_bytes());
        packet.extend(&self.data[chunk * CHUNK..self.data.len().min((chunk + 1) * CHUNK)]);
        packet.resize(HEADER + CHUNK, 0);
        if self.link.below(100) >= LOSS_PERCENT {
            self.socket.send(&packet)?;
        }
        let in_flight = bytes(self.flight.len() + 1);
        let sent =
            SentPacket { bytes: PACKET, in_flight, unacked: in_flight + bytes(self.again.len()) };
        let app = if self.is_drained() { AppState::Drained } else { AppState::Backlogged };
        let token = self.cc.on_sent(now, sent, app);
        self.flight.push_back(Packet { number, chunk, token });
        self.probe_at = now + self.probe_timeout();
        Ok(())
    }

    /// RFC 9002 §6.2.1, with half the smoothed RTT as its variation.
    fn probe_timeout(&self) -> TimeDelta {
        let smoothed = self.rtt.map_or(TimeDelta::from_millis(100), |rtt| rtt.smoothed);
        let timeout = smoothed.times(3).max(TimeDelta::from_millis(5));
        timeout.times(1 << self.probes.min(6))
    }

    /// Sends as much as window and pacer allow; returns when to try again.
    fn send(&mut self, now: Time) -> io::Result<Time> {
        loop {
            let control = self.cc.control();
            if bytes(self.flight.len() + 1) > control.cwnd || self.is_drained() {
                self.pacer.end_burst();
                return Ok(Time::NEVER);
            }
            let release = self.pacer.release(now, &control);
            if release > now {
                return Ok(release);
            }
            let chunk = self.again.pop_front().unwrap_or_else(|| {
                self.fresh += 1;
                self.fresh - 1
            });
            self.send_chunk(now, chunk)?;
            self.pacer.on_sent(now, u64::from(PACKET), &control);
        }
    }

    fn on_ack(&mut self, now: Time, ranges: &[[u64; 2]]) {
        let arrived = |number| ranges.iter().any(|[from, to]| (*from..=*to).contains(&number));
        let (mut acked, mut lost) = (Vec::new(), Vec::new());
        let mut newest = None;
        let mut flight = std::mem::take(&mut self.flight);
        flight.retain(|packet| {
            let is_acked = arrived(packet.number);
            if is_acked {
                acked.push(Acked { token: packet.token, bytes: PACKET });
                self.arrived[packet.chunk] = true;
                newest = Some(packet.token.send_time());
            }
            !is_acked
        });
        let largest = ranges.iter().map(|[_, to]| *to).max().unwrap_or(0);
        flight.retain(|packet| {
            let is_lost = packet.number + PACKET_THRESHOLD <= largest;
            if is_lost {
                let contiguous = packet.number.checked_sub(1) == self.last_lost;
                lost.push(Lost { token: packet.token, bytes: PACKET, contiguous });
                self.last_lost = Some(packet.number);
                if !self.arrived[packet.chunk] {
                    self.again.push_back(packet.chunk);
                }
            }
            !is_lost
        });
        self.flight = flight;
        let Some(newest) = newest else { return };
        self.lost += lost.len() as u64;
        self.probes = 0;
        let latest = now.since(newest);
        let (smoothed, min) = self.rtt.map_or((latest, latest), |rtt| (rtt.smoothed, rtt.min));
        let smoothed = (smoothed.times(7) + latest).divided_by(8);
        self.rtt = Some(RttSample { latest, smoothed, min: min.min(latest) });
        self.probe_at = now + self.probe_timeout();

        let oldest = self.flight.front().map_or(Time::NEVER, |packet| packet.token.send_time());
        let mut feedback = Feedback::new(&acked, &lost, bytes(self.flight.len()), oldest)
            .with_unacked(bytes(self.flight.len() + self.again.len()));
        feedback.rtt = self.rtt;
        self.cc.on_feedback(now, &feedback);
    }

    /// Probe timeout: sends two packets, beyond the window if need be (RFC 9002 §7.5).
    fn on_probe_timeout(&mut self, now: Time) -> io::Result<()> {
        self.cc.on_timeout(now, Timeout::Probe);
        self.probes += 1;
        let oldest: Vec<usize> = self.flight.iter().take(2).map(|packet| packet.chunk).collect();
        oldest.into_iter().try_for_each(|chunk| self.send_chunk(now, chunk))
    }

    /// Statistics on one line.
    pub(crate) fn report(&self) -> String {
        let (packets, lost) = (self.next_number, self.lost);
        let (seconds, state) = (self.now().as_secs_f64(), self.cc.snapshot().state);
        format!("{seconds:.3} s, {packets} packets, {lost} lost, in {state}")
    }

    /// Sends until everything has arrived.
    pub(crate) fn run(&mut self) -> io::Result<()> {
        let mut ack = [0; MAX_RANGES * 16];
        while self.arrived.contains(&false) {
            let now = self.now();
            if now > Time::ZERO + DEADLINE {
                return Err(TimedOut.into());
            }
            if now >= self.probe_at {
                self.on_probe_timeout(now)?;
            }
            let next = self.send(now)?.min(self.probe_at).min(Time::ZERO + DEADLINE);
            if let Some((length, _)) = hear(&self.socket, next.since(now), &mut ack)? {
                let ranges = ack[..length].chunks_exact(16);
                let ranges: Vec<_> = ranges.map(|r| [number(r), number(&r[8..])]).collect();
                self.on_ack(self.now(), &ranges);
            }
        }
        Ok(())
    }
}
