//! Hosts with a coarse clock: ticks of 1 ms on a link of 1 Gbit/s with an RTT of 300 µs, and the like. Times, or RTT samples
//! alone, are rounded down to the tick. Every algorithm keeps the link busy, whether the host declares the tick or
//! not.

use std::collections::VecDeque;

use uncork_cc::{
    Acked, AnyController, AppState, CcSpec, Controller, Feedback, Lost, RttSample, SentPacket,
    Settings, Token,
};
use uncork_units::{Rate, Time, TimeDelta};

const PACKET: u32 = 1_200;
/// In packets.
const BUFFER: u64 = 200;
const END: Time = Time::from_nanos(1_000_000_000);
const HALF: Time = Time::from_nanos(500_000_000);

#[derive(Clone, Copy, Debug)]
struct Path {
    mbit: u64,
    rtt_us: u64,
    tick_us: u64,
}

/// What of a host's times is rounded.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Rounded {
    All,
    Rtt,
}

struct InFlight {
    acked: Time,
    sent: Time,
    token: Token,
    is_dropped: bool,
}

/// A sender with endless data over one FIFO link.
struct Host {
    cc: AnyController,
    path: Path,
    rounded: Rounded,
    now: Time,
    next_send: Time,
    link_free: Time,
    flight: VecDeque<InFlight>,
    rtt: RttSample,
    delivered: u64,
}

impl Host {
    fn new(spec: &str, path: Path, rounded: Rounded, is_declared: bool) -> Self {
        let spec: CcSpec = spec.parse().expect("a controller");
        let mut settings = Settings::new(PACKET, 1, Time::ZERO).with_paced(true);
        if is_declared {
            settings = settings.with_clock_granularity(TimeDelta::from_micros(path.tick_us));
        }
        let none = TimeDelta::ZERO;
        Self {
            cc: spec.build(&settings),
            path,
            rounded,
            now: Time::ZERO,
            next_send: Time::ZERO,
            link_free: Time::ZERO,
            flight: VecDeque::new(),
            rtt: RttSample { latest: none, smoothed: none, min: TimeDelta::MAX },
            delivered: 0,
        }
    }

    fn rounded(&self, nanos: u64) -> u64 {
        let tick = self.path.tick_us * 1_000;
        nanos / tick * tick
    }

    /// What the host's clock shows.
    fn clock(&self, at: Time) -> Time {
        match self.rounded {
            Rounded::All => Time::from_nanos(self.rounded(at.as_nanos())),
            Rounded::Rtt => at,
        }
    }

    fn in_flight(&self) -> u64 {
        self.flight.len() as u64 * u64::from(PACKET)
    }

    /// Goodput of the second half, as a share of the link in percent.
    fn run(mut self) -> u64 {
        let mut at_half = 0;
        while self.now < END {
            let has_room = self.in_flight() + u64::from(PACKET) <= self.cc.control().cwnd;
            let next_ack = self.flight.front().map_or(Time::NEVER, |packet| packet.acked);
            if has_room && self.next_send <= next_ack {
                self.send();
            } else {
                self.receive();
            }
            if self.now < HALF {
                at_half = self.delivered;
            }
        }
        let link = Rate::from_mbit(self.path.mbit).bytes_in(END.since(HALF));
        (self.delivered - at_half) * 100 / link
    }

    fn send(&mut self) {
        self.now = self.now.max(self.next_send);
        let in_flight = self.in_flight() + u64::from(PACKET);
        let packet = SentPacket { bytes: PACKET, in_flight, unacked: in_flight };
        let token = self.cc.on_sent(self.clock(self.now), packet, AppState::Backlogged);
        let takes = Rate::from_mbit(self.path.mbit).time_for(u64::from(PACKET));
        let is_dropped = self.link_free.since(self.now) >= takes.times(BUFFER);
        if !is_dropped {
            self.link_free = self.link_free.max(self.now) + takes;
        }
        let acked = self.link_free.max(self.now) + TimeDelta::from_micros(self.path.rtt_us);
        self.flight.push_back(InFlight { acked, sent: self.now, token, is_dropped });
        let rate = self.cc.control().pacing_rate;
        self.next_send =
            self.now + rate.map_or(TimeDelta::ZERO, |rate| rate.time_for(u64::from(PACKET)));
    }

    fn receive(&mut self) {
        let Some(packet) = self.flight.pop_front() else { return };
        self.now = self.now.max(packet.acked);
        let oldest = self.flight.front().map_or(Time::NEVER, |first| self.clock(first.sent));
        let now = self.clock(self.now);
        if packet.is_dropped {
            let lost = [Lost { token: packet.token, bytes: PACKET, contiguous: false }];
            return self.cc.on_feedback(now, &Feedback::new(&[], &lost, self.in_flight(), oldest));
        }
        self.delivered += u64::from(PACKET);
        let rtt = self.measure(packet.sent);
        let acked = [Acked { token: packet.token, bytes: PACKET }];
        let feedback = Feedback::new(&acked, &[], self.in_flight(), oldest).with_rtt(rtt);
        self.cc.on_feedback(now, &feedback);
    }

    fn measure(&mut self, sent: Time) -> RttSample {
        let by_clock = self.clock(self.now).since(self.clock(sent)).as_nanos();
        let latest = TimeDelta::from_nanos(self.rounded(by_clock));
        let smoothed = (self.rtt.smoothed.as_nanos() * 7 + latest.as_nanos()) / 8;
        let smoothed = TimeDelta::from_nanos(smoothed);
        self.rtt = RttSample { latest, smoothed, min: self.rtt.min.min(latest) };
        self.rtt
    }
}

/// Before this was held, BBRv2 and BBRv3 stayed at 1 to 20 % of these links.
#[test]
fn a_coarse_clock_starves_no_controller() {
    let paths = [(1_000, 300, 300), (1_000, 300, 1_000), (1_000, 50, 1_000), (100, 5_000, 10_000)];
    for (mbit, rtt_us, tick_us) in paths {
        let path = Path { mbit, rtt_us, tick_us };
        for spec in ["reno", "cubic", "bbr1", "bbr2", "bbr3", "bbr3:strict_draft"] {
            for (rounded, is_declared) in [
                (Rounded::All, false),
                (Rounded::All, true),
                (Rounded::Rtt, false),
                (Rounded::Rtt, true),
            ] {
                let percent = Host::new(spec, path, rounded, is_declared).run();
                assert!(percent >= 90, "{spec} {path:?} {rounded:?} {is_declared}: {percent} %");
            }
        }
    }
}
