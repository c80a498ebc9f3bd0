//! A window on trial: the Unvalidated, Validating and Safe Retreat phases of RFC 9959 §3.3 to §3.5.

use uncork_units::{Rate, Time, TimeDelta};

use super::ResumePhase;
use crate::event::Feedback;

/// A window taken over from an earlier connection that has not been validated yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trial {
    phase: ResumePhase,
    /// Bytes delivered minus bytes in flight at the start of the trial. PipeSize is the current
    /// C.delivered minus this. May be negative; the subtraction wraps.
    pipe_base: u64,
    /// Unvalidated: when the phase began. Later phases: the time of the last unvalidated packet.
    mark: Time,
    /// The current round-trip time.
    rtt_us: u32,
}

impl Trial {
    /// Starts a trial at `now`, with `flight` bytes in flight and `delivered` bytes delivered so
    /// far.
    //= rfc9959 3.3-1
    pub(crate) fn begin(now: Time, flight: u64, delivered: u64, rtt: TimeDelta) -> Self {
        let pipe_base = delivered.wrapping_sub(flight);
        let rtt_us = micros(rtt);
        Self { phase: ResumePhase::Unvalidated, pipe_base, mark: now, rtt_us }
    }

    pub(crate) fn phase(&self) -> ResumePhase {
        self.phase
    }

    /// PipeSize: bytes in flight before the jump plus all bytes delivered since.
    //= rfc9959 3.3-4
    pub(crate) fn pipe_size(&self, delivered: u64) -> u64 {
        delivered.wrapping_sub(self.pipe_base)
    }

    /// The rate that spreads `cwnd` over the current RTT: all unvalidated packets are paced (§3.3).
    //= rfc9959 3.3-3
    pub(crate) fn pacing_rate(&self, cwnd: u64) -> Option<Rate> {
        let rate = Rate::of(cwnd, self.rtt()).max(Rate::from_bytes_per_sec(1));
        (self.phase == ResumePhase::Unvalidated).then_some(rate)
    }

    /// Updates the RTT.
    pub(crate) fn update_rtt(&mut self, rtt: TimeDelta) {
        self.rtt_us = micros(rtt);
    }

    fn rtt(&self) -> TimeDelta {
        TimeDelta::from_micros(u64::from(self.rtt_us))
    }

    /// Whether the departing packet is the last unvalidated one: it fills the window, or a round
    /// trip has passed since the jump (§3.3).
    //= rfc9959 3.3-7
    pub(crate) fn ends_with_departure(&self, now: Time, is_full: bool) -> bool {
        self.phase == ResumePhase::Unvalidated && (is_full || self.is_overdue(now))
    }

    /// Whether a round trip has passed since the jump (§3.3, "Limiting time").
    //= rfc9959 3.3-9
    pub(crate) fn is_overdue(&self, now: Time) -> bool {
        now.since(self.mark) > self.rtt()
    }

    /// Whether `feedback` acknowledges a packet sent after the mark: the first unvalidated one
    /// (§3.3) or the last one (§3.4, §3.5). Also true if nothing is in flight any more.
    //= rfc9959 3.3-8 3.4-3 3.5-4
    pub(crate) fn has_passed(&self, feedback: &Feedback<'_>) -> bool {
        let newest = feedback.acked.last().map(|packet| packet.token.send_time());
        newest.is_some_and(|sent| sent >= self.mark || feedback.in_flight == 0)
    }

    /// Enters Validating: no more unvalidated packets leave.
    pub(crate) fn validate(&mut self, now: Time) {
        self.phase = ResumePhase::Validating;
        self.mark = now;
    }

    /// A packet of the trial was lost or marked.
    pub(crate) fn retreat(&mut self, now: Time) {
        if self.phase == ResumePhase::Unvalidated {
            self.mark = now;
        }
        self.phase = ResumePhase::SafeRetreat;
    }
}

/// Whole microseconds, saturating at a bit more than an hour.
fn micros(span: TimeDelta) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX).max(1)
}
