//! What timeouts and persistent congestion do to a loss-based window: RFC 5681 §3.1, RFC 9002 §7.6.

use uncork_units::Time;

use super::{Congestion, LossWindow, Rule, Undo};
use crate::event::Feedback;

impl LossWindow {
    /// A retransmission timeout need not declare lost what left just before it (RFC 8985 §6.3); the
    /// one segment to be sent again goes on top of that. It would otherwise wait for the next
    /// timeout. Persistent congestion leaves two segments, whatever is in flight.
    pub(super) fn follow_timeout(&mut self, feedback: &Feedback<'_>) {
        let is_its_news = feedback.acked.is_empty() && !feedback.lost.is_empty();
        if self.is_after_timeout() && is_its_news && self.cwnd <= self.mss() {
            self.cwnd = feedback.in_flight.saturating_add(self.mss());
        }
    }

    /// Whether nothing has been heard of what was sent since a timeout.
    fn is_after_timeout(&self) -> bool {
        self.recovery.is_active() && !matches!(self.rule, Rule::Recovery(_) | Rule::Trial(_))
    }

    /// What a timeout meets; `None` when it repeats one that nothing was heard since, which takes
    /// no more from ssthresh (RFC 5681 §3.1).
    //= rfc5681 3.1-8
    pub(crate) fn timeout(&self) -> Option<Congestion> {
        (!self.is_after_timeout()).then(|| self.congestion_at(self.in_flight))
    }

    /// A timeout: slow start again, from `segments` segments. `reduction` is what
    /// [`Self::timeout`] returned, with the ssthresh that the algorithm draws from it.
    //= rfc5681 3.1-7 6582-3.2-3
    //= rfc9002 7.2-4
    //= rfc9959 3.6-1
    pub(crate) fn collapse(
        &mut self,
        now: Time,
        reduction: Option<(Congestion, u64)>,
        segments: u64,
    ) {
        match reduction {
            Some((event, ssthresh)) => {
                self.undo = Undo { cwnd: event.cwnd, ssthresh: self.ssthresh };
                self.ssthresh = ssthresh.max(2 * self.mss());
                self.recovery.enter(now);
            }
            None => self.recovery.extend(now),
        }
        if matches!(self.rule, Rule::Trial(_)) {
            // A window taken on trust is not given back, whatever becomes of the packets.
            self.recovery.confirm();
        }
        self.rule = Rule::Growth;
        self.cwnd = segments * self.mss();
    }

    /// What persistent congestion meets; `None` within an episode. It takes the window to the
    /// minimum (RFC 9002 §7.6.2); ssthresh is what the losses' one congestion event makes of it
    /// (RFC 9002 Appendix B.8: `OnCongestionEvent()` does nothing in recovery).
    pub(crate) fn persistent_congestion(&self) -> Option<Congestion> {
        (!self.recovery.is_active()).then(|| self.congestion_at(self.in_flight))
    }

    /// Persistent congestion cannot be a mistake.
    pub(crate) fn confirm(&mut self) {
        self.recovery.confirm();
    }
}
