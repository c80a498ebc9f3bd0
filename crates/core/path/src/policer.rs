//! A policer: drops packets above its rate, without queueing.

use std::fmt;
use std::str::FromStr;

use uncork_units::{ByteCount, Rate, Time};

/// Rate and burst size of a policer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicerSpec {
    /// Long-term rate in bytes on the wire.
    pub rate: Rate,
    /// Token bucket depth: bytes on the wire that a full bucket passes at once.
    pub burst: ByteCount,
}

/// A text that is not a valid policer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected RATE:BURST, such as 5mbit:50kB")]
pub struct PolicerError;

/// A token bucket that drops packets for which it lacks tokens. Starts full.
#[derive(Clone, Debug)]
pub struct Policer {
    spec: PolicerSpec,
    /// In billionths of a byte. A rate in bytes per second then adds a whole number per nanosecond,
    /// so rounding errors do not accumulate however often it is updated.
    tokens: u128,
    filled_at: Time,
}

const TOKENS_PER_BYTE: u128 = 1_000_000_000;

impl Policer {
    /// A policer with a full bucket at time zero.
    pub fn new(spec: PolicerSpec) -> Self {
        Self { spec, tokens: depth(spec), filled_at: Time::ZERO }
    }

    /// Whether a packet of `bytes` arriving now may pass. If so, takes its tokens.
    pub fn admits(&mut self, now: Time, bytes: u32) -> bool {
        self.fill(now);
        let price = u128::from(bytes) * TOKENS_PER_BYTE;
        let admitted = price <= self.tokens;
        if admitted {
            self.tokens -= price;
        }
        admitted
    }

    fn fill(&mut self, now: Time) {
        let elapsed = now.since(self.filled_at).as_nanos();
        let earned = u128::from(self.spec.rate.bytes_per_sec()) * u128::from(elapsed);
        self.tokens = self.tokens.saturating_add(earned).min(depth(self.spec));
        self.filled_at = self.filled_at.max(now);
    }
}

/// A full bucket.
fn depth(spec: PolicerSpec) -> u128 {
    u128::from(spec.burst.as_u64()) * TOKENS_PER_BYTE
}

/// Parses `RATE:BURST`, such as `5mbit:50kB`.
impl FromStr for PolicerSpec {
    type Err = PolicerError;

    fn from_str(text: &str) -> Result<Self, PolicerError> {
        let (rate, burst) = text.split_once(':').ok_or(PolicerError)?;
        let rate = rate.parse().map_err(|_| PolicerError)?;
        let burst = burst.parse().map_err(|_| PolicerError)?;
        Ok(Self { rate, burst })
    }
}

/// Writes the format that [`PolicerSpec::from_str`] parses.
impl fmt::Display for PolicerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.rate, self.burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use uncork_units::TimeDelta;

    fn policer(text: &str) -> Policer {
        Policer::new(text.parse().expect("a policer"))
    }

    fn at_micros(micros: u64) -> Time {
        Time::ZERO + TimeDelta::from_micros(micros)
    }

    /// 12 Mbit/s is a packet of 1500 bytes per millisecond.
    #[test]
    fn a_full_bucket_admits_its_burst_and_then_its_rate() {
        let mut policer = policer("12mbit:15kB");
        let burst = (0..100).filter(|_| policer.admits(Time::ZERO, 1500)).count();
        assert_eq!(burst, 10);
        assert!(!policer.admits(at_micros(999), 1500));
        assert!(policer.admits(at_micros(1000), 1500));
        assert!(!policer.admits(at_micros(1999), 1500));
        assert!(policer.admits(at_micros(2000), 1500));
    }

    #[test]
    fn idle_time_refills_at_most_one_burst() {
        let mut policer = policer("12mbit:15kB");
        for pause_s in [1, 1000] {
            let now = policer.filled_at + TimeDelta::from_secs(pause_s);
            assert_eq!((0..100).filter(|_| policer.admits(now, 1500)).count(), 10);
        }
    }

    /// A smaller packet may pass after a larger one was dropped; a drop takes no tokens.
    #[test]
    fn dropped_packet_takes_no_tokens() {
        let mut policer = policer("8mbit:2000B");
        assert!(policer.admits(Time::ZERO, 1000));
        assert!(!policer.admits(Time::ZERO, 1500));
        assert!(policer.admits(Time::ZERO, 1000));
    }

    /// Offered three times its rate for 1000 s, at an odd spacing.
    #[test]
    fn long_run_rate_is_exact() {
        let mut policer = policer("5mbit:51kB");
        let (spacing, end) = (811_111, 1_000_000_000_000);
        let arrivals = (0_u64..).map(|n| Time::from_nanos(n * spacing));
        let admitted = arrivals
            .take_while(|now| now.as_nanos() <= end)
            .filter(|now| policer.admits(*now, 1500))
            .count();
        // The burst plus 625 000 bytes per second, in whole packets.
        assert_eq!(admitted as u64, (51_000 + 625_000 * 1000) / 1500);
    }

    #[test]
    fn display_and_parse_round_trip() {
        for text in ["5mbit:50kB", "64kbit:1500B", "2.5gbit:1MiB"] {
            let spec: PolicerSpec = text.parse().expect("a policer");
            assert_eq!(spec.to_string(), text);
        }
        for text in ["", ":", "5mbit", "5mbit:", ":50kB", "5:50kB", "5mbit:50", "5mbit:1kB:1kB"] {
            assert_eq!(text.parse::<PolicerSpec>(), Err(PolicerError), "{text}");
        }
    }

    proptest! {
        /// In any time span it passes at most the burst plus the rate times the span, and drops
        /// only what exceeds that: no fraction is lost, whenever the bucket is updated.
        #[test]
        fn admits_exactly_what_the_bucket_allows(
            rate in 1_u64..10_000_000,
            burst in 1500_u64..100_000,
            arrivals in proptest::collection::vec((0_u64..3_000_000, 40_u32..=1500), 1..200),
        ) {
            let spec = PolicerSpec {
                rate: Rate::from_bytes_per_sec(rate),
                burst: ByteCount::new(burst),
            };
            let mut policer = Policer::new(spec);
            let mut now = 0_u128;
            let mut level = u128::from(burst) * TOKENS_PER_BYTE;
            let full = level;
            let mut admitted: Vec<(u128, u128)> = Vec::new();
            for (gap, bytes) in arrivals {
                now += u128::from(gap);
                level = (level + u128::from(gap) * u128::from(rate)).min(full);
                let price = u128::from(bytes) * TOKENS_PER_BYTE;
                let passes = policer.admits(Time::from_nanos(now as u64), bytes);
                prop_assert_eq!(passes, price <= level);
                if passes {
                    level -= price;
                    admitted.push((now, price));
                }
            }
            for (first, (since, _)) in admitted.iter().enumerate() {
                let mut sum = 0;
                for (until, price) in &admitted[first..] {
                    sum += price;
                    prop_assert!(sum <= full + (until - since) * u128::from(rate));
                }
            }
        }
    }
}
