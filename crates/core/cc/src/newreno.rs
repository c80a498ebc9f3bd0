//! NewReno: RFC 5681, RFC 6582, RFC 9002 §7.

use uncork_units::{Ratio, Time};

use crate::controller::{Control, Controller, Settings, Snapshot};
use crate::event::{AppState, Feedback, Lost, PathEvent, RttSample, SentPacket, Timeout, Token};
use crate::inheritance::Inheritance;
use crate::loss_window::{Congestion, LossReaction, LossWindow};
use crate::resume::ResumeHint;
use crate::start::{ClassicStart, SlowStart};

/// Multiplicative decrease factor.
const BETA: Ratio = Ratio::new(1, 2);

/// NewReno: slow start, one segment per round trip, half the window per congestion event.
///
/// Slow start is the classic one, as in the kernel's Reno: it ends with a loss. Another method may end it earlier.
#[derive(Clone, Debug)]
pub struct NewReno<S = ClassicStart> {
    window: LossWindow,
    start: S,
    /// Bytes acknowledged since congestion avoidance last added a segment.
    acked: u64,
}

const _: () = assert!(size_of::<NewReno>() <= 192, "servers keep one per connection");

impl NewReno {
    /// Creates a controller for a new connection.
    pub fn new(settings: &Settings) -> Self {
        Self::with_start(settings)
    }
}

impl<S: SlowStart> NewReno<S> {
    /// Creates a controller with `S` as the method that ends the initial slow start.
    pub fn with_start(settings: &Settings) -> Self {
        Self { window: LossWindow::new(settings), start: S::INITIAL, acked: 0 }
    }

    /// [`PathEvent::Resume`] alone, for a host that must keep its functions small.
    #[doc(hidden)]
    #[inline]
    pub fn take_in_hint(&mut self, hint: ResumeHint) {
        self.window.offer(hint);
    }

    /// Whether the window was taken over from an earlier connection, for a host that has no observer of starts.
    #[doc(hidden)]
    #[inline]
    pub fn has_jumped(&self) -> bool {
        self.window.has_jumped()
    }

    /// State handed over to another controller.
    #[doc(hidden)]
    pub fn bequeath(&self, rtt: RttSample) -> Inheritance {
        self.window.bequeath(rtt)
    }

    //= rfc5681 3.1-3
    fn grow(&mut self, now: Time, bytes: u64, rtt: Option<RttSample>) {
        if self.window.in_slow_start() {
            self.window.grow_in_slow_start(&mut self.start, now, bytes, rtt);
        } else {
            self.avoid_congestion(bytes);
        }
    }

    /// A segment per window acknowledged, counted in bytes (RFC 5681 §3.1, RFC 3465 §2.1).
    //= rfc5681 3.1-5 3.1-6
    //= rfc9002 7.3.3-1
    fn avoid_congestion(&mut self, bytes: u64) {
        let cwnd = self.window.cwnd();
        self.acked = self.acked.saturating_add(bytes);
        if self.acked >= cwnd {
            self.acked = (self.acked - cwnd).min(cwnd);
            self.window.set_cwnd(cwnd.saturating_add(self.window.mss()));
        }
    }

    //= rfc5681 3.1-7 3.1-9
    //= rfc9002 7.6.2-5
    fn collapse(&mut self, now: Time, event: Option<Congestion>, segments: u64) {
        self.acked = 0;
        let reduction = event.map(|event| (event, event.used / 2));
        self.window.collapse(now, reduction, segments);
    }
}

impl<S: SlowStart> Controller for NewReno<S> {
    #[inline]
    fn on_sent(&mut self, now: Time, packet: SentPacket, _app: AppState) -> Token {
        if self.window.is_initial() {
            self.start.on_sent(packet.bytes);
        }
        self.window.on_sent(now, packet)
    }

    //= rfc5681 3.2-1
    //= rfc9002 7.3.2-1
    //= rapid-start 3.3-7
    fn on_feedback(&mut self, now: Time, feedback: &Feedback<'_>) {
        match self.window.on_feedback(now, feedback) {
            LossReaction::Congestion(event) => {
                self.acked = 0;
                if S::CONVERGES && self.window.is_initial() {
                    self.window.converge(event, BETA, feedback);
                } else {
                    self.window.reduce(event, event.used / 2, feedback);
                }
            }
            LossReaction::Grow(bytes) => self.grow(now, bytes, feedback.rtt),
            LossReaction::Recovered
            | LossReaction::Converged
            | LossReaction::Underused
            | LossReaction::Hold => {}
        }
    }

