//! The recorded connections: a bottleneck with a tail-drop buffer, and the events on it.

use uncork_cc::units::{Rate, Time, TimeDelta};
use uncork_cc::{Algorithm, CcSpec, Controller, PathEvent, ResumeHint, Settings, Timeout};

use crate::link::{Loop, MSS, Path};
use crate::record::Recorder;

type Connection = Loop<Recorder>;

/// A recorded connection.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// The algorithms recorded in this scenario.
    pub(crate) algorithms: &'static [Algorithm],
    path: fn() -> Path,
    run: fn(&mut Connection),
    /// Step of the host's clock, in milliseconds.
    tick_ms: u64,
}

const BBR: &[Algorithm] = &[Algorithm::Bbr1, Algorithm::Bbr2, Algorithm::Bbr3];

/// All scenarios.
pub(crate) const SCENARIOS: &[Scenario] = &[
    every("startup", || path(4_000, 1_000), |sim| bulk(sim, 500)),
    every("loss", || Path { loss_ppm: 20_000, ..path(2_000, 2_000) }, |sim| bulk(sim, 1_500)),
    every("app_limited", || path(4_000, 1_000), app_limited),
    every("ecn", || path(2_000, 4_000), ecn),
    every("rto", || path(2_000, 1_000), outage),
    every("idle", || path(4_000, 1_000), idle),
    every("migration", || path(2_000, 1_000), migration),
    every("spurious", || path(2_000, 1_000), spurious),
    every("persistent", || path(2_000, 1_000), persistent),
    Scenario {
        name: "resume",
        algorithms: &[Algorithm::Cubic, Algorithm::Bbr1, Algorithm::Bbr3],
        path: || path(16_000, 1_000),
        run: |sim| bulk(sim, 200),
        tick_ms: 0,
    },
    Scenario {
        name: "probe_rtt",
        algorithms: BBR,
        path: || path(500, 2_000),
        run: longer_path,
        tick_ms: 0,
    },
    Scenario {
        name: "classic_ecn",
        algorithms: &[Algorithm::Prague],
        path: || path(2_000, 2_000),
        run: classic_ecn,
        tick_ms: 0,
    },
    // The clock steps by two round trips.
    Scenario { tick_ms: 4, ..every("ticks", short_path, |sim| bulk(sim, 60)) },
];

const fn every(name: &'static str, path: fn() -> Path, run: fn(&mut Connection)) -> Scenario {
    Scenario { name, algorithms: &Algorithm::ALL, path, run, tick_ms: 0 }
}

impl Scenario {
    /// The trace of this connection under `algorithm`.
    pub(crate) fn record(&self, algorithm: Algorithm) -> String {
        let spec = CcSpec::new(algorithm);
        let settings = Settings::new(MSS, 1, Time::ZERO)
            .with_clock_granularity(TimeDelta::from_millis(self.tick_ms))
            // Without, Prague is CUBIC.
            .with_scalable_marks(algorithm == Algorithm::Prague);
        let mut cc = Recorder::new(spec, self.name, &settings);
        if self.name == "resume" {
            let saved_rtt = TimeDelta::from_millis(40);
            let hint = ResumeHint { saved_cwnd: 60 * u64::from(MSS), saved_rtt };
            cc.on_path(Time::ZERO, PathEvent::Resume(hint));
        }
        let mut path = (self.path)();
        path.ack_every = 2;
        let mut sim = Loop::new(cc, path, 1);
        (self.run)(&mut sim);
        sim.cc.into_trace()
    }
}

/// A path of 40 ms with a buffer in thousandths of the BDP.
fn path(kbit: u64, buffer_millibdp: u64) -> Path {
    let rate = Rate::from_bytes_per_sec(kbit * 1_000 / 8);
    Path::new(rate, TimeDelta::from_millis(40), buffer_millibdp)
}

/// 40 Mbit/s and 2 ms, with a buffer of two BDP.
fn short_path() -> Path {
    let rate = Rate::from_bytes_per_sec(40_000 * 1_000 / 8);
    Path::new(rate, TimeDelta::from_millis(2), 2_000)
}

fn at(ms: u64) -> Time {
    Time::ZERO + TimeDelta::from_millis(ms)
}

/// Endless data until `to` milliseconds.
fn bulk(sim: &mut Connection, to: u64) {
    sim.run(at(to), |_| {});
}

/// The path's delay grows, so that min_rtt expires after 10 s.
fn longer_path(sim: &mut Connection) {
    bulk(sim, 1_000);
    sim.path.rtt = TimeDelta::from_millis(60);
    bulk(sim, 11_500);
}

/// The application writes eight packets at a time.
fn app_limited(sim: &mut Connection) {
    bulk(sim, 100);
    for ms in (150..1_200).step_by(75) {
        sim.write(8 * u64::from(MSS));
        bulk(sim, ms);
    }
}

/// One CE mark for each millisecond that begins with at least 10 ms of queue.
fn ecn(sim: &mut Connection) {
    for ms in 1..1_200 {
        bulk(sim, ms);
        sim.marks += u32::from(sim.queue_delay() > TimeDelta::from_millis(10));
    }
}

/// Marks of a queue for L4S; after half a second the host stops to send ECT(1).
fn classic_ecn(sim: &mut Connection) {
    for ms in 1..1_000 {
        if ms == 500 {
            sim.cc.on_path(sim.now, PathEvent::ClassicEcn);
        }
        bulk(sim, ms);
        sim.marks += u32::from(sim.queue_delay() > TimeDelta::from_millis(1));
    }
}

/// Nothing arrives for 600 ms, which causes retransmission timeouts.
fn outage(sim: &mut Connection) {
    bulk(sim, 500);
    sim.path.loss_ppm = 1_000_000;
    bulk(sim, 1_100);
    sim.path.loss_ppm = 0;
    bulk(sim, 2_500);
}

/// Two seconds of idle time.
fn idle(sim: &mut Connection) {
    bulk(sim, 300);
    sim.write(u64::from(MSS));
    bulk(sim, 2_300);
    sim.write(80 * u64::from(MSS));
    bulk(sim, 2_700);
}

/// Migration to a path with smaller packets.
fn migration(sim: &mut Connection) {
    bulk(sim, 600);
    sim.cc.on_path(sim.now, PathEvent::Migrated);
    sim.cc.on_path(sim.now, PathEvent::MtuChanged { mss: 1_252 });
    bulk(sim, 1_400);
}

/// Everything declared lost by 700 ms turns out to arrive late.
fn spurious(sim: &mut Connection) {
    bulk(sim, 300);
    sim.path.loss_ppm = 30_000;
    sim.run_until(at(1_500), |sim| sim.lost_packets.len() >= 3);
    sim.path.loss_ppm = 0;
    bulk(sim, 1_000.max(sim.now.as_nanos() / 1_000_000));
    sim.deliver_lost_packets();
    bulk(sim, 1_600);
}

/// A probe, then persistent congestion, as QUIC reports them.
fn persistent(sim: &mut Connection) {
    bulk(sim, 400);
    sim.cc.on_timeout(sim.now, Timeout::Probe);
    bulk(sim, 500);
    sim.cc.on_timeout(sim.now, Timeout::Persistent);
    bulk(sim, 1_100);
}
