//! `race`: flows over one path, some of them with controllers in Python.

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use uncork_cc::Either;
use uncork_flow::{Labelled, RunSeries, TableHead, write_flows, write_series};
use uncork_sim::{MSS_BYTES, RunResult, RunSpec, Simulation};
use uncork_units::Rate;

use crate::error::{bug, input};
use crate::link::{named, over};
use crate::steered::{FlowSpec, Steered, SteeredSpec};
use crate::table::Table;

/// Events between two looks for a signal.
const EVENTS: u32 = 100_000;
/// Largest window and rate of a decision.
const MAX: f64 = 1e15;

/// Runs `flows`: names of controllers, each with an object of Python that decides in its place, or none.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "made of what Python gives")]
pub(crate) fn race(
    py: Python<'_>,
    options: Vec<(String, String)>,
    flows: Vec<(String, Option<Py<PyAny>>)>,
) -> PyResult<Race> {
    let waiting = Either::A(SteeredSpec { waits: true });
    let spec = |(name, own): &(String, Option<Py<PyAny>>)| {
        if own.is_some() { Ok(waiting) } else { named(py, &format!("flows: {name}"), name) }
    };
    let specs: Vec<FlowSpec> = flows.iter().map(spec).collect::<PyResult<_>>()?;
    let run = over(py, &options, &specs)?;
    let deciders = (0..).zip(&flows).filter_map(|(index, (_, own))| Some((index, own.as_ref()?)));
    let deciders: Vec<(u32, &Py<PyAny>)> = deciders.collect();
    let mut result = play(py, &run, &deciders)?;
    for (record, (name, _)) in result.flows.iter_mut().zip(&flows) {
        record.cc = name.as_str().into();
    }
    Ok(Race { seed: run.seed, result })
}

fn play(
    py: Python<'_>,
    run: &RunSpec<FlowSpec>,
    deciders: &[(u32, &Py<PyAny>)],
) -> PyResult<RunResult> {
    let indices: Vec<u32> = deciders.iter().map(|(index, _)| *index).collect();
    let mut simulation = Simulation::new(run);
    loop {
        let goes_on = py.detach(|| advance(&mut simulation, &indices));
        py.check_signals()?;
        for (index, decider) in deciders {
            decide(py, &mut simulation, *index, decider)?;
        }
        if !goes_on {
            return Ok(simulation.into_result());
        }
    }
}

/// Steps until a decision is due. Returns false at the end.
fn advance(simulation: &mut Simulation<'_, FlowSpec>, steered: &[u32]) -> bool {
    for _ in 0..EVENTS {
        if !simulation.step() {
            return false;
        }
        if steered.iter().any(|index| due(simulation, *index).is_some()) {
            break;
        }
    }
    true
}

fn due(simulation: &Simulation<'_, FlowSpec>, index: u32) -> Option<Steered> {
    match simulation.controller(index) {
        Some(Either::A(steered)) if steered.is_due() => Some(*steered),
        _ => None,
    }
}

/// Asks `decider`, if a decision of its flow is due.
fn decide(
    py: Python<'_>,
    simulation: &mut Simulation<'_, FlowSpec>,
    index: u32,
    decider: &Py<PyAny>,
) -> PyResult<()> {
    let Some(mut steered) = due(simulation, index) else { return Ok(()) };
    let (report, before) = (steered.take_report(), steered.decided());
    let seconds = |of: uncork_units::TimeDelta| of.as_secs_f64();
    let ack = Ack {
        time: simulation.now().as_secs_f64(),
        acked_bytes: report.acked_bytes,
        lost_bytes: report.lost_bytes,
        marked_packets: report.marked_packets,
        timeouts: report.timeouts,
        rtt: report.rtt.map(|rtt| seconds(rtt.latest)),
        smoothed_rtt: report.rtt.map(|rtt| seconds(rtt.smoothed)),
        min_rtt: report.rtt.map(|rtt| seconds(rtt.min)),
        in_flight: report.in_flight,
        window: before.cwnd,
        rate: before.pacing_rate.map(|rate| rate.bits_per_sec() as f64),
        mss: MSS_BYTES,
    };
    let answer = decider.bind(py).call_method1("on_ack", (ack,))?;
    if !answer.is_none() {
        let (window, rate) = decision(&answer).ok_or_else(|| refused(py, decider, &answer))?;
        steered.decide(window, rate);
    }
    simulation.change_controller(index, |controller| *controller = Either::A(steered));
    Ok(())
}

/// A window in bytes, or window and rate in bit/s.
fn decision(answer: &Bound<'_, PyAny>) -> Option<(u64, Option<Rate>)> {
    let number = |of: &Bound<'_, PyAny>| of.extract().ok().filter(|it| (0.0..=MAX).contains(it));
    let Ok(pair) = answer.cast::<PyTuple>() else {
        return number(answer).map(|window: f64| (window as u64, None));
    };
    let [window, rate] = [0, 1].map(|nth| pair.get_item(nth).ok().as_ref().and_then(number));
    let rate =
        rate.map(|rate: f64| Rate::from_bits_per_sec(rate as u64)).filter(|it| !it.is_zero());
    (pair.len() == 2).then_some((window? as u64, Some(rate?)))
}

fn refused(py: Python<'_>, decider: &Py<PyAny>, answer: &Bound<'_, PyAny>) -> PyErr {
    let class =
        decider.bind(py).get_type().name().map_or_else(|_| String::new(), |it| it.to_string());
    let shown = answer.repr().map_or_else(|_| String::new(), |it| it.to_string());
    let remedy = "return a window in bytes, (window, rate in bit/s), or None to keep both";
    input(py, &format!("{class}.on_ack"), &format!("{shown} is not a decision"), remedy)
}

/// What an acknowledgement reports, or the expiry of a timer. Times are in seconds, rates in bit/s.
#[pyclass(frozen, get_all, module = "uncork._native")]
pub(crate) struct Ack {
    time: f64,
    acked_bytes: u64,
    lost_bytes: u64,
    marked_packets: u32,
    timeouts: u32,
    rtt: Option<f64>,
    smoothed_rtt: Option<f64>,
    min_rtt: Option<f64>,
    in_flight: u64,
    window: u64,
    rate: Option<f64>,
    mss: u32,
}

/// The records of a race.
#[pyclass(frozen, module = "uncork._native")]
pub(crate) struct Race {
    seed: u64,
    result: RunResult,
}

#[pymethods]
impl Race {
    fn flows(&self) -> PyResult<Table> {
        let mut file = Vec::new();
        let rows = self.result.flows.iter().map(Labelled::plain);
        written(write_flows(&mut file, &TableHead::default(), rows), file)
    }

    fn series(&self) -> PyResult<Table> {
        let mut file = Vec::new();
        let RunResult { flows, series, .. } = &self.result;
        let run = RunSeries { labels: &[], seed: self.seed, flows, points: series };
        written(write_series(&mut file, &TableHead::default(), &[run]), file)
    }
}

fn written(done: Result<(), uncork_flow::FileError>, file: Vec<u8>) -> PyResult<Table> {
    let table = done.map_err(|error| error.to_string());
    let table = table.and_then(|()| Table::of_parquet(file).map_err(|error| error.to_string()));
    table.map_err(|error| bug(&error))
}