    fn on_spurious(&mut self, _now: Time, packets: &[Lost]) {
        if self.window.on_spurious(packets) {
            self.start = S::INITIAL;
        }
    }

    //= rfc9002 7.5-1 7.6.2-5
    fn on_timeout(&mut self, now: Time, timeout: Timeout) {
        match timeout {
            Timeout::Probe => {}
            // RFC 5681 §3.1: one segment.
            Timeout::Retransmission => self.collapse(now, self.window.timeout(), 1),
            // RFC 9002 §7.6.2: the minimum window, which §7.2 says is two.
            Timeout::Persistent => {
                self.collapse(now, self.window.persistent_congestion(), 2);
                self.window.confirm();
            }
        }
    }

    fn on_path(&mut self, now: Time, event: PathEvent) {
        match event {
            PathEvent::MtuChanged { mss } => self.window.on_mtu(mss),
            PathEvent::Migrated => {
                self.window.on_migration(now);
                self.start = S::INITIAL;
            }
            PathEvent::Drained | PathEvent::ClassicEcn => {}
            PathEvent::Resume(hint) => self.take_in_hint(hint),
        }
    }

    #[inline]
    fn control(&self) -> Control {
        self.window.control()
    }

    fn has_left_start(&self) -> bool {
        !self.window.is_initial()
    }

    fn snapshot(&self) -> Snapshot {
        self.window.snapshot(if self.window.is_initial() {
            self.start.state()
        } else if self.window.in_slow_start() {
            "SlowStart"
        } else {
            "CongestionAvoidance"
        })
    }

    fn on_deferred(&mut self) {
        self.window.on_deferred();
    }
}

#[cfg(test)]
mod tests {
    use uncork_units::{Rate, TimeDelta};

    use super::*;
    use crate::link::{self, Loop, Path};
    use crate::script::{Host, MSS, Report, segments, settings};

    fn host(initial_window: u64) -> Host<NewReno> {
        Host::new(NewReno::new(&settings(initial_window)))
    }

    /// A host in congestion avoidance with a full window of `window` segments.
    fn avoiding(window: u64) -> Host<NewReno> {
        let mut host = host(2 * window);
        host.lose_one_and_recover();
        assert_eq!(host.cwnd(), segments(window));
        assert_eq!(host.in_flight(), window as usize);
        host.advance(TimeDelta::from_millis(1));
        host
    }

    #[test]
    //= rfc5681 3.1-2 test
    //= rfc9002 7.3.1-1 test
    fn new_connection_has_no_ssthresh() {
        assert_eq!(host(10).cc.snapshot().ssthresh, None);
    }

    #[test]
    //= rfc9406 4.2-3 test
    //= rfc9002 7.3.1-1 test
    fn slow_start_doubles_the_window_each_round() {
        let mut host = host(10);
        for window in [20, 40, 80] {
            host.round();
            assert_eq!(host.cwnd(), segments(window));
        }
        assert_eq!(host.cc.snapshot().state, "SlowStart");
        assert_eq!(host.cc.snapshot().ssthresh, None);
    }

    #[test]
    //= rfc9406 4.2-3 4.3-1 test
    fn one_ack_counts_for_at_most_eight_segments() {
        let mut host = host(10);
        host.fill();
        host.ack(10);
        assert_eq!(host.cwnd(), segments(18));
    }

    /// RFC 9406 §4.3 has no such limit with pacing.
    #[test]
    fn one_ack_counts_in_full_on_a_pacing_host() {
        let mut host = Host::new(NewReno::new(&Settings { paced: true, ..settings(10) }));
        host.fill();
        host.ack(10);
        assert_eq!(host.cwnd(), segments(20));
    }

