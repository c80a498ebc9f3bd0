//! Data rates.

use crate::{Ratio, TimeDelta};

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// A data rate in whole bytes per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// No data moves.
    pub const ZERO: Self = Self(0);
    /// Faster than any link; used as "unlimited".
    pub const MAX: Self = Self(u64::MAX);

    /// `n` bytes per second.
    pub const fn from_bytes_per_sec(n: u64) -> Self {
        Self(n)
    }

    /// `n` bits per second, rounded down to whole bytes.
    pub const fn from_bits_per_sec(n: u64) -> Self {
        Self(n / 8)
    }

    /// `n` megabits (10^6 bits) per second.
    pub const fn from_mbit(n: u64) -> Self {
        Self(n.saturating_mul(125_000))
    }

    /// The rate at which `bytes` move in `interval`; an empty interval gives [`Rate::ZERO`],
    /// because nothing was measured.
    pub const fn of(bytes: u64, interval: TimeDelta) -> Self {
        if interval.is_zero() {
            return Self::ZERO;
        }
        Self(mul_div(bytes, NANOS_PER_SEC, interval.as_nanos()))
    }

    /// Bytes per second.
    pub const fn bytes_per_sec(self) -> u64 {
        self.0
    }

    /// Bits per second.
    pub const fn bits_per_sec(self) -> u64 {
        self.0.saturating_mul(8)
    }

    /// Whether nothing moves.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// How many bytes move in `span`, rounded down.
    pub const fn bytes_in(self, span: TimeDelta) -> u64 {
        mul_div(self.0, span.as_nanos(), NANOS_PER_SEC)
    }

    /// How long `bytes` take, rounded down; [`TimeDelta::MAX`] at rate zero.
    pub const fn time_for(self, bytes: u64) -> TimeDelta {
        if self.0 == 0 {
            return TimeDelta::MAX;
        }
        TimeDelta::from_nanos(mul_div(bytes, NANOS_PER_SEC, self.0))
    }

    /// This rate times `gain`.
    pub const fn scaled(self, gain: Ratio) -> Self {
        Self(gain.of(self.0))
    }
}

/// `a · b / c`, exact, saturating. 64-bit arithmetic when the product fits, because that is the
/// per-packet case and a 128-bit division costs several times as much.
pub(crate) const fn mul_div(a: u64, b: u64, c: u64) -> u64 {
    match a.checked_mul(b) {
        Some(product) => product / c,
        None => {
            let quotient = a as u128 * b as u128 / c as u128;
            if quotient > u64::MAX as u128 { u64::MAX } else { quotient as u64 }
        }
    }
}
