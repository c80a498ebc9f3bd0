//! Rows known to fail, with the reason. If one passes, its entry must be removed.

use crate::imc23::rows::Row;

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
const LATER: &str = "Linux loses its first packet at a smaller window, and the three kernels differ by up to \
    a factor of two; not explained";
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

pub(crate) const MISSES: [Miss; 13] = [
    miss(("bbr1", 100), &[1000], &[200], &["4.15"], LOSES_MORE),
    miss(("bbr2", 100), &[500], &[5], &["5.13"], DEPARTING_BURST),
    miss(("bbr2", 100), &[1000], &[5], &["5.13"], DEPARTING_BURST),
    miss(("cubic", 100), &[500], &[25, 75], &["4.15", "5.15"], LATER),
    miss(("cubic", 100), &[500], &[50, 100, 150], &["5.15"], LATER),
    miss(("cubic", 100), &[500], &[200], &["5.13", "5.15"], LATER),
    miss(("cubic", 100), &[750], &[25, 75, 100], &["5.15"], LATER),
    miss(("cubic", 100), &[750], &[50], &["4.15", "5.15"], LATER),
    miss(("cubic", 100), &[750], &[150, 200], &["5.13", "5.15"], LATER),
    miss(("cubic", 100), &[1000], &[5, 10], &["4.15"], LATER),
    miss(("cubic", 100), &[1000], &[25], &["5.15"], LATER),
    miss(("cubic", 100), &[1000], &[50, 75, 200], ALL, LATER),
    miss(("cubic", 100), &[1000], &[100, 150], &["5.13", "5.15"], LATER),
];