    #[test]
    //= rfc9002 7.8-1 test
    //= rfc9438 4.6-3 4.6-4 test
    fn unused_window_does_not_grow() {
        let mut host = host(10);
        for _ in 0..5 {
            (0..9).for_each(|_| host.send());
            host.advance(host.rtt);
            host.ack(4);
            host.ack(5);
        }
        assert_eq!(host.cwnd(), segments(10));
        // The tenth segment fills it.
        (0..10).for_each(|_| host.send());
        host.advance(host.rtt);
        host.ack(1);
        assert_eq!(host.cwnd(), segments(11));
    }

    /// The example of draft-ietf-ccwg-ratelimited-increase-11 §3.1.2.
    #[test]
    //= ratelimited-11 3-1 3-3 test
    fn sender_that_pauses_keeps_twice_its_largest_flight() {
        let mut host = host(10);
        host.fill();
        host.advance(host.rtt);
        (0..10).for_each(|_| host.ack(1));
        assert_eq!(host.cwnd(), segments(20));
        (0..4).for_each(|_| host.send());
        host.advance(host.rtt);
        (0..4).for_each(|_| host.ack(1));
        assert_eq!(host.cwnd(), segments(20));
    }

    #[test]
    //= rfc5681 3.2-1 3.2-3 test
    //= rfc9937 5-1 6.1-1 6.4-1 test
    //= rfc9002 7.3.1-2 7.3.2-1 7.3.2-2 7.3.2-3 test
    fn loss_halves_the_window_through_prr() {
        let mut host = host(20);
        host.fill();
        host.advance(host.rtt);
        host.lose(1);
        let snapshot = host.cc.snapshot();
        assert_eq!(snapshot.state, "Recovery");
        assert!(snapshot.in_recovery);
        assert_eq!(snapshot.ssthresh, Some(segments(10)));
        // 18 are in flight, and the retransmission leaves at once.
        assert_eq!(host.fill(), 1);
        let sent: usize = (0..18)
            .map(|_| {
                host.feedback(Report { acked: 1, ..Report::default() });
                host.fill()
            })
            .sum();
        // Half of the 19 delivered so far, rounded up, the retransmission included.
        assert_eq!(sent, 9);
        host.advance(host.rtt);
        host.ack(1);
        assert_eq!(host.cc.snapshot().state, "CongestionAvoidance");
        assert_eq!(host.cwnd(), segments(10));
    }

    #[test]
    //= rfc9937 6.1-2 test
    fn recover_fs_is_everything_outstanding() {
        let mut host = host(40);
        host.fill();
        host.advance(host.rtt);
        host.lose(8);
        let mut sent = host.fill();
        for _ in 0..9 {
            host.feedback(Report { acked: 1, ..Report::default() });
            sent += host.fill();
        }
        // Half of the 10 out of 40 delivered.
        assert_eq!(sent, 5);
    }

    #[test]
    fn window_without_room_for_a_segment_is_full() {
        let mut settings = settings(10);
        settings.initial_window += 700;
        let mut host = Host::new(NewReno::new(&settings));
        assert_eq!(host.fill(), 10);
        host.advance(host.rtt);
        host.lose(1);
        assert_eq!(host.cc.snapshot().ssthresh, Some(segments(5) + 350));
    }

    #[test]
    //= rfc5681 6582-3.2-1 test
    //= rfc9002 7.3.2-4 test
    fn an_episode_is_one_congestion_event() {
        let mut host = host(32);
        host.fill();
        host.advance(host.rtt);
        host.lose(3);
        host.fill();
        host.lose(4);
        assert_eq!(host.cc.snapshot().ssthresh, Some(segments(16)));
    }

    #[test]
    //= rfc5681 4.3-1 test
    //= rfc9937 6.1-1 test
    //= rfc9002 7.2-4 test
    //= rfc9438 4.6-5 test
    fn loss_of_a_packet_sent_in_recovery_is_another_event() {
        let mut host = avoiding(32);
        host.lose(1);
        host.advance(TimeDelta::from_millis(1));
        // The retransmission, and a second packet once four have been delivered.
        host.fill();
        host.ack(3);
        host.fill();
        assert_eq!(host.cc.snapshot().ssthresh, Some(segments(16)));
        // The rest of the old flight is lost: still the same episode.
        let rest = host.in_flight() - 2;
        host.feedback(Report { lost: rest, ..Report::default() });
        assert_eq!(host.cc.snapshot().ssthresh, Some(segments(16)));
        // Then the retransmission, which left after recovery began; two were in flight.
        host.feedback(Report { lost: 1, ..Report::default() });
        assert_eq!(host.cc.snapshot().ssthresh, Some(segments(2)));
    }

