//! When a program sends that opens its connections one after the other.
//!
//! Test beds measure mixes of controllers with one `iperf3 -P N -C CONTROLLER` each. It waits for every
//! connection before it opens the next, and sends on all of them at once when it has the last one. So
//! the program with fewer connections sends first, and the SYNs of the others wait in its queue.

use uncork_path::{LinkSpec, QueueSpec};
use uncork_units::{Rate, Time, TimeDelta};

use crate::run::Simulation;
use crate::spec::RunSpec;

/// A program that opens connections one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its connections: indices in [`RunSpec::flows`].
    pub flows: Vec<usize>,
    /// When it is launched.
    pub launch: Launch,
    /// How long all its SYNs together wait in queues at most.
    pub max_wait: TimeDelta,
}

/// When a program is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launch {
    /// At this time.
    At(Time),
    /// So long after the first program sends.
    AfterFirst(TimeDelta),
}

/// A program that is still opening connections.
#[derive(Clone, Copy)]
struct Opening {
    program: usize,
    /// When it begins to open the next connection. The last one is opened by its flows, all at once.
    next: Time,
    left: usize,
    /// How long its next SYNs may still wait in queues.
    patience: TimeDelta,
}

/// When the flows of each program start: they connect once more then, all at once, in place of the
/// last connection. Other flows of `run` start as it says. A program that is launched after the first one
/// never starts without one.
pub fn program_starts(run: &RunSpec, programs: &[Program]) -> Vec<Time> {
    let mut starts: Vec<Option<Time>> = vec![None; programs.len()];
    while let Some((program, start)) = next_start(run, programs, &starts) {
        starts[program] = Some(start);
    }
    starts.into_iter().map(|start| start.unwrap_or(Time::NEVER)).collect()
}

/// The next program that sends, while those with `starts` fill the queue.
fn next_start(
    run: &RunSpec,
    programs: &[Program],
    starts: &[Option<Time>],
) -> Option<(usize, Time)> {
    let first = starts.iter().flatten().min().copied();
    let waiting = programs.iter().enumerate().filter(|(nth, _)| starts[*nth].is_none());
    let opening = waiting.filter_map(|(program, Program { flows, launch, max_wait })| {
        let next = match launch {
            Launch::At(time) => *time,
            Launch::AfterFirst(span) => first? + *span,
        };
        let left = flows.len().saturating_sub(1);
        Some(Opening { program, next, left, patience: *max_wait })
    });
    let mut opening: Vec<Opening> = opening.collect();
    let started = run.with_starts(programs, starts);
    let mut simulation = Simulation::new(&started);
    loop {
        let one = opening.iter_mut().min_by_key(|one| one.next)?;
        if one.left == 0 {
            return Some((one.program, one.next));
        }
        while simulation.step_until(one.next) {}
        let flow = &run.flows[programs[one.program].flows[0]];
        let queued_bytes = simulation.network.queued_bytes(flow.path);
        let wait = run.wait(flow.path, queued_bytes).min(one.patience);
        one.next = one.next + flow.rtt.unwrap_or(run.paths[flow.path].rtt) + wait;
        one.patience = one.patience - wait;
        one.left -= 1;
    }
}

impl RunSpec {
    /// This run with the starts of programs that are known; the flows of the others never start.
    fn with_starts(&self, programs: &[Program], starts: &[Option<Time>]) -> Self {
        let mut run = Self { sample_every: None, ..self.clone() };
        for (program, start) in programs.iter().zip(starts) {
            for flow in &program.flows {
                run.flows[*flow].start = start.unwrap_or(Time::NEVER);
            }
        }
        run
    }

    /// How long a new flow's first packet waits behind this many bytes in the queues of `path`. Fair
    /// queues send it at once (RFC 8290 §4.2).
    fn wait(&self, path: usize, queued_bytes: u64) -> TimeDelta {
        let path = &self.paths[path];
        let via = path.via.iter().filter_map(|link| self.links.get(*link));
        let slowest = via.chain([&path.link]).min_by_key(|link| link.nominal_rate());
        let is_fair =
            |link: &LinkSpec| matches!(link.queue, QueueSpec::FqCodel(_) | QueueSpec::Cake(_));
        let rate = slowest.filter(|link| !is_fair(link)).map(LinkSpec::nominal_rate);
        rate.filter(|rate| *rate > Rate::ZERO)
            .map_or(TimeDelta::ZERO, |rate| rate.time_for(queued_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FlowSpec, Workload};
    use uncork_path::{Buffer, PathSpec};

    const RTT: TimeDelta = TimeDelta::from_millis(40);

    /// Two flows of BBRv1 and twenty of CUBIC over 20 Mbit/s, 40 ms and `queue` of 8 BDP: when both
    /// programs send.
    fn starts_ms(queue: &str, launch: Launch, max_wait: TimeDelta) -> [u64; 2] {
        let end = Time::ZERO + TimeDelta::from_secs(20);
        let mut path = PathSpec::new(Rate::from_mbit(20), RTT, Buffer::MilliBdp(8000));
        path.link.queue = queue.parse().expect("a queue");
        let flow = |cc: &str| FlowSpec::new(cc.parse().expect("a cc"), Workload::Until(end));
        let flows = [vec![flow("bbr1"); 2], vec![flow("cubic"); 20]].concat();
        let programs = [
            Program { flows: vec![0, 1], launch: Launch::At(Time::ZERO), max_wait },
            Program { flows: (2..22).collect(), launch, max_wait },
        ];
        let starts = program_starts(&RunSpec::over(path, flows, 1, end), &programs);
        [starts[0], starts[1]].map(|start| start.as_nanos() / 1_000_000)
    }

    /// A round trip for each connection but the last; and the queue's 320 ms, once it is full.
    #[test]
    fn syns_wait_in_the_queue_of_the_first_program() {
        let together = Launch::At(Time::ZERO);
        let [bbr, cubic] = starts_ms("droptail", together, TimeDelta::MAX);
        assert_eq!(bbr, 40);
        assert!((800..19 * 360).contains(&cubic), "{cubic}");
        assert_eq!(starts_ms("droptail", together, TimeDelta::from_millis(7)), [40, 767]);
        assert_eq!(starts_ms("fq_codel", together, TimeDelta::MAX), [40, 760]);
    }

    #[test]
    fn a_program_is_launched_after_the_first_one_sends() {
        let later = Launch::AfterFirst(TimeDelta::from_secs(1));
        assert_eq!(starts_ms("fq_codel", later, TimeDelta::MAX), [40, 1800]);
    }
}
