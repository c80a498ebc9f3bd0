//! What the runs of a scenario will cost, from short beginnings of some of them.
//!
//! What a packet costs depends on controllers, flows, queues, losses and the machine, and how many are sent on the losses. So both are
//! measured: a run of each cell is begun, twice as far each time, until that takes long enough. What its last doubling added is
//! continued to the run's end, class by class, with what the class will then send ([`Demand`]).

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use uncork_sim::{PACKET_BYTES, parallel};
use uncork_units::{Time, TimeDelta};

use crate::engine::{Engine, EngineError};
use crate::scenario::{Amount, Cell, Demand, Scenario, Span, link_bytes};
use crate::sweep::Item;

/// Maximum number of cells of a scenario that are begun.
const MAX_BEGUN: usize = 512;
/// 2^32 divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9;
/// The first beginning is this part of a run.
const FIRST_PART: u64 = 1 << 14;
/// A packet costs at most about this many times the average of all before, as flows join and queues grow.
const MAX_GROWTH: f64 = 3.0;
/// Maximum share of the processors of other programs, as the factor by which runs take longer.
const MAX_STRETCH: f64 = 100.0;
/// All beginnings of a cell together take at most about this many times its budget. Each takes twice the time of the one before, and the last
/// one may exceed the budget.
const OVERRUN: u32 = 4;

/// Reads two clocks: the CPU time of the calling thread, which other programs do not disturb, and the wall clock.
pub type Clocks<'a> = &'a (dyn Fn() -> [Duration; 2] + Sync);

/// What a run costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunCost {
    /// Data packets.
    pub packets: f64,
    /// CPU time.
    pub seconds: f64,
}

/// What the runs of each cell cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CostForecast {
    /// By cell.
    pub runs: Vec<RunCost>,
    /// All that was measured for it.
    pub measured: RunCost,
    /// Time on the wall clock of a second of CPU time, while other programs take their part of the processors.
    pub stretch: f64,
}

/// A run until `end`.
#[derive(Clone, Debug, Default, PartialEq)]
struct Beginning {
    end: TimeDelta,
    /// Data packets of each class.
    packets: Vec<f64>,
    /// CPU time.
    seconds: f64,
    /// Time on the wall clock.
    wall: f64,
}

impl CostForecast {
    /// Measures beginnings of the runs of `scenario` on `jobs` threads, for about the time `budget` in all.
    ///
    /// # Errors
    ///
    /// The engine cannot run the scenario.
    pub fn measure(
        (scenario, engine): (&Scenario, Engine),
        jobs: usize,
        budget: Duration,
        clocks: Clocks<'_>,
    ) -> Result<Self, EngineError> {
        let begun_items = begun_items(scenario, jobs);
        let threads = jobs.min(begun_items.len()).max(1) as u32;
        let each = budget * threads / begun_items.len().max(1) as u32 / OVERRUN;
        let stop = AtomicBool::new(false);
        let begun = parallel::map_until(&stop, begun_items.len(), jobs, |nth| {
            last_two_beginnings((scenario, engine), begun_items[nth], each, clocks)
        });
        let mut sums = vec![(0.0, RunCost::default()); scenario.cells.len()];
        let (mut measured, mut wall) = (RunCost::default(), 0.0);
        for (item, begun) in begun_items.iter().zip(begun) {
            let (shorter, longer) = begun?;
            measured = measured.plus(longer.cost());
            wall += longer.wall;
            let (count, sum) = &mut sums[item.cell];
            *count += 1.0;
            *sum = sum.plus(run_cost(&scenario.cells[item.cell], &shorter, &longer));
        }
        let mean = |(count, sum): (f64, RunCost)| {
            let mean = RunCost { packets: sum.packets / count, seconds: sum.seconds / count };
            (count > 0.0).then_some(mean)
        };
        let runs: Vec<Option<RunCost>> = sums.into_iter().map(mean).collect();
        let stretch = (wall / measured.seconds).clamp(1.0, MAX_STRETCH);
        Ok(Self { runs: with_others(&scenario.cells, &runs), measured, stretch })
    }

    /// Measured CPU time of a packet, on average, in seconds.
    pub(crate) fn seconds_per_packet(&self) -> f64 {
        self.measured.seconds / self.measured.packets.max(1.0)
    }
}

impl RunCost {
    /// Packets per second and thread.
    pub fn packets_per_second(self) -> Option<f64> {
        Some(self.packets / self.seconds).filter(|speed| speed.is_finite())
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, seconds: self.seconds + other.seconds }
    }
}

impl Beginning {
    fn cost(&self) -> RunCost {
        RunCost { packets: self.packets.iter().sum(), seconds: self.seconds }
    }
}

