//! Parts of a run that have nothing in common: flows on links of their own, as of a population of clients.
//!
//! They are simulated one after the other, because the flows of a part fit into the processor's caches, and a
//! part's memory is freed before the next begins. The result is that of one simulation of all.

use uncork_cc::ControllerSpec;
use uncork_path::PendingEvents;
use uncork_units::Time;

use crate::run::{RunResult, Simulation};
use crate::spec::RunSpec;

impl<S: ControllerSpec> RunSpec<S> {
    /// The flows of each part, in order. Flows are of one part if their paths share a link, directly or through other
    /// paths.
    pub(crate) fn parts(&self) -> Vec<Vec<u32>> {
        let part_of_path = self.part_of_path();
        let mut parts = vec![Vec::new(); self.paths.len()];
        for (index, flow) in (0..).zip(&self.flows) {
            parts[part_of_path[flow.path]].push(index);
        }
        parts.retain(|flows| !flows.is_empty());
        parts
    }

    /// For each path, the first path of its part.
    fn part_of_path(&self) -> Vec<usize> {
        let mut parents: Vec<usize> = (0..self.paths.len()).collect();
        let mut first_over = vec![None; self.links.len()];
        for (index, path) in self.paths.iter().enumerate() {
            for link in &path.via {
                let other = *first_over[*link].get_or_insert(index);
                join(&mut parents, index, other);
            }
        }
        (0..parents.len()).map(|index| root(&mut parents, index)).collect()
    }
}

/// The first path of the part of `path`.
fn root(parents: &mut [usize], mut path: usize) -> usize {
    while parents[path] != path {
        parents[path] = parents[parents[path]];
        path = parents[path];
    }
    path
}

/// Makes the parts of two paths one.
fn join(parents: &mut [usize], one: usize, other: usize) {
    let (one, other) = (root(parents, one), root(parents, other));
    parents[one.max(other)] = one.min(other);
}

impl<S: ControllerSpec> Simulation<'_, S> {
    /// Simulates each part to its end. No flow may have begun.
    pub(crate) fn run_parts(mut self, parts: &[Vec<u32>]) -> RunResult {
        let mut last = Time::ZERO;
        let mut unsettled: Vec<PendingEvents<_>> = Vec::new();
        for flows in parts {
            self.begin(flows.iter().copied());
            self.handle_all();
            // The run goes on until the last flow of all parts ends, and with it what is on the way in this part.
            last = last.max(self.last.min(self.spec.end));
            self.handle_until(last);
            let mut events = PendingEvents::default();
            self.network.exchange(&mut events);
            if last < self.spec.end && !flows.iter().all(|flow| self.is_over(*flow)) {
                unsettled.push(events);
            }
        }
        for mut events in unsettled {
            self.network.exchange(&mut events);
            self.handle_until(last);
        }
        self.into_result()
    }

    /// Handles all events up to `last`.
    fn handle_until(&mut self, last: Time) {
        self.last = last;
        self.handle_all();
    }
}