    #[test]
    //= rfc9002 7.3.3-1 test
    //= rfc5681 3.1-5 test
    fn congestion_avoidance_adds_a_segment_a_round() {
        let mut host = avoiding(10);
        host.round();
        assert_eq!(host.cwnd(), segments(11));
        host.round();
        assert_eq!(host.cwnd(), segments(12));
    }

    #[test]
    //= rfc9002 7.3.3-1 test
    //= rfc5681 3.1-6 test
    fn stretch_ack_counts_in_full() {
        let mut host = avoiding(10);
        host.advance(host.rtt);
        host.ack(9);
        assert_eq!(host.cwnd(), segments(10));
        host.ack(1);
        assert_eq!(host.cwnd(), segments(11));
    }

    #[test]
    //= rfc5681 3.1-6 test
    fn remainder_of_a_stretch_ack_is_kept() {
        let mut host = avoiding(10);
        host.advance(host.rtt);
        host.ack(7);
        host.fill();
        host.ack(7);
        assert_eq!(host.cwnd(), segments(11));
        host.fill();
        host.advance(host.rtt);
        host.ack(7);
        assert_eq!(host.cwnd(), segments(12), "4 of the first 14 and 7 more");
    }

    #[test]
    fn growth_restarts_after_a_loss() {
        let mut host = avoiding(20);
        host.advance(host.rtt);
        for _ in 0..19 {
            host.ack(1);
            host.fill();
        }
        host.advance(host.rtt);
        host.lose(1);
        host.fill();
        host.advance(host.rtt);
        while host.cc.snapshot().in_recovery {
            host.fill();
            host.ack(1);
        }
        host.fill();
        host.ack(1);
        assert_eq!(host.cwnd(), segments(10));
    }

    #[test]
    //= rfc5681 3.1-3 3.1-7 3.1-9 test
    fn timeout_reduces_the_window_to_one_segment() {
        let mut host = avoiding(16);
        host.time_out();
        assert_eq!(host.cwnd(), segments(1));
        assert_eq!(host.cc.snapshot().ssthresh, Some(segments(8)));
        // Slow start up to ssthresh.
        for window in [2, 4, 8, 9] {
            host.round();
            assert_eq!(host.cwnd(), segments(window));
        }
    }

    #[test]
    fn packets_in_flight_after_a_timeout_do_not_block_the_retransmission() {
        let mut host = avoiding(16);
        host.cc.on_timeout(host.now, Timeout::Retransmission);
        host.feedback(Report { lost: 13, ..Report::default() });
        assert_eq!(host.cwnd(), segments(4));
        assert_eq!(host.fill(), 1);
        // A timer declares the rest lost: the window does not change.
        host.feedback(Report { lost: 3, ..Report::default() });
        assert_eq!(host.cwnd(), segments(4));
    }

    #[test]
    //= rfc9438 4.6-5 test
    //= rfc5681 3.1-7 3.1-8 test
    fn repeated_timeout_does_not_reduce_further() {
        let mut host = avoiding(16);
        host.time_out();
        for _ in 0..3 {
            host.fill();
            host.advance(TimeDelta::from_secs(1));
            host.time_out();
        }
        assert_eq!(host.cc.snapshot().ssthresh, Some(segments(8)));
        // After an ACK, the next timeout counts again.
        host.round();
        host.fill();
        host.time_out();
        assert_eq!(host.cc.snapshot().ssthresh, Some(segments(2)));
    }

    #[test]
    //= rfc5681 6582-3.2-3 test
    fn timeout_ends_recovery_and_older_losses_do_not_count() {
        let mut host = avoiding(32);
        host.lose(1);
        assert_eq!(host.cc.snapshot().state, "Recovery");
        host.advance(TimeDelta::from_secs(1));
        host.cc.on_timeout(host.now, Timeout::Retransmission);
        let ssthresh = host.cc.snapshot().ssthresh;
        assert_eq!(host.cc.snapshot().state, "SlowStart");
        assert_eq!(host.cwnd(), segments(1));
        for _ in 0..3 {
            host.feedback(Report { lost: 10, ..Report::default() });
            assert_eq!(host.cc.snapshot().ssthresh, ssthresh);
        }
    }

