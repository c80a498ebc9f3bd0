//! The time that a host takes for each packet.

use std::fmt;
use std::str::FromStr;

use uncork_units::{Rng, TimeDelta};

/// Hosts take a random time for a packet that arrives before they answer, in addition to the path's
/// delay. Packets of the flow that arrive in that time are ready with it, as after an interrupt.
/// Without it, drop-tail has phase effects: the packet that an ACK releases always comes just after
/// the link has freed a place, and a paced packet is dropped in its stead (Floyd and Jacobson, "On
/// Traffic Phase Effects in Packet-Switched Gateways", 1992).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostJitter {
    /// Uniform up to 250 us: a packet waits for the next of 4000 interrupts per second, to which
    /// Intel's Gigabit drivers limit themselves under bulk traffic (`InterruptThrottleRate`, as by
    /// default). But no more than a twentieth of the path's round-trip time, because interrupts are
    /// moderated less where latency matters.
    #[default]
    Usual,
    /// Hosts without a network card, as in network namespaces: uniform up to 125 us, with the same
    /// limit. The rest are wake-ups: round trips over `uncork emu` have a standard deviation of
    /// 55 us (`docs/reference/scenario.md`), the sum of two such times one of 51 us.
    Virtual,
    /// Uniform up to this; hosts that take no time if it is zero.
    UpTo(TimeDelta),
}

/// A text that is not a host jitter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a host jitter; expected usual, virtual, none, or its maximum up to {max}, such as 250us",
    max = HostJitter::MAX_TIME
)]
pub struct HostJitterError(String);

impl HostJitter {
    /// Hosts that take no time.
    pub const NONE: Self = Self::UpTo(TimeDelta::ZERO);
    /// Between two interrupts of usual hosts.
    const USUAL: TimeDelta = TimeDelta::from_micros(250);
    /// Between two wake-ups of hosts without a network card.
    const VIRTUAL: TimeDelta = TimeDelta::from_micros(125);
    /// The part of a round-trip time that hosts take at most, unless they are given a time.
    const PART: u64 = 20;
    /// The longest time that a text may name.
    const MAX_TIME: TimeDelta = TimeDelta::from_secs(1);

    /// The longest time that a host takes at the end of a path with a round-trip time of `rtt`;
    /// `None` if hosts take no time.
    pub(crate) fn max(self, rtt: TimeDelta) -> Option<TimeDelta> {
        let max = match self {
            Self::Usual => Self::USUAL.min(rtt.divided_by(Self::PART)),
            Self::Virtual => Self::VIRTUAL.min(rtt.divided_by(Self::PART)),
            Self::UpTo(max) => max,
        };
        Some(max).filter(|max| !max.is_zero())
    }
}

/// Hosts at the ends of a delay line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostsSpec {
    /// How many take time, one after the other.
    pub(crate) hosts: u64,
    /// The longest time of each.
    pub(crate) max: TimeDelta,
}

/// The random times of [`HostsSpec`].
#[derive(Clone, Debug)]
pub(crate) struct HostTimes {
    spec: HostsSpec,
    rng: Rng,
}

impl HostTimes {
    pub(crate) fn new(spec: HostsSpec, seed: u64, stream: u64) -> Self {
        Self { spec, rng: Rng::new(seed, stream) }
    }

    /// Time that the hosts take for a packet that does not wait for another.
    pub(crate) fn draw(&mut self) -> TimeDelta {
        let HostsSpec { hosts, max } = self.spec;
        let draw = |_| self.rng.below(max.as_nanos().saturating_add(1));
        TimeDelta::from_nanos((0..hosts).map(draw).sum())
    }
}

impl FromStr for HostJitter {
    type Err = HostJitterError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "usual" => return Ok(Self::Usual),
            "virtual" => return Ok(Self::Virtual),
            "none" => return Ok(Self::NONE),
            _ => {}
        }
        let max = text.parse().ok().filter(|max| *max <= Self::MAX_TIME);
        max.map(Self::UpTo).ok_or_else(|| HostJitterError(text.to_owned()))
    }
}

impl fmt::Display for HostJitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Usual => f.write_str("usual"),
            Self::Virtual => f.write_str("virtual"),
            Self::NONE => f.write_str("none"),
            Self::UpTo(max) => max.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_names_or_a_time() {
        assert_eq!("0us".parse(), Ok(HostJitter::NONE));
        for text in ["usual", "virtual", "none", "250us", "1ms", "1s"] {
            assert_eq!(text.parse::<HostJitter>().map(|it| it.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "off", "250", "-1us", "1001ms"] {
            let error = text.parse::<HostJitter>().expect_err(text).to_string();
            assert!(error.starts_with(&format!("`{text}` is not a host jitter")), "{error}");
        }
    }

    #[test]
    fn hosts_are_faster_on_short_paths() {
        let max = |jitter: HostJitter, rtt_us| {
            jitter.max(TimeDelta::from_micros(rtt_us)).map(TimeDelta::as_nanos)
        };
        assert_eq!(max(HostJitter::Usual, 50_000), Some(250_000));
        assert_eq!(max(HostJitter::Usual, 5_000), Some(250_000));
        assert_eq!(max(HostJitter::Usual, 100), Some(5_000));
        assert_eq!(max(HostJitter::Virtual, 50_000), Some(125_000));
        assert_eq!(max(HostJitter::Virtual, 100), Some(5_000));
        assert_eq!(max(HostJitter::UpTo(TimeDelta::from_millis(1)), 100), Some(1_000_000));
        assert_eq!(max(HostJitter::NONE, 50_000), None);
    }
}
