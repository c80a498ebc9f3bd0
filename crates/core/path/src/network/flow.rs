//! The per-flow part of a network: path, delay lines and random loss.

use uncork_units::{Time, TimeDelta};

use super::FlowPath;
use super::lines::DelayLines;
use crate::delay::DelayLine;
use crate::host_jitter::HostsSpec;
use crate::{Ecn, EcnChange, HostJitter, Loss, LossPosition, LossSpec, PathSpec, Step};

/// Seed streams, one of each per flow.
const LOSS_STREAM: u64 = 1 << 32;
const JITTER_STREAM: u64 = 8 << 32;
const LOSS_BACK_STREAM: u64 = 9 << 32;
const JITTER_BACK_STREAM: u64 = 10 << 32;
const CLIENT_STREAM: u64 = 11 << 32;
const SERVER_STREAM: u64 = 12 << 32;
const DUPLICATE_STREAM: u64 = 13 << 32;
const MARK_STREAM: u64 = 14 << 32;

/// The flows of a network, and its paths.
#[derive(Debug)]
pub(super) struct Flows {
    paths: Vec<PathSpec>,
    seed: u64,
    host_jitter: HostJitter,
    all: Vec<Flow>,
    /// Random loss behind the uplink, up to the last flow that has any.
    losses_back: Vec<Option<Loss>>,
    /// Which packets to the client are delivered twice, up to the last flow that has any.
    duplicates: Vec<Option<Loss>>,
    /// Which packets to the client a middlebox marks, up to the last flow of such a path.
    marks: Vec<Option<Loss>>,
    /// The shortest delay of all flows.
    pub(super) shortest_delay: TimeDelta,
    /// The loss that has replaced the paths' own.
    changed_loss: Option<LossSpec>,
}

#[derive(Debug)]
pub(super) struct Flow {
    pub(super) path: u32,
    pub(super) host: u32,
    /// Its delay lines to the client and to the server.
    pub(super) lines: [u32; 2],
    loss_position: LossPosition,
    /// Where a middlebox changes the ECN field of its packets to the client.
    pub(super) ecn_changes: Option<LossPosition>,
    /// Its largest packet to the client, in bytes.
    pub(super) max_packet: u32,
    /// Whether its packets to the client may be lost at random.
    may_lose: bool,
    /// Its packets to the client before that.
    lossless_packets: u64,
    /// Created with its first packet that may be lost, because there may be many flows that start late.
    loss: Option<Box<Loss>>,
}

impl PathSpec {
    /// Whether packets to the client may be lost at random.
    fn may_lose(&self) -> bool {
        self.loss != LossSpec::NONE || !self.loss_steps.is_empty()
    }

    /// The later delays in each direction.
    fn one_way_steps(&self) -> impl Iterator<Item = Step<TimeDelta>> {
        self.rtt_steps.iter().map(|step| Step { at: step.at, value: step.value.divided_by(2) })
    }

    /// A line of this delay at first.
    fn delay_line<T>(&self, one_way: TimeDelta) -> DelayLine<T> {
        let mut line = DelayLine::new(one_way);
        line.step(self.one_way_steps().collect());
        line
    }

    /// The random loss process of the flow with index `flow`.
    pub fn loss_of(&self, flow: u32, seed: u64) -> Loss {
        Loss::new(self.loss, seed, LOSS_STREAM + u64::from(flow))
    }
}

impl Flows {
    pub(super) fn new(paths: Vec<PathSpec>, seed: u64, host_jitter: HostJitter) -> Self {
        Self {
            paths,
            seed,
            host_jitter,
            all: Vec::new(),
            losses_back: Vec::new(),
            duplicates: Vec::new(),
            marks: Vec::new(),
            shortest_delay: TimeDelta::MAX,
            changed_loss: None,
        }
    }

    pub(super) fn reserve(&mut self, flows: usize) {
        self.all.reserve_exact(flows);
    }

