//! Made-up documents and runs for the tests of this crate. The runs come from a coarse fluid model:
//! the shapes are those of real controllers, the figures are nobody's results.

use uncork_flow::{Quantiles, SeriesPoint};

use crate::document::{
    ColumnResult, CompareDocument, EngineFigures, FlowResult, LossPosition, PathFigures,
    QueueDelay, Spread, Workload,
};
use crate::series::{ColumnSeries, ReportSeries};

const STEP_NS: u64 = 5_000_000;
const STEP_S: f64 = 0.005;
const RTT_S: f64 = 0.04;
const LINK: f64 = 2.5e6;
const BUFFER: f64 = 100_000.0;
const MSS: f64 = 1448.0;

/// Three controllers, one transfer of 10 MB each.
pub(crate) fn transfers() -> CompareDocument {
    let bbr3 = column("bbr3", 18_100_000, 0.905, [40.1, 44.2, 61.3], [4.1, 21.3], 0.0102);
    let cubic = column("cubic", 6_450_000, 0.3225, [40.1, 40.9, 48.7], [0.3, 8.4], 0.0101);
    let newreno = column("newreno", 4_370_000, 0.2185, [40.1, 40.4, 44.0], [0.1, 3.9], 0.01);
    let mut document = document(
        "uncork compare --rate 20mbit --rtt 40ms --loss 1% --size 10MB bbr3 cubic newreno",
        Workload::Size { size_bytes: 10_000_000 },
        vec![bbr3, cubic, newreno],
    );
    let completions = [[4.39, 4.42, 4.6], [9.8, 12.4, 15.9], [14.2, 18.3, 24.7]];
    for (result, [p10, p50, p90]) in document.results.iter_mut().zip(completions) {
        result.completion_s = Some(Spread { p10, p50, p90 });
        result.per_flow[0].completion_s = Some(p50);
    }
    document.results[2].timeouts = 1;
    document.verdict =
        "bbr3 finishes 10 MB in 4.42 s, 2.8 times as fast as cubic (12.4 s) and 4.1 \
        times as fast as newreno (18.3 s).\nIt pays with a longer queue: 21 ms at the 95th \
        percentile, against 8.4 ms for cubic."
            .to_owned();
    document
}

/// A pair of one controller beside a mix of two, for a fixed time.
pub(crate) fn mix() -> CompareDocument {
    let mut pair = column("2xbbr3", 18_900_000, 0.945, [40.1, 52.0, 77.1], [12.2, 36.4], 0.0112);
    let mut mixed =
        column("bbr3+cubic", 18_700_000, 0.935, [40.1, 50.3, 71.9], [10.6, 31.0], 0.0108);
    share(&mut pair, 0.999, [("bbr3", 9_600_000), ("bbr3", 9_300_000)]);
    share(&mut mixed, 0.633, [("bbr3", 16_200_000), ("cubic", 2_500_000)]);
    let mut document = document(
        "uncork compare --rate 20mbit --rtt 40ms --loss 1% --duration 30s 2xbbr3 bbr3+cubic",
        Workload::Duration { duration_s: 30.0 },
        vec![pair, mixed],
    );
    document.verdict = "Beside bbr3, cubic keeps 13 % of the goodput.".to_owned();
    document
}

fn share(result: &mut ColumnResult, jain: f64, flows: [(&str, u64); 2]) {
    let total: u64 = flows.iter().map(|(_, goodput)| goodput).sum();
    let flow = |(flow, (cc, goodput_bps)): (usize, (&str, u64))| FlowResult {
        flow: flow as u32,
        cc: cc.to_owned(),
        goodput_bps,
        share: crate::number::rounded(goodput_bps as f64 / total as f64, 6),
        completion_s: None,
    };
    result.flows = 2;
    result.jain = Some(jain);
    result.per_flow = flows.into_iter().enumerate().map(flow).collect();
}

fn column(
    cc: &str,
    goodput_bps: u64,
    utilisation: f64,
    [min, p50, p95]: [f64; 3],
    [queue_p50, queue_p95]: [f64; 2],
    retransmit_fraction: f64,
) -> ColumnResult {
    let flow =
        FlowResult { flow: 0, cc: cc.to_owned(), goodput_bps, share: 1.0, completion_s: None };
    ColumnResult {
        cc: cc.to_owned(),
        flows: 1,
        completion_s: None,
        unfinished: 0,
        goodput_bps,
        utilisation,
        rtt_ms: Some(Quantiles { min, p50, p95 }),
        queue_ms: Some(QueueDelay { p50: queue_p50, p95: queue_p95 }),
        retransmit_fraction,
        timeouts: 0,
        jain: None,
        per_flow: vec![flow],
    }
}

fn document(command: &str, workload: Workload, results: Vec<ColumnResult>) -> CompareDocument {
    CompareDocument {
        schema: CompareDocument::SCHEMA.to_owned(),
        version: "0.1.0".to_owned(),
        command: command.to_owned(),
        path: PathFigures {
            rate_bps: 20_000_000,
            rtt_ms: 40.0,
            loss: 0.01,
            loss_position: LossPosition::After,
            buffer_bytes: 100_000,
            buffer_packets: 67,
            buffer_bdp: 1.0,
            mss_bytes: 1448,
            packet_bytes: 1500,
        },
        workload,
        seeds: 20,
        results,
        verdict: String::new(),
        engine: EngineFigures { packets: 1_234_567, wall_s: 0.412, packets_per_s: 2_996_522 },
    }
}

