//! The measurements: `tests/data/imc23_kernel_runs.csv`.

use std::fmt;

const CSV: &str = include_str!("../../data/imc23_kernel_runs.csv");

/// Cells simulated in every test run; the full version has the others.
const SAMPLED_MBIT: [u64; 4] = [10, 50, 100, 500];
const SAMPLED_RTT_MS: [u64; 3] = [5, 25, 100];

/// A controller over a path, as the scripts name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    /// The controller's name in this project.
    pub(crate) cc: &'static str,
    pub(crate) buffer_kb: u64,
    pub(crate) mbit: u64,
    pub(crate) rtt_ms: u64,
}

/// Five runs of a cell on one kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) cell: Cell,
    /// 4.15, 5.13 or 5.15.
    pub(crate) kernel: &'static str,
    /// Mean of the receiver's rates in Mbit/s.
    pub(crate) goodput: f64,
    pub(crate) retransmissions: f64,
}

impl Cell {
    pub(crate) fn is_sampled(&self) -> bool {
        SAMPLED_MBIT.contains(&self.mbit) && SAMPLED_RTT_MS.contains(&self.rtt_ms)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cc, buffer_kb, mbit, rtt_ms } = self;
        write!(f, "{cc} {buffer_kb} kB {mbit} Mbit/s {rtt_ms} ms")
    }
}

/// All rows of a controller, grouped by cell and ordered by kernel.
pub(crate) fn rows(cc: &str) -> Vec<Row> {
    let mut rows: Vec<Row> = CSV.lines().skip(1).map(row).filter(|row| row.cell.cc == cc).collect();
    let order = |row: &Row| (row.cell.buffer_kb, row.cell.mbit, row.cell.rtt_ms, row.kernel);
    rows.sort_by_key(order);
    rows
}

fn row(line: &'static str) -> Row {
    let fields: Vec<&str> = line.split(',').collect();
    let [kernel, cc, buffer_kb, mbit, rtt_ms, _runs, goodput, _sd, retransmissions] = fields[..]
    else {
        panic!("nine fields: {line}")
    };
    let whole = |field: &str| field.parse().expect("a whole number");
    let number = |field: &str| field.parse().expect("a number");
    Row {
        cell: Cell {
            cc: if cc == "bbr" { "bbr1" } else { cc },
            buffer_kb: whole(buffer_kb),
            mbit: whole(mbit),
            rtt_ms: whole(rtt_ms),
        },
        kernel: &kernel[..4],
        goodput: number(goodput),
        retransmissions: number(retransmissions),
    }
}
