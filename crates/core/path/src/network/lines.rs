//! Delay lines and their sharing among flows.

use std::collections::BTreeMap;

use uncork_units::TimeDelta;

use crate::delay::DelayLine;

/// The delay lines of one direction. Flows over the same path with the same delay share a line, so
/// memory grows with the packets in flight, not with the flows. A flow has its own line if delays
/// differ per packet or packets wait for a slot.
#[derive(Debug)]
pub(super) struct DelayLines<T> {
    pub(super) all: Vec<DelayLine<T>>,
    shared: BTreeMap<(u32, TimeDelta), u32>,
}

impl<T> DelayLines<T> {
    pub(super) fn new() -> Self {
        Self { all: Vec::new(), shared: BTreeMap::new() }
    }

    /// The line number for one more flow over `path`. Calls `make` if the line is `own` or does not
    /// exist yet.
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
