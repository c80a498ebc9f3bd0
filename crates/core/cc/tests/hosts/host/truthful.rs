//! A host that reports truthfully.

use std::collections::VecDeque;

use uncork_cc::pacer::Pacer;
use uncork_cc::{
    Acked, AppState, Controller, Feedback, Lost, PathEvent, RttSample, SentPacket, Settings,
    Timeout, Token,
};
use uncork_units::{Time, TimeDelta};

use super::{Digest, Script, Watched};

/// The receiver's window, in packets.
const RECEIVE_WINDOW: usize = 64;

/// Runs the script and returns the digest of the controller's decisions.
pub(crate) fn play(bytes: &[u8]) -> Digest {
    let mut script = Script::new(bytes);
    let spec = script.spec();
    let mss = 500 + 40 * u32::from(script.byte());
    let mut settings = Settings::new(mss, 0, Time::ZERO);
    settings.initial_window = u64::from(mss) * u64::from(1 + script.below(32));
    settings.initial_rtt = script.one_in(3).then(|| TimeDelta::from_micros(script.amount() >> 8));
    settings.seed = u64::from(script.byte());
    settings.now = Time::ZERO + script.span();
    let mut host = Truthful::new(Watched::new(spec, &settings), &settings);
    while let Some(operation) = script.operation(32) {
        host.act(operation, &mut script);
    }
    host.cc.digest()
}

/// A packet and the piece of data it carries.
#[derive(Clone, Copy, Debug)]
struct Packet {
    token: Token,
    bytes: u32,
    /// The packet number.
    id: u64,
    data: Data,
}

/// Data: its position in the stream, and when it was first sent.
#[derive(Clone, Copy, Debug)]
struct Data {
    place: u64,
    first_sent: Time,
}

/// A host that reports truthfully over a path with arbitrary behaviour.
#[derive(Clone, Debug)]
pub(crate) struct Truthful<C> {
    pub(crate) cc: C,
    pub(crate) now: Time,
    mss: u32,
    pacer: Pacer,
    /// When the path last delivered a packet, as far as [`Self::round`] knows.
    last_arrival: Time,
    next_id: u64,
    next_place: u64,
    flight: VecDeque<Packet>,
    in_flight: u64,
    delivered: u64,
    /// Declared lost and not (yet) known to have arrived.
    lost: Vec<Packet>,
    last_lost_id: Option<u64>,
    /// Data to retransmit.
    missing: VecDeque<(Data, u32)>,
    smoothed_rtt: Option<TimeDelta>,
    min_rtt: TimeDelta,
    /// CE marks that the next feedback reports.
    pub(crate) marks: u32,
}

impl<C: Controller> Truthful<C> {
    /// A connection for a controller built with `settings`.
    pub(crate) fn new(cc: C, settings: &Settings) -> Self {
        Self {
            cc,
            now: settings.now,
            mss: settings.mss,
            pacer: Pacer::default(),
            last_arrival: settings.now,
            next_id: 1,
            next_place: 0,
            flight: VecDeque::new(),
            in_flight: 0,
            delivered: 0,
            lost: Vec::new(),
            last_lost_id: None,
            missing: VecDeque::new(),
            smoothed_rtt: None,
            min_rtt: settings.initial_rtt.unwrap_or(TimeDelta::MAX),
            marks: 0,
        }
    }

    fn act(&mut self, operation: u8, script: &mut Script<'_>) {
        match operation {
            0..=3 => self.send(usize::from(script.byte()), script.app()),
            4..=8 => self.acknowledge(usize::from(script.below(16)), usize::from(script.byte())),
            9..=12 => self.lose_and_ack(script),
            13..=15 => self.now += script.span(),
            16..=24 => {
                let (rtt, spacing) = (script.span(), script.span());
                (0..=script.below(4)).for_each(|_| self.round(rtt, spacing));
            }
            25 => {
                let late = usize::from(script.below(8));
                self.arrive_after_all(late, usize::from(script.byte()));
            }
            26 => self.time_out(script.timeout()),
            27 => self.marks = u32::from(script.below(4)),
            28 => self.repair_by_probe(),
            29 => self.send(1, AppState::Drained),
            30 => self.finish(script.span()),
            _ => self.change_path(script),
        }
    }

    /// Bytes acknowledged so far.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Packets in flight.
    pub(crate) fn packets(&self) -> usize {
        self.flight.len()
    }

    fn has_room(&self) -> bool {
        self.in_flight + u64::from(self.mss) <= self.cc.control().cwnd
            && self.flight.len() < RECEIVE_WINDOW
    }

