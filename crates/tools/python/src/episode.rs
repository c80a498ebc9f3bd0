//! An episode of an agent: it decides for the first flow of a run, step by step.

use std::iter;

use pyo3::prelude::*;
use self_cell::self_cell;
use uncork_cc::Either;
use uncork_sim::{RunSpec, Simulation};
use uncork_units::{Rate, TimeDelta};

use crate::link::{named, over};
use crate::steered::{FlowSpec, Report, SteeredSpec};

type Running<'a> = Simulation<'a, FlowSpec>;

self_cell!(
    struct Run {
        owner: RunSpec<FlowSpec>,
        #[not_covariant]
        dependent: Running,
    }
);

/// What a step reports: time, acknowledged bytes, lost bytes, timeouts, mean RTT of the step, minimum RTT, bytes in flight,
/// bytes in the queue, whether the run goes on.
type Step = (f64, u64, u64, u32, Option<f64>, Option<f64>, u64, u64, bool);

/// A run in steps.
#[pyclass(module = "uncork._native")]
pub(crate) struct Episode {
    run: Run,
}

#[pymethods]
impl Episode {
    /// A run with `rivals`, at the moment when the agent's connection is established.
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "made of what Python gives")]
    fn new(py: Python<'_>, options: Vec<(String, String)>, rivals: Vec<String>) -> PyResult<Self> {
        let rivals = rivals.iter().map(|name| named(py, &format!("rivals={name}"), name));
        let agent = Ok(Either::A(SteeredSpec { waits: false }));
        let flows: Vec<FlowSpec> = iter::once(agent).chain(rivals).collect::<PyResult<_>>()?;
        let mut run = over(py, &options, &flows)?;
        run.sample_every = None;
        let mut run = Run::new(run, |run| Simulation::new(run));
        run.with_dependent_mut(|_, run| while run.controller(0).is_none() && run.step() {});
        Ok(Self { run })
    }

    /// The smoothed RTT, or that of the path, in seconds.
    fn rtt(&self) -> f64 {
        let view = self.run.with_dependent(|_, run| run.view(0));
        let path = self.run.borrow_owner().paths.first().map(|path| path.rtt);
        view.map(|view| view.smoothed_rtt).or(path).unwrap_or_default().as_secs_f64()
    }

    /// The rate of the link in bit/s, headers included.
    fn link_rate(&self) -> f64 {
        let path = self.run.borrow_owner().paths.first();
        path.map_or(0.0, |path| path.link.nominal_rate().bits_per_sec() as f64)
    }

    /// Sends with this window in bytes and at this rate in bit/s for `seconds`.
    fn step(&mut self, window: u64, rate: f64, seconds: f64) -> Step {
        let rate = Rate::from_bits_per_sec(rate as u64);
        let span = TimeDelta::from_nanos((seconds * 1e9) as u64);
        self.run.with_dependent_mut(|spec, run| {
            let mut report = Report::default();
            let until = run.now() + span;
            run.change_controller(0, |controller| {
                if let Either::A(steered) = controller {
                    steered.decide(window, Some(rate).filter(|rate| !rate.is_zero()));
                }
            });
            while run.step_until(until) {}
            run.change_controller(0, |controller| {
                if let Either::A(steered) = controller {
                    report = steered.take_report();
                }
            });
            let queue = run.view(0).map_or(0, |view| view.queue_bytes);
            let goes_on = run.now() < spec.end;
            let (sum, count) = report.rtts;
            let mean = (count > 0).then(|| sum.divided_by(u64::from(count)).as_secs_f64());
            let min = report.rtt.map(|rtt| rtt.min.as_secs_f64());
            let Report { acked_bytes, lost_bytes, timeouts, in_flight, .. } = report;
            let time = run.now().as_secs_f64();
            (time, acked_bytes, lost_bytes, timeouts, mean, min, in_flight, queue, goes_on)
        })
    }
}
