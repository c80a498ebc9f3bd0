//! Starts of flows of programs that open their connections one after the other.

use uncork_sim::{Launch, Program, Workload, program_starts};
use uncork_units::TimeDelta;

use super::instance::usual_spread;
use super::model::Instance;
use super::plan::{CellPlan, Connect};

/// A program that is ahead sends for this time before the others are launched...
const LEAD: TimeDelta = TimeDelta::from_secs(1);
/// ...but within this part of the flows' duration.
const LEAD_PART: u64 = 20;

/// Maximum time that all SYNs of a program wait in queues: the usual spread of bulk flows' starts. By the totals of a study of 50 flows the wait was at most 2.3 s
/// (`crates/lab/sim/tests/data/README.md`).
fn max_wait(bulk: TimeDelta) -> TimeDelta {
    usual_spread(Some(bulk))
}

/// When the last of `flows` flows starts at the latest, if there are two programs. `bulk` is the flows'
/// duration.
pub(crate) fn latest_opening(bulk: TimeDelta, flows: u64, rtt: TimeDelta) -> TimeDelta {
    usual_spread(None) + LEAD + (max_wait(bulk) + rtt.times(flows)).times(2)
}

/// Sets the starts of the flows of classes that say how they connect.
pub(super) fn open(instance: &mut Instance, plan: &CellPlan, seed: u64) {
    let mut programs = programs(instance, plan);
    let in_turn = plan.flows.iter().any(|flow| flow.connect == Some(Connect::InTurn));
    if let Some(first) = ahead(programs.len(), seed).filter(|_| in_turn) {
        let bulk = duration(instance, &programs[first]);
        let lead = LEAD.min(bulk.divided_by(LEAD_PART));
        for (_, other) in programs.iter_mut().enumerate().filter(|(nth, _)| *nth != first) {
            other.launch = Launch::AfterFirst(lead);
        }
    }
    let starts = program_starts(&instance.run, &programs);
    for (program, start) in programs.iter().zip(starts) {
        for flow in &program.flows {
            let end = instance.run.end;
            let flow = &mut instance.run.flows[*flow];
            if let Workload::Until(until) = flow.workload {
                flow.workload = Workload::Until((until + start.since(flow.start)).min(end));
            }
            flow.start = start;
        }
    }
}

/// The program that is ahead of the others in the run with `seed`: none in the first run, then each
/// in turn.
fn ahead(programs: usize, seed: u64) -> Option<usize> {
    let orders = programs as u64 + 1;
    let order = (seed % orders + programs as u64) % orders;
    if programs < 2 { None } else { (order as usize).checked_sub(1) }
}

/// A program for each controller of each class that says how it connects. Its flows have one start.
fn programs(instance: &Instance, plan: &CellPlan) -> Vec<Program> {
    let mut programs: Vec<(u32, Program)> = Vec::new();
    for (index, class) in instance.class_of_flow.iter().enumerate() {
        if plan.flows[*class as usize].connect.is_none() {
            continue;
        }
        let flows = &instance.run.flows;
        let is_same = |(other, program): &&mut (u32, Program)| {
            other == class && flows[program.flows[0]].cc == flows[index].cc
        };
        if let Some((_, program)) = programs.iter_mut().find(is_same) {
            program.flows.push(index);
        } else {
            let start = flows[index].start;
            let (flows, launch) = (vec![index], Launch::At(start));
            let mut program = Program { flows, launch, max_wait: TimeDelta::ZERO };
            program.max_wait = max_wait(duration(instance, &program));
            programs.push((*class, program));
        }
    }
    programs.into_iter().map(|(_, program)| program).collect()
}

/// How long the flows of a program last.
fn duration(instance: &Instance, program: &Program) -> TimeDelta {
    let flow = &instance.run.flows[program.flows[0]];
    match flow.workload {
        Workload::Until(until) => until.since(flow.start),
        _ => TimeDelta::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_ahead_in_turn_and_together_first() {
        let of_seeds = |programs| [1, 2, 3, 4, 5].map(|seed| ahead(programs, seed));
        assert_eq!(of_seeds(2), [None, Some(0), Some(1), None, Some(0)]);
        assert_eq!(of_seeds(3), [None, Some(0), Some(1), Some(2), None]);
        assert_eq!(of_seeds(1), [None; 5]);
        assert_eq!(of_seeds(0), [None; 5]);
    }
}
