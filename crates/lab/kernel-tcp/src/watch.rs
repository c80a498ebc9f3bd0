//! Periodic queries of the servers' connections in the kernel.

use std::thread;
use std::time::Duration;

use uncork_diag::{Connection, Diag, Family, Query};
use uncork_emu::{Clock, Namespace};
use uncork_flow::{Distribution, SeriesPoint, TransportFigures};
use uncork_sim::RunSpec;
use uncork_units::{Rate, Time, TimeDelta};

use crate::error::KernelTcpError;
use crate::traffic::CommandTraffic;

/// Query interval, unless the run needs more frequent samples.
const EVERY: TimeDelta = TimeDelta::from_millis(20);
/// Minimum query interval.
const MIN_INTERVAL: TimeDelta = TimeDelta::from_millis(5);

/// The kernel's latest report on a server's connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sent {
    pub(crate) figures: TransportFigures,
    /// For a command: bytes received at either end, and how many of them before the end of the
    /// warm-up.
    pub(crate) received: u64,
    pub(crate) received_early: u64,
    /// Smoothed RTTs, sampled while data was in flight.
    pub(crate) rtts: Distribution,
}

/// Periodic sampling of the servers' connections.
pub(crate) struct ConnectionWatch {
    diag: Diag,
    first_port: u16,
    every: TimeDelta,
    sample_every: Option<TimeDelta>,
    sent: Vec<Sent>,
    series: Vec<SeriesPoint>,
    warmup: Time,
    traffic: Option<CommandTraffic>,
}

impl ConnectionWatch {
    /// Watches the connections of `run` in the servers' namespace, with ports from `first_port`,
    /// and the `traffic` of commands.
    pub(crate) fn open(
        servers: &Namespace,
        run: &RunSpec,
        first_port: u16,
        traffic: Option<CommandTraffic>,
    ) -> Result<Self, KernelTcpError> {
        let longest = traffic.as_ref().map_or(EVERY, |traffic| traffic.every().min(EVERY));
        let shortest =
            traffic.as_ref().map_or(MIN_INTERVAL, |traffic| traffic.shortest().max(MIN_INTERVAL));
        let opened = servers.run(Diag::open);
        let opened = opened.map_err(KernelTcpError::system("enter a network namespace"))?;
        Ok(Self {
            diag: opened?,
            first_port,
            every: run.sample_every.map_or(longest, |every| every.min(longest)).max(shortest),
            sample_every: run.sample_every,
            sent: vec![Sent::default(); run.flows.len()],
            series: Vec::new(),
            warmup: run.warmup,
            traffic,
        })
    }

    /// Watches until `end`, or until `is_over`.
    pub(crate) fn until(
        mut self,
        end: Time,
        clock: Clock,
        is_over: impl Fn() -> bool,
    ) -> Result<(Vec<Sent>, Vec<SeriesPoint>), KernelTcpError> {
        clock.wait_until(Time::ZERO);
        let (mut next, mut sample) = (Time::ZERO, Time::ZERO);
        loop {
            let now = clock.now();
            // Determined before the last query, so that it covers everything.
            let is_last = now >= end || is_over();
            let samples = self.sample_every.filter(|_| now >= sample);
            self.look(now, samples.is_some())?;
            if let Some(every) = samples {
                sample += every.max(MIN_INTERVAL);
            }
            if is_last {
                if let Some(traffic) = self.traffic {
                    traffic.store(&mut self.sent);
                }
                return Ok((self.sent, self.series));
            }
            next = (next + self.every).max(now);
            let wait = next.min(end).since(clock.now()).as_nanos();
            thread::sleep(Duration::from_nanos(wait));
        }
    }

    fn look(&mut self, now: Time, samples: bool) -> Result<(), KernelTcpError> {
        let Self { diag, first_port, sent, series, warmup, traffic, .. } = self;
        let query = Query { family: Some(Family::V4), ..Query::default() };
        let each = |connection: &Connection| {
            let flow = connection.local.port().checked_sub(*first_port).map(usize::from);
            let flow = flow.filter(|flow| !traffic.as_ref().is_some_and(|of| of.has(*flow)));
            let Some((flow, sent)) = flow.and_then(|flow| Some((flow, sent.get_mut(flow)?))) else {
                return;
            };
            // Ignore listeners and connections in teardown.
            if connection.remote.port() == 0 || !sent.take_in(connection) {
                return;
            }
            if samples {
                series.extend(point(now, flow as u32, connection));
            }
        };
        diag.dump(&query, each)?;
        let Some(traffic) = traffic else { return Ok(()) };
        Ok(traffic.look(now, now < *warmup, samples.then_some(series))?)
    }
}

impl Sent {
    /// Processes the kernel's statistics; returns false if there are none.
    pub(crate) fn take_in(&mut self, connection: &Connection) -> bool {
        let Some(info) = &connection.info else { return false };
        // Ignore a report with counters that have fallen.
        if info.bytes_acked.is_none_or(|acked| acked < self.figures.bytes_acked) {
            return false;
        }
        self.figures = TransportFigures::from(info);
        if info.unacked > 0 && !info.rtt.is_zero() {
            self.rtts.record(info.rtt.as_nanos());
        }
        true
    }

    /// Adds another connection of the same flow.
    pub(crate) fn add(&mut self, other: &Self) {
        self.figures.add(&other.figures);
        self.rtts.merge(&other.rtts);
    }
}

/// The sender's state of `flow`.
pub(crate) fn point(now: Time, flow: u32, connection: &Connection) -> Option<SeriesPoint> {
    let info = connection.info.as_ref()?;
    let mss = u64::from(info.snd_mss);
    let in_flight = (info.unacked + info.retrans).saturating_sub(info.sacked + info.lost);
    let bbr = connection.bbr();
    Some(SeriesPoint {
        time_ns: now.as_nanos(),
        flow,
        state: bbr.map_or("", |bbr| bbr.state().name()),
        cwnd_bytes: u64::from(info.snd_cwnd) * mss,
        inflight_bytes: u64::from(in_flight) * mss,
        pacing_bps: info.pacing_rate.map(Rate::bits_per_sec),
        max_bw_bps: bbr.map(|bbr| bbr.bw.bits_per_sec()),
        min_rtt_ns: bbr.and_then(|bbr| bbr.min_rtt).or(info.min_rtt).map(TimeDelta::as_nanos),
        rtt_ns: Some(info.rtt.as_nanos()),
        queue_bytes: 0,
        delivered_bytes: info.bytes_acked.unwrap_or_default(),
        lost_bytes: u64::from(info.total_retrans) * mss,
    })
}
