//! The measurements. Every figure is a mean over three seeds unless its table says otherwise.

use uncork_sim::{FlowSpec, Workload};
use uncork_units::{Rng, Time, TimeDelta};

use crate::common::{Case, Run, case, mean, median, seconds, spec};

pub(crate) struct Table {
    /// Its marker on the page.
    pub(crate) name: &'static str,
    /// The first column's header.
    pub(crate) what: &'static str,
    pub(crate) rows: &'static [Row],
    /// Measures one controller in one row.
    pub(crate) cell: fn(&str, Row) -> String,
}

#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) label: &'static str,
    mbit: u64,
    rtt_ms: u64,
    /// Thousandths of the BDP.
    buffer: u64,
    /// The table's other parameter.
    vary: Vary,
}

#[derive(Clone, Copy)]
enum Vary {
    Nothing,
    Flows(usize),
    /// This many flows of the controller and this many of CUBIC.
    Mix(usize, usize),
    Loss(&'static str),
    Policer(&'static str),
}

const fn row(label: &'static str, link: (u64, u64), buffer: u64, vary: Vary) -> Row {
    Row { label, mbit: link.0, rtt_ms: link.1, buffer, vary }
}

impl Row {
    fn case(&self) -> Case {
        let mut case = case(self.mbit, self.rtt_ms, self.buffer);
        case.sample_every = TimeDelta::from_millis(100);
        match self.vary {
            Vary::Loss(loss) => case.loss(loss),
            Vary::Policer(policer) => case.policed(policer),
            _ => case,
        }
    }
}

fn over_seeds(measure: impl Fn(u64) -> f64) -> f64 {
    mean((1..=3).map(measure))
}

fn at(secs: f64) -> Time {
    Time::from_nanos((secs * 1e9) as u64)
}

use Vary::{Flows, Loss, Mix, Nothing, Policer};

pub(crate) const TABLES: [Table; 11] = [
    Table {
        name: "random loss",
        what: "link, loss",
        rows: &[
            row("10 Mbit/s 40 ms, 1 %", (10, 40), 1000, Loss("1%")),
            row("10 Mbit/s 40 ms, 0.1 %", (10, 40), 1000, Loss("0.1%")),
            row("10 Mbit/s 40 ms, 0.5 %", (10, 40), 1000, Loss("0.5%")),
            row("10 Mbit/s 40 ms, 2 %", (10, 40), 1000, Loss("2%")),
            row("10 Mbit/s 40 ms, 3 %", (10, 40), 1000, Loss("3%")),
            row("50 Mbit/s 30 ms, 0.1 %", (50, 30), 1000, Loss("0.1%")),
            row("50 Mbit/s 30 ms, 0.5 %", (50, 30), 1000, Loss("0.5%")),
            row("50 Mbit/s 30 ms, 1 %", (50, 30), 1000, Loss("1%")),
            row("50 Mbit/s 30 ms, 2 %", (50, 30), 1000, Loss("2%")),
            row("50 Mbit/s 30 ms, 3 %", (50, 30), 1000, Loss("3%")),
            row("100 Mbit/s 100 ms, 0.1 %", (100, 100), 1000, Loss("0.1%")),
            row("100 Mbit/s 100 ms, 0.5 %", (100, 100), 1000, Loss("0.5%")),
            row("100 Mbit/s 100 ms, 1 %", (100, 100), 1000, Loss("1%")),
            row("100 Mbit/s 100 ms, 2 %", (100, 100), 1000, Loss("2%")),
            row("100 Mbit/s 100 ms, 3 %", (100, 100), 1000, Loss("3%")),
        ],
        cell: |cc, row| {
            let run = |seed| row.case().flow(cc, 60, seed).utilisation(10.0, 60.0);
            format!("{:.2}", over_seeds(run))
        },
    },
    Table {
        name: "round-trip times",
        what: "buffer, BDP of 100 ms",
        rows: &[
            row("0.1", (100, 100), 100, Nothing),
            row("0.5", (100, 100), 500, Nothing),
            row("1", (100, 100), 1000, Nothing),
            row("2", (100, 100), 2000, Nothing),
        ],
        cell: |cc, row| format!("{:.2}", over_seeds(|seed| short_share(cc, row, seed))),
    },
    Table {
        name: "late joiner",
        what: "link, buffer",
        rows: &[
            row("50 Mbit/s 30 ms, 1 BDP", (50, 30), 1000, Nothing),
            row("50 Mbit/s 30 ms, 2 BDP", (50, 30), 2000, Nothing),
            row("100 Mbit/s 40 ms, 0.05 BDP", (100, 40), 50, Nothing),
            row("100 Mbit/s 40 ms, 0.5 BDP", (100, 40), 500, Nothing),
            row("100 Mbit/s 40 ms, 2 BDP", (100, 40), 2000, Nothing),
            row("100 Mbit/s 40 ms, 4 BDP", (100, 40), 4000, Nothing),
        ],
        cell: |cc, row| {
            let times: Vec<f64> = (1..=5).map(|seed| row.case().late_joiner(cc, seed)).collect();
            let longest = times.iter().copied().fold(0.0, f64::max);
            format!("{:.0} ({longest:.0})", median(times)).replace("inf", "never")
        },
    },
    Table {
        name: "shallow buffer",
        what: "flows",
        rows: &[
            row("1", (1000, 100), 20, Flows(1)),
            row("10", (1000, 100), 20, Flows(10)),
            row("30", (1000, 100), 20, Flows(30)),
        ],
        cell: shallow,
    },
    Table {
        name: "against CUBIC",
        what: "flows : CUBIC flows, buffer",
        rows: &[
            row("1 : 4, 0.5 BDP", (50, 30), 500, Mix(1, 4)),
            row("1 : 4, 2 BDP", (50, 30), 2000, Mix(1, 4)),
            row("4 : 1, 0.5 BDP", (50, 30), 500, Mix(4, 1)),
            row("4 : 1, 2 BDP", (50, 30), 2000, Mix(4, 1)),
            row("10 : 1, 0.5 BDP", (50, 30), 500, Mix(10, 1)),
            row("10 : 1, 2 BDP", (50, 30), 2000, Mix(10, 1)),
            row("1 : 1, 0.5 BDP", (50, 30), 500, Mix(1, 1)),
            row("1 : 1, 2 BDP", (50, 30), 2000, Mix(1, 1)),
            row("1 : 1, 4 BDP", (50, 30), 4000, Mix(1, 1)),
            row("1 : 1, 8 BDP", (50, 30), 8000, Mix(1, 1)),
            row("1 : 1, 16 BDP", (50, 30), 16_000, Mix(1, 1)),
        ],
        cell: |cc, row| format!("{:.2}", over_seeds(|seed| fairs_against_cubic(cc, row, seed))),
    },
    Table {
        name: "long paths",
        what: "RTT",
        rows: &[
            row("100 ms", (20, 100), 2000, Nothing),
            row("300 ms", (20, 300), 2000, Nothing),
            row("600 ms", (20, 600), 2000, Nothing),
            row("1000 ms", (20, 1000), 2000, Nothing),
        ],
        cell: |cc, row| {
            let run = |seed| row.case().flow(cc, 120, seed).utilisation(30.0, 120.0);
            format!("{:.2}", over_seeds(run))
        },
    },
    Table {
        name: "standing queue",
        what: "flows",
        rows: &[
            row("1", (100, 40), 4000, Flows(1)),
            row("2", (100, 40), 4000, Flows(2)),
            row("4", (100, 40), 4000, Flows(4)),
            row("16", (100, 40), 4000, Flows(16)),
            row("4, at 10 ms", (100, 10), 4000, Flows(4)),
            row("4, at 1 ms", (1000, 1), 4000, Flows(4)),
        ],
        cell: |cc, row| {
            let Flows(flows) = row.vary else { unreachable!("this table varies flows") };
            let ccs = vec![cc; flows];
            let run = |seed| row.case().flows(&ccs, 60, seed).queue_bdp(0.5, 10.0, 60.0);
            format!("{:.2}", over_seeds(run))
        },
    },
    Table {
        name: "policer",
        what: "burst, RTT",
        rows: &[
            row("15 kB, 40 ms", (100, 40), 1000, Policer("5mbit:15kB")),
            row("50 kB, 40 ms", (100, 40), 1000, Policer("5mbit:50kB")),
            row("250 kB, 40 ms", (100, 40), 1000, Policer("5mbit:250kB")),
            row("250 kB, 100 ms", (100, 100), 1000, Policer("5mbit:250kB")),
        ],
        cell: |cc, row| {
            let runs: Vec<Run> = (1..=3).map(|seed| row.case().flow(cc, 120, seed)).collect();
            let used = |run: &Run| run.goodput(0, 20.0, 120.0) * 1500.0 / 1448.0 / 5e6;
            let (used, lost) = (mean(runs.iter().map(used)), mean(runs.iter().map(lost_percent)));
            format!("{used:.2}, {lost:.1} %")
        },
    },
    Table {
        name: "rate falls",
        what: "buffer, BDP before the fall",
        rows: &[
            row("0.5", (100, 40), 500, Nothing),
            row("1", (100, 40), 1000, Nothing),
            row("2", (100, 40), 2000, Nothing),
            row("4", (100, 40), 4000, Nothing),
        ],
        cell: |cc, row| {
            let run = row.case().step(30, 10).flow(cc, 150, 1);
            let new_bdp = run.path.bdp_bytes() / 10;
            let drained = run.between(0, 31.0, 150.0).find(|point| point.queue_bytes <= new_bdp);
            drained.map_or("never".into(), |point| format!("{:.0}", seconds(point) - 30.0))
        },
    },
    Table {
        name: "Startup",
        what: "buffer, BDP",
        rows: &[
            row("0.1", (100, 40), 100, Nothing),
            row("0.25", (100, 40), 250, Nothing),
            row("0.5", (100, 40), 500, Nothing),
            row("1", (100, 40), 1000, Nothing),
            row("2", (100, 40), 2000, Nothing),
        ],
        cell: |cc, row| {
            let run = row.case().flow(cc, 2, 1);
            format!("{}", run.lost_bytes(0, 0.0, 2.0) / 1448)
        },
    },
    Table {
        name: "six flows",
        what: "buffer, BDP",
        rows: &[
            row("0.5", (100, 40), 500, Flows(6)),
            row("1", (100, 40), 1000, Flows(6)),
            row("2", (100, 40), 2000, Flows(6)),
        ],
        cell: |cc, row| {
            let jain = |seed| row.case().flows(&[cc; 6], 60, seed).jain(10.0, 60.0);
            format!("{:.2}", over_seeds(jain))
        },
    },
];

/// Share of a 10 ms flow that competes with one at the path's RTT, from 20 s to 120 s.
fn short_share(cc: &str, row: Row, seed: u64) -> f64 {
    let end = at(120.0);
    let long = FlowSpec::new(spec(cc), Workload::Until(end));
    let start = Time::from_nanos(Rng::new(seed, 1).below(100_000_000));
    let short = FlowSpec { rtt: Some(TimeDelta::from_millis(10)), start, ..long };
    row.case().run(vec![short, long], seed, end).share(0, 20.0, 120.0)
}

/// Share of the flows that compete with CUBIC, in multiples of their fair share, from 20 s to 120
/// s.
fn fairs_against_cubic(cc: &str, row: Row, seed: u64) -> f64 {
    let Mix(flows, cubics) = row.vary else { unreachable!("this table varies the mix") };
    let mut ccs = vec![cc; flows];
    ccs.extend(vec!["cubic"; cubics]);
    let run = row.case().flows(&ccs, 120, seed);
    let share: f64 = (0..flows as u32).map(|flow| run.share(flow, 20.0, 120.0)).sum();
    share * ccs.len() as f64 / flows as f64
}

/// Loss in percent of what one flow sent from 20 s to 120 s.
fn lost_percent(run: &Run) -> f64 {
    let (lost, delivered) = run.lost_and_delivered(20.0, 120.0);
    100.0 * lost / (lost + delivered)
}

/// One seed, from 10 s to 30 s.
fn shallow(cc: &str, row: Row) -> String {
    let Flows(flows) = row.vary else { unreachable!("this table varies flows") };
    let run = row.case().flows(&vec![cc; flows], 30, 1);
    let (lost, delivered) = run.lost_and_delivered(10.0, 30.0);
    let lost = 100.0 * lost / delivered;
    let (used, jain) = (run.utilisation(10.0, 30.0), run.jain(10.0, 30.0));
    format!("{used:.2}, {lost:.1} %, {jain:.2}")
}