    #[test]
    //= rfc9002 7.2-4 7.6.2-5 test
    fn persistent_congestion_reduces_to_two_segments() {
        let mut host = avoiding(16);
        host.cc.on_timeout(host.now, Timeout::Persistent);
        host.lose(3);
        assert_eq!(host.cwnd(), segments(2));
        assert_eq!(host.cc.snapshot().ssthresh, Some(segments(8)));
        host.cc.on_spurious(host.now, &host.missing());
        assert_eq!(host.cwnd(), segments(2), "it cannot be undone");
    }

    /// RFC 9002 Appendix B.8: one reduction of ssthresh per recovery period.
    #[test]
    fn persistent_congestion_in_recovery_does_not_reduce_ssthresh_again() {
        let mut host = avoiding(32);
        host.lose(1);
        assert_eq!(host.cc.snapshot().ssthresh, Some(segments(16)));
        host.advance(TimeDelta::from_secs(1));
        host.cc.on_timeout(host.now, Timeout::Persistent);
        host.lose(10);
        assert_eq!(host.cwnd(), segments(2));
        assert_eq!(host.cc.snapshot().ssthresh, Some(segments(16)));
        host.cc.on_spurious(host.now, &host.missing());
        assert_eq!(host.cwnd(), segments(2), "it cannot be undone");
    }

    #[test]
    //= rfc9002 7.6.2-5 test
    fn persistent_congestion_reduces_to_two_segments_with_any_flight() {
        let mut host = avoiding(16);
        host.cc.on_timeout(host.now, Timeout::Persistent);
        host.feedback(Report { lost: 3, ..Report::default() });
        assert_eq!(host.cwnd(), segments(2));
    }

    #[test]
    //= rfc9002 7.5-1 test
    fn probe_timeout_has_no_effect() {
        let mut host = avoiding(16);
        host.cc.on_timeout(host.now, Timeout::Probe);
        assert_eq!(host.cwnd(), segments(16));
    }

    #[test]
    fn spurious_losses_are_undone_once_all_have_arrived() {
        let mut host = avoiding(16);
        host.lose(2);
        host.fill();
        let lost = host.cc.snapshot();
        assert!(lost.in_recovery);
        let missing = host.missing();
        assert_eq!(missing.len(), 1, "one of the two was retransmitted");
        host.cc.on_spurious(host.now, &missing);
        assert!(host.cc.snapshot().in_recovery, "one of two may still be lost");
        host.cc.on_spurious(host.now, &missing);
        assert!(!host.cc.snapshot().in_recovery);
        assert_eq!(host.cwnd(), segments(16));
        assert_eq!(host.cc.snapshot().ssthresh, Some(segments(16)));
    }

    #[test]
    fn undo_in_recovery_keeps_the_reduction_of_a_real_loss() {
        let mut host = avoiding(32);
        // With these losses, PRR limits the window to less than ssthresh.
        host.lose(20);
        host.advance(TimeDelta::from_millis(1));
        host.fill();
        let old = host.in_flight() - 1;
        for _ in 0..old {
            host.feedback(Report { acked: 1, ..Report::default() });
            host.fill();
        }
        assert!(host.cwnd() < segments(16));
        // The retransmission is declared lost, then arrives.
        host.lose(1);
        assert!(host.cc.snapshot().ssthresh < Some(segments(16)));
        let missing = host.missing();
        let (retransmission, real) = missing.split_last().expect("it is missing");
        host.cc.on_spurious(host.now, &real[..1]);
        assert!(
            host.cc.snapshot().ssthresh < Some(segments(16)),
            "that packet belongs to the first episode"
        );
        host.cc.on_spurious(host.now, &[*retransmission]);
        assert_eq!(host.cwnd(), segments(16));
        assert_eq!(host.cc.snapshot().ssthresh, Some(segments(16)));
    }

    #[test]
    //= rfc9438 4.9.1-1 4.9.1-2 test
    fn a_spurious_timeout_is_undone() {
        let mut host = avoiding(16);
        let lost = host.time_out();
        host.fill();
        host.cc.on_spurious(host.now, &lost);
        assert_eq!(host.cwnd(), segments(16));
        assert_eq!(host.cc.snapshot().ssthresh, Some(segments(16)));
    }

