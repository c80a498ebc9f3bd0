//! Empirical distributions of object sizes.

use uncork_units::Rng;

use crate::TableError;
use crate::table::{billionths, bytes, rows};

/// The share of all objects, in the units of shares.
const WHOLE: u64 = 1_000_000_000;

/// A distribution of object sizes: points of the cumulative distribution, with linear interpolation
/// between them.
///
/// Linear interpolation is how simulators use published tables of this kind, and it reproduces
/// their published means (1.711 MB for `web-search`). Log-linear interpolation would give large
/// objects less weight than published, and would need a logarithm. Its last bit differs between
/// machines. Floating point is not used: a draw takes one number to choose the interval and one to
/// choose within it. The bias is below 2^-34 for the first and below the interval's length / 2^64
/// for the second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectSizes {
    /// Bytes and shares never decrease; the last share is [`WHOLE`].
    points: Vec<QuantilePoint>,
}

/// A `share` of all objects has at most `bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct QuantilePoint {
    bytes: u64,
    share: u64,
}

impl ObjectSizes {
    /// Objects of a single size; 0 counts as 1, because empty objects cannot be fetched.
    pub fn fixed(bytes: u64) -> Self {
        Self { points: vec![QuantilePoint { bytes: bytes.max(1), share: WHOLE }] }
    }

    /// A distribution from points (bytes, share in `whole`ths), which must be in order.
    pub(crate) fn from_points(whole: u64, points: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let scaled = |(bytes, share)| QuantilePoint { bytes, share: share * (WHOLE / whole) };
        Self { points: points.into_iter().map(scaled).collect() }
    }

    /// Parses a table of lines `bytes share`: this share of all objects has at most that many
    /// bytes. Bytes are whole numbers; shares have at most 9 decimal places and are fractions of 1
    /// or percentages, depending on whether the last line has 1 or 100. A first line with a share
    /// above 0 means objects of exactly its size, as do two lines of equal size; otherwise sizes
    /// start above the first line's. Text after `#` is ignored.
    ///
    /// # Errors
    ///
    /// If a line is malformed or out of order, if there are no lines, if the last share is not the
    /// whole, or if objects would be empty.
    pub fn from_table(text: &str) -> Result<Self, TableError> {
        let mut points: Vec<QuantilePoint> = Vec::new();
        for row in rows(text, "bytes share") {
            let (line, size, share) = row?;
            let point =
                QuantilePoint { bytes: bytes(line, size)?, share: billionths(line, share)? };
            check_order(line, points.last().copied(), point)?;
            points.push(point);
        }
        let last = points.last().map_or(0, |point| point.share);
        if last != WHOLE && last != 100 * WHOLE {
            return Err(TableError::whole(
                "the last share must be that of all objects: 1, or 100 for percents",
            ));
        }
        for point in &mut points {
            point.share /= last / WHOLE;
        }
        Ok(Self { points })
    }

    /// Draws a size of at least 1 byte. Every draw takes two numbers.
    pub fn sample(&self, rng: &mut Rng) -> u64 {
        let share = rng.below(WHOLE);
        let index = self.points.partition_point(|point| point.share <= share);
        let [low, high] = self.interval(index);
        high - rng.below(high - low)
    }

    /// The mean size in bytes, in closed form, rounded down.
    pub fn mean(&self) -> u64 {
        let mut below = 0;
        let mut twice_sum = 0_u128;
        for (index, point) in self.points.iter().enumerate() {
            let [low, high] = self.interval(index).map(u128::from);
            // The sizes low + 1 to high, or a single size.
            let twice = if low == high { 2 * high } else { low + 1 + high };
            twice_sum += u128::from(point.share - below) * twice;
            below = point.share;
        }
        (twice_sum / u128::from(2 * WHOLE)) as u64
    }

    /// The largest size.
    pub fn largest(&self) -> u64 {
        self.points.last().map_or(1, |point| point.bytes)
    }

    /// The lower (exclusive) and upper bound of an interval.
    fn interval(&self, index: usize) -> [u64; 2] {
        let high = self.points.get(index).map_or(1, |point| point.bytes);
        let low = index.checked_sub(1).and_then(|index| self.points.get(index));
        [low.map_or(high, |point| point.bytes), high]
    }
}

