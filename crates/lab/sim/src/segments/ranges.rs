//! Sets of segment numbers, as sorted ranges.

/// Numbers from `start` to `end`, excluding `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Range {
    pub(crate) const fn contains(self, number: u64) -> bool {
        self.start <= number && number < self.end
    }
}

/// A set of numbers. Efficient for few holes, which is what SACK describes.
#[derive(Clone, Debug, Default)]
pub(crate) struct SegmentRanges {
    ranges: Vec<Range>,
}

impl SegmentRanges {
    /// The range containing `number`, if any.
    pub(crate) fn containing(&self, number: u64) -> Option<Range> {
        let index = self.ranges.partition_point(|range| range.end <= number);
        self.ranges.get(index).copied().filter(|range| range.start <= number)
    }

    /// The lowest range.
    pub(crate) fn first(&self) -> Option<Range> {
        self.ranges.first().copied()
    }

    /// Adds `range` and calls `on_new` for each part of it that was not in the set.
    pub(crate) fn insert(&mut self, range: Range, mut on_new: impl FnMut(Range)) {
        if range.start >= range.end {
            return;
        }
        // The ranges in first..last touch or overlap the new one and are merged.
        let first = self.ranges.partition_point(|old| old.end < range.start);
        let last = self.ranges.partition_point(|old| old.start <= range.end);
        let mut missing_from = range.start;
        for old in &self.ranges[first..last] {
            if missing_from < old.start {
                on_new(Range { start: missing_from, end: old.start });
            }
            missing_from = missing_from.max(old.end);
        }
        if missing_from < range.end {
            on_new(Range { start: missing_from, end: range.end });
        }
        // In order, a segment extends one range: nothing moves.
        if let Some([lowest, others @ ..]) = self.ranges.get_mut(first..last) {
            lowest.start = lowest.start.min(range.start);
            lowest.end = others.last().unwrap_or(lowest).end.max(range.end);
            if !others.is_empty() {
                self.ranges.drain(first + 1..last);
            }
        } else {
            self.ranges.insert(first, range);
        }
    }

    /// Frees unused capacity.
    pub(crate) fn shrink(&mut self) {
        self.ranges.shrink_to_fit();
    }

    /// Removes everything below `limit`.
    pub(crate) fn remove_below(&mut self, limit: u64) {
        let gone = self.ranges.partition_point(|range| range.end <= limit);
        if gone > 0 {
            self.ranges.drain(..gone);
        }
        if let Some(lowest) = self.ranges.first_mut() {
            lowest.start = lowest.start.max(limit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_a_set_of_numbers(
            inserts in proptest::collection::vec((0_u64..60, 0_u64..12), 0..40),
            cut in 0_u64..60,
        ) {
            let mut set = SegmentRanges::default();
            let mut numbers = std::collections::BTreeSet::new();
            for (start, length) in inserts {
                let range = Range { start, end: start + length };
                let mut new = Vec::new();
                set.insert(range, |part| new.extend(part.start..part.end));
                let expected: Vec<u64> =
                    (range.start..range.end).filter(|n| !numbers.contains(n)).collect();
                prop_assert_eq!(new, expected);
                numbers.extend(range.start..range.end);
            }
            set.remove_below(cut);
            let numbers: Vec<u64> = numbers.into_iter().filter(|n| *n >= cut).collect();
            let held: Vec<u64> =
                set.ranges.iter().flat_map(|range| range.start..range.end).collect();
            prop_assert_eq!(&held, &numbers);
            prop_assert!(set.ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
            for n in 0..80 {
                prop_assert_eq!(set.containing(n).is_some(), numbers.contains(&n));
            }
        }
    }
}