    /// Sends up to `most` packets within the windows and the pacer. `app` says whether the
    /// application has more data afterwards.
    pub(crate) fn send(&mut self, most: usize, app: AppState) {
        for left in (0..most).rev() {
            let control = self.cc.control();
            if !self.has_room() {
                self.pacer.end_burst();
                return;
            }
            if self.pacer.release(self.now, &control) > self.now {
                return;
            }
            self.pacer.on_sent(self.now, u64::from(self.mss), &control);
            self.transmit(if left == 0 { app } else { AppState::Backlogged });
        }
    }

    /// Sends one packet: retransmissions first, then new data.
    fn transmit(&mut self, app: AppState) {
        let (data, bytes) = self.missing.pop_front().unwrap_or_else(|| {
            self.next_place += 1;
            (Data { place: self.next_place, first_sent: self.now }, self.mss)
        });
        self.in_flight += u64::from(bytes);
        let packet = SentPacket { bytes, in_flight: self.in_flight, unacked: self.unacked() };
        let token = self.cc.on_sent(self.now, packet, app);
        self.flight.push_back(Packet { token, bytes, id: self.next_id, data });
        self.next_id += 1;
    }

    fn unacked(&self) -> u64 {
        self.in_flight + self.missing.iter().map(|(_, bytes)| u64::from(*bytes)).sum::<u64>()
    }

    /// The oldest data that is unacknowledged.
    fn oldest(&self) -> Option<Data> {
        let waiting = self.missing.iter().map(|(data, _)| *data);
        waiting.chain(self.flight.iter().map(|packet| packet.data)).min_by_key(|data| data.place)
    }

    /// One ACK for up to `n` packets; the `skip` oldest are still in flight.
    pub(crate) fn acknowledge(&mut self, skip: usize, n: usize) {
        let acked = self.take(skip, n);
        self.report(acked, Vec::new());
    }

    fn take(&mut self, skip: usize, n: usize) -> Vec<Packet> {
        let from = skip.min(self.flight.len());
        let until = (from + n).min(self.flight.len());
        let taken: Vec<Packet> = self.flight.drain(from..until).collect();
        self.in_flight -= taken.iter().map(|packet| u64::from(packet.bytes)).sum::<u64>();
        taken
    }

    /// One ACK that shows every `stride`-th of the `lost * stride` oldest packets as lost, and the
    /// others plus `acked` more as arrived.
    fn lose_and_ack(&mut self, script: &mut Script<'_>) {
        let (stride, lost) = (usize::from(1 + script.below(4)), usize::from(script.below(8)));
        let acked = usize::from(script.below(64));
        self.lose(lost, stride, acked);
    }

    /// One ACK that shows every `stride`-th of the `lost * stride` oldest packets as lost, and the
    /// others plus `acked` more as arrived.
    pub(crate) fn lose(&mut self, lost: usize, stride: usize, acked: usize) {
        let oldest = self.take(0, lost * stride).into_iter().enumerate();
        let (lost, arrived): (Vec<_>, Vec<_>) = oldest.partition(|(n, _)| n % stride == 0);
        let mut acked_packets: Vec<Packet> =
            arrived.into_iter().map(|(_, packet)| packet).collect();
        acked_packets.extend(self.take(0, acked));
        self.report(acked_packets, lost.into_iter().map(|(_, packet)| packet).collect());
    }

    /// Up to `n` packets declared lost, the oldest except for the first `skip`, turn out to have
    /// arrived. The same ACK reports them as acknowledged.
    pub(crate) fn arrive_after_all(&mut self, skip: usize, n: usize) {
        let from = skip.min(self.lost.len());
        let until = (from + n).min(self.lost.len());
        let late: Vec<Packet> = self.lost.drain(from..until).collect();
        if late.is_empty() {
            return;
        }
        let lost: Vec<Lost> = late.iter().map(|packet| lost(packet, false)).collect();
        self.cc.on_spurious(self.now, &lost);
        let places: Vec<u64> = late.iter().map(|packet| packet.data.place).collect();
        self.missing.retain(|(data, _)| !places.contains(&data.place));
        self.report(late, Vec::new());
    }

    /// A timer expires. A retransmission timeout presumes everything lost except the newest packet.
    pub(crate) fn time_out(&mut self, timeout: Timeout) {
        if self.flight.is_empty() {
            return;
        }
        self.cc.on_timeout(self.now, timeout);
        if timeout == Timeout::Probe {
            self.transmit(AppState::Backlogged);
            return;
        }
        let presumed = self.flight.len().saturating_sub(1).max(1);
        let lost = self.take(0, presumed);
        self.report(Vec::new(), lost);
    }

