//! Adaptive bitrate: selects the bitrate of the next segment.

use uncork_units::{Rate, Ratio, TimeDelta};

use crate::SpecError;
use crate::error::require;

/// How a video player chooses its bitrate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Abr {
    /// Throughput-based: the highest bitrate that does not exceed the harmonic mean of the last
    /// segments' throughputs times a safety factor. The harmonic mean comes from FESTIVE (Jiang,
    /// Sekar, Zhang, CoNEXT 2012), because one fast segment must not outweigh the slow ones.
    /// Default window and factor are those of dash.js's `ThroughputRule`, the last four segments
    /// and 0.9. FESTIVE's other parts (randomised requests, gradual and delayed switches) are not
    /// implemented. The first segment has the lowest bitrate.
    Throughput {
        /// Number of recent segments used.
        window: usize,
        /// Fraction of their throughput used.
        safety: Ratio,
    },
    /// Buffer-based: BBA-0 (Huang et al., SIGCOMM 2014, Algorithm 1). The lowest bitrate up to a
    /// buffer of `reservoir`, the highest from `cushion` above that, linear in between. The bitrate
    /// stays until that line reaches the next rung up or down. The defaults are 90 s and 126 s with
    /// a buffer of 240 s, as in its first deployment.
    BufferBased {
        /// Buffer reserved for outages.
        reservoir: TimeDelta,
        /// Buffer range over which the bitrate rises from the lowest to the highest.
        cushion: TimeDelta,
    },
}

impl Abr {
    /// The throughput rule with dash.js's window and factor.
    pub const THROUGHPUT: Self = Self::Throughput { window: 4, safety: Ratio::new(9, 10) };
    /// BBA-0 as first deployed.
    pub const BBA0: Self = Self::BufferBased {
        reservoir: TimeDelta::from_secs(90),
        cushion: TimeDelta::from_secs(126),
    };

    /// Checks that it works with a player that buffers at most `max_buffer`.
    pub(crate) fn check(self, max_buffer: TimeDelta) -> Result<(), SpecError> {
        match self {
            Self::Throughput { window, safety } => {
                require(window > 0, "the throughput rule's window", window, "use at least 1")?;
                let factor = safety.as_f64();
                require(safety.num() > 0, "the safety factor", factor, "use more, such as 0.9")
            }
            Self::BufferBased { reservoir, cushion } => {
                let remedy = "use more, such as 126s";
                require(!cushion.is_zero(), "the cushion", cushion, remedy)?;
                let (place, top) = ("reservoir and cushion together", reservoir + cushion);
                let remedy = format_args!("the buffer must hold it, and holds {max_buffer}");
                require(top <= max_buffer, place, top, remedy)
            }
        }
    }

    /// The rung for the next segment. `ladder` has the bitrates in ascending order, `previous` is
    /// the previous segment's rung, `level` is the buffer level, and `throughputs` are those of the
    /// segments so far, the latest first.
    pub(crate) fn rung(
        self,
        ladder: &[Rate],
        previous: usize,
        level: TimeDelta,
        throughputs: impl Iterator<Item = Rate>,
    ) -> usize {
        match self {
            Self::Throughput { window, safety } => {
                let safe = harmonic_mean(throughputs.take(window)).scaled(safety);
                ladder.iter().rposition(|rate| *rate <= safe).unwrap_or(0)
            }
            Self::BufferBased { reservoir, cushion } => {
                bba0(ladder, previous, level, reservoir, cushion)
            }
        }
    }
}

/// The harmonic mean in whole bytes per second, rounded down; zero without rates.
fn harmonic_mean(rates: impl Iterator<Item = Rate>) -> Rate {
    // Reciprocals in steps of 2^-96: a sum of up to 2^32 of them does not overflow.
    const ONE: u128 = 1 << 96;
    let (count, sum) = rates.fold((0_u128, 0_u128), |(count, sum), rate| {
        (count + 1, sum + ONE / u128::from(rate.bytes_per_sec().max(1)))
    });
    let mean = (count * ONE).checked_div(sum).unwrap_or(0);
    Rate::from_bytes_per_sec(u64::try_from(mean).unwrap_or(u64::MAX))
}

/// BBA-0's line f(B), within the cushion: from the lowest bitrate to the highest.
fn bba0_rate(low: Rate, high: Rate, into: TimeDelta, cushion: TimeDelta) -> Rate {
    let span = u128::from(high.bytes_per_sec() - low.bytes_per_sec());
    let rise = span * u128::from(into.as_nanos()) / u128::from(cushion.as_nanos().max(1));
    Rate::from_bytes_per_sec(low.bytes_per_sec() + rise as u64)
}

