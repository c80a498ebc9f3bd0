//! Effect of timeouts and persistent congestion on a loss-based window: RFC 5681 §3.1, RFC 9002
//! §7.6.

use uncork_units::Time;

use super::{Congestion, LossUndo, LossWindow, WindowRule};
use crate::event::Feedback;

impl LossWindow {
    /// A retransmission timeout need not declare packets lost that were sent just before it (RFC
    /// 8985 §6.3). The window is one segment larger than those; otherwise the retransmission would
    /// wait for the next timeout. Persistent congestion sets two segments in any case, and a host with a window below
    /// two segments has room for two.
    pub(super) fn follow_timeout(&mut self, feedback: &Feedback<'_>) {
        let is_its_news = feedback.acked.is_empty() && !feedback.lost.is_empty();
        let is_one_segment = self.cwnd <= self.mss() && !self.is_below_two_segments();
        if self.is_after_timeout() && is_its_news && is_one_segment {
            self.cwnd = feedback.in_flight.saturating_add(self.mss());
        }
    }

    /// Whether no packet sent since the timeout has been acknowledged yet.
    fn is_after_timeout(&self) -> bool {
        self.recovery.is_active()
            && !self.is_repairing()
            && !matches!(self.rule, WindowRule::Trial(_))
    }

    /// The congestion event of a timeout. `None` for a repeated timeout without an ACK in between,
    /// which does not reduce ssthresh further (RFC 5681 §3.1).
    //= rfc5681 3.1-8
    pub(crate) fn timeout(&self) -> Option<Congestion> {
        (!self.is_after_timeout()).then(|| self.congestion_at(self.in_flight))
    }

    /// A timeout: restarts slow start at `segments` segments. `reduction` is the result of
    /// [`Self::timeout`] and the algorithm's ssthresh for it.
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
                self.undo = LossUndo { cwnd: event.cwnd, ssthresh: self.ssthresh };
                self.ssthresh = ssthresh.max(self.least_ssthresh());
                self.recovery.enter(now);
            }
            None => self.recovery.extend(now),
        }
        if matches!(self.rule, WindowRule::Trial(_)) {
            // An unvalidated jump is not restored, even if its packets arrive.
            self.recovery.confirm();
        }
        self.rule = WindowRule::Growth;
        // A window that marks have reduced below that is not raised.
        self.cwnd = (segments * self.mss()).min(self.ssthresh);
    }

    /// The congestion event of persistent congestion; `None` within an episode. It reduces the
    /// window to the minimum (RFC 9002 §7.6.2). ssthresh is reduced once for all losses (RFC 9002
    /// Appendix B.8: `OnCongestionEvent()` does nothing in recovery).
    pub(crate) fn persistent_congestion(&self) -> Option<Congestion> {
        (!self.recovery.is_active()).then(|| self.congestion_at(self.in_flight))
    }

    /// Persistent congestion is never spurious.
    pub(crate) fn confirm(&mut self) {
        self.recovery.confirm();
    }
}