    #[test]
    //= rfc9002 7.1-1 7.3.2-4 test
    fn ce_marks_are_one_congestion_event_per_round() {
        let mut host = avoiding(16);
        host.advance(host.rtt);
        let marked = Report { acked: 1, ce_packets: 1, una_advanced: true, ..Report::default() };
        for _ in 0..16 {
            host.feedback(marked);
        }
        assert_eq!(host.cc.snapshot().ssthresh, Some(segments(8)));
        host.fill();
        host.advance(host.rtt);
        host.feedback(marked);
        assert_eq!(host.cc.snapshot().ssthresh, Some(segments(4)));
    }

    #[test]
    fn ce_mark_is_never_spurious() {
        let mut host = avoiding(16);
        host.feedback(Report { lost: 1, acked: 1, ce_packets: 1, ..Report::default() });
        host.cc.on_spurious(host.now, &host.missing());
        assert_eq!(host.cc.snapshot().ssthresh, Some(segments(8)));
    }

    #[test]
    //= rfc5681 3.2-1 test
    fn probe_repaired_loss_counts() {
        let mut host = avoiding(16);
        host.feedback(Report { acked: 1, repaired_by_probe: true, ..Report::default() });
        assert_eq!(host.cc.snapshot().ssthresh, Some(segments(8)));
    }

    #[test]
    //= rfc9438 4.6-3 test
    //= rfc9002 7.8-3 test
    fn only_the_used_part_of_the_window_is_halved() {
        let mut host = host(40);
        (0..12).for_each(|_| host.send());
        host.advance(host.rtt);
        host.lose(1);
        assert_eq!(host.cc.snapshot().ssthresh, Some(segments(6)));
    }

    #[test]
    fn window_keeps_room_for_a_larger_mss() {
        let mut host = avoiding(16);
        host.time_out();
        host.cc.on_path(host.now, PathEvent::MtuChanged { mss: 9_000 });
        assert_eq!(host.cwnd(), 9_000);
        assert_eq!(host.cc.snapshot().ssthresh, Some(18_000));
    }

    #[test]
    fn migration_resets_the_window() {
        let mut host = avoiding(16);
        host.advance(host.rtt);
        host.cc.on_path(host.now, PathEvent::Migrated);
        assert_eq!(host.cwnd(), segments(32));
        assert_eq!(host.cc.snapshot().ssthresh, None);
        // Feedback about packets of the old path has no effect.
        host.lose(2);
        assert_eq!(host.cwnd(), segments(32));
        assert_eq!(host.cc.snapshot().ssthresh, None);
    }

    #[test]
    fn migration_restarts_slow_start_even_with_the_largest_window() {
        let mut reno = NewReno::new(&Settings { initial_window: u64::MAX, ..settings(1) });
        reno.on_path(Time::ZERO, PathEvent::Migrated);
        assert_eq!(reno.snapshot().state, "SlowStart");
    }

    #[test]
    fn late_arrival_of_all_losses_undoes_the_episode_in_a_closed_loop() {
        let path = Path::new(Rate::from_bytes_per_sec(250_000), TimeDelta::from_millis(40), 1_000);
        let mut sim = Loop::new(NewReno::new(&Settings::new(link::MSS, 1, Time::ZERO)), path, 1);
        let end = Time::ZERO + TimeDelta::from_secs(3);
        assert!(sim.run_until(end, |sim| sim.snapshot().in_recovery));
        assert!(sim.snapshot().ssthresh.is_some());
        sim.deliver_lost_packets();
        let snapshot = sim.snapshot();
        assert_eq!((snapshot.in_recovery, snapshot.ssthresh), (false, None));
        sim.run(end, |_| {});
        assert!(sim.stats.acked_bytes > 500_000, "{:?}", sim.stats);
    }

    #[test]
    fn sender_is_ack_clocked() {
        let control = host(10).cc.control();
        assert_eq!(control.pacing_rate, None);
        assert_eq!(control.send_quantum, control.cwnd);
        assert_eq!(u64::from(MSS) * 10, control.cwnd);
    }
}
