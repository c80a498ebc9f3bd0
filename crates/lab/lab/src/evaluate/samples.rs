//! Extracts samples of a metric from records.

use uncork_flow::{FlowRecord, RequestRecord, jain_index};
use uncork_path::LinkRate;
use uncork_units::{Time, TimeDelta};

use super::outcome::RunOutcome;
use super::window::{SampleWindow, SampleWindows};
use crate::compare::wire_bytes;
use crate::scenario::{Carries, Class, FlowPlan, Metric, Scenario, Selection};

/// A value and its cluster. Values of a cluster have something in common, such as the seed that
/// determined packet losses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) cluster: u64,
    pub(crate) value: f64,
}

/// The runs of one cell, filtered by a selection.
pub(crate) struct CellRuns<'a> {
    scenario: &'a Scenario,
    runs: &'a [RunOutcome],
    of: &'a Selection,
}

impl<'a> CellRuns<'a> {
    /// `runs` must be those of one cell, sorted by seed.
    pub(crate) fn new(scenario: &'a Scenario, runs: &'a [RunOutcome], of: &'a Selection) -> Self {
        Self { scenario, runs, of }
    }

    /// The runs that have results.
    fn live(&self) -> impl Iterator<Item = &'a RunOutcome> {
        self.runs.iter().filter(|run| !run.is_dead())
    }

    /// The samples of `metric`. Unfinished ones are infinite.
    pub(crate) fn samples(&self, metric: Metric) -> Vec<Sample> {
        let of_runs = |value: &dyn Fn(&RunOutcome) -> Option<f64>| {
            let sample = |run: &RunOutcome| Some(Sample { cluster: run.seed, value: value(run)? });
            self.live().filter_map(sample).collect()
        };
        match metric {
            Metric::Completion => {
                let mut samples = self.of_objects(|object| Some(object.completion_s));
                samples.extend(self.of_flows(|run, flow| {
                    let ended = flow.completion_ns.map_or(f64::INFINITY, seconds);
                    self.is_command(run, flow).then_some(ended)
                }));
                samples
            }
            Metric::FirstByte => self.of_objects(|object| Some(object.first_byte_s)),
            Metric::Bandwidth => self.of_flows(bandwidth),
            Metric::Goodput => self.goodputs(),
            Metric::Timeouts => self.of_flows(|_, flow| Some(flow.timeouts as f64)),
            Metric::PlaybackLatency => self.of_flows(|_, flow| {
                let startup = flow.playback?.startup_ns;
                Some(startup.map_or(f64::INFINITY, seconds))
            }),
            Metric::Stutters => self.of_flows(|_, flow| {
                let playback = flow.playback?;
                Some(playback.stutters as f64 / playback.items.max(1) as f64)
            }),
            Metric::Stalled => self.of_flows(|_, flow| {
                let playback = flow.playback?;
                let wanted = playback.played_ns + playback.stalled_ns;
                (wanted > 0).then(|| playback.stalled_ns as f64 / wanted as f64)
            }),
            Metric::PlayedRate => {
                self.of_flows(|_, flow| flow.playback?.bitrate_bps.map(|rate| rate as f64))
            }
            Metric::Switches => {
                self.of_flows(|_, flow| flow.playback.map(|playback| playback.switches as f64))
            }
            Metric::Rtt | Metric::RttTime | Metric::QueueDelay => Vec::new(),
            Metric::Utilisation => of_runs(&|run| self.utilisation(run)),
            Metric::Share => of_runs(&|run| self.share(run)),
            Metric::Jain => of_runs(&|run| self.jain(run)),
            Metric::Retransmitted => of_runs(&|run| {
                ratio(
                    self.sum(run, |flow| flow.bytes_retransmitted),
                    self.sum(run, |flow| flow.bytes_sent),
                )
            }),
            Metric::Dropped => of_runs(&|run| {
                let by_links = |flow: &FlowRecord| flow.lab().dropped_by_links();
                ratio(self.sum(run, by_links), self.sum(run, |flow| flow.packets_sent))
            }),
        }
    }

    /// The `quantile` of each flow's own distribution of `metric`, in seconds. Records keep the
    /// median and the 95th percentile of RTTs and queueing delays, and the 99th of the latter; scenarios cannot request
    /// others.
    pub(crate) fn samples_at(&self, metric: Metric, quantile: f64) -> Vec<Sample> {
        self.of_flows(|_, flow| {
            // A kernel reports its smoothed RTT, which is sampled over time.
            let is_over_time = matches!(flow.engine.as_str(), "netns" | "bpf");
            if metric == Metric::QueueDelay && quantile > 0.95 {
                return flow.lab().queue_p99_ms.map(|ms| ms / 1e3);
            }
            let kept = match metric {
                Metric::Rtt => flow.rtt_ms.filter(|_| !is_over_time),
                Metric::RttTime => flow.rtt_ms.filter(|_| is_over_time),
                _ => flow.lab().queue_ms,
            }?;
            Some(if quantile > 0.5 { kept.p95 } else { kept.p50 } / 1e3)
        })
    }

    /// The selected flows.
    pub(crate) fn flows<'b>(&'b self, run: &'b RunOutcome) -> impl Iterator<Item = &'b FlowRecord> {
        run.flows.iter().filter(|flow| self.selects(run, flow))
    }

    fn selects(&self, run: &RunOutcome, flow: &FlowRecord) -> bool {
        let class = match &self.of.class {
            Some(class) => flow.group == *class,
            None => !self.is_background(run, flow),
        };
        class
            && self.of.cc.as_ref().is_none_or(|cc| flow.cc == *cc)
            && flow.size_bytes.is_none_or(|bytes| self.fits(bytes))
    }

    fn is_background(&self, run: &RunOutcome, flow: &FlowRecord) -> bool {
        let mut classes = self.scenario.cells[run.cell].classes.iter();
        classes.any(|class| class.background && class.name == flow.group)
    }

    fn is_command(&self, run: &RunOutcome, flow: &FlowRecord) -> bool {
        let mut classes = self.scenario.cells[run.cell].classes.iter();
        classes.any(|class| class.carries == Carries::Commands && class.name == flow.group)
    }

    fn fits(&self, bytes: u64) -> bool {
        self.of.at_least_bytes.is_none_or(|least| bytes >= least)
            && self.of.less_than_bytes.is_none_or(|limit| bytes < limit)
    }

    fn of_flows(&self, value: impl Fn(&RunOutcome, &FlowRecord) -> Option<f64>) -> Vec<Sample> {
        self.of_runs_flows(|run| {
            let value = &value;
            move |flow: &FlowRecord| value(run, flow)
        })
    }

    /// A sample of each selected flow, by a function that is made for each run.
    fn of_runs_flows<'b, F>(&'b self, value_in: impl Fn(&'b RunOutcome) -> F) -> Vec<Sample>
    where
        F: Fn(&FlowRecord) -> Option<f64> + 'b,
    {
        let mut samples = Vec::new();
        for run in self.live() {
            let value = value_in(run);
            let sample = |flow: &FlowRecord| {
                Some(Sample { cluster: self.cluster(run, flow), value: value(flow)? })
            };
            samples.extend(self.flows(run).filter_map(sample));
        }
        samples
    }

    /// Transfers, and requests of clients.
    fn of_objects(&self, value: impl Fn(&SampledObject) -> Option<f64>) -> Vec<Sample> {
        let mut samples = Vec::new();
        for run in self.live() {
            for flow in self.flows(run) {
                let cluster = self.cluster(run, flow);
                let requests =
                    run.requests_of(flow).filter(|request| self.fits(request.size_bytes));
                let objects =
                    requests.map(SampledObject::of_request).chain(SampledObject::of_flow(flow));
                let values = objects.filter_map(|object| value(&object));
                samples.extend(values.map(|value| Sample { cluster, value }));
            }
        }
        samples
    }

    /// Flows that share links form one cluster per run. With separate links each client is a
    /// cluster with all its connections; the two halves of a pair form one.
    fn cluster(&self, run: &RunOutcome, flow: &FlowRecord) -> u64 {
        let own = self.has_own_links(run, flow);
        let client = run.clients.get(flow.flow as usize).copied().unwrap_or(flow.flow);
        let client = if own { u64::from(client) + 1 } else { 0 };
        run.seed.wrapping_mul(1 << 20).wrapping_add(client)
    }

    fn has_own_links(&self, run: &RunOutcome, flow: &FlowRecord) -> bool {
        let mut classes = self.scenario.cells[run.cell].classes.iter();
        classes.any(|class| class.own_links && class.name == flow.group)
    }

    /// Payload per second of each flow: over the window of the flows that compete for its link, else
    /// over its own.
    fn goodputs(&self) -> Vec<Sample> {
        self.of_runs_flows(|run| {
            let windows = SampleWindows::of(self.scenario, run);
            move |flow: &FlowRecord| Some(goodput(flow, self.window(&windows, run, flow)?))
        })
    }

    /// Payload per second of each flow, to be added up: over one window for all that share links.
    pub(crate) fn goodputs_to_add(&self) -> Vec<Sample> {
        self.of_runs_flows(|run| {
            let together = self.together(run);
            move |flow: &FlowRecord| {
                let window = if self.has_own_links(run, flow) {
                    SampleWindow::of_flow(self.scenario, run, flow)
                } else {
                    together
                };
                Some(goodput(flow, window?))
            }
        })
    }

    fn window(
        &self,
        windows: &SampleWindows<'_>,
        run: &RunOutcome,
        flow: &FlowRecord,
    ) -> Option<SampleWindow> {
        windows.competing(&flow.group).or_else(|| SampleWindow::of_flow(self.scenario, run, flow))
    }

    /// The window of all selected flows and of their competitors.
    fn together(&self, run: &RunOutcome) -> Option<SampleWindow> {
        SampleWindows::of(self.scenario, run).of_all(&self.classes(run))
    }

    /// The classes of the selected flows.
    fn classes<'b>(&self, run: &'b RunOutcome) -> Vec<&'b str> {
        let mut classes: Vec<&str> = Vec::new();
        for flow in run.flows.iter().filter(|flow| self.selects(run, flow)) {
            if !classes.contains(&flow.group.as_str()) {
                classes.push(&flow.group);
            }
        }
        classes
    }

    /// Bytes that the selected flows delivered, with headers, over the bytes that their slowest links could carry. A packet
    /// counts whole when it arrives, also if it began before the window: at most 1, or brief windows have more than the link.
    fn utilisation(&self, run: &RunOutcome) -> Option<f64> {
        if self.has_no_flow_yet(run) {
            return Some(0.0);
        }
        let window = self.together(run)?;
        let mut links: Vec<(usize, u64)> = Vec::new();
        for class in self.classes(run) {
            let slowest = self.slowest_link(run, class, window)?;
            if links.iter().all(|(place, _)| *place != slowest.0) {
                links.push(slowest);
            }
        }
        let capacity: u64 = links.into_iter().map(|(_, capacity)| capacity).sum();
        let bytes = self.sum(run, FlowRecord::delivered_after_warmup);
        (capacity > 0).then(|| (wire_bytes(bytes) as f64 / capacity as f64).min(1.0))
    }

    /// Whether a class that shares links has no flow in this run, because nothing arrived. It uses none of its link.
    fn has_no_flow_yet(&self, run: &RunOutcome) -> bool {
        let has = |class: &Class| {
            self.of.class.as_ref() == Some(&class.name)
                && !class.own_links
                && self.of.cc.as_ref().is_none_or(|cc| class.ccs.contains(cc))
        };
        self.flows(run).next().is_none() && self.scenario.cells[run.cell].classes.iter().any(has)
    }

    /// The link of a class with the smallest capacity: its place, and the bytes that it could send so that they arrived within
    /// `window`.
    fn slowest_link(
        &self,
        run: &RunOutcome,
        class: &str,
        window: SampleWindow,
    ) -> Option<(usize, u64)> {
        let cell = &self.scenario.cells[run.cell];
        let (path, links) = cell.links_of(class, run.seed)?;
        let rtts = self.classes(run).into_iter().filter_map(|class| {
            let plan = cell.plan.flows.iter().find(|plan| plan.name == *class)?;
            Some(plan.rtt.unwrap_or(path.rtt).divided_by(2))
        });
        let delays: Vec<TimeDelta> = rtts.collect();
        let (least, most) = (delays.iter().min()?, delays.iter().max()?);
        let jitter = path.jitter.map_or(TimeDelta::ZERO, |jitter| jitter.max);
        // What left the link before the end of the warm-up arrives after it. Before a flow's start
        // nothing leaves.
        let early = if window.from > self.scenario.warmup.as_nanos() {
            TimeDelta::ZERO
        } else {
            *most + jitter
        };
        let at = |nanos: u64, before: TimeDelta| {
            Time::from_nanos(nanos.saturating_sub(before.as_nanos()))
        };
        let (from, to) = (at(window.from, early), at(window.to, *least));
        let capacity = |rate: &LinkRate| rate.capacity(to).saturating_sub(rate.capacity(from));
        let capacities = links.iter().map(|(place, rate)| (*place, capacity(rate)));
        capacities.min_by_key(|(_, capacity)| *capacity)
    }

    fn share(&self, run: &RunOutcome) -> Option<f64> {
        if self.has_no_flow_yet(run) {
            return Some(0.0);
        }
        self.flows(run).next()?;
        let delivered = FlowRecord::delivered_after_warmup;
        let met = self.classes_met(run);
        let all = run.flows.iter().filter(|flow| met.contains(&flow.group.as_str()));
        ratio(self.sum(run, delivered), all.map(delivered).sum())
    }

    /// The classes that share a link with the selected flows.
    fn classes_met(&self, run: &RunOutcome) -> Vec<&str> {
        let cell = &self.scenario.cells[run.cell];
        let plans = || cell.classes.iter().zip(&cell.plan.flows);
        let selected: Vec<&FlowPlan> = plans()
            .filter(|(class, _)| self.flows(run).any(|flow| flow.group == class.name))
            .map(|(_, plan)| plan)
            .collect();
        let meets = |plan: &FlowPlan| selected.iter().any(|one| cell.plan.meet(one, plan));
        let met = plans().filter(|(_, plan)| meets(plan));
        met.map(|(class, _)| class.name.as_str()).collect()
    }

    /// Flows that share no link cannot be unfair to each other.
    fn jain(&self, run: &RunOutcome) -> Option<f64> {
        let (plan, classes) = (&self.scenario.cells[run.cell].plan, self.classes(run));
        let flows = || plan.flows.iter().filter(|flow| classes.contains(&flow.name.as_str()));
        let meets =
            |one: &FlowPlan| flows().all(|other| one.name == other.name || plan.meet(one, other));
        if !flows().all(meets) {
            return None;
        }
        let windows = SampleWindows::of(self.scenario, run);
        let of_flow = |flow| Some(goodput(flow, self.window(&windows, run, flow)?));
        let goodputs: Vec<f64> = self.flows(run).filter_map(of_flow).collect();
        if goodputs.len() > 1 { jain_index(&goodputs) } else { None }
    }

    fn sum(&self, run: &RunOutcome, value: impl Fn(&FlowRecord) -> u64) -> u64 {
        self.flows(run).map(value).fold(0, u64::saturating_add)
    }
}