/// Runs that could stand behind `document`.
pub(crate) fn series(document: &CompareDocument) -> ReportSeries {
    ReportSeries { columns: document.results.iter().map(run).collect() }
}

fn run(result: &ColumnResult) -> ColumnSeries {
    let mut flows: Vec<Fluid> =
        result.per_flow.iter().map(|flow| Fluid::new(flow.flow, &flow.cc)).collect();
    let end = result.completion_s.map_or(30.0, |c| c.p50);
    let mut queue = 0.0_f64;
    let mut points = Vec::new();
    for step in 0..(end / STEP_S) as u64 {
        let rtt = RTT_S + queue / LINK;
        let offered: f64 = flows.iter().map(|f| f.offered(rtt)).sum();
        let drained = (offered * STEP_S + queue).min(LINK * STEP_S);
        queue += offered * STEP_S - drained;
        let overflow = queue > BUFFER;
        queue = queue.clamp(0.0, BUFFER);
        for flow in &mut flows {
            let part = flow.offered(rtt) / offered.max(1.0);
            flow.step(step, rtt, part * drained, overflow);
            points.push(flow.point(step, rtt, queue));
        }
    }
    let completions_s = result.completion_s.map_or_else(Vec::new, |c| spread(c, 20));
    let cc = result.per_flow.iter().map(|f| f.cc.clone()).collect();
    ColumnSeries { label: result.cc.clone(), seed: 7, cc, points, completions_s }
}

/// `n` values around `spread`.
fn spread(spread: Spread, n: u32) -> Vec<f64> {
    let at = |i: u32| (f64::from(i) + 0.5) / f64::from(n);
    let value = |q: f64| match q {
        q if q < 0.5 => spread.p50 - (0.5 - q) / 0.4 * (spread.p50 - spread.p10),
        q => spread.p50 + (q - 0.5) / 0.4 * (spread.p90 - spread.p50),
    };
    (0..n).map(|i| value(at(i))).collect()
}

/// One flow of the model.
struct Fluid {
    flow: u32,
    is_bbr: bool,
    cwnd: f64,
    delivered: f64,
    slow_start: bool,
    recovery_until: u64,
    state: &'static str,
    random: u64,
}

impl Fluid {
    fn new(flow: u32, cc: &str) -> Self {
        Self {
            flow,
            is_bbr: cc.contains("bbr"),
            cwnd: 10.0 * MSS,
            delivered: 0.0,
            slow_start: true,
            recovery_until: 0,
            state: "SlowStart",
            random: 0x9E37_79B9 + u64::from(flow) + cc.len() as u64,
        }
    }

    fn offered(&self, rtt: f64) -> f64 {
        self.cwnd / rtt
    }

    fn step(&mut self, step: u64, rtt: f64, delivered: f64, overflow: bool) {
        self.delivered += delivered;
        if self.is_bbr {
            self.bbr(step, rtt);
        } else {
            self.loss_based(step, rtt, delivered, overflow);
        }
    }

    fn bbr(&mut self, step: u64, rtt: f64) {
        let bdp = LINK * RTT_S;
        if self.slow_start {
            self.state = "Startup";
            self.cwnd *= 1.0 + 0.9 * STEP_S / rtt;
            self.slow_start = self.cwnd < 1.8 * bdp;
            return;
        }
        let (state, gain) = match (step + 37 * u64::from(self.flow)) % 500 {
            _ if step % 1000 > 960 => ("ProbeRTT", 0.5),
            0..=24 => ("ProbeBW_DOWN", 0.85),
            25..=440 => ("ProbeBW_CRUISE", 1.0),
            441..=460 => ("ProbeBW_REFILL", 1.05),
            _ => ("ProbeBW_UP", 1.35),
        };
        self.state = state;
        self.cwnd += (gain * bdp - self.cwnd) * 0.2;
    }

    fn loss_based(&mut self, step: u64, rtt: f64, delivered: f64, overflow: bool) {
        let lost = self.uniform() < 0.01 * delivered / MSS;
        if (lost || overflow) && step > self.recovery_until {
            self.cwnd = (0.65 * self.cwnd).max(4.0 * MSS);
            self.slow_start = false;
            self.recovery_until = step + (rtt / STEP_S) as u64;
        }
        self.state = match self.slow_start {
            true => "SlowStart",
            false if step < self.recovery_until => "Recovery",
            false => "CongestionAvoidance",
        };
        let growth = if self.slow_start { self.cwnd } else { 1.6 * MSS };
        self.cwnd += growth * STEP_S / rtt;
    }

    fn uniform(&mut self) -> f64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.random >> 40) as f64 / (1_u64 << 24) as f64
    }

    fn point(&mut self, step: u64, rtt: f64, queue: f64) -> SeriesPoint {
        let rtt = rtt + 0.004 * self.uniform() * self.uniform();
        SeriesPoint {
            time_ns: step * STEP_NS,
            flow: self.flow,
            state: self.state,
            cwnd_bytes: self.cwnd as u64,
            inflight_bytes: self.cwnd as u64,
            pacing_bps: None,
            max_bw_bps: None,
            min_rtt_ns: Some((RTT_S * 1e9) as u64),
            rtt_ns: (step > 8).then_some((rtt * 1e9) as u64),
            queue_bytes: queue as u64,
            delivered_bytes: self.delivered as u64,
            lost_bytes: 0,
        }
    }
}
