//! Episodes of several agents: a call takes one step in each of them.

use std::num::NonZeroUsize;
use std::thread;

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;

use crate::agent::{Agent, HIGH, LOW, VALUES};
use crate::episode::Episode;
use crate::error::input;
use crate::link::named;
use crate::steered::FlowSpec;

/// What a step reports of each episode. The first two are the reward and whether the episode is over.
const COLUMNS: [&str; 10] = [
    "reward",
    "over",
    "time",
    "rate",
    "delivered",
    "rtt",
    "loss",
    "timeouts",
    "in_flight",
    "queue",
];
type Row = [f64; COLUMNS.len()];

/// An episode, and its agent's observations of the latest steps.
struct Place {
    episode: Episode,
    agent: Agent,
    seen: Vec<f32>,
}

impl Place {
    fn new(episode: Episode, history: usize) -> Self {
        let agent = Agent::new(episode.link_rate(), episode.rtt());
        Self { episode, agent, seen: vec![0.0; history * VALUES] }
    }

    fn step(&mut self, action: f32) -> Row {
        let decision = self.agent.decide(action);
        let step = self.episode.step(decision);
        let outcome = self.agent.observe(decision.seconds, &step);
        self.seen.drain(..VALUES);
        self.seen.extend(outcome.seen);
        [
            outcome.reward,
            f64::from(u8::from(!step.goes_on)),
            step.time,
            outcome.rate,
            outcome.delivered,
            outcome.rtt,
            outcome.loss,
            f64::from(step.timeouts),
            step.in_flight as f64,
            step.queue_bytes as f64,
        ]
    }
}

/// Episodes side by side.
#[pyclass(module = "uncork._native")]
pub(crate) struct Episodes {
    rivals: Vec<FlowSpec>,
    history: usize,
    /// Threads of a step.
    jobs: usize,
    places: Vec<Option<Place>>,
}

#[pymethods]
impl Episodes {
    /// Places for `count` episodes, each next to `rivals`. None of them has begun.
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "made of what Python gives")]
    fn new(
        py: Python<'_>,
        count: usize,
        rivals: Vec<String>,
        history: NonZeroUsize,
        jobs: NonZeroUsize,
    ) -> PyResult<Self> {
        let rivals = rivals.iter().map(|name| named(py, &format!("rivals={name}"), name));
        let rivals = rivals.collect::<PyResult<_>>()?;
        let places = (0..count).map(|_| None).collect();
        Ok(Self { rivals, history: history.get(), jobs: jobs.get(), places })
    }

    /// Lowest and highest values of a step in an observation.
    #[staticmethod]
    fn bounds() -> ([f32; VALUES], [f32; VALUES]) {
        (LOW, HIGH)
    }

    /// Names of the columns of `step`.
    #[staticmethod]
    fn columns() -> [&'static str; COLUMNS.len()] {
        COLUMNS
    }

    /// Begins the episode at place `nth`. Its first observation is zero.
    #[expect(clippy::needless_pass_by_value, reason = "made of what Python gives")]
    fn begin(
        &mut self,
        py: Python<'_>,
        nth: usize,
        options: Vec<(String, String)>,
    ) -> PyResult<()> {
        let episode = Episode::begin(py, &options, &self.rivals)?;
        if let Some(place) = self.places.get_mut(nth) {
            *place = Some(Place::new(episode, self.history));
        }
        Ok(())
    }

    /// Takes a step in each episode but those with `skipped`, and writes `observations` and `rows`. Arrays are contiguous, with
    /// a row for each place.
    #[expect(clippy::needless_pass_by_value, reason = "made of what Python gives")]
    fn step(
        &mut self,
        py: Python<'_>,
        actions: PyBuffer<f32>,
        skipped: PyBuffer<u8>,
        observations: PyBuffer<f32>,
        rows: PyBuffer<f64>,
    ) -> PyResult<()> {
        let actions = actions.to_vec(py)?;
        let skipped = skipped.to_vec(py)?;
        let mut seen = vec![0.0; self.places.len() * self.history * VALUES];
        let mut reports = vec![[0.0; COLUMNS.len()]; self.places.len()];
        let chosen = self.chosen(py, &actions, &skipped)?;
        py.detach(|| self.play(&chosen, &mut reports));
        let moved = self.places.iter().zip(&chosen).zip(seen.chunks_mut(self.history * VALUES));
        for ((place, _), row) in moved.filter(|((_, action), _)| action.is_some()) {
            if let Some(place) = place {
                row.copy_from_slice(&place.seen);
            }
        }
        observations.copy_from_slice(py, &seen)?;
        rows.copy_from_slice(py, reports.as_flattened())
    }
}

impl Episodes {
    /// The action of each episode, or none where it is skipped.
    fn chosen(
        &self,
        py: Python<'_>,
        actions: &[f32],
        skipped: &[u8],
    ) -> PyResult<Vec<Option<f32>>> {
        let given =
            actions.iter().zip(skipped).map(|(action, skip)| (*skip == 0).then_some(*action));
        let mut given: Vec<Option<f32>> = given.collect();
        given.resize(self.places.len(), None);
        for (nth, (action, place)) in given.iter().zip(&self.places).enumerate() {
            let Some(action) = action else { continue };
            if !action.is_finite() {
                let place = format!("actions[{nth}]={action}");
                return Err(input(py, &place, "is not a number", "give numbers from -1 to 1"));
            }
            if place.is_none() {
                return Err(input(py, "step", "no episode has begun", "call reset first"));
            }
        }
        Ok(given)
    }

    /// Episodes do not depend on each other, so the number of threads changes no result.
    fn play(&mut self, actions: &[Option<f32>], reports: &mut [Row]) {
        let size = self.places.len().div_ceil(self.jobs).max(1);
        let parts = self.places.chunks_mut(size).zip(actions.chunks(size));
        let mut parts = parts.zip(reports.chunks_mut(size));
        let first = parts.next();
        thread::scope(|scope| {
            for ((places, actions), reports) in parts {
                scope.spawn(move || advance(places, actions, reports));
            }
            if let Some(((places, actions), reports)) = first {
                advance(places, actions, reports);
            }
        });
    }
}

fn advance(places: &mut [Option<Place>], actions: &[Option<f32>], reports: &mut [Row]) {
    for ((place, action), report) in places.iter_mut().zip(actions).zip(reports) {
        if let (Some(place), Some(action)) = (place, action) {
            *report = place.step(*action);
        }
    }
}
