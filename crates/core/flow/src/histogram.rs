//! Quantiles of many durations in little memory.

use crate::record::Quantiles;

/// Values are in microseconds, up to 1000 s; longer ones count as 1000 s.
const NANOS_PER_UNIT: u64 = 1_000;
const MAX_UNITS: u64 = 1_000_000_000;
/// Each power of two is divided into 2^10 cells of equal width, as in Gil Tene's HdrHistogram, and
/// into half as many whenever the cells would need more than `SPACE`. The middle of a cell is then
/// off by at most 1/2048, 1/1024, 1/512 or 1/256 of the value. If 2^7 cells are still too many, the
/// smallest durations share cells: the lowest octaves are merged into one with cells of equal
/// width.
const FINEST_BITS: u32 = 10;
const COARSEST_BITS: u32 = 7;
const SPACE: usize = 576;
/// A page is an eighth of a power of two. Only pages with recorded values use memory.
const PAGES_PER_OCTAVE_BITS: u32 = 3;
const PAGES: usize = Resolution(FINEST_BITS - COARSEST_BITS).cell_and_page_of(MAX_UNITS).1 + 1;
/// Marks a missing page.
const NOWHERE: u8 = u8::MAX;

/// A distribution of durations. Minimum and maximum are exact. Quantiles are off by at most 0.1 %
/// while the durations are within a factor of two of each other, as RTTs mostly are, by 0.2 %
/// within a factor of four, and otherwise by 0.4 %, or 0.05 % of the maximum if that is more.
///
/// It needs at most 576 bytes for cells, plus eight for each cell with more than 255 values.
/// Recording allocates only when a duration falls into a new page, and not while all are equal.
#[derive(Clone, Debug)]
pub struct Distribution {
    min_nanos: u64,
    max_nanos: u64,
    count: u64,
    resolution: Resolution,
    /// Position of each page in `cells`.
    places: [u8; PAGES],
    /// Counts modulo 256, page after page.
    cells: Vec<u8>,
    /// The remaining counts, by cell.
    carries: Vec<Carry>,
}

/// How many times the cells have been coarsened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Resolution(u32);

#[derive(Clone, Copy, Debug)]
struct Carry {
    cell: u16,
    /// In units of 256.
    count: u32,
}

impl Distribution {
    /// An empty distribution.
    pub const fn new() -> Self {
        Self {
            min_nanos: u64::MAX,
            max_nanos: 0,
            count: 0,
            resolution: Resolution(0),
            places: [NOWHERE; PAGES],
            cells: Vec::new(),
            carries: Vec::new(),
        }
    }

    /// Records a duration in nanoseconds.
    pub fn record(&mut self, nanos: u64) {
        self.record_times(nanos, 1);
    }

    /// Records several durations in nanoseconds, in their order.
    pub fn record_all(&mut self, nanos: &[u32]) {
        for nanos in nanos {
            self.record_times(u64::from(*nanos), 1);
        }
    }

    #[inline]
    fn record_times(&mut self, nanos: u64, times: u64) {
        if nanos != self.min_nanos {
            self.give_cells();
        }
        self.min_nanos = self.min_nanos.min(nanos);
        self.max_nanos = self.max_nanos.max(nanos);
        self.count += times;
        if !self.is_single() {
            self.add(units(nanos), times);
        }
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.is_single() {
            self.record_times(other.min_nanos, other.count);
            return;
        }
        if other.count == 0 {
            return;
        }
        self.give_cells();
        self.min_nanos = self.min_nanos.min(other.min_nanos);
        self.max_nanos = self.max_nanos.max(other.max_nanos);
        self.count += other.count;
        while self.resolution.0 < other.resolution.0 {
            self.coarsen();
        }
        for (cell, count) in other.counts() {
            self.add(other.resolution.middle_of(cell), count);
        }
    }

    /// Frees unused memory.
    pub fn shrink(&mut self) {
        self.carries.shrink_to_fit();
    }

