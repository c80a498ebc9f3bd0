//! An episode of an agent: it decides for the first flow of a run, step by step.

use std::iter;

use pyo3::prelude::*;
use self_cell::self_cell;
use uncork_cc::Either;
use uncork_sim::{RunSpec, Simulation};
use uncork_units::{Rate, TimeDelta};

use crate::link::over;
use crate::steered::{FlowSpec, Report, SteeredSpec};

type Running<'a> = Simulation<'a, FlowSpec>;

self_cell!(
    struct Run {
        owner: RunSpec<FlowSpec>,
        #[not_covariant]
        dependent: Running,
    }
);

/// Window in bytes and rate in bit/s of the agent, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decision {
    pub(crate) window: u64,
    pub(crate) rate: u64,
    pub(crate) seconds: f64,
}

/// What happened in a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// Since the start of the run, in seconds.
    pub(crate) time: f64,
    pub(crate) acked_bytes: u64,
    pub(crate) lost_bytes: u64,
    pub(crate) timeouts: u32,
    /// Mean of the step and minimum of the connection, in seconds.
    pub(crate) rtt: Option<f64>,
    pub(crate) min_rtt: Option<f64>,
    pub(crate) in_flight: u64,
    pub(crate) queue_bytes: u64,
    pub(crate) goes_on: bool,
}

/// A run in steps.
pub(crate) struct Episode {
    run: Run,
}

impl Episode {
    /// A run with `rivals`, at the moment when the agent's connection is established.
    pub(crate) fn begin(
        py: Python<'_>,
        options: &[(String, String)],
        rivals: &[FlowSpec],
    ) -> PyResult<Self> {
        let agent = Either::A(SteeredSpec { waits: false });
        let flows: Vec<FlowSpec> = iter::once(agent).chain(rivals.iter().copied()).collect();
        let mut run = over(py, options, &flows)?;
        run.sample_every = None;
        let mut run = Run::new(run, |run| Simulation::new(run));
        run.with_dependent_mut(|_, run| while run.controller(0).is_none() && run.step() {});
        Ok(Self { run })
    }

    /// The smoothed RTT, or that of the path, in seconds.
    pub(crate) fn rtt(&self) -> f64 {
        let view = self.run.with_dependent(|_, run| run.view(0));
        let path = self.run.borrow_owner().paths.first().map(|path| path.rtt);
        view.map(|view| view.smoothed_rtt).or(path).unwrap_or_default().as_secs_f64()
    }

    /// The rate of the link in bit/s, headers included.
    pub(crate) fn link_rate(&self) -> f64 {
        let path = self.run.borrow_owner().paths.first();
        path.map_or(0.0, |path| path.link.nominal_rate().bits_per_sec() as f64)
    }

    pub(crate) fn step(&mut self, decision: Decision) -> Step {
        let rate = Rate::from_bits_per_sec(decision.rate);
        let span = TimeDelta::from_nanos((decision.seconds * 1e9) as u64);
        self.run.with_dependent_mut(|spec, run| {
            let mut report = Report::default();
            let until = run.now() + span;
            run.change_controller(0, |controller| {
                if let Either::A(steered) = controller {
                    steered.decide(decision.window, Some(rate).filter(|rate| !rate.is_zero()));
                }
            });
            while run.step_until(until) {}
            run.change_controller(0, |controller| {
                if let Either::A(steered) = controller {
                    report = steered.take_report();
                }
            });
            let (sum, count) = report.rtts;
            Step {
                time: run.now().as_secs_f64(),
                acked_bytes: report.acked_bytes,
                lost_bytes: report.lost_bytes,
                timeouts: report.timeouts,
                rtt: (count > 0).then(|| sum.divided_by(u64::from(count)).as_secs_f64()),
                min_rtt: report.rtt.map(|rtt| rtt.min.as_secs_f64()),
                in_flight: report.in_flight,
                queue_bytes: run.view(0).map_or(0, |view| view.queue_bytes),
                goes_on: run.now() < spec.end,
            }
        })
    }
}
