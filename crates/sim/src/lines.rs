//! Propagation, and which flows travel together.

use std::collections::BTreeMap;

use uncork_path::{DelayLine, PathSpec};
use uncork_units::{Time, TimeDelta};

use crate::spec::RunSpec;

/// The delay lines of one direction. Flows over the same path that are held equally long share one, so
/// that a thousand flows take no more room than what travels; a flow whose line holds each packet for a
/// time of its own, or until its turn, has it to itself.
#[derive(Debug)]
pub(crate) struct Lines<T> {
    all: Vec<DelayLine<(u32, T)>>,
    /// The line of each flow.
    of_flows: Vec<u32>,
}

impl<T> Lines<T> {
    /// The lines to the clients, with the jitter of their paths.
    pub(crate) fn to_clients(run: &RunSpec) -> Self {
        let line = |path: &PathSpec, flow, one_way| path.downstream_of(flow, one_way, run.seed);
        Self::new(run, |path| path.jitter.is_some(), line)
    }

    /// The lines to the servers, where ACKs may come in turns.
    pub(crate) fn to_servers(run: &RunSpec) -> Self {
        let line = |path: &PathSpec, _, one_way| path.upstream(one_way);
        Self::new(run, |path| path.aggregation.is_some(), line)
    }

    fn new(
        run: &RunSpec,
        is_own: impl Fn(&PathSpec) -> bool,
        line: impl Fn(&PathSpec, u32, TimeDelta) -> DelayLine<(u32, T)>,
    ) -> Self {
        let (mut all, mut shared) = (Vec::new(), BTreeMap::new());
        let mut add = |line| {
            all.push(line);
            all.len() as u32 - 1
        };
        let mut of_flow = |(index, flow): (u32, &crate::FlowSpec)| {
            let path = run.path_of(flow);
            let one_way = flow.rtt.unwrap_or(path.rtt).divided_by(2);
            let mut new = || add(line(path, index, one_way));
            if is_own(path) {
                return new();
            }
            *shared.entry((flow.path, one_way)).or_insert_with(new)
        };
        let of_flows = (0..).zip(&run.flows).map(&mut of_flow).collect();
        Self { all, of_flows }
    }

    /// Something of a flow enters its line. Gives the line and when to look at it, where no earlier
    /// look would do.
    pub(crate) fn enter(
        &mut self,
        now: Time,
        flow: u32,
        item: T,
        bytes: u32,
    ) -> Option<(Time, u32)> {
        let index = self.of_flows[flow as usize];
        let next = self.all[index as usize].enter_sized(now, (flow, item), bytes);
        next.map(|next| (next, index))
    }

    /// What has arrived at the end of `line` by `now`, the oldest first, and whose it is.
    pub(crate) fn arrive(&mut self, now: Time, line: u32) -> Option<(u32, T)> {
        self.all[line as usize].arrive(now)
    }

    /// When the next thing arrives at the end of `line`; [`Time::NEVER`] when nothing travels.
    pub(crate) fn next_arrival(&self, line: u32) -> Time {
        self.all[line as usize].next_arrival()
    }

    /// Gives back the room of the line of `flow`, if nothing travels on it.
    pub(crate) fn rest(&mut self, flow: u32) {
        let line = &mut self.all[self.of_flows[flow as usize] as usize];
        if line.is_empty() {
            line.shrink();
        }
    }

    /// From now on what enters arrives at multiples of `slot`; zero ends it.
    pub(crate) fn aggregate(&mut self, slot: TimeDelta) {
        self.all.iter_mut().for_each(|line| line.aggregate(slot));
    }
}

#[cfg(test)]
mod tests {
    use uncork_path::{Buffer, JitterDistribution, JitterSpec};
    use uncork_units::Rate;

    use super::*;
    use crate::{FlowSpec, Workload};

    fn millis(millis: u64) -> TimeDelta {
        TimeDelta::from_millis(millis)
    }

    fn path() -> PathSpec {
        PathSpec::new(Rate::from_mbit(10), millis(40), Buffer::Packets(10))
    }

    fn run(paths: Vec<PathSpec>, flows: Vec<FlowSpec>) -> RunSpec {
        RunSpec { paths, ..RunSpec::over(path(), flows, 1, Time::NEVER) }
    }

    fn flow() -> FlowSpec {
        FlowSpec::new("reno".parse().expect("a controller"), Workload::Transfer(1))
    }

    #[test]
    fn flows_that_travel_alike_share_a_line() {
        let (far, other) =
            (FlowSpec { rtt: Some(millis(80)), ..flow() }, FlowSpec { path: 1, ..flow() });
        let run = run(vec![path(), path()], vec![flow(), far, flow(), other, far]);
        assert_eq!(Lines::<()>::to_clients(&run).of_flows, [0, 1, 0, 2, 1]);
        assert_eq!(Lines::<()>::to_servers(&run).of_flows, [0, 1, 0, 2, 1]);
    }

    #[test]
    fn jitter_and_turns_are_each_flow_s_own_in_their_direction() {
        let jitter = JitterSpec {
            distribution: JitterDistribution::Uniform,
            max: millis(9),
            reorder: false,
        };
        let aggregation = Some(millis(5).into());
        let jittery = PathSpec { jitter: Some(jitter), ..path() };
        let in_turns = PathSpec { aggregation, ..path() };
        for (path, down, up) in [(jittery, [0, 1], [0, 0]), (in_turns, [0, 0], [0, 1])] {
            let run = run(vec![path], vec![flow(); 2]);
            assert_eq!(Lines::<()>::to_clients(&run).of_flows, down);
            assert_eq!(Lines::<()>::to_servers(&run).of_flows, up);
        }
    }

    #[test]
    fn a_line_wants_to_be_looked_at_once_for_all_that_travels() {
        let run = run(vec![path()], vec![flow(); 2]);
        let mut lines = Lines::to_clients(&run);
        let at = |time| Time::ZERO + millis(time);
        assert_eq!(lines.enter(at(0), 1, 'a', 100), Some((at(20), 0)));
        assert_eq!(lines.enter(at(3), 0, 'b', 100), None);
        assert_eq!((lines.arrive(at(19), 0), lines.next_arrival(0)), (None, at(20)));
        assert_eq!((lines.arrive(at(20), 0), lines.next_arrival(0)), (Some((1, 'a')), at(23)));
        assert_eq!((lines.arrive(at(23), 0), lines.next_arrival(0)), (Some((0, 'b')), Time::NEVER));
    }
}