    /// Adds a flow with its delay lines and returns its number.
    pub(super) fn add<D, U>(
        &mut self,
        flow: FlowPath,
        down: &mut DelayLines<D>,
        up: &mut DelayLines<U>,
    ) -> u32 {
        let FlowPath { path: index, host, rtt, back } = flow;
        let (path, seed, number) = (&self.paths[index], self.seed, self.all.len() as u32);
        let one_way = rtt.unwrap_or(path.rtt).divided_by(2);
        let stream = |stream: u64| stream + u64::from(number);
        let [client, server] = self.hosts(path, one_way.times(2));
        let line_down = || {
            let mut line = path.delay_line(one_way);
            if let Some(jitter) = path.jitter {
                line.jitter(jitter, seed, stream(JITTER_STREAM));
            }
            if let Some(spec) = client {
                line.hosts(spec, seed, stream(CLIENT_STREAM));
            }
            line
        };
        let line_up = || {
            let mut line = path.delay_line(one_way);
            if let Some(aggregation) = path.aggregation {
                line.aggregate(aggregation);
            }
            if let Some(jitter) = back.jitter {
                line.jitter(jitter, seed, stream(JITTER_BACK_STREAM));
            }
            if let Some(spec) = server {
                line.hosts(spec, seed, stream(SERVER_STREAM));
            }
            line
        };
        let own = [
            path.jitter.is_some() || client.is_some(),
            path.aggregation.is_some() || back.jitter.is_some() || server.is_some(),
        ];
        let key = (index as u32, one_way);
        let lines = [down.add(key, own[0], line_down), up.add(key, own[1], line_up)];
        let is_lossy = path.uplink_loss != LossSpec::NONE || !path.uplink_loss_steps.is_empty();
        if back.loss != LossSpec::NONE || is_lossy {
            let mut loss = Loss::new(path.uplink_loss, seed, stream(LOSS_BACK_STREAM));
            if back.loss != LossSpec::NONE {
                loss.change(back.loss);
            }
            put(&mut self.losses_back, number, loss);
        }
        let later = path.one_way_steps().map(|step| step.value);
        self.shortest_delay = later.fold(self.shortest_delay.min(one_way), TimeDelta::min);
        if path.duplicates != LossSpec::NONE {
            let process = Loss::new(path.duplicates, seed, stream(DUPLICATE_STREAM));
            put(&mut self.duplicates, number, process);
        }
        if let Some(EcnChange::Mark(spec)) = path.ecn_change {
            put(&mut self.marks, number, Loss::new(spec, seed, stream(MARK_STREAM)));
        }
        let ecn_changes = path.ecn_change.map(|_| path.ecn_position);
        let PathSpec { loss_position, max_packet, .. } = *path;
        let may_lose = path.may_lose() || self.changed_loss.is_some();
        let max_packet = max_packet.unwrap_or(u32::MAX);
        let path = index as u32;
        self.all.push(Flow {
            path,
            host,
            lines,
            loss_position,
            ecn_changes,
            max_packet,
            may_lose,
            lossless_packets: 0,
            loss: None,
        });
        number
    }

    /// The hosts that take time at the end of a flow's lines to the client and to the server.
    fn hosts(&self, path: &PathSpec, rtt: TimeDelta) -> [Option<HostsSpec>; 2] {
        let Some(max) = self.host_jitter.max(rtt) else { return [None; 2] };
        let hosts = |hosts| Some(HostsSpec { hosts, max });
        // Only an uplink or slots see when an acknowledgement leaves its client. Without them the
        // server's draw has the client's, too: there are fewer acknowledgements than packets, and
        // flows share their line to the clients.
        if path.uplink.is_none() && path.aggregation.is_none() {
            return [None, hosts(2)];
        }
        // A path that reorders decides the order itself.
        let reorders = path.jitter.is_some_and(|jitter| jitter.reorder);
        [hosts(1).filter(|_| !reorders), hosts(1)]
    }

    #[inline]
    pub(super) fn get(&self, flow: u32) -> &Flow {
        &self.all[flow as usize]
    }

    /// Whether random loss in front of the links drops the flow's next packet to its client.
    #[inline]
    pub(super) fn loses_before_links(&mut self, now: Time, flow: u32) -> bool {
        self.loses_at(now, flow, LossPosition::Before)
    }

    /// Whether random loss behind the links drops the flow's packet now arriving at its client.
    #[inline]
    pub(super) fn loses_after_links(&mut self, now: Time, flow: u32) -> bool {
        self.loses_at(now, flow, LossPosition::After)
    }

    #[inline]
    fn loses_at(&mut self, now: Time, flow: u32, position: LossPosition) -> bool {
        let Flow { loss_position, may_lose, lossless_packets, .. } = &mut self.all[flow as usize];
        if *loss_position != position {
            return false;
        }
        if !*may_lose {
            *lossless_packets += 1;
            return false;
        }
        self.strikes(now, flow)
    }

    fn strikes(&mut self, now: Time, number: u32) -> bool {
        let Self { paths, seed, changed_loss, .. } = self;
        let flow = &mut self.all[number as usize];
        let path = &paths[flow.path as usize];
        let new = || {
            let mut loss = path.loss_of(number, *seed).after(flow.lossless_packets);
            if let Some(changed) = changed_loss {
                loss.change(*changed);
            }
            Box::new(loss)
        };
        flow.loss.get_or_insert_with(new).strikes_at(now, &path.loss_steps)
    }