fn check_order(
    line: usize,
    before: Option<QuantilePoint>,
    point: QuantilePoint,
) -> Result<(), TableError> {
    if point.bytes == 0 && point.share > 0 {
        return Err(TableError::at(
            line,
            "an object has at least 1 byte; give 0 bytes the share 0",
        ));
    }
    let Some(before) = before else { return Ok(()) };
    if point.bytes < before.bytes {
        let problem =
            format!("{} bytes are fewer than the line before has; sort the table", point.bytes);
        return Err(TableError::at(line, problem));
    }
    if point.share < before.share {
        let problem = "the share is smaller than on the line before; shares are cumulative";
        return Err(TableError::at(line, problem));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use uncork_testkit::assert_message;

    fn table(text: &str) -> ObjectSizes {
        ObjectSizes::from_table(text).expect("a table")
    }

    /// The distribution function of the table, as reference.
    fn share_up_to(points: &[(f64, f64)], size: f64) -> f64 {
        let after = points.iter().position(|(bytes, _)| *bytes >= size).expect("within the table");
        let (high, share) = points[after];
        let (low, below) = points[after - 1];
        below + (share - below) * (size - low) / (high - low)
    }

    /// Kolmogorov-Smirnov test at the 0.1 % level; rounding to whole bytes is far below that.
    #[test]
    fn size_samples_follow_the_table() {
        let points = [(0.0, 0.0), (1e4, 0.2), (5e4, 0.25), (1e6, 0.9), (3e7, 1.0)];
        let sizes = table("0 0\n10000 0.2\n50000 0.25\n1000000 0.9\n30000000 1\n");
        let n = 100_000;
        for seed in 0..5 {
            let mut rng = Rng::new(seed, 0);
            let mut drawn: Vec<u64> = (0..n).map(|_| sizes.sample(&mut rng)).collect();
            drawn.sort_unstable();
            let distance = drawn.iter().enumerate().map(|(rank, size)| {
                let expected = share_up_to(&points, *size as f64);
                (expected - rank as f64 / f64::from(n)).abs()
            });
            let distance = distance.fold(0.0, f64::max);
            assert!(distance < 1.95 / f64::from(n).sqrt(), "seed {seed}: {distance}");
        }
    }

    #[test]
    fn size_mean_matches_the_samples() {
        let sizes = table("0 0\n1000 50\n10000 100\n");
        // 0.5 · 500.5 + 0.5 · 5500.5
        assert_eq!(sizes.mean(), 3000);
        let mut rng = Rng::new(1, 0);
        let n = 100_000;
        let mean = (0..n).map(|_| sizes.sample(&mut rng)).sum::<u64>() / n;
        // The standard deviation is 3121; allows four of them / sqrt(n).
        assert!(mean.abs_diff(3000) < 40, "{mean}");
    }

    #[test]
    fn sizes_draw_single_values_by_their_share() {
        // A quarter 7, a quarter evenly 8 to 10, half 10.
        let sizes = table("7 0.25\n10 0.5\n10 1\n");
        let mut counts = [0_u32; 11];
        let mut rng = Rng::new(3, 0);
        for _ in 0..120_000 {
            counts[sizes.sample(&mut rng) as usize] += 1;
        }
        assert_eq!(counts[..7], [0; 7]);
        for (size, expected) in [(7, 30_000), (8, 10_000), (9, 10_000), (10, 70_000)] {
            // Five standard deviations of at most 171.
            assert!(counts[size].abs_diff(expected) < 855, "{counts:?}");
        }
        // 0.25 · 7 + 0.25 · 9 + 0.5 · 10
        assert_eq!(sizes.mean(), 9);
    }

    #[test]
    fn sizes_of_one_value_always_draw_it() {
        let mut rng = Rng::new(1, 0);
        let sizes = ObjectSizes::fixed(64_000);
        assert!((0..100).all(|_| sizes.sample(&mut rng) == 64_000));
        assert_eq!((sizes.mean(), sizes.largest()), (64_000, 64_000));
        assert_eq!(ObjectSizes::fixed(0).sample(&mut rng), 1);
        assert_eq!(ObjectSizes::fixed(u64::MAX).mean(), u64::MAX);
    }

    #[test]
    fn size_draw_takes_two_random_numbers() {
        let mut rng = Rng::new(1, 1);
        let mut reference = rng.clone();
        ObjectSizes::fixed(9).sample(&mut rng);
        table("0 0\n1000 1\n").sample(&mut rng);
        for _ in 0..4 {
            reference.next_u64();
        }
        assert_eq!(rng.next_u64(), reference.next_u64());
    }

    #[test]
    fn sizes_parse_percents_and_fractions() {
        let percents = table("# size share\n10000 15\n20000 99.9 # most\n\n30000 100\n");
        assert_eq!(percents, table("10000 0.15\n20000 0.999\n30000 1.0\n"));
    }

    #[test]
    fn size_table_errors_name_line_and_reason() {
        for (text, place) in [
            ("10kB 1", "line 1: "),
            ("1 0\n2 x", "line 2: "),
            ("1 0\n2", "line 2: "),
            ("0 0.5\n10 1", "line 1: "),
            ("10 0.5\n\n9 1", "line 3: "),
            ("10 0.5\n20 0.4", "line 2: "),
            ("", ""),
            ("# nothing", ""),
            ("10 0.5\n20 0.99", ""),
            ("10 50\n20 99", ""),
        ] {
            let error = ObjectSizes::from_table(text).expect_err("refused").to_string();
            assert!(error.starts_with(place), "{error}");
            assert_message!(text, error);
        }
    }
}
