//! How the start of a connection went: for hosts that record it.
//!
//! Rounds are packet-timed: an acknowledgement of a packet sent since a round began ends the round. Everything is seen
//! from the host's calls of a controller, so it is the same for all controllers, and one of your own has it, too.

use uncork_units::Time;

use crate::controller::Controller;
use crate::event::Feedback;
use crate::resume::ResumePhase;

/// Round trips are counted until these bytes are acknowledged: a small response.
const SMALL_RESPONSE: u64 = 100_000;
/// The first round trips, which the initial window decides.
const EARLY_ROUNDS: u16 = 2;

/// What ended the first slow start or Startup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartExit {
    /// Packets were lost.
    Loss,
    /// Packets were marked (ECN).
    Mark,
    /// A retransmission timeout, or persistent congestion.
    Timeout,
    /// The controller's own test of delay or delivery, before a loss: HyStart++, SEARCH, the ACK train of Linux.
    Delay,
    /// The delivery rate stopped to grow: BBR.
    Plateau,
}

impl StartExit {
    /// Its name in records and traces.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Mark => "mark",
            Self::Timeout => "timeout",
            Self::Delay => "delay",
            Self::Plateau => "plateau",
        }
    }
}

/// What became of the observations of an earlier connection (Careful Resume).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeOutcome {
    /// The window did not jump: the path or its RTT is another, the hint was no larger, or there was too little data.
    Unused,
    /// The window jumped, and no packet beyond the known capacity was lost or marked.
    Used,
    /// The window jumped and met congestion (Safe Retreat).
    Retreated,
}

/// The start of a connection, as far as it has come. Counts of bytes end at 4 GiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartReport {
    /// What ended it; `None` while it goes on.
    pub exit: Option<StartExit>,
    /// The congestion window just before.
    pub exit_window: Option<u64>,
    /// The bytes in flight just before.
    pub exit_in_flight: Option<u64>,
    /// Bytes sent until its end, or until now.
    pub sent: u64,
    /// Of these, bytes that were declared lost.
    pub lost: u64,
    /// Bytes sent in the first two round trips, or until now.
    pub early_sent: u64,
    /// Of these, bytes that were declared lost.
    pub early_lost: u64,
    /// Round trips until 100 kB were acknowledged.
    pub rounds_to_100kb: Option<u16>,
    /// What became of a hint, if there was one.
    pub resume: Option<ResumeOutcome>,
}

/// Follows the start of one connection. Call [`Self::on_feedback`] after each feedback of its controller until
/// [`Self::is_over`].
#[derive(Clone, Debug)]
pub struct StartObserver {
    /// Packets sent since then are of this round.
    round_began: Time,
    /// When the first two round trips ended.
    early_until: Time,
    /// When the start ended.
    exit_at: Time,
    sent: u32,
    lost: u32,
    early_sent: u32,
    early_lost: u32,
    exit_window: u32,
    exit_in_flight: u32,
    rounds: u16,
    rounds_to_100kb: Option<u16>,
    exit: Option<StartExit>,
    resume: Option<ResumeOutcome>,
    is_over: bool,
}

/// What the host knows at a feedback.
#[derive(Clone, Copy, Debug)]
pub struct StartCounts {
    /// Bytes sent since the start began.
    pub sent: u64,
    /// Bytes acknowledged since the start began.
    pub acked: u64,
    /// The congestion window before the controller was called.
    pub window: u64,
    /// Whether the feedback belongs to a retransmission timeout or to persistent congestion.
    pub has_timed_out: bool,
}

impl StartObserver {
    /// Follows a connection that starts `now`.
    pub const fn new(now: Time) -> Self {
        Self {
            round_began: now,
            early_until: Time::NEVER,
            exit_at: Time::NEVER,
            sent: 0,
            lost: 0,
            early_sent: 0,
            early_lost: 0,
            exit_window: 0,
            exit_in_flight: 0,
            rounds: 0,
            rounds_to_100kb: None,
            exit: None,
            resume: None,
            is_over: false,
        }
    }

    /// The controller got a [`crate::ResumeHint`].
    pub const fn on_resume(&mut self) {
        self.resume = Some(ResumeOutcome::Unused);
    }

    /// Whether nothing remains to be observed.
    #[inline]
    pub const fn is_over(&self) -> bool {
        self.is_over
    }

