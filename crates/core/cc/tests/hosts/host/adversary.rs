//! A host that reports falsehoods.

use uncork_cc::{
    Acked, AppState, Controller, Feedback, Lost, PathEvent, RttSample, SentPacket, Settings,
};
use uncork_units::{Time, TimeDelta};

use super::{Digest, Script, Watched};

/// Runs the script and returns the digest of the controller's decisions.
///
/// Packets are acknowledged twice, both lost and acknowledged, out of order, or with the token of
/// another packet or connection. Volumes, sizes and RTTs are arbitrary. Time stands still, jumps to
/// its maximum and goes back.
pub(crate) fn play(bytes: &[u8]) -> Digest {
    let mut script = Script::new(bytes);
    let mut host = Adversary::new(&mut script);
    while let Some(operation) = script.operation(32) {
        host.act(operation, &mut script);
    }
    host.cc.digest()
}

struct Adversary {
    cc: Watched,
    /// Another connection. Its tokens are mixed with this one's.
    other: Watched,
    now: Time,
    mss: u32,
    sent: Vec<Acked>,
}

impl Adversary {
    fn new(script: &mut Script<'_>) -> Self {
        let spec = script.spec();
        let mut settings = Settings::new(packet_size(script), 0, Time::ZERO);
        settings.initial_window = script.amount();
        settings.initial_rtt = script.one_in(3).then(|| script.span());
        settings.seed = u64::from(script.byte());
        settings.now = script.time();
        let cc = Watched::new(spec, &settings);
        Self { other: cc.clone(), cc, now: settings.now, mss: settings.mss, sent: Vec::new() }
    }

    fn act(&mut self, operation: u8, script: &mut Script<'_>) {
        match operation {
            0..=8 => self.send(script),
            9..=20 => self.feedback(script),
            21 | 22 => self.rounds(script),
            23..=26 => self.now += script.span(),
            27 => self.now = script.time(),
            28 => {
                let lost = self.lost(script);
                self.cc.on_spurious(self.now, &lost);
            }
            29 => self.cc.on_timeout(self.now, script.timeout()),
            30 => self.send_elsewhere(script),
            _ => self.change_path(script),
        }
    }

    fn send(&mut self, script: &mut Script<'_>) {
        let bytes = packet_size(script);
        let packet = SentPacket { bytes, in_flight: script.amount(), unacked: script.amount() };
        let token = self.cc.on_sent(self.now, packet, script.app());
        self.sent.push(Acked { token, bytes });
    }

    fn send_elsewhere(&mut self, script: &mut Script<'_>) {
        let bytes = packet_size(script);
        let packet = SentPacket { bytes, in_flight: script.amount(), unacked: script.amount() };
        let token = self.other.on_sent(script.time(), packet, script.app());
        self.sent.push(Acked { token, bytes });
        let acked = [Acked { token, bytes: script.small_amount() }];
        self.other.on_feedback(script.time(), &Feedback::new(&acked, &[], 0, Time::NEVER));
    }

    fn feedback(&mut self, script: &mut Script<'_>) {
        let (acked, lost) = (self.packets(script), self.lost(script));
        let odd = script.byte();
        let has = |bit: u8| odd & (1 << bit) != 0;
        let rtt = has(0).then(|| {
            let latest = script.span();
            // In half of the cases the three values are equal, as in the first sample of most
            // hosts.
            let mut or_other = || if has(1) { script.span() } else { latest };
            RttSample { latest, smoothed: or_other(), min: or_other() }
        });
        let mut feedback = Feedback::new(&acked, &lost, 0, Time::NEVER);
        feedback.rtt = rtt;
        feedback.ce_packets = if has(2) && has(3) { script.small_amount() } else { 0 };
        feedback.in_flight = script.amount();
        feedback.unacked = script.amount();
        feedback.una_advanced = has(4);
        feedback.oldest_sent = if has(5) { script.time() } else { Time::NEVER };
        feedback.repaired_by_probe = has(6) && has(7);
        self.cc.on_feedback(self.now, &feedback);
    }

    /// A few regular round trips, to reach later states before the next falsehood.
    fn rounds(&mut self, script: &mut Script<'_>) {
        let (packets, rtt) = (u64::from(1 + script.below(32)), script.span());
        (0..=script.below(8)).for_each(|_| self.round(packets, rtt));
    }

    fn round(&mut self, packets: u64, rtt: TimeDelta) {
        let bytes = u64::from(self.mss);
        let flight = self.sent.len();
        for sent in 1..=packets {
            let in_flight = sent * bytes;
            let packet = SentPacket { bytes: self.mss, in_flight, unacked: in_flight };
            let token = self.cc.on_sent(self.now, packet, AppState::Backlogged);
            self.sent.push(Acked { token, bytes: self.mss });
        }
        self.now += rtt;
        for (left, packet) in (0..packets).rev().zip(&self.sent[flight..]) {
            let acked = [*packet];
            let oldest = if left > 0 { packet.token.send_time() } else { Time::NEVER };
            let mut feedback = Feedback::new(&acked, &[], left * bytes, oldest);
            feedback.rtt = Some(RttSample { latest: rtt, smoothed: rtt, min: rtt });
            self.cc.on_feedback(self.now, &feedback);
        }
        // Falsehoods concern recently sent packets only.
        let old = self.sent.len().saturating_sub(300);
        self.sent.drain(..old);
    }

    fn change_path(&mut self, script: &mut Script<'_>) {
        let event = match script.below(5) {
            0 => PathEvent::Migrated,
            4 => PathEvent::ClassicEcn,
            1 => PathEvent::Resume(script.resume_hint()),
            _ => {
                self.mss = packet_size(script);
                PathEvent::MtuChanged { mss: self.mss }
            }
        };
        self.cc.on_path(self.now, event);
    }

    /// Up to seven recently sent packets, in any order.
    fn packets(&self, script: &mut Script<'_>) -> Vec<Acked> {
        let packet = |script: &mut Script<'_>| {
            let back = usize::from(script.byte()) % self.sent.len().max(1);
            let mut packet = *self.sent.iter().rev().nth(back)?;
            if script.one_in(16) {
                packet.bytes = script.small_amount();
            }
            Some(packet)
        };
        (0..script.below(8)).filter_map(|_| packet(script)).collect()
    }

    fn lost(&self, script: &mut Script<'_>) -> Vec<Lost> {
        let packets = self.packets(script).into_iter();
        packets
            .map(|Acked { token, bytes }| Lost { token, bytes, contiguous: script.one_in(2) })
            .collect()
    }
}

fn packet_size(script: &mut Script<'_>) -> u32 {
    if script.one_in(4) { script.small_amount() } else { 1_448 }
}