    /// A tail-loss probe is acknowledged that repaired the loss of the newest packet.
    fn repair_by_probe(&mut self) {
        let acked = self.take(0, self.flight.len());
        self.report_as(acked, Vec::new(), true);
    }

    /// Everything is acknowledged, then nothing is sent for `idle`.
    pub(crate) fn finish(&mut self, idle: TimeDelta) {
        self.acknowledge(0, self.flight.len());
        self.now += idle;
    }

    /// A round trip over a path of `rtt` that delivers a packet every `spacing`, with one ACK each:
    /// until the first packet sent from now on is acknowledged.
    pub(crate) fn round(&mut self, rtt: TimeDelta, spacing: TimeDelta) {
        let first = self.next_id;
        loop {
            let ack = self.flight.front().map_or(Time::NEVER, |oldest| {
                (oldest.token.send_time() + rtt).max(self.last_arrival + spacing).max(self.now)
            });
            if self.has_room() {
                let release = self.pacer.release(self.now, &self.cc.control());
                if release <= ack {
                    self.now = release;
                    self.send(1, AppState::Backlogged);
                    continue;
                }
            }
            self.now = ack;
            self.last_arrival = ack;
            let is_first = self.flight.front().is_none_or(|oldest| oldest.id >= first);
            self.acknowledge(0, 1);
            if is_first {
                return;
            }
        }
    }

    fn change_path(&mut self, script: &mut Script<'_>) {
        let event = match script.below(4) {
            0 => {
                self.flight.clear();
                self.lost.clear();
                self.in_flight = 0;
                PathEvent::Migrated
            }
            1 => PathEvent::Resume(script.resume_hint()),
            _ => {
                self.mss = 500 + 40 * u32::from(script.byte());
                PathEvent::MtuChanged { mss: self.mss }
            }
        };
        self.cc.on_path(self.now, event);
    }

    fn report(&mut self, acked: Vec<Packet>, lost: Vec<Packet>) {
        self.report_as(acked, lost, false);
    }

    /// `acked` and `lost` leave the flight; updates the state and reports to the controller.
    fn report_as(&mut self, acked: Vec<Packet>, lost: Vec<Packet>, repaired_by_probe: bool) {
        let una_before = acked.iter().chain(&lost).map(|packet| packet.data.place).min();
        self.missing.extend(lost.iter().map(|packet| (packet.data, packet.bytes)));
        let oldest = self.oldest();
        let una_advanced = !acked.is_empty()
            && una_before.is_some_and(|una| oldest.is_none_or(|oldest| una < oldest.place));
        let rtt = acked.last().map(|newest| self.measure(newest.token.send_time()));
        let acked: Vec<Acked> = acked
            .into_iter()
            .map(|packet| Acked { token: packet.token, bytes: packet.bytes })
            .collect();
        let declared: Vec<Lost> = lost
            .iter()
            .map(|packet| {
                let before = self.last_lost_id.replace(packet.id);
                self::lost(packet, before.is_some_and(|before| before + 1 == packet.id))
            })
            .collect();
        self.lost.extend(lost);
        let oldest_sent = oldest.map_or(Time::NEVER, |data| data.first_sent);
        let mut feedback = Feedback::new(&acked, &declared, self.in_flight, oldest_sent);
        feedback.rtt = rtt;
        feedback.ce_packets = std::mem::take(&mut self.marks);
        feedback.unacked = self.unacked();
        feedback.una_advanced = una_advanced;
        feedback.repaired_by_probe = repaired_by_probe;
        self.delivered += feedback.acked_bytes();
        self.cc.on_feedback(self.now, &feedback);
    }

    /// RFC 6298 §2.
    fn measure(&mut self, sent: Time) -> RttSample {
        let latest = self.now.since(sent);
        let smoothed = self.smoothed_rtt.map_or(latest, |smoothed| {
            TimeDelta::from_nanos(smoothed.as_nanos() / 8 * 7 + latest.as_nanos() / 8)
        });
        self.smoothed_rtt = Some(smoothed);
        self.min_rtt = self.min_rtt.min(latest);
        RttSample { latest, smoothed, min: self.min_rtt }
    }
}

fn lost(packet: &Packet, contiguous: bool) -> Lost {
    Lost { token: packet.token, bytes: packet.bytes, contiguous }
}
