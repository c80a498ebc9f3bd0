//! Running a comparison.

use std::sync::Mutex;

use uncork_flow::{FlowRecord, SeriesPoint};
use uncork_sim::{RunResult, RunSpec, run as simulate};
use uncork_units::TimeDelta;

use crate::{Column, CompareError, CompareSpec, parallel};

/// Instants at which a sampled run is written down...
const SAMPLES: u64 = 1_000;
/// ...as long as all its flows together leave no more points than this.
const MAX_POINTS: u64 = 100_000;

/// What all runs of a comparison left.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The columns, in the order asked for.
    pub columns: Vec<ColumnRuns>,
    /// Data packets that were simulated.
    pub packets: u64,
}

/// What the runs of one column left.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnRuns {
    /// The column.
    pub column: Column,
    /// The flows of each run, by seed.
    pub runs: Vec<Vec<FlowRecord>>,
    /// The inside of the first run, when asked for.
    pub sampled: Option<SampledRun>,
}

/// The inside of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledRun {
    /// Its seed.
    pub seed: u64,
    /// Its flows, by time.
    pub points: Vec<SeriesPoint>,
}

/// How far a comparison has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Runs that are over.
    pub done: usize,
    /// Runs in all.
    pub total: usize,
    /// Data packets simulated so far.
    pub packets: u64,
}

/// Runs `spec` on up to `jobs` threads and tells `progress` of each run that is over. The outcome is
/// the same whatever the number of threads.
pub fn run(
    spec: &CompareSpec,
    jobs: usize,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Outcome, CompareError> {
    spec.check()?;
    let seeds: Vec<u64> = spec.seeds().collect();
    let total = spec.columns.len() * seeds.len();
    let so_far = Mutex::new(Progress { total, ..Progress::default() });
    let cells = parallel::map(total, jobs, |cell| {
        let (column, nth) = (&spec.columns[cell / seeds.len()], cell % seeds.len());
        let run = run_cell(column, &spec.run_spec(column, seeds[nth]), spec.sampled && nth == 0);
        let mut so_far = so_far.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        so_far.done += 1;
        so_far.packets += run.packets;
        progress(*so_far);
        run
    });
    let packets = cells.iter().map(|cell| cell.packets).sum();
    let mut cells = cells.into_iter();
    let columns = spec.columns.iter().map(|column| {
        let mut column = ColumnRuns { column: column.clone(), runs: Vec::new(), sampled: None };
        for cell in cells.by_ref().take(seeds.len()) {
            column.runs.push(cell.flows);
            column.sampled = column.sampled.take().or(cell.sampled);
        }
        column
    });
    Ok(Outcome { columns: columns.collect(), packets })
}

/// One column with one seed.
struct Cell {
    flows: Vec<FlowRecord>,
    sampled: Option<SampledRun>,
    packets: u64,
}

fn run_cell(column: &Column, spec: &RunSpec, sampled: bool) -> Cell {
    let RunResult { mut flows, mut packets, .. } = simulate(spec);
    for flow in &mut flows {
        flow.group = column.to_string();
    }
    let sampled = sampled.then(|| {
        let again =
            simulate(&RunSpec { sample_every: Some(interval(&flows, spec)), ..spec.clone() });
        packets += again.packets;
        SampledRun { seed: spec.seed, points: again.series }
    });
    Cell { flows, sampled, packets }
}

/// How often to sample. How long a run takes shows only when it is over, hence the second run:
/// sampling changes nothing in it.
fn interval(flows: &[FlowRecord], spec: &RunSpec) -> TimeDelta {
    let samples = SAMPLES.min(MAX_POINTS / flows.len().max(1) as u64);
    let end = |flow: &FlowRecord| {
        flow.completion_ns.map_or(spec.end.as_nanos(), |span| flow.start_ns.saturating_add(span))
    };
    let end = flows.iter().map(end).max().unwrap_or(0);
    TimeDelta::from_nanos(end.div_ceil(samples.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Workload;
    use crate::compare::example;

    #[test]
    fn the_outcome_does_not_depend_on_the_number_of_threads() {
        let mut spec = example(&["cubic", "bbr1+bbr3"]);
        spec.sampled = true;
        let alone = run(&spec, 1, &|_| {}).unwrap();
        assert_eq!(run(&spec, 4, &|_| {}).unwrap(), alone);
        let labels: Vec<_> = alone.columns.iter().map(|column| column.column.to_string()).collect();
        assert_eq!(labels, ["cubic", "bbr1+bbr3"]);
        for column in &alone.columns {
            let seeds: Vec<u64> = column.runs.iter().map(|flows| flows[0].seed).collect();
            assert_eq!(seeds, [1, 2, 3]);
            assert!(
                column.runs.iter().flatten().all(|flow| flow.group == column.column.to_string())
            );
        }
        assert_eq!(alone.columns[1].runs[0].len(), 2);
    }

    #[test]
    fn sampling_changes_nothing_but_adds_about_a_thousand_points() {
        let mut spec = example(&["bbr3"]);
        let plain = run(&spec, 1, &|_| {}).unwrap();
        spec.sampled = true;
        let sampled = run(&spec, 1, &|_| {}).unwrap();
        assert_eq!(sampled.columns[0].runs, plain.columns[0].runs);
        assert_eq!(plain.columns[0].sampled, None);
        let series = sampled.columns[0].sampled.as_ref().unwrap();
        assert_eq!(series.seed, 1);
        assert!((500..=1001).contains(&series.points.len()), "{}", series.points.len());
    }

    #[test]
    fn many_flows_share_the_points() {
        let mut spec = example(&["reno"]);
        spec.flows = 500;
        spec.seeds = 1;
        spec.sampled = true;
        spec.workload = Workload::Transfer("3kB".parse().unwrap());
        let outcome = run(&spec, 1, &|_| {}).unwrap();
        let points = outcome.columns[0].sampled.as_ref().unwrap().points.len();
        assert!((10_000..=101_000).contains(&points), "{points}");
    }

    #[test]
    fn tells_of_every_run() {
        let spec = example(&["cubic", "reno"]);
        let told = Mutex::new(Vec::new());
        let outcome = run(&spec, 2, &|progress| told.lock().unwrap().push(progress)).unwrap();
        let told = told.into_inner().unwrap();
        let done: Vec<usize> = told.iter().map(|progress| progress.done).collect();
        assert_eq!(done, [1, 2, 3, 4, 5, 6]);
        assert_eq!(told[5], Progress { done: 6, total: 6, packets: outcome.packets });
        assert!(outcome.packets >= 6 * 70, "{}", outcome.packets);
    }

    #[test]
    fn flows_of_a_duration_run_to_their_end() {
        let mut spec = example(&["cubic"]);
        spec.workload = Workload::Duration(TimeDelta::from_secs(2));
        let outcome = run(&spec, 1, &|_| {}).unwrap();
        for flow in outcome.columns[0].runs.iter().flatten() {
            assert_eq!((flow.size_bytes, flow.completion_ns), (None, None));
            assert!(flow.bytes_delivered > 200_000, "{}", flow.bytes_delivered);
        }
    }

    #[test]
    fn refuses_what_the_check_refuses() {
        let mut spec = example(&["cubic"]);
        spec.seeds = 0;
        assert_eq!(run(&spec, 1, &|_| {}), Err(CompareError::Seeds(0)));
    }
}