    /// Number of recorded durations.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Its quantiles in milliseconds; `None` if empty.
    pub fn quantiles(&self) -> Option<Quantiles> {
        (self.min_nanos <= self.max_nanos).then(|| Quantiles {
            min: millis(self.min_nanos),
            p50: millis(self.nanos_at(0.5)),
            p95: millis(self.nanos_at(0.95)),
        })
    }

    /// Its 99th percentile in milliseconds; `None` if empty.
    pub fn p99_ms(&self) -> Option<f64> {
        (self.min_nanos <= self.max_nanos).then(|| millis(self.nanos_at(0.99)))
    }

    /// Whether all recorded values are equal. Such a distribution has no cells: most responses of a
    /// server have one sample.
    fn is_single(&self) -> bool {
        self.min_nanos == self.max_nanos
    }

    /// Gives its value a cell before another value is recorded.
    fn give_cells(&mut self) {
        if self.is_single() {
            self.add(units(self.min_nanos), self.count);
        }
    }

    /// The `quantile`-quantile: the middle of its cell, limited to the recorded range.
    fn nanos_at(&self, quantile: f64) -> u64 {
        if self.is_single() {
            return self.min_nanos;
        }
        let rank = (quantile * self.count as f64).ceil() as u64;
        let cell = self.cell_of_rank(rank);
        let nanos = cell.map_or(0, |cell| self.resolution.middle_of(cell) * NANOS_PER_UNIT);
        nanos.clamp(self.min_nanos, self.max_nanos)
    }

    /// The cell of the value with this rank, from 1. Only its own page is searched cell by cell.
    fn cell_of_rank(&self, rank: u64) -> Option<usize> {
        let mut below = 0;
        for page in self.pages() {
            let until = below + page.total();
            if until >= rank {
                let mut counts = page.counts();
                let reached = counts.find(|(_, count)| {
                    below += count;
                    below >= rank
                });
                return reached.map(|(cell, _)| cell);
            }
            below = until;
        }
        None
    }

    #[inline]
    fn add(&mut self, units: u64, count: u64) {
        let (mut cell, mut page) = self.resolution.cell_and_page_of(units);
        while self.places[page] == NOWHERE {
            self.add_page(page);
            (cell, page) = self.resolution.cell_and_page_of(units);
        }
        let size = self.resolution.page_size();
        // Sizes are powers of two: no division.
        let low = &mut self.cells[usize::from(self.places[page]) * size + (cell & (size - 1))];
        let sum = u64::from(*low) + count;
        *low = sum as u8;
        if sum > u64::from(u8::MAX) {
            self.carry(cell as u16, (sum >> 8) as u32);
        }
    }

    /// Adds a page, or coarsens all cells if the histogram is full.
    #[cold]
    fn add_page(&mut self, page: usize) {
        let size = self.resolution.page_size();
        if self.cells.len() + size > SPACE {
            self.coarsen();
            return;
        }
        self.places[page] = (self.cells.len() / size) as u8;
        self.cells.reserve_exact(size);
        self.cells.resize(self.cells.len() + size, 0);
    }

    /// Merges pairs of cells, either all or those of the smallest durations.
    #[cold]
    fn coarsen(&mut self) {
        let fine = std::mem::take(self);
        let (min_nanos, max_nanos, count) = (fine.min_nanos, fine.max_nanos, fine.count);
        let resolution = Resolution(fine.resolution.0 + 1);
        *self = Self { min_nanos, max_nanos, count, resolution, ..Self::new() };
        for (cell, count) in fine.counts() {
            self.add(fine.resolution.middle_of(cell), count);
        }
    }

    #[cold]
    fn carry(&mut self, cell: u16, count: u32) {
        match self.carries.binary_search_by_key(&cell, |carry| carry.cell) {
            Ok(index) => {
                let carry = &mut self.carries[index];
                carry.count = carry.count.saturating_add(count);
            }
            Err(index) => self.carries.insert(index, Carry { cell, count }),
        }
    }