/// A requested object, which may have arrived.
struct SampledObject {
    completion_s: f64,
    first_byte_s: f64,
}

impl SampledObject {
    fn of_request(request: &RequestRecord) -> Self {
        Self {
            completion_s: request.completion_ns.map_or(f64::INFINITY, seconds),
            first_byte_s: request.first_byte_ns.map_or(f64::INFINITY, seconds),
        }
    }

    fn of_flow(flow: &FlowRecord) -> Option<Self> {
        flow.size_bytes?;
        Some(Self {
            completion_s: flow.completion_ns.map_or(f64::INFINITY, seconds),
            first_byte_s: flow.first_byte_ns.map_or(f64::INFINITY, seconds),
        })
    }
}

/// Payload over waiting time: for a transfer its whole duration, for a client the duration of its
/// requests.
fn bandwidth(run: &RunOutcome, flow: &FlowRecord) -> Option<f64> {
    let per_second = |bytes, nanos| (nanos > 0).then(|| bits(bytes) / seconds(nanos));
    if let Some(bytes) = flow.size_bytes {
        return flow.completion_ns.map_or(Some(0.0), |nanos| per_second(bytes, nanos));
    }
    let finished = run
        .requests_of(flow)
        .filter_map(|request| Some((request.bytes_delivered, request.completion_ns?)));
    let (bytes, nanos) = finished.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    per_second(bytes, nanos)
}

/// Payload per second in `window`.
fn goodput(flow: &FlowRecord, window: SampleWindow) -> f64 {
    bits(flow.delivered_after_warmup()) / window.seconds()
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn bits(bytes: u64) -> f64 {
    bytes as f64 * 8.0
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}