/// Algorithm 1: maps the line to a rung, which changes only when the line reaches a neighbour.
fn bba0(
    ladder: &[Rate],
    previous: usize,
    level: TimeDelta,
    reservoir: TimeDelta,
    cushion: TimeDelta,
) -> usize {
    let (Some(low), Some(high)) = (ladder.first(), ladder.last()) else { return 0 };
    let top = ladder.len() - 1;
    if level <= reservoir {
        return 0;
    }
    if level >= reservoir + cushion {
        return top;
    }
    let line = bba0_rate(*low, *high, level - reservoir, cushion);
    let (up, down) = ((previous + 1).min(top), previous.saturating_sub(1));
    if line >= ladder[up] {
        ladder.iter().rposition(|rate| *rate < line).unwrap_or(0)
    } else if line <= ladder[down] {
        ladder.iter().position(|rate| *rate > line).unwrap_or(top)
    } else {
        previous
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1, 2, 4, 7 and 10 Mbit/s.
    fn ladder() -> Vec<Rate> {
        [1, 2, 4, 7, 10].map(Rate::from_mbit).to_vec()
    }

    fn by_throughput(mbits: &[u64]) -> usize {
        let throughputs = mbits.iter().map(|mbit| Rate::from_mbit(*mbit));
        Abr::THROUGHPUT.rung(&ladder(), 0, TimeDelta::ZERO, throughputs)
    }

    fn by_buffer(previous: usize, level: TimeDelta) -> usize {
        Abr::BBA0.rung(&ladder(), previous, level, std::iter::empty())
    }

    #[test]
    fn abr_harmonic_mean_has_its_closed_form() {
        let mean = |mbits: &[u64]| harmonic_mean(mbits.iter().map(|n| Rate::from_mbit(*n)));
        assert_eq!(mean(&[8]), Rate::from_mbit(8));
        // 2/(1/3 + 1/6) and 3/(1/2 + 1/3 + 1/6)
        assert_eq!(mean(&[3, 6]), Rate::from_mbit(4));
        assert_eq!(mean(&[2, 3, 6]), Rate::from_mbit(3));
        assert_eq!(mean(&[]), Rate::ZERO);
        assert!(harmonic_mean([Rate::MAX; 9].into_iter()) > Rate::from_bytes_per_sec(1 << 62));
        assert_eq!(harmonic_mean([Rate::ZERO, Rate::MAX].into_iter()).bytes_per_sec(), 1);
    }

    #[test]
    fn abr_throughput_rule_takes_the_highest_safe_rung() {
        assert_eq!(by_throughput(&[]), 0);
        assert_eq!(by_throughput(&[1]), 0);
        // 0.9 · 5 = 4.5; 0.9 · 4 = 3.6
        assert_eq!(by_throughput(&[5]), 2);
        assert_eq!(by_throughput(&[4]), 1);
        assert_eq!(by_throughput(&[100]), 4);
        // Of 2 and 6 the harmonic mean is 3, the arithmetic would be 4.
        assert_eq!(by_throughput(&[2, 6]), 1);
        // A fifth segment no longer counts.
        assert_eq!(by_throughput(&[8, 8, 8, 8, 1]), 3);
    }

    #[test]
    fn abr_buffer_map_has_its_corners() {
        let secs = TimeDelta::from_secs;
        for previous in 0..5 {
            assert_eq!(by_buffer(previous, TimeDelta::ZERO), 0);
            assert_eq!(by_buffer(previous, secs(90)), 0);
            assert_eq!(by_buffer(previous, secs(216)), 4);
            assert_eq!(by_buffer(previous, secs(240)), 4);
        }
        let line = |into| bba0_rate(Rate::from_mbit(1), Rate::from_mbit(10), secs(into), secs(126));
        assert_eq!(line(0), Rate::from_mbit(1));
        assert_eq!(line(14), Rate::from_mbit(2));
        assert_eq!(line(126), Rate::from_mbit(10));
    }

    /// The line passes a rung of n Mbit/s at 90 s + 14 s · (n - 1).
    #[test]
    fn abr_leaves_a_rung_when_the_map_reaches_its_neighbour() {
        let at = |into: u64| TimeDelta::from_secs(90 + into);
        // From 1 Mbit/s, 2 is reached at 14 s; at that point the highest rung below the line is
        // still 1.
        assert_eq!(by_buffer(0, at(13)), 0);
        assert_eq!(by_buffer(0, at(14)), 0);
        assert_eq!(by_buffer(0, at(15)), 1);
        // At exactly 2 Mbit/s the line has reached neither neighbour.
        assert_eq!(by_buffer(1, at(14)), 1);
        // From 1 Mbit/s directly to the highest rung passed by the line: 4 Mbit/s at 42 s.
        assert_eq!(by_buffer(0, at(43)), 2);
        // From 4 Mbit/s: stays until 7 (84 s) or 2 (14 s) is reached.
        assert_eq!(by_buffer(2, at(83)), 2);
        assert_eq!(by_buffer(2, at(85)), 3);
        assert_eq!(by_buffer(2, at(15)), 2);
        assert_eq!(by_buffer(2, at(14)), 2);
        // Below 2 Mbit/s it takes the lowest rung above the line, which is 2.
        assert_eq!(by_buffer(2, at(13)), 1);
        // It leaves the highest rung at 7 Mbit/s, for the lowest one above the line.
        assert_eq!(by_buffer(4, at(85)), 4);
        assert_eq!(by_buffer(4, at(83)), 3);
        assert_eq!(by_buffer(4, at(1)), 1);
    }
}
