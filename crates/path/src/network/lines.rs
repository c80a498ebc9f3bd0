//! Delay lines, and which flows share one.

use std::collections::BTreeMap;

use uncork_units::TimeDelta;

use crate::delay::DelayLine;

/// The delay lines of one direction. Flows over the same path with the same delay share one, so the size of a
/// thousand flows is that of their packets in flight. A flow has a line of its own if the line holds each packet for
/// a different time, or until the end of a slot.
#[derive(Debug)]
pub(super) struct Lines<T> {
    pub(super) all: Vec<DelayLine<T>>,
    shared: BTreeMap<(u32, TimeDelta), u32>,
}

impl<T> Lines<T> {
    pub(super) fn new() -> Self {
        Self { all: Vec::new(), shared: BTreeMap::new() }
    }

    /// The number of the line for one more flow over `path`. `make` makes a new one, if it is `own` or the first.
    pub(super) fn add(
        &mut self,
        (path, one_way): (u32, TimeDelta),
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
}
