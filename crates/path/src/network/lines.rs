//! Propagation, and which flows travel together.

use std::collections::BTreeMap;

use uncork_units::TimeDelta;

use crate::DelayLine;

/// The delay lines of one direction. Flows over the same path with the same delay share one, so that a thousand
/// flows take no more room than what travels; a flow whose line holds each packet for a time of its own, or
/// until its turn, has it to itself.
#[derive(Debug)]
pub(crate) struct Lines<T> {
    all: Vec<DelayLine<T>>,
    shared: BTreeMap<(usize, TimeDelta), u32>,
}

impl<T> Lines<T> {
    pub(crate) fn new() -> Self {
        Self { all: Vec::new(), shared: BTreeMap::new() }
    }

    /// The number of the line for one more flow over `path`; `make` makes one that is `own`, or needed first.
    pub(crate) fn add(
        &mut self,
        (path, one_way): (usize, TimeDelta),
        own: bool,
        make: impl FnOnce() -> DelayLine<T>,
    ) -> u32 {
        let all = &mut self.all;
        let new = || {
            all.push(make());
            all.len() as u32 - 1
        };
        if own { new() } else { *self.shared.entry((path, one_way)).or_insert_with(new) }
    }

    pub(crate) fn get_mut(&mut self, line: u32) -> &mut DelayLine<T> {
        &mut self.all[line as usize]
    }
}
