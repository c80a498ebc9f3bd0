//! Proportional Rate Reduction: RFC 9937.

use uncork_units::wide::mul_div;

use crate::event::Feedback;

/// Limits sending during loss recovery so that the flight shrinks to ssthresh in step with
/// deliveries, instead of a pause followed by a burst.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prr {
    /// RecoverFS: bytes outstanding when recovery began.
    recover_fs: u64,
    /// prr_delivered: bytes delivered since recovery began.
    delivered: u64,
    /// prr_out: bytes sent since recovery began.
    out: u64,
}

impl Prr {
    /// Begins with `recover_fs` bytes outstanding before the feedback that began recovery.
    //= rfc9937 6.1-1
    pub(crate) fn start(recover_fs: u64) -> Self {
        Self { recover_fs: recover_fs.max(1), delivered: 0, out: 0 }
    }

    /// Records that data was sent, new or retransmitted.
    //= rfc9937 6.3-1
    pub(crate) fn on_sent(&mut self, bytes: u32) {
        self.out = self.out.saturating_add(u64::from(bytes));
    }

    /// The window after a feedback in recovery, including the first (RFC 9937 §6.2): bytes in
    /// flight plus sndcnt.
    ///
    /// The RFC skips ACKs that deliver nothing. Such a feedback may still declare losses (from a
    /// timer), and the window must not refill what they removed from the flight. The same formulas
    /// with zero delivered give the bytes still due.
    //= rfc9937 5-2 6.2-1 6.2-5 6.2-9 6.2-10 6.2-11
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
        // The fast retransmit leaves at once, with any sums. The RFC forces it when sndcnt
        // is 0; in bytes, less than a segment counts as 0.
        let sndcnt = if self.out == 0 { sndcnt.max(mss) } else { sndcnt };
        // With an empty pipe, a window smaller than a segment would wait for an ACK forever.
        in_flight.saturating_add(sndcnt).max(mss)
    }

    /// The share of prr_delivered that brings the flight to `ssthresh` by the end of recovery.
    //= rfc9937 6.2-6
    fn proportional(&self, ssthresh: u64) -> u64 {
        let (delivered, flight) = (self.delivered, self.recover_fs);
        let whole = mul_div(delivered, ssthresh, flight);
        // Rounded up: there is a remainder if the lower halves differ.
        let has_rest = whole.wrapping_mul(flight) != delivered.wrapping_mul(ssthresh);
        whole.saturating_add(u64::from(has_rest)).saturating_sub(self.out)
    }

    /// Losses alone reduced the flight to ssthresh or below: sends no more than was delivered
    /// (PRR-CRB), plus one segment on an ACK that shows progress without further loss (PRR-SSRB).
    //= rfc9937 6.2-7 6.2-8
    fn reduction_bound(&self, delivered: u64, is_safe: bool, mss: u64) -> u64 {
        let conservation = self.delivered.saturating_sub(self.out).max(delivered);
        conservation.saturating_add(if is_safe { mss } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use uncork_units::{Time, TimeDelta};

    use super::*;
    use crate::event::{Acked, Lost, Token};

    const MSS: u32 = 1_000;

    /// A flight of segments in recovery, and how many segments PRR allows at each ACK.
    struct Sender {
        prr: Prr,
        in_flight: u64,
        unacked: u64,
        ssthresh: u64,
    }

    impl Sender {
        fn new(recover_fs: u64, in_flight: u64, ssthresh: u64) -> Self {
            let prr = Prr::start(recover_fs * u64::from(MSS));
            Self { prr, in_flight, unacked: recover_fs, ssthresh }
        }

        /// `acked` segments are delivered and `lost` are declared lost. Sends what the window
        /// allows and returns the number of segments sent.
        fn on_ack(&mut self, acked: u64, lost: u64, una_advanced: bool) -> u64 {
            let token = Token::new(Time::ZERO, (0, Time::ZERO, TimeDelta::ZERO, 0), 0, false);
            let acked: Vec<_> = (0..acked).map(|_| Acked { token, bytes: MSS }).collect();
            let contiguous = false;
            let lost: Vec<_> = (0..lost).map(|_| Lost { token, bytes: MSS, contiguous }).collect();
            self.in_flight -= (acked.len() + lost.len()) as u64;
            self.unacked -= acked.len() as u64;
            let mss = u64::from(MSS);
            let feedback = Feedback {
                acked: &acked,
                lost: &lost,
                rtt: None,
                ce_packets: 0,
                in_flight: self.in_flight * mss,
                unacked: self.unacked * mss,
                una_advanced,
                oldest_sent: Time::NEVER,
                repaired_by_probe: false,
            };
            let cwnd = self.prr.on_feedback(&feedback, self.ssthresh * mss, mss);
            let sent = (cwnd / mss).saturating_sub(self.in_flight);
            (0..sent).for_each(|_| self.prr.on_sent(MSS));
            self.in_flight += sent;
            sent
        }
    }

    #[test]
    //= rfc9937 6.2-6 6.2-10 6.2-11 6.3-1 test
    fn single_loss_halves_the_flight_evenly() {
        // The standard example: 20 segments, the first is lost, the window must be halved. The
        // third duplicate ACK starts recovery and releases the retransmission, ahead of its half
        // segment. From then on every other ACK releases one segment, until the flight is 10 and
        // stays there.
        let mut sender = Sender::new(20, 20, 10);
        let mut sent = std::vec![sender.on_ack(1, 1, false)];
        sent.extend((1..19).map(|_| sender.on_ack(1, 0, false)));
        assert_eq!(sent, [1, 0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 1]);
        assert_eq!(sender.in_flight, 10);
    }

    #[test]
    //= rfc9937 6.2-1 test
    fn cumulative_and_selective_acks_both_count() {
        for una_advanced in [false, true] {
            let mut sender = Sender::new(20, 20, 10);
            assert_eq!(sender.on_ack(1, 1, false), 1);
            // Half of the eight delivered, minus the one already sent.
            assert_eq!(sender.on_ack(7, 0, una_advanced), 3);
        }
    }

    #[test]
    //= rfc9937 6.2-6 test
    fn reducing_by_a_quarter_sends_three_quarters() {
        let mut sender = Sender::new(40, 40, 30);
        sender.on_ack(1, 1, false);
        let sent: u64 = (0..20).map(|_| sender.on_ack(1, 0, false)).sum();
        assert_eq!(sent, 21 * 3 / 4 - 1);
        (0..18).for_each(|_| {
            sender.on_ack(1, 0, false);
        });
        assert_eq!(sender.in_flight, 30);
    }

    #[test]
    //= rfc9937 6.2-6 test
    fn share_is_rounded_up() {
        let mut sender = Sender::new(6, 6, 2);
        assert_eq!(sender.on_ack(1, 1, false), 1);
        // A third of 4000 bytes; 1000 of them were already sent.
        sender.on_ack(2, 0, false);
        sender.on_ack(1, 0, false);
        assert_eq!(sender.prr.proportional(2_000), 334);
    }

    /// 34 Gbit/s over a second: the product of two such windows has more than 64 bits.
    #[test]
    //= rfc9937 6.2-6 test
    fn share_of_a_flight_above_4_gib_is_exact() {
        let flight = 12_500_000_001;
        let mut prr = Prr::start(flight);
        prr.delivered = flight - 1;
        assert_eq!(
            prr.proportional(flight / 2),
            flight / 2,
            "rounded up from less than a byte below"
        );
        prr.delivered = flight;
        assert_eq!(prr.proportional(flight / 2), flight / 2);
    }

    #[test]
    //= rfc9937 6.2-5 6.2-7 6.2-8 6.2-9 test
    fn heavy_loss_triggers_packet_conservation() {
        // 15 of 20 segments are lost at once: the flight is below ssthresh from the first ACK.
        let mut sender = Sender::new(20, 20, 10);
        assert_eq!(sender.on_ack(1, 15, false), 1);
        assert_eq!(sender.in_flight, 5);
        // PRR-CRB: each ACK without progress releases what it delivered.
        for _ in 0..4 {
            assert_eq!(sender.on_ack(1, 0, false), 1);
        }
        // PRR-SSRB: each safe ACK releases one more, up to ssthresh.
        let sent: Vec<_> = (0..7).map(|_| sender.on_ack(1, 0, true)).collect();
        assert_eq!(sent, [2, 2, 2, 2, 2, 1, 1]);
        assert_eq!(sender.in_flight, 10);
    }

    #[test]
    //= rfc9937 6.2-5 test
    fn an_ack_that_declares_losses_is_not_safe() {
        let mut sender = Sender::new(20, 20, 10);
        sender.on_ack(1, 12, false);
        assert_eq!(sender.on_ack(1, 1, true), 1);
        assert_eq!(sender.on_ack(1, 0, true), 2);
    }

    #[test]
    //= rfc9937 5-2 6.2-10 test
    fn loss_timer_releases_one_segment() {
        let mut sender = Sender::new(20, 20, 10);
        assert_eq!(sender.on_ack(0, 1, false), 1);
        // Later losses found by timers do not release segments before something is delivered.
        assert_eq!(sender.on_ack(0, 15, false), 0);
        assert_eq!(sender.on_ack(1, 0, false), 1);
    }

    #[test]
    fn empty_pipe_releases_one_segment() {
        let mut sender = Sender::new(2, 2, 2);
        assert_eq!(sender.on_ack(0, 2, false), 1);
        assert_eq!(sender.on_ack(0, 1, false), 1);
    }

    #[test]
    fn sums_saturate() {
        let mut prr = Prr::start(0);
        prr.on_sent(u32::MAX);
        let feedback = Feedback {
            acked: &[],
            lost: &[],
            rtt: None,
            ce_packets: 0,
            in_flight: u64::MAX,
            unacked: u64::MAX,
            una_advanced: true,
            oldest_sent: Time::NEVER,
            repaired_by_probe: false,
        };
        assert_eq!(prr.on_feedback(&feedback, u64::MAX, u64::MAX), u64::MAX);
    }
}
