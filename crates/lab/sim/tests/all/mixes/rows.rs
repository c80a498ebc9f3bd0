//! The measurements: `tests/data/bbr_cubic_fifty_flows.csv`.

use std::fmt;

const CSV: &str = include_str!("../../data/bbr_cubic_fifty_flows.csv");

/// One row in `SAMPLE` is simulated in every test run, if its link is not fast.
const SAMPLE: usize = 6;
const FASTEST_SAMPLED_MBIT: u64 = 100;

/// Fifty flows over a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) mbit: u64,
    pub(crate) rtt_ms: u64,
    pub(crate) milli_bdp: u64,
    /// How many of the flows are BBRv1; the others are CUBIC.
    pub(crate) bbr: u64,
    /// BBR's share of the goodput on Linux.
    pub(crate) share: f64,
    /// Goodput of all flows on Linux in Mbit/s.
    pub(crate) total: f64,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mbit, rtt_ms, milli_bdp, bbr, .. } = self;
        let bdp = *milli_bdp as f64 / 1e3;
        write!(f, "{mbit} Mbit/s, {rtt_ms} ms, {bdp} BDP, {bbr} of 50 BBRv1")
    }
}

/// All rows, or the sample: spread over links, round-trip times, buffers and mixes.
pub(crate) fn rows(all: bool) -> Vec<Row> {
    let mut rows: Vec<Row> = CSV.lines().skip(1).map(row).collect();
    rows.sort_by_key(|row| (row.mbit, row.rtt_ms, row.milli_bdp, row.bbr));
    let is_sampled = |(index, row): &(usize, Row)| {
        all || (index % SAMPLE == 2 && row.mbit <= FASTEST_SAMPLED_MBIT)
    };
    rows.into_iter().enumerate().filter(is_sampled).map(|(_, row)| row).collect()
}

fn row(line: &str) -> Row {
    let fields: Vec<f64> = line.split(',').map(|field| field.parse().expect("a number")).collect();
    let [mbit, rtt_ms, bdp, bbr, share, total] = fields[..] else { panic!("six fields: {line}") };
    Row {
        mbit: mbit as u64,
        rtt_ms: rtt_ms as u64,
        milli_bdp: (bdp * 1e3).round() as u64,
        bbr: bbr as u64,
        share,
        total,
    }
}