    /// The controller has processed a feedback.
    #[inline(never)]
    pub fn on_feedback(
        &mut self,
        now: Time,
        feedback: &Feedback<'_>,
        counts: &StartCounts,
        cc: &impl Controller,
    ) {
        self.count_lost(feedback);
        self.count_round(now, feedback, counts);
        self.follow_resume(cc);
        if self.exit.is_none() && cc.has_left_start() {
            self.end(now, feedback, counts, cc);
        }
        // Until then earlier packets may still be declared lost.
        let settled = self.exit_at.max(self.early_until);
        self.is_over = settled < Time::NEVER
            && feedback.oldest_sent >= settled
            && self.rounds_to_100kb.is_some();
    }

    fn count_lost(&mut self, feedback: &Feedback<'_>) {
        for lost in feedback.lost {
            let sent = lost.token.send_time();
            let add = |to: u32| to.saturating_add(lost.bytes);
            self.lost = if sent < self.exit_at { add(self.lost) } else { self.lost };
            self.early_lost =
                if sent < self.early_until { add(self.early_lost) } else { self.early_lost };
        }
    }

    fn count_round(&mut self, now: Time, feedback: &Feedback<'_>, counts: &StartCounts) {
        let newest = feedback.acked.last().map(|packet| packet.token.send_time());
        if newest.is_some_and(|sent| sent >= self.round_began) {
            self.rounds = self.rounds.saturating_add(1);
            self.round_began = now;
            if self.rounds == EARLY_ROUNDS {
                self.early_until = now;
                self.early_sent = narrow(counts.sent);
            }
        }
        if self.rounds_to_100kb.is_none() && counts.acked >= SMALL_RESPONSE {
            self.rounds_to_100kb = Some(self.rounds);
        }
    }

    fn follow_resume(&mut self, cc: &impl Controller) {
        if matches!(self.resume, None | Some(ResumeOutcome::Retreated)) {
            return;
        }
        match cc.snapshot().resume {
            Some(ResumePhase::Unvalidated | ResumePhase::Validating) => {
                self.resume = Some(ResumeOutcome::Used);
            }
            Some(ResumePhase::SafeRetreat) => self.resume = Some(ResumeOutcome::Retreated),
            Some(ResumePhase::Reconnaissance) | None => {}
        }
    }

    fn end(
        &mut self,
        now: Time,
        feedback: &Feedback<'_>,
        counts: &StartCounts,
        cc: &impl Controller,
    ) {
        let settled = feedback.acked_bytes().saturating_add(feedback.lost_bytes());
        self.exit =
            Some(if counts.has_timed_out { StartExit::Timeout } else { self.reason(feedback, cc) });
        self.exit_at = now;
        self.exit_window = narrow(counts.window);
        self.exit_in_flight = narrow(feedback.in_flight.saturating_add(settled));
        self.sent = narrow(counts.sent);
    }

    /// A loss-based window leaves the start at the feedback that reports the congestion, BBR at the end of a round.
    fn reason(&self, feedback: &Feedback<'_>, cc: &impl Controller) -> StartExit {
        let inside = cc.snapshot();
        let is_model = inside.max_bw.is_some();
        let is_congested = if is_model {
            inside.inflight_longterm.is_some() || self.resume == Some(ResumeOutcome::Retreated)
        } else {
            !feedback.lost.is_empty() || feedback.ce_packets > 0 || feedback.repaired_by_probe
        };
        match (is_congested, is_model) {
            (false, true) => StartExit::Plateau,
            (false, false) => StartExit::Delay,
            (true, true) if self.lost > 0 => StartExit::Loss,
            (true, false) if !feedback.lost.is_empty() || feedback.repaired_by_probe => {
                StartExit::Loss
            }
            (true, _) => StartExit::Mark,
        }
    }

    /// The start after `sent` bytes were sent since it began, and `arrived` bytes have arrived: the acknowledged bytes, or
    /// more if the host knows.
    pub fn report(&self, sent: u64, arrived: u64) -> StartReport {
        let sent = narrow(sent);
        let in_this_round = (arrived >= SMALL_RESPONSE).then(|| self.rounds.saturating_add(1));
        let has_ended = self.exit.is_some();
        let is_early = self.early_until == Time::NEVER;
        StartReport {
            exit: self.exit,
            exit_window: has_ended.then_some(u64::from(self.exit_window)),
            exit_in_flight: has_ended.then_some(u64::from(self.exit_in_flight)),
            sent: u64::from(if has_ended { self.sent } else { sent }),
            lost: u64::from(self.lost),
            early_sent: u64::from(if is_early { sent } else { self.early_sent }),
            early_lost: u64::from(self.early_lost),
            rounds_to_100kb: self.rounds_to_100kb.or(in_this_round),
            resume: self.resume,
        }
    }
}

fn narrow(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
