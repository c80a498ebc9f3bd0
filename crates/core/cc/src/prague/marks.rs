//! How frequent marks are: alpha, §2.3.2.

use uncork_units::wide::saturating_mul;
use uncork_units::{Time, TimeDelta};

/// Parts of alpha per unit: 2²⁰, enough for 100 Gbit/s, where one packet in 100,000 is marked.
const PROBABILITY_BITS: u32 = 20;
/// The gain of the average is 1/16.
const GAIN_BITS: u32 = 4;

/// The moving average of the share of marked bytes, and the period that is being counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    /// Alpha divided by the gain, so that the average keeps its remainder.
    upscaled: u32,
    /// Whole periods since the latest mark.
    quiet: u32,
    acked: u64,
    marked: u64,
    since: Time,
    /// The packet-timed round trip in which the period began.
    round: u32,
    /// Whether a mark has reduced the window yet. Until then no queue is known to mark.
    is_answered: bool,
}

impl Marks {
    pub(super) fn new(now: Time) -> Self {
        Self {
            upscaled: 0,
            quiet: 0,
            acked: 0,
            marked: 0,
            since: now,
            round: 0,
            is_answered: false,
        }
    }

    pub(super) fn count(&mut self, acked: u64, marked: u64) {
        self.acked = self.acked.saturating_add(acked);
        self.marked = self.marked.saturating_add(marked);
    }

    /// Whether a period ends: after a round trip, and a virtual one.
    //= prague-04 2.4.4-1
    pub(super) fn ends_period(&self, now: Time, round: u32, virtual_rtt: TimeDelta) -> bool {
        round != self.round && now.since(self.since) >= virtual_rtt
    }

    /// Updates the average. Returns whether the period had marks.
    //= prague-04 2.3.2-1 2.3.2-2
    pub(super) fn end_period(&mut self, now: Time, round: u32) -> bool {
        let had_marks = self.marked > 0;
        if self.is_answered {
            let share = ((self.marked.min(self.acked)) << PROBABILITY_BITS) / self.acked.max(1);
            self.upscaled = self.upscaled - (self.upscaled >> GAIN_BITS) + share as u32;
        }
        self.quiet = if had_marks { 0 } else { self.quiet.saturating_add(1) };
        *self = Self { acked: 0, marked: 0, since: now, round, ..*self };
        had_marks
    }

    /// What marks take from `window`: alpha / 2 of it, rounded to the nearest byte.
    //= prague-04 2.4.2-2
    pub(super) fn reduction(&self, window: u64) -> u64 {
        let bits = PROBABILITY_BITS + GAIN_BITS + 1;
        saturating_mul(window, u64::from(self.upscaled)).saturating_add(1 << (bits - 1)) >> bits
    }

    pub(super) fn quiet_periods(&self) -> u32 {
        self.quiet
    }

    pub(super) fn is_answered(&self) -> bool {
        self.is_answered
    }

    pub(super) fn answer(&mut self) {
        self.is_answered = true;
    }
}