/// The runs that are begun: one of each cell, or more of a few cells, so that all threads are as busy as they will be.
fn begun_items(scenario: &Scenario, jobs: usize) -> Vec<Item> {
    let cells = spread_over(scenario.cells.len(), MAX_BEGUN);
    let of_each = jobs.div_ceil(cells.len().max(1)).clamp(1, scenario.seeds.max(1) as usize);
    let seeds = (0..of_each as u64).map(|nth| scenario.first_seed.saturating_add(nth));
    seeds.flat_map(|seed| cells.iter().map(move |cell| Item { cell: *cell, seed })).collect()
}

/// `max` of `cells` cells, or all: by steps of the golden ratio, which is not in step with any axis.
fn spread_over(cells: usize, max: usize) -> Vec<usize> {
    if cells <= max {
        return (0..cells).collect();
    }
    let place = |nth: u64| ((nth.wrapping_mul(GOLDEN) & 0xffff_ffff) * cells as u64) >> 32;
    let mut chosen: Vec<usize> = (0..max as u64).map(|nth| place(nth) as usize).collect();
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}

/// Begins the run `item` until it takes `budget`, or to its end. The last beginning is the longer of the two.
fn last_two_beginnings(
    of: (&Scenario, Engine),
    item: Item,
    budget: Duration,
    clocks: Clocks<'_>,
) -> Result<(Beginning, Beginning), EngineError> {
    let whole = of.0.cells[item.cell].end.since(Time::ZERO);
    let mut end = whole.divided_by(FIRST_PART).max(TimeDelta::from_millis(1)).min(whole);
    let mut longer = begin(of, item, end, clocks)?;
    let start = longer.seconds;
    loop {
        end = end.times(2).min(whole);
        let shorter = longer;
        longer = begin(of, item, end, clocks)?;
        // Setting up many flows may take longer than the packets of a short run.
        let is_long_enough = longer.seconds >= start + budget.as_secs_f64().max(start);
        if is_long_enough || end >= whole {
            return Ok((shorter, longer));
        }
    }
}

fn begin(
    (scenario, engine): (&Scenario, Engine),
    item: Item,
    end: TimeDelta,
    clocks: Clocks<'_>,
) -> Result<Beginning, EngineError> {
    let start = clocks();
    let mut instance = scenario.instance(item.cell, item.seed);
    let run = &mut instance.run;
    run.end = run.end.min(Time::ZERO + end);
    run.warmup = run.warmup.min(run.end);
    run.sample_every = None; // Few runs have a time series. It is priced by its points.
    let played = engine.play(run, &AtomicBool::new(false))?;
    let mut packets = vec![0.0; scenario.cells[item.cell].classes.len()];
    for (flow, class) in played.result.flows.iter().zip(&instance.class_of_flow) {
        packets[*class as usize] += flow.packets_sent as f64;
    }
    drop(played);
    let now = clocks();
    let [seconds, wall] = [0, 1].map(|nth| now[nth].saturating_sub(start[nth]).as_secs_f64());
    Ok(Beginning { end, packets, seconds, wall })
}

/// The cost of a whole run of `cell`, from two beginnings of it.
fn run_cost(cell: &Cell, shorter: &Beginning, longer: &Beginning) -> RunCost {
    let begun = longer.cost();
    let packets = remaining_packets(cell, shorter, longer);
    if packets <= 0.0 {
        return begun;
    }
    let before = shorter.cost();
    let (added, took) = (begun.packets - before.packets, begun.seconds - before.seconds);
    let average = begun.seconds / begun.packets.max(1.0);
    // What is the same for all lengths is not in the difference.
    let each =
        if added > 0.0 && took > 0.0 { (took / added).min(MAX_GROWTH * average) } else { average };
    begun.plus(RunCost { packets, seconds: packets * each })
}

/// Packets that all classes send after the longer beginning.
fn remaining_packets(cell: &Cell, shorter: &Beginning, longer: &Beginning) -> f64 {
    let end = cell.end.since(Time::ZERO);
    let spans = (shorter.end..longer.end, longer.end..end);
    if longer.end >= end {
        return 0.0;
    }
    let (mut remaining, mut all) = (vec![0.0; cell.plan.paths.len()], 0.0);
    let mut added = vec![0.0; cell.plan.paths.len()];
    for (class, flow) in cell.plan.flows.iter().enumerate() {
        let sent = longer.packets[class];
        let before = shorter.packets.get(class).copied().unwrap_or_default();
        let demand = Demand::of(flow, end);
        let offered = |span: &Span| {
            demand.bytes_in(&cell.plan.paths[flow.path], flow.count, span) as f64
                / f64::from(PACKET_BYTES)
        };
        added[flow.path] += sent - before;
        remaining[flow.path] += rest_of_class(&demand, (before, sent), &spans, offered);
    }
    for ((path, rest), added) in cell.plan.paths.iter().zip(remaining).zip(added) {
        // Classes that share a link send at most what it carries, and as many more as are lost now.
        let carried = |span: &Span| link_bytes(path, span) as f64 / f64::from(PACKET_BYTES);
        let excess = (added / carried(&spans.0).max(1.0)).max(1.0);
        all += if path.own_per_flow { rest } else { rest.min(carried(&spans.1) * excess) };
    }
    all
}

