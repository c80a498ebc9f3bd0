//! What each flow has for itself of a path: its random losses, and the delay in each direction.

use uncork_units::TimeDelta;

use crate::{DelayLine, Loss, PathSpec};

/// Streams of the seed, apart from each other for each flow.
const LOSS_STREAM: u64 = 1 << 32;
const JITTER_STREAM: u64 = 8 << 32;

impl PathSpec {
    /// What strikes the packets of the flow of index `flow` at random.
    pub fn loss_of(&self, flow: u32, seed: u64) -> Loss {
        Loss::new(self.loss, seed, LOSS_STREAM + u64::from(flow))
    }

    /// The way to the client of the flow of index `flow`, which takes `one_way`.
    pub fn downstream_of<T>(&self, flow: u32, one_way: TimeDelta, seed: u64) -> DelayLine<T> {
        let mut line = DelayLine::new(one_way);
        if let Some(jitter) = self.jitter {
            line.jitter(jitter, seed, JITTER_STREAM + u64::from(flow));
        }
        line
    }

    /// A flow's way to the server, which takes `one_way`.
    pub fn upstream<T>(&self, one_way: TimeDelta) -> DelayLine<T> {
        let mut line = DelayLine::new(one_way);
        if let Some(aggregation) = self.aggregation {
            line.aggregate(aggregation);
        }
        line
    }
}
