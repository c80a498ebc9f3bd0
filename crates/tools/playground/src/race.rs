//! The runs of the first seed over time.

use serde::Serialize;
use uncork_flow::{FlowRecord, SeriesPoint};
use uncork_lab::{CompareSpec, FinishedRun, Workload};
use uncork_path::PathSpec;
use uncork_units::TimeDelta;

use crate::compare::{first_seed, play};
use crate::options::{Options, Refusal};

/// Samples of the longest lane...
const SAMPLES: u64 = 600;
/// ...while all flows together have no more points than this.
const MAX_POINTS: u64 = 24_000;
/// Samples of a run that takes no longer than the link needs for its bytes. Others have more, and most are left out.
const MIN_SAMPLES: u64 = 300;

/// Runs of the same time axis, one for each column.
#[derive(Serialize)]
struct Race {
    sample_ns: u64,
    end_ns: u64,
    packets: u64,
    lanes: Vec<Lane>,
}

/// The run of a column.
#[derive(Serialize)]
struct Lane {
    name: String,
    flows: Vec<FlowLane>,
}

/// A flow, and its state at each sample. A pacing rate and an RTT of 0 mean none.
#[derive(Default, Serialize)]
struct FlowLane {
    cc: String,
    start_ns: u64,
    completion_ns: Option<u64>,
    retransmitted_bytes: u64,
    delivered_total_bytes: u64,
    states: Vec<&'static str>,
    time_ns: Vec<u64>,
    state: Vec<usize>,
    cwnd_bytes: Vec<u64>,
    inflight_bytes: Vec<u64>,
    pacing_bps: Vec<u64>,
    rtt_ns: Vec<u64>,
    queue_bytes: Vec<u64>,
    delivered_bytes: Vec<u64>,
    lost_bytes: Vec<u64>,
}

impl FlowLane {
    fn push(&mut self, point: &SeriesPoint) {
        let known = self.states.iter().position(|state| *state == point.state);
        let state = known.unwrap_or_else(|| {
            self.states.push(point.state);
            self.states.len() - 1
        });
        self.state.push(state);
        self.time_ns.push(point.time_ns);
        self.cwnd_bytes.push(point.cwnd_bytes);
        self.inflight_bytes.push(point.inflight_bytes);
        self.pacing_bps.push(point.pacing_bps.unwrap_or(0));
        self.rtt_ns.push(point.rtt_ns.unwrap_or(0));
        self.queue_bytes.push(point.queue_bytes);
        self.delivered_bytes.push(point.delivered_bytes);
        self.lost_bytes.push(point.lost_bytes);
    }
}

/// The runs of the first seed with time series, as JSON.
///
/// # Errors
///
/// The option that cannot be used.
pub fn race(text: &str) -> Result<String, Refusal> {
    let Options { spec, path, .. } = Options::parse(text)?;
    let every = sample_every(&spec, &path);
    let sampled = spec.scenario(Some(every)).map_err(|error| Refusal::of_check(&spec, &error))?;
    let runs = play(&sampled, &first_seed(&sampled))?;
    let flows = || runs.iter().flat_map(|run| &run.outcome.flows);
    let end = |flow: &FlowRecord| flow.start_ns + flow.completion_ns.unwrap_or(flow.busy_ns);
    let end_ns = flows().map(end).max().unwrap_or(0);
    let samples = SAMPLES.min(MAX_POINTS / flows().count().max(1) as u64).max(20);
    let stride = end_ns.div_ceil(every.as_nanos()).div_ceil(samples).max(1);
    let sample_ns = every.times(stride).as_nanos();
    let names = spec.columns.iter().map(ToString::to_string);
    let race = Race {
        sample_ns,
        end_ns,
        packets: runs.iter().map(|run| run.outcome.packets).sum(),
        lanes: names.zip(&runs).map(|(name, run)| lane(name, run, sample_ns)).collect(),
    };
    Ok(serde_json::to_string(&race).unwrap_or_default())
}

/// The interval of a run of unknown length.
fn sample_every(spec: &CompareSpec, path: &PathSpec) -> TimeDelta {
    let shortest = match spec.workload {
        Workload::Duration(duration) => duration,
        Workload::Transfer(size) => path.link.nominal_rate().time_for(size.as_u64()) + path.rtt,
    };
    shortest.divided_by(MIN_SAMPLES).max(TimeDelta::from_millis(1))
}

/// The lane of `run`, with the points at multiples of `sample_ns`.
fn lane(name: String, run: &FinishedRun, sample_ns: u64) -> Lane {
    let flow = |flow: &FlowRecord| FlowLane {
        cc: flow.cc.to_string(),
        start_ns: flow.start_ns,
        completion_ns: flow.completion_ns,
        retransmitted_bytes: flow.bytes_retransmitted,
        delivered_total_bytes: flow.bytes_delivered,
        ..FlowLane::default()
    };
    let mut flows: Vec<FlowLane> = run.outcome.flows.iter().map(flow).collect();
    for point in run.series.iter().filter(|point| point.time_ns % sample_ns == 0) {
        if let Some(flow) = flows.get_mut(point.flow as usize) {
            flow.push(point);
        }
    }
    Lane { name, flows }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn race_has_a_lane_for_each_column_on_one_time_axis() {
        let text = race("size=500kB\ncc=cubic,bbr3").unwrap_or_default();
        let race: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        for (nth, name) in ["cubic", "bbr3"].into_iter().enumerate() {
            let lane = &race["lanes"][nth];
            assert_eq!(lane["name"], name);
            let flow = &lane["flows"][0];
            assert_eq!(flow["delivered_total_bytes"], 500_000);
            let points = flow["time_ns"].as_array().map_or(0, Vec::len);
            assert!((20..=601).contains(&points), "{points}");
            assert_eq!(flow["state"].as_array().map_or(0, Vec::len), points);
        }
    }

    #[test]
    fn many_flows_share_the_points() {
        let text = race("duration=2s\nflows=50\ncc=bbr3+cubic").unwrap_or_default();
        assert!(text.len() < 3_000_000, "{}", text.len());
        assert!(text.contains("\"cc\":\"cubic\""));
    }
}