/// Packets that a class sends in the second of two spans, if it had sent `before` packets at the begin of the first, and `sent` at the end.
fn rest_of_class(
    demand: &Demand,
    (before, sent): (f64, f64),
    (first, second): &(Span, Span),
    offered: impl Fn(&Span) -> f64,
) -> f64 {
    let added = sent - before;
    let seconds = |span: &Span| (span.end - span.start).as_secs_f64();
    let steady = added * seconds(second) / seconds(first).max(1e-9);
    match demand.amount {
        _ if sent <= 0.0 => offered(second),
        Amount::Whole(bytes) => {
            let whole = bytes as f64 / f64::from(PACKET_BYTES);
            (whole - sent).max(0.0).min(steady)
        }
        Amount::Capacity | Amount::Spread(_) => match offered(first) {
            at_first if at_first > 0.0 => added * offered(second) / at_first,
            _ => offered(second),
        },
    }
}

/// The costs of all cells. A cell that was not measured costs as much for each expected packet as the measured ones.
fn with_others(cells: &[Cell], measured: &[Option<RunCost>]) -> Vec<RunCost> {
    let expected = |cell: &Cell| cell.expected_packets() as f64;
    let mut sum = (0.0, RunCost::default());
    for (cell, cost) in cells.iter().zip(measured) {
        let Some(cost) = cost else { continue };
        sum = (sum.0 + expected(cell), sum.1.plus(*cost));
    }
    let other = |cell: &Cell| {
        let part = expected(cell) / f64::max(sum.0, 1.0);
        RunCost { packets: sum.1.packets * part, seconds: sum.1.seconds * part }
    };
    cells.iter().zip(measured).map(|(cell, cost)| cost.unwrap_or_else(|| other(cell))).collect()
}

