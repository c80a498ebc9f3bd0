//! Rows known to fail, with the reason. If one passes, its entry must be removed.

use crate::rows::Row;

pub(crate) struct Miss {
    cc: &'static str,
    buffer_kb: u64,
    mbit: &'static [u64],
    rtt_ms: &'static [u64],
    kernels: &'static [&'static str],
    pub(crate) why: &'static str,
}

impl Miss {
    pub(crate) fn is_about(&self, row: &Row) -> bool {
        self.cc == row.cell.cc
            && self.buffer_kb == row.cell.buffer_kb
            && self.mbit.contains(&row.cell.mbit)
            && self.rtt_ms.contains(&row.cell.rtt_ms)
            && self.kernels.contains(&row.kernel)
    }
}

const ALL: &[&str] = &["4.15", "5.13", "5.15"];

/// At 5 ms and 500 Mbit/s a burst is a fifth of the BDP.
const DEPARTING_BURST: &str = "Linux counts the burst that is about to leave when it asks whether a \
    probe has put a quarter BDP into the queue";
const OFFLOAD: &str = "unpaced bursts of offloaded segments overflow 67 packets long before the path \
    is full; there is no offload here";
const OPEN_HOLE: &str = "a round trip is 8 s, and a hole that is open at the end hides what arrived \
    after it from the application; whether one is open is a matter of a second";
const LOSES_MORE: &str = "Linux 4.15 retransmits 1.7 times what 5.15 does, and 1.5 times what is lost \
    here; not explained";

const fn miss(
    (cc, buffer_kb): (&'static str, u64),
    mbit: &'static [u64],
    rtt_ms: &'static [u64],
    kernels: &'static [&'static str],
    why: &'static str,
) -> Miss {
    Miss { cc, buffer_kb, mbit, rtt_ms, kernels, why }
}

pub(crate) const MISSES: [Miss; 10] = [
    miss(("bbr1", 100), &[1000], &[200], &["4.15"], LOSES_MORE),
    miss(("bbr2", 100), &[500, 750, 1000], &[5, 10], &["5.13"], DEPARTING_BURST),
    miss(("cubic", 100), &[250], &[150, 200], &["5.15"], OFFLOAD),
    miss(("cubic", 100), &[500], &[75, 100, 150, 200], ALL, OFFLOAD),
    miss(("cubic", 100), &[500], &[25, 50], &["4.15", "5.15"], OFFLOAD),
    miss(("cubic", 100), &[750], &[5], &["4.15"], OFFLOAD),
    miss(("cubic", 100), &[750], &[10, 25, 50, 75, 100, 150, 200], ALL, OFFLOAD),
    miss(("cubic", 100), &[1000], &[5, 10, 25, 50, 75, 100, 150, 200], ALL, OFFLOAD),
    miss(("cubic", 10_000), &[10], &[5], ALL, OPEN_HOLE),
    miss(("cubic", 10_000), &[10], &[10], &["5.15"], OPEN_HOLE),
];