    /// Whether random loss behind the uplink drops the flow's next packet to its server.
    #[inline]
    pub(super) fn loses_behind_uplink(&mut self, now: Time, flow: u32) -> bool {
        let Some(Some(loss)) = self.losses_back.get_mut(flow as usize) else { return false };
        let path = &self.paths[self.all[flow as usize].path as usize];
        loss.strikes_at(now, &path.uplink_loss_steps)
    }

    /// Whether the flow's next packet to its client is delivered twice.
    #[inline]
    pub(super) fn duplicates(&mut self, flow: u32) -> bool {
        let process = self.duplicates.get_mut(flow as usize);
        process.and_then(Option::as_mut).is_some_and(Loss::strikes)
    }

    /// The ECN field behind the middlebox of the flow's path, for a packet that comes to it with `ecn`.
    #[cold]
    pub(super) fn changed_ecn(&mut self, flow: u32, ecn: Ecn) -> Ecn {
        let path = &self.paths[self.all[flow as usize].path as usize];
        let Some(change) = path.ecn_change else { return ecn };
        let process = self.marks.get_mut(flow as usize).and_then(Option::as_mut);
        change.apply(ecn, || process.is_some_and(Loss::strikes))
    }

    /// A flow has sent its last packet.
    pub(super) fn end(&mut self, flow: u32) {
        let flow = &mut self.all[flow as usize];
        (flow.loss, flow.lossless_packets) = (None, 0);
    }

    /// Replaces the loss of all flows from now on, with the same streams.
    pub(super) fn set_loss(&mut self, loss: LossSpec) {
        self.changed_loss = Some(loss);
        for flow in &mut self.all {
            flow.may_lose = true;
            if let Some(process) = &mut flow.loss {
                process.change(loss);
            }
        }
    }
}

/// Makes `process` that of the flow with this number; none with a higher one has any yet.
fn put(processes: &mut Vec<Option<Loss>>, number: u32, process: Loss) {
    processes.resize(number as usize, None);
    processes.push(Some(process));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BackSpec, Buffer, JitterDistribution, JitterSpec, LinkSpec};
    use uncork_units::Rate;

    const fn millis(millis: u64) -> TimeDelta {
        TimeDelta::from_millis(millis)
    }

    fn path() -> PathSpec {
        PathSpec::new(Rate::from_mbit(10), millis(40), Buffer::Packets(10))
    }

    /// The lines of flows given as (path index, RTT).
    fn lines(paths: &[PathSpec], flows: &[(usize, Option<TimeDelta>)]) -> Vec<[u32; 2]> {
        lines_between(HostJitter::NONE, paths, flows)
    }

    fn lines_between(
        hosts: HostJitter,
        paths: &[PathSpec],
        flows: &[(usize, Option<TimeDelta>)],
    ) -> Vec<[u32; 2]> {
        let mut all = Flows::new(paths.to_vec(), 1, hosts);
        let (mut down, mut up) = (DelayLines::<()>::new(), DelayLines::<()>::new());
        for (path, rtt) in flows {
            let flow = FlowPath { path: *path, host: 0, rtt: *rtt, back: BackSpec::default() };
            all.add(flow, &mut down, &mut up);
        }
        all.all.iter().map(|flow| flow.lines).collect()
    }

    #[test]
    fn flows_with_equal_path_and_delay_share_a_line() {
        let far = Some(millis(80));
        let flows = [(0, None), (0, far), (0, None), (1, None), (0, far)];
        assert_eq!(lines(&[path(), path()], &flows), [0, 1, 0, 2, 1].map(|line| [line; 2]));
    }

    /// Hosts do not wait for each other. Clients have lines of their own where it can be seen.
    #[test]
    fn hosts_that_take_time_have_their_own_lines() {
        let lines = |path| lines_between(HostJitter::Usual, &[path], &[(0, None); 3]);
        assert_eq!(lines(path()), [[0, 0], [0, 1], [0, 2]]);
        let uplink = Some(LinkSpec::new(Rate::from_mbit(1), Buffer::Packets(10)));
        let aggregation = Some(millis(5).into());
        for seen in [PathSpec { uplink, ..path() }, PathSpec { aggregation, ..path() }] {
            assert_eq!(lines(seen), [[0, 0], [1, 1], [2, 2]]);
        }
    }

    #[test]
    fn jitter_and_aggregation_are_per_flow_in_their_direction() {
        let (distribution, max) = (JitterDistribution::Uniform, millis(9));
        let jitter = Some(JitterSpec { distribution, max, reorder: false });
        let jittery = PathSpec { jitter, ..path() };
        let aggregating = PathSpec { aggregation: Some(millis(5).into()), ..path() };
        for (path, second) in [(jittery, [1, 0]), (aggregating, [0, 1])] {
            assert_eq!(lines(&[path], &[(0, None); 2]), [[0, 0], second]);
        }
    }
}
