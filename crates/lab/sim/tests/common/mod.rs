//! Paths and measurements shared by the acceptance tests.
#![allow(dead_code, reason = "each test binary uses its own part")]

pub(crate) mod page;

use uncork_cc::CcSpec;
use uncork_flow::SeriesPoint;
use uncork_path::{Buffer, LossSpec, PathSpec, RateSpec, Step};
use uncork_sim::{FlowSpec, MSS_BYTES, PACKET_BYTES, RunResult, RunSpec, Workload, run};
use uncork_units::{Probability, Rate, Rng, Time, TimeDelta};

/// A FIFO bottleneck: `mbit` Mbit/s, `rtt_ms` ms, a buffer of `milli_bdp` thousandths of the BDP.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) path: PathSpec,
    pub(crate) sample_every: TimeDelta,
}

pub(crate) fn case(mbit: u64, rtt_ms: u64, milli_bdp: u64) -> Case {
    Case {
        path: PathSpec::new(
            Rate::from_mbit(mbit),
            TimeDelta::from_millis(rtt_ms),
            Buffer::MilliBdp(milli_bdp),
        ),
        sample_every: TimeDelta::from_millis(10),
    }
}

impl Case {
    /// With random loss, such as `"0.5%"`.
    pub(crate) fn loss(mut self, text: &str) -> Self {
        self.path.loss = LossSpec::Bernoulli(percent(text));
        self
    }

    pub(crate) fn every_nth_lost(mut self, n: u64) -> Self {
        self.path.loss = LossSpec::EveryNth(n);
        self
    }

    pub(crate) fn packets(mut self, packets: u64) -> Self {
        self.path.link.buffer = Buffer::Packets(packets);
        self
    }

    /// Behind a policer such as `"5mbit:50kB"`.
    pub(crate) fn policed(mut self, text: &str) -> Self {
        self.path.link.policer = Some(text.parse().expect("a policer"));
        self
    }

    pub(crate) fn step(mut self, at_s: u64, mbit: u64) -> Self {
        let at = Time::ZERO + TimeDelta::from_secs(at_s);
        let (first, mut steps) = match &self.path.link.rate {
            RateSpec::Steps { first, steps } => (*first, steps.to_vec()),
            rate => (rate.mean(), Vec::new()),
        };
        steps.push(Step { at, value: Rate::from_mbit(mbit) });
        self.path.link.rate = RateSpec::Steps { first, steps: steps.into() };
        self
    }

    /// One flow of `cc` for `secs` seconds.
    pub(crate) fn flow(&self, cc: &str, secs: u64, seed: u64) -> Run {
        self.flows(&[cc], secs, seed)
    }

    /// Flows that start within 100 ms of each other, for `secs` seconds.
    pub(crate) fn flows(&self, ccs: &[&str], secs: u64, seed: u64) -> Run {
        let end = Time::ZERO + TimeDelta::from_secs(secs);
        let mut rng = Rng::new(seed, 1);
        let flows = (0..).zip(ccs).map(|(index, cc)| FlowSpec {
            start: if index == 0 { Time::ZERO } else { Time::from_nanos(rng.below(100_000_000)) },
            ..FlowSpec::new(spec(cc), Workload::Until(end))
        });
        self.run(flows.collect(), seed, end)
    }

    /// Seconds that a download of `bytes` takes.
    pub(crate) fn download(&self, cc: &str, bytes: u64, seed: u64) -> f64 {
        let end = Time::ZERO + TimeDelta::from_secs(1000);
        let run = self.run(vec![FlowSpec::new(spec(cc), Workload::Transfer(bytes))], seed, end);
        let completion = run.result.flows[0].completion_ns;
        completion.map_or(f64::INFINITY, |nanos| nanos as f64 / 1e9)
    }

    /// A second flow joins after 20 s. Returns the seconds until it has had four fifths of its fair
    /// share for 10 s.
    pub(crate) fn late_joiner(mut self, cc: &str, seed: u64) -> f64 {
        self.sample_every = TimeDelta::from_millis(100);
        let span = 120.0;
        let join = 20.0 + Rng::new(seed, 1).below(3_000) as f64 / 1e3;
        let at = |secs: f64| Time::from_nanos((secs * 1e9) as u64);
        let first = FlowSpec::new(spec(cc), Workload::Until(at(join + span)));
        let flows = vec![first, FlowSpec { start: at(join), ..first }];
        let run = self.run(flows, seed, at(join + span));
        let mut waits = (20..=2 * span as u32).map(|half| f64::from(half) / 2.0);
        let fair = waits.find(|wait| run.share(1, join + wait - 10.0, join + wait) >= 0.4);
        fair.unwrap_or(f64::INFINITY)
    }

    pub(crate) fn run(&self, flows: Vec<FlowSpec>, seed: u64, end: Time) -> Run {
        let sample_every = Some(self.sample_every);
        let spec = RunSpec::over(self.path.clone(), flows, seed, end);
        let result = run(&RunSpec { sample_every, ..spec });
        Run { path: self.path.clone(), result }
    }
}