    /// The non-empty cells in ascending order, and their counts.
    fn counts(&self) -> impl Iterator<Item = (usize, u64)> {
        self.pages().flat_map(Page::counts)
    }

    /// The pages with memory, in ascending order.
    fn pages(&self) -> impl Iterator<Item = Page<'_>> {
        let size = self.resolution.page_size();
        let mut carries = self.carries.as_slice();
        let places = self.places.iter().enumerate().filter(|(_, place)| **place != NOWHERE);
        // Durations are alike, so the last page is long before the last place.
        places.take(self.cells.len() / size).map(move |(page, place)| {
            let (first, begin) = (page * size, usize::from(*place) * size);
            let end = carries.partition_point(|carry| usize::from(carry.cell) < first + size);
            let (here, behind) = carries.split_at(end);
            carries = behind;
            Page { first, lows: &self.cells[begin..begin + size], carries: here }
        })
    }
}

/// The cells of a page.
struct Page<'a> {
    /// Its first cell.
    first: usize,
    lows: &'a [u8],
    carries: &'a [Carry],
}

impl<'a> Page<'a> {
    fn total(&self) -> u64 {
        let lows: u32 = self.lows.iter().map(|low| u32::from(*low)).sum();
        let carries: u64 = self.carries.iter().map(|carry| u64::from(carry.count)).sum();
        u64::from(lows) + (carries << 8)
    }

    /// Its non-empty cells in ascending order, and their counts.
    fn counts(self) -> impl Iterator<Item = (usize, u64)> + 'a {
        let mut carries = self.carries.iter().peekable();
        let has_carries = !self.carries.is_empty();
        // Most cells are empty.
        let lows = (self.first..).zip(self.lows).filter(move |(_, low)| **low > 0 || has_carries);
        let counts = lows.map(move |(cell, low)| {
            let carry = carries.next_if(|carry| usize::from(carry.cell) == cell);
            (cell, u64::from(*low) + carry.map_or(0, |carry| u64::from(carry.count) << 8))
        });
        counts.filter(|(_, count)| *count > 0)
    }
}

impl Resolution {
    /// Binary logarithm of the cells of an octave.
    const fn bits(self) -> u32 {
        if self.0 < FINEST_BITS - COARSEST_BITS { FINEST_BITS - self.0 } else { COARSEST_BITS }
    }

    /// Binary logarithm of the width of the narrowest cells.
    const fn shift(self) -> u32 {
        self.0 - (FINEST_BITS - self.bits())
    }

    const fn page_size(self) -> usize {
        1 << (self.bits() - PAGES_PER_OCTAVE_BITS)
    }

    const fn cell_and_page_of(self, units: u64) -> (usize, usize) {
        let cell = self.cell_of(units);
        (cell, cell >> (self.bits() - PAGES_PER_OCTAVE_BITS))
    }

    /// The cell of `units`. Cells of octave n are 2^n times as wide as the narrowest.
    const fn cell_of(self, units: u64) -> usize {
        let (bits, units) = (self.bits(), units >> self.shift());
        let octave = (u64::BITS - units.leading_zeros()).saturating_sub(bits + 1);
        ((octave as usize) << bits) + (units >> octave) as usize
    }

    /// The middle of a cell, in units.
    const fn middle_of(self, cell: usize) -> u64 {
        let octave = (cell >> self.bits()).saturating_sub(1);
        let width = octave as u32 + self.shift();
        (((cell - (octave << self.bits())) as u64) << width) + (1 << width) / 2
    }
}

impl Default for Distribution {
    fn default() -> Self {
        Self::new()
    }
}

fn units(nanos: u64) -> u64 {
    (nanos / NANOS_PER_UNIT).min(MAX_UNITS)
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

#[cfg(test)]
mod tests;
