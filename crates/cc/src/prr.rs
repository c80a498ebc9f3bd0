//! Proportional Rate Reduction: RFC 9937.

use crate::event::Feedback;

/// Regulates what is sent while losses are repaired, so that the flight shrinks to ssthresh in step
/// with what the network delivers, instead of by a silence followed by a burst.
///
/// Inactive until [`Prr::start`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prr {
    /// RecoverFS: bytes outstanding when recovery began; 0 while inactive.
    recover_fs: u64,
    /// prr_delivered: bytes delivered since recovery began.
    delivered: u64,
    /// prr_out: bytes sent since recovery began.
    out: u64,
}

impl Prr {
    /// Begins with `recover_fs` bytes outstanding before the feedback that began recovery.
    pub(crate) fn start(recover_fs: u64) -> Self {
        Self { recover_fs: recover_fs.max(1), delivered: 0, out: 0 }
    }

    pub(crate) fn is_active(&self) -> bool {
        self.recover_fs != 0
    }

    /// Something was sent, new or again.
    pub(crate) fn on_sent(&mut self, bytes: u32) {
        self.out = self.out.saturating_add(u64::from(bytes));
    }

    /// The window after a feedback in recovery, the first included (RFC 9937 §6.2): what is in
    /// flight and sndcnt on top.
    ///
    /// The RFC skips ACKs that deliver nothing. Such a feedback may still declare losses (a timer
    /// did), and the window must then not replace what they took out of flight; the same formulas
    /// with nothing delivered say what is still due.
    pub(crate) fn on_feedback(&mut self, feedback: &Feedback<'_>, ssthresh: u64, mss: u64) -> u64 {
        let delivered = feedback.acked_bytes();
        self.delivered = self.delivered.saturating_add(delivered);
        let in_flight = feedback.in_flight;
        let sndcnt = if in_flight > ssthresh {
            self.proportional(ssthresh)
        } else {
            let is_safe = feedback.una_advanced && feedback.lost.is_empty();
            self.reduction_bound(delivered, is_safe, mss).min(ssthresh - in_flight)
        };
        // One segment goes at once, whatever the sums say: the fast retransmit. The RFC forces it
        // when sndcnt is 0; in bytes, less than a segment is as good as nothing.
        let sndcnt = if self.out == 0 { sndcnt.max(mss) } else { sndcnt };
        // A window that lets nothing out of an empty pipe would wait for an ACK for ever.
        in_flight.saturating_add(sndcnt).max(mss)
    }

    /// The share of prr_delivered that brings the flight to `ssthresh` at the end of recovery.
    fn proportional(&self, ssthresh: u64) -> u64 {
        self.delivered.saturating_mul(ssthresh).div_ceil(self.recover_fs).saturating_sub(self.out)
    }

    /// Losses alone brought the flight to ssthresh or below: send no more than was delivered
    /// (PRR-CRB), and a segment more on an ACK that shows progress without further loss (PRR-SSRB).
    fn reduction_bound(&self, delivered: u64, is_safe: bool, mss: u64) -> u64 {
        let conservation = self.delivered.saturating_sub(self.out).max(delivered);
        conservation.saturating_add(if is_safe { mss } else { 0 })
    }
}
