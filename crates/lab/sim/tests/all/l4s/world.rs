//! Paths, flows and what a run shows of them.

use uncork_flow::FlowRecord;
use uncork_path::{Buffer, Ecn, HostJitter, PathSpec};
use uncork_sim::{FlowSpec, MSS_BYTES, PACKET_BYTES, RunSpec, Workload, run};
use uncork_units::{Rate, Rng, Time, TimeDelta};

use crate::common::spec;

/// Length of a run in seconds, and what of it rates and shares leave out.
pub(super) const SECS: u64 = 60;
pub(super) const WARMUP_SECS: u64 = 10;
/// The buffer of a queue that manages its delay, in packets: none of them fills it.
pub(super) const ROOM: Buffer = Buffer::Packets(5_000);

/// A controller, and what its packets have in the ECN field.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    pub(super) cc: &'static str,
    pub(super) ecn: Ecn,
}

pub(super) const PRAGUE: Kind = Kind { name: "prague", cc: "prague", ecn: Ecn::Ect1 };
pub(super) const CUBIC: Kind = Kind { name: "cubic", cc: "cubic", ecn: Ecn::NotEct };
pub(super) const CUBIC_ECN: Kind = Kind { name: "cubic, ECN", cc: "cubic", ecn: Ecn::Ect0 };
/// Without ECN, as Linux has them by default.
pub(super) const BBRS: [Kind; 3] = [
    Kind { name: "bbr1", cc: "bbr1", ecn: Ecn::NotEct },
    Kind { name: "bbr2", cc: "bbr2", ecn: Ecn::NotEct },
    Kind { name: "bbr3", cc: "bbr3", ecn: Ecn::NotEct },
];

pub(super) fn path(queue: &str, mbit: u64, rtt_ms: u64, buffer: Buffer) -> PathSpec {
    let mut path = PathSpec::new(Rate::from_mbit(mbit), TimeDelta::from_millis(rtt_ms), buffer);
    path.link.queue = queue.parse().expect("a queue discipline");
    path
}

pub(super) fn at(millis: u64) -> Time {
    Time::ZERO + TimeDelta::from_millis(millis)
}

/// An endless flow of each kind. Each starts within the first second, by the seed.
pub(super) fn flows(kinds: &[Kind], seed: u64) -> Vec<FlowSpec> {
    let mut starts = Rng::new(seed, 1);
    let flow = |kind: &Kind| FlowSpec {
        start: at(starts.below(1_000)),
        ecn: kind.ecn,
        ..FlowSpec::new(spec(kind.cc), Workload::Until(at(1_000 * SECS)))
    };
    kinds.iter().map(flow).collect()
}

/// A run of a minute between hosts that take their usual time.
pub(super) fn spec_of(path: PathSpec, flows: Vec<FlowSpec>, seed: u64) -> RunSpec {
    RunSpec {
        host_jitter: HostJitter::Usual,
        warmup: at(1_000 * WARMUP_SECS),
        ..RunSpec::over(path, flows, seed, at(1_000 * SECS))
    }
}

/// The records of a run over one path.
pub(super) struct Seen {
    mbit: f64,
    /// Length of what rates and shares count.
    secs: f64,
    pub(super) flows: Vec<FlowRecord>,
}

pub(super) fn see(path: &PathSpec, flows: Vec<FlowSpec>, seed: u64) -> Seen {
    Seen::of(&spec_of(path.clone(), flows, seed))
}

impl Seen {
    pub(super) fn of(spec: &RunSpec) -> Self {
        let mbit = spec.paths[0].link.rate.mean().bits_per_sec() as f64 / 1e6;
        Self { mbit, secs: spec.end.since(spec.warmup).as_secs_f64(), flows: run(spec).flows }
    }

    fn delivered(&self) -> impl Iterator<Item = f64> {
        self.flows.iter().map(|flow| flow.delivered_after_warmup() as f64)
    }

    /// The part of all payload that the first `count` flows have, in percent.
    pub(super) fn share_of_first(&self, count: usize) -> f64 {
        100.0 * self.delivered().take(count).sum::<f64>() / self.delivered().sum::<f64>()
    }

    /// The part of the link that carried payload and its headers, in percent.
    pub(super) fn used(&self) -> f64 {
        let bits = self.delivered().sum::<f64>() * 8.0 * f64::from(PACKET_BYTES);
        bits / f64::from(MSS_BYTES) / (self.mbit * 1e4 * self.secs)
    }

    /// Segments per second of a flow.
    pub(super) fn segments_per_sec(&self, flow: usize) -> f64 {
        self.flows[flow].delivered_after_warmup() as f64 / f64::from(MSS_BYTES) / self.secs
    }

    /// Milliseconds in queues that 99 % of the first flow's packets did not exceed, its start included.
    pub(super) fn p99(&self) -> f64 {
        self.flows[0].lab().queue_p99_ms.expect("it sent something")
    }

    pub(super) fn p50(&self) -> f64 {
        self.flows[0].lab().queue_ms.expect("it sent something").p50
    }

    /// Jain's index of the first `count` flows.
    pub(super) fn jain(&self, count: usize) -> f64 {
        let rates: Vec<f64> = self.delivered().take(count).collect();
        let sum: f64 = rates.iter().sum();
        sum * sum / (count as f64 * rates.iter().map(|rate| rate * rate).sum::<f64>())
    }

    /// The part of the first `count` flows' packets that were marked, in percent.
    pub(super) fn marked(&self, count: usize) -> f64 {
        let sum =
            |of: fn(&FlowRecord) -> u64| self.flows[..count].iter().map(of).sum::<u64>() as f64;
        100.0 * sum(|flow| flow.packets_marked) / sum(|flow| flow.packets_sent)
    }
}