/// Whether the full versions of the tests are requested, which take minutes: `UNCORK_GRID=full
/// cargo test --release -p uncork-sim -- --nocapture`.
pub(crate) fn is_complete() -> bool {
    std::env::var_os("UNCORK_GRID").is_some_and(|grid| grid == "full")
}

pub(crate) fn spec(cc: &str) -> CcSpec {
    cc.parse().expect("a controller of this crate")
}

fn percent(text: &str) -> Probability {
    text.parse().expect("a percentage")
}

/// A run and the path it ran over.
pub(crate) struct Run {
    pub(crate) path: PathSpec,
    pub(crate) result: RunResult,
}

impl Run {
    /// The points of one flow between two times in seconds.
    pub(crate) fn between(
        &self,
        flow: u32,
        from: f64,
        to: f64,
    ) -> impl Iterator<Item = &SeriesPoint> {
        let series = self.result.series.iter();
        series.filter(move |point| point.flow == flow && (from..=to).contains(&seconds(point)))
    }

    /// Payload bits per second that a flow delivered between two times.
    pub(crate) fn goodput(&self, flow: u32, from: f64, to: f64) -> f64 {
        let points: Vec<_> = self.between(flow, from, to).collect();
        let [first, .., last] = points[..] else { return 0.0 };
        let bytes = last.delivered_bytes - first.delivered_bytes;
        bytes as f64 * 8.0 / (seconds(last) - seconds(first))
    }

    /// Link utilization by all flows between two times: payload without duplicates, plus its
    /// headers.
    pub(crate) fn utilisation(&self, from: f64, to: f64) -> f64 {
        let flows = 0..self.result.flows.len() as u32;
        let goodput: f64 = flows.map(|flow| self.goodput(flow, from, to)).sum();
        let wire = goodput * f64::from(PACKET_BYTES) / f64::from(MSS_BYTES);
        let link = self.path.link.rate.link(0, 0);
        wire / link.rate_at(Time::from_nanos((to * 1e9) as u64)).bits_per_sec() as f64
    }

    /// Share of the goodput that one flow got.
    pub(crate) fn share(&self, flow: u32, from: f64, to: f64) -> f64 {
        let flows = 0..self.result.flows.len() as u32;
        let total: f64 = flows.map(|flow| self.goodput(flow, from, to)).sum();
        self.goodput(flow, from, to) / total
    }

    /// Jain's fairness index of the goodputs.
    pub(crate) fn jain(&self, from: f64, to: f64) -> f64 {
        let flows = 0..self.result.flows.len() as u32;
        let goodputs: Vec<f64> = flows.map(|flow| self.goodput(flow, from, to)).collect();
        let sum: f64 = goodputs.iter().sum();
        let squares: f64 = goodputs.iter().map(|x| x * x).sum();
        sum * sum / (goodputs.len() as f64 * squares)
    }

    /// A quantile over time of the bottleneck's queue, as a fraction of the path's initial BDP.
    pub(crate) fn queue_bdp(&self, quantile: f64, from: f64, to: f64) -> f64 {
        let mut queue: Vec<u64> =
            self.between(0, from, to).map(|point| point.queue_bytes).collect();
        queue.sort_unstable();
        queue[((queue.len() - 1) as f64 * quantile) as usize] as f64 / self.path.bdp_bytes() as f64
    }

    /// Payload bytes of a flow declared lost between two times.
    pub(crate) fn lost_bytes(&self, flow: u32, from: f64, to: f64) -> u64 {
        let points: Vec<_> = self.between(flow, from, to).collect();
        points[points.len() - 1].lost_bytes - points[0].lost_bytes
    }

    /// Payload bytes declared lost and payload bytes delivered by all flows between two times.
    pub(crate) fn lost_and_delivered(&self, from: f64, to: f64) -> (f64, f64) {
        let flows = 0..self.result.flows.len() as u32;
        let lost: u64 = flows.clone().map(|flow| self.lost_bytes(flow, from, to)).sum();
        let bits: f64 = flows.map(|flow| self.goodput(flow, from, to)).sum::<f64>() * (to - from);
        (lost as f64, bits / 8.0)
    }

    /// When a flow was first in `state`, in seconds.
    pub(crate) fn first_in(&self, flow: u32, state: &str) -> Option<f64> {
        self.between(flow, 0.0, f64::INFINITY).find(|point| point.state == state).map(seconds)
    }

    /// The last time `condition` held for a flow, in seconds.
    pub(crate) fn last_time(
        &self,
        flow: u32,
        condition: impl Fn(&SeriesPoint) -> bool,
    ) -> Option<f64> {
        self.between(flow, 0.0, f64::INFINITY).filter(|point| condition(point)).last().map(seconds)
    }
}

pub(crate) fn seconds(point: &SeriesPoint) -> f64 {
    point.time_ns as f64 / 1e9
}

pub(crate) fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) = values.into_iter().fold((0.0, 0), |(sum, count), x| (sum + x, count + 1));
    sum / f64::from(count)
}

pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The max_bw that a link of `mbit` allows, in payload bits per second.
pub(crate) fn payload_rate(mbit: u64) -> f64 {
    mbit as f64 * 1e6 * f64::from(MSS_BYTES) / f64::from(PACKET_BYTES)
}