/// How long runs that take `seconds` last on `threads` threads, if each thread takes the next as it is free.
pub(crate) fn makespan(seconds: impl IntoIterator<Item = f64>, threads: usize) -> f64 {
    let mut free_at = vec![0.0_f64; threads.max(1)];
    for run in seconds {
        if let Some(first) = free_at.iter_mut().min_by(|one, other| one.total_cmp(other)) {
            *first += run;
        }
    }
    free_at.into_iter().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::NoFiles;

    /// Flows that come and go on a link that slows down.
    const LATE: &str = r#"
        title = "Late"
        [run]
        end = "30s"
        [path]
        rate = "20mbit"
        rate_steps = [["10s", "5mbit"]]
        rtt = "30ms"
        [flow.early]
        cc = "cubic"
        bulk = "8s"
        [flow.late]
        cc = ["bbr3", "cubic"]
        count = 4
        start = "20s"
        bulk = "end"
    "#;
    /// A download for which losses leave a few percent of the link.
    const STARVED: &str = r#"
        title = "Starved"
        [run]
        end = "100s"
        [path]
        rate = "200mbit"
        rtt = "100ms"
        loss = "1%"
        [flow.main]
        cc = "cubic"
        transfer = "10MB"
    "#;
    /// Objects over links of each client, next to streams that share one.
    const ARRIVALS: &str = r#"
        title = "Arrivals"
        [run]
        end = "30s"
        [path.own]
        rate = "10mbit"
        rtt = "40ms"
        own_per_flow = true
        [path.shared]
        rate = "10mbit"
        rtt = "40ms"
        [flow.objects]
        path = "own"
        cc = "bbr1"
        count = 8
        start = "3s"
        arrivals = { rate = "1/s", size = "100kB", for = "20s" }
        [flow.streams]
        path = "shared"
        cc = "reno"
        count = 3
        bulk = "end"
    "#;
    const SECONDS_PER_PACKET: f64 = 1e-6;
    const SETUP: f64 = 0.01;

    fn scenario(text: &str) -> Scenario {
        Scenario::parse("test", text, &[], &NoFiles).unwrap()
    }

    /// A beginning of a run, on a machine that takes the same time for each packet.
    fn beginning(of: &Scenario, end: TimeDelta) -> Beginning {
        let item = Item { cell: 0, seed: of.first_seed };
        let begun = begin((of, Engine::Sim), item, end, &|| [Duration::ZERO; 2]).unwrap();
        let seconds = SETUP + begun.cost().packets * SECONDS_PER_PACKET;
        Beginning { seconds, ..begun }
    }

    #[test]
    fn forecast_runs_of_any_kind_within_a_factor_of_two_from_a_quarter_of_the_run() {
        for text in [LATE, STARVED, ARRIVALS] {
            let scenario = scenario(text);
            let cell = &scenario.cells[0];
            let end = cell.end.since(Time::ZERO);
            let truth = beginning(&scenario, end).cost();
            for part in [2, 4] {
                let [shorter, longer] =
                    [2 * part, part].map(|n| beginning(&scenario, end.divided_by(n)));
                let cost = run_cost(cell, &shorter, &longer);
                let ratios = [cost.packets / truth.packets, cost.seconds / truth.seconds];
                assert!(
                    ratios.iter().all(|ratio| (0.5..2.0).contains(ratio)),
                    "{ratios:?}: {text}"
                );
            }
        }
    }

    #[test]
    fn forecast_run_is_begun_to_its_end_costs_what_was_measured() {
        let scenario = scenario(STARVED);
        let whole = beginning(&scenario, TimeDelta::from_secs(100));
        assert_eq!(run_cost(&scenario.cells[0], &Beginning::default(), &whole), whole.cost());
    }

    /// The time that a run takes before its first packet is not multiplied.
    #[test]
    fn run_cost_long_setup_counts_it_once() {
        let scenario = scenario(&LATE.replace("[[\"10s\", \"5mbit\"]]", "[]"));
        let begun = |millis, packets, seconds| Beginning {
            end: TimeDelta::from_millis(millis),
            packets: vec![packets, 0.0],
            seconds,
            wall: seconds,
        };
        let (shorter, longer) = (begun(2000, 3000.0, 5.003), begun(4000, 6000.0, 5.006));
        let cost = run_cost(&scenario.cells[0], &shorter, &longer);
        let rest = cost.packets - 6000.0;
        assert!((cost.seconds - (5.006 + rest * 1e-6)).abs() < 1e-6, "{cost:?}");
    }

    /// A clock of another program's load: each second of CPU time lasts three.
    #[test]
    fn measure_busy_machine_stretches_the_wall_clock_and_not_the_cpu_time() {
        let calls = std::sync::atomic::AtomicU64::new(0);
        let clocks = || {
            let millis = calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            [Duration::from_millis(millis), Duration::from_millis(3 * millis)]
        };
        let scenario = scenario(&LATE.replace("\"30s\"", "\"21s\""));
        let forecast =
            CostForecast::measure((&scenario, Engine::Sim), 1, Duration::ZERO, &clocks).unwrap();
        assert!((forecast.stretch - 3.0).abs() < 1e-9, "{forecast:?}");
        assert_eq!(forecast.runs.len(), 1);
    }

    #[test]
    fn spread_over_more_cells_than_allowed_are_distinct_and_in_step_with_no_axis() {
        assert_eq!(spread_over(7, 512), [0, 1, 2, 3, 4, 5, 6]);
        let chosen = spread_over(10_000, 512);
        assert!((500..=512).contains(&chosen.len()), "{}", chosen.len());
        for axis in 2..=6 {
            let with_first_value = chosen.iter().filter(|cell| **cell % axis == 0).count();
            let share = with_first_value as f64 * axis as f64 / chosen.len() as f64;
            assert!((0.8..1.2).contains(&share), "{axis}: {share}");
        }
    }

    #[test]
    fn begun_items_with_fewer_cells_than_threads_are_of_several_seeds() {
        let mut one = scenario(LATE);
        let count = |one: &Scenario, jobs| begun_items(one, jobs).len();
        one.seeds = 3;
        assert_eq!([1, 2, 8].map(|jobs| count(&one, jobs)), [1, 2, 3]);
        assert_eq!(begun_items(&one, 2)[1], Item { cell: 0, seed: one.first_seed + 1 });
    }

    #[test]
    fn with_others_cells_that_were_not_begun_cost_as_much_by_their_packets() {
        let text = STARVED.replace("\"cubic\"", "[\"cubic\"]")
            + "[matrix]\n\"flow.main.transfer\" = [\"10MB\", \"20MB\"]";
        let scenario = scenario(&text);
        let known = RunCost { packets: 1000.0, seconds: 2.0 };
        let costs = with_others(&scenario.cells, &[Some(known), None]);
        assert_eq!(costs[0], known);
        assert!((costs[1].seconds - 4.0).abs() < 0.01, "{costs:?}");
    }

    #[test]
    fn makespan_three_equal_runs_on_two_threads_is_two_runs() {
        let millis = |seconds: &[f64]| (makespan(seconds.iter().copied(), 2) * 1e3).round() as u64;
        assert_eq!(millis(&[1.0, 1.0, 1.0]), 2000);
        assert_eq!(millis(&[4.0, 1.0, 1.0]), 4000);
        assert_eq!(millis(&[]), 0);
    }
}
