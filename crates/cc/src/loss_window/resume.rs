//! How a loss-based window goes through the phases of a careful resume: RFC 9959 §3.2 to §3.5.

use uncork_units::Time;

use super::{LossWindow, Rule, Step};
use crate::event::Feedback;
use crate::resume::trial::Trial;
use crate::resume::{Reconnaissance, ResumeHint, ResumePhase};

impl LossWindow {
    /// A hint is worth something as long as nothing is known: no congestion was met, and no hint
    /// taken before.
    pub(crate) fn offer(&mut self, hint: ResumeHint) {
        if self.is_initial() && !self.has_jumped && matches!(self.rule, Rule::Growth) {
            let confirmed_at = self.delivered.saturating_add(self.initial_window);
            self.rule = Rule::Reconnaissance(Reconnaissance::new(hint), confirmed_at);
        }
    }

    /// §3.2, "Path confirmed": an initial window has been acknowledged without congestion, and the
    /// sender has more to send than slow start lets it; one that has not may stay in Reconnaissance.
    pub(super) fn confirms_path(&self, step: Step) -> Option<Reconnaissance> {
        match self.rule {
            Rule::Reconnaissance(hint, confirmed_at)
                if matches!(step, Step::Grow(_)) && self.delivered >= confirmed_at =>
            {
                Some(hint)
            }
            _ => None,
        }
    }

    /// §3.3: the window becomes jump_cwnd, if that is more than it would be anyway. True when it did.
    pub(super) fn jump(
        &mut self,
        now: Time,
        hint: Reconnaissance,
        feedback: &Feedback<'_>,
    ) -> bool {
        let Some(rtt) = feedback.rtt else { return false };
        self.rule = Rule::Growth;
        let grown = self.cwnd.saturating_add(feedback.acked_bytes());
        let Some(jump) = hint.conclude(rtt).filter(|jump| jump.cwnd > grown) else {
            return false;
        };
        self.cwnd = jump.cwnd;
        self.has_jumped = true;
        let rtt = rtt.smoothed.max(rtt.min);
        self.rule = Rule::Trial(Trial::begin(now, feedback.in_flight, self.delivered, rtt));
        true
    }

    /// A feedback to a window on trial; `is_congested` says that it is news of congestion.
    pub(super) fn follow_trial(
        &mut self,
        now: Time,
        mut trial: Trial,
        is_congested: bool,
        feedback: &Feedback<'_>,
    ) -> Step {
        if is_congested {
            trial.retreat(now);
            self.rule = Rule::Trial(trial);
            self.retreat(trial);
            return Step::Hold;
        }
        match trial.phase() {
            ResumePhase::Unvalidated => {
                if let Some(rtt) = feedback.rtt {
                    trial.update_rtt(rtt.smoothed);
                }
                self.rule = Rule::Trial(trial);
                if trial.has_passed(feedback) || trial.is_overdue(now) {
                    self.end_unvalidated(now);
                }
                Step::Hold
            }
            ResumePhase::SafeRetreat => {
                if trial.has_passed(feedback) {
                    self.end_retreat(trial);
                }
                Step::Hold
            }
            ResumePhase::Reconnaissance | ResumePhase::Validating => {
                if trial.has_passed(feedback) {
                    self.rule = Rule::Growth;
                }
                self.growth(feedback)
            }
        }
    }

    /// §3.3, "Check flight_size": what was not used of the jump is taken back, and of a flight that
    /// is no more than what was delivered meanwhile nothing is left to prove.
    pub(super) fn end_unvalidated(&mut self, now: Time) {
        let Rule::Trial(mut trial) = self.rule else { return };
        let pipe_size = trial.pipe_size(self.delivered);
        if self.in_flight < self.initial_window || self.in_flight <= pipe_size {
            // Neither below the initial window nor below a packet that has grown since.
            let least = self.initial_window.max(self.mss());
            self.cwnd = pipe_size.min(self.cwnd).max(least);
            self.rule = Rule::Growth;
            return;
        }
        trial.validate(now);
        self.rule = Rule::Trial(trial);
        self.cwnd = self.in_flight.min(self.cwnd).max(self.mss());
        self.full[0] = true;
    }

    /// §3.5: at most half of PipeSize, the minimum window of two segments apart. It was half of an
    /// overshoot, so PRR's gradual way down is not for it (§4.5), and no spurious loss gives it back.
    fn retreat(&mut self, trial: Trial) {
        self.recovery.confirm();
        self.cwnd = (trial.pipe_size(self.delivered) / 2).max(2 * self.mss()).min(self.cwnd);
    }

    /// §3.5: the last unvalidated packet is accounted for; from here slow start goes up to half of
    /// what was delivered in all.
    fn end_retreat(&mut self, trial: Trial) {
        self.recovery.end();
        self.ssthresh = (trial.pipe_size(self.delivered) / 2).max(2 * self.mss());
        self.rule = Rule::Growth;
    }
}

#[cfg(test)]
mod tests {
    use uncork_units::{Rate, TimeDelta};

    use super::*;
    use crate::newreno::NewReno;
    use crate::script::{Host, Report, segments, settings};
    use crate::{Controller, PathEvent, Timeout};

    const RTT: TimeDelta = TimeDelta::from_millis(100);

    /// A connection that was told of 200 segments in 100 ms, and whose initial window of 10 leaves.
    fn told() -> Host<NewReno> {
        let mut host = Host::new(NewReno::new(&settings(10)));
        tell(&mut host, 200);
        host.fill();
        host.advance(RTT);
        host
    }

    fn tell(host: &mut Host<NewReno>, saved: u64) {
        let hint = ResumeHint { saved_cwnd: segments(saved), saved_rtt: RTT };
        host.cc.on_path(host.now, PathEvent::Resume(hint));
    }

    /// All of the initial window but its last packet is acknowledged: 19 are in flight.
    fn nearly_confirmed() -> Host<NewReno> {
        let mut host = told();
        for _ in 0..9 {
            host.ack(1);
            host.fill();
        }
        host.advance(TimeDelta::from_millis(1));
        host
    }

    /// The window has jumped to 100 segments, while 18 are in flight.
    fn jumped() -> Host<NewReno> {
        let mut host = nearly_confirmed();
        host.ack(1);
        assert_eq!((phase(&host), host.in_flight()), (Some(ResumePhase::Unvalidated), 18));
        host
    }

    /// The jump was used in full, and the 18 packets from before it are acknowledged: 82 are left.
    fn validating() -> Host<NewReno> {
        let mut host = jumped();
        pace(&mut host, 82);
        assert_eq!(phase(&host), Some(ResumePhase::Validating));
        host.advance(TimeDelta::from_millis(18));
        host.ack(18);
        host
    }

    /// Sends so many segments, a millisecond apart.
    fn pace<C: Controller>(host: &mut Host<C>, segments: usize) {
        for _ in 0..segments {
            host.advance(TimeDelta::from_millis(1));
            host.send();
        }
    }

    fn phase(host: &Host<NewReno>) -> Option<ResumePhase> {
        host.cc.snapshot().resume
    }

    fn ssthresh(host: &Host<NewReno>) -> Option<u64> {
        host.cc.snapshot().ssthresh
    }

    #[test]
    fn the_window_jumps_to_half_once_the_initial_window_is_acknowledged() {
        let mut host = nearly_confirmed();
        assert_eq!(phase(&host), Some(ResumePhase::Reconnaissance));
        assert_eq!(host.cwnd(), segments(19), "slow start as ever");
        host.ack(1);
        assert_eq!(phase(&host), Some(ResumePhase::Unvalidated));
        let control = host.cc.control();
        assert_eq!(control.cwnd, segments(100));
        assert_eq!(control.pacing_rate, Some(Rate::of(segments(100), RTT)));
        assert!(control.send_quantum < segments(10), "no burst beyond an initial window");
    }

    #[test]
    fn congestion_in_reconnaissance_ends_it() {
        for report in
            [Report { lost: 1, ..Report::default() }, Report { ce_packets: 1, ..Report::default() }]
        {
            let mut host = told();
            host.feedback(Report { acked: 1, una_advanced: true, ..report });
            assert_eq!(phase(&host), None);
            assert_eq!(ssthresh(&host), Some(segments(5)), "as without a hint");
        }
    }

    #[test]
    fn another_round_trip_time_ends_reconnaissance() {
        for rtt_ms in [50, 1_001] {
            let mut host = told();
            host.rtt = TimeDelta::from_millis(rtt_ms);
            for _ in 0..10 {
                host.ack(1);
                host.fill();
            }
            assert_eq!((phase(&host), host.cwnd()), (None, segments(20)));
        }
    }

    #[test]
    fn a_sender_without_data_stays_in_reconnaissance() {
        let mut host = Host::new(NewReno::new(&settings(10)));
        tell(&mut host, 200);
        for _ in 0..5 {
            (0..4).for_each(|_| host.send());
            host.advance(RTT);
            host.ack(4);
        }
        assert_eq!((phase(&host), host.cwnd()), (Some(ResumePhase::Reconnaissance), segments(10)));
    }

    #[test]
    fn a_hint_of_less_than_the_window_changes_nothing() {
        let mut host = Host::new(NewReno::new(&settings(10)));
        tell(&mut host, 30);
        host.round();
        assert_eq!((phase(&host), host.cwnd()), (None, segments(20)));
    }

    #[test]
    fn a_hint_after_congestion_is_ignored() {
        let mut host = Host::new(NewReno::new(&settings(20)));
        host.lose_one_and_recover();
        tell(&mut host, 200);
        assert_eq!(phase(&host), None);
    }

    #[test]
    fn a_full_flight_ends_the_unvalidated_phase() {
        let mut host = jumped();
        host.fill();
        assert_eq!(phase(&host), Some(ResumePhase::Validating));
        let control = host.cc.control();
        assert_eq!((control.cwnd, control.pacing_rate), (segments(100), None));
    }

    #[test]
    fn the_first_unvalidated_packet_acknowledged_leaves_the_window_at_the_flight() {
        let mut host = jumped();
        host.advance(TimeDelta::from_millis(1));
        (0..60).for_each(|_| host.send());
        host.advance(TimeDelta::from_millis(90));
        host.ack(18);
        assert_eq!((phase(&host), host.cwnd()), (Some(ResumePhase::Unvalidated), segments(100)));
        host.ack(1);
        assert_eq!((phase(&host), host.cwnd()), (Some(ResumePhase::Validating), segments(59)));
    }

    #[test]
    fn an_unused_jump_is_taken_back_to_pipe_size() {
        let mut host = jumped();
        host.advance(TimeDelta::from_millis(1));
        (0..15).for_each(|_| host.send());
        host.advance(TimeDelta::from_millis(90));
        host.ack(18);
        host.ack(1);
        // 14 in flight are no more than the 18 of before and the 19 delivered since.
        assert_eq!((phase(&host), host.cwnd()), (None, segments(18 + 19)));
        assert_eq!(ssthresh(&host), None);
    }

    #[test]
    fn the_unvalidated_phase_lasts_a_round_trip_at_most() {
        let mut host = jumped();
        host.advance(RTT);
        host.send();
        assert_eq!(phase(&host), Some(ResumePhase::Unvalidated));
        host.advance(TimeDelta::from_millis(1));
        host.send();
        assert_eq!(phase(&host), Some(ResumePhase::Validating));
        assert_eq!(host.cwnd(), segments(20), "what is in flight, more than the 18 of before");
    }

    #[test]
    fn validation_is_slow_start_until_the_last_unvalidated_packet() {
        let mut host = validating();
        assert_eq!(host.cwnd(), segments(100 + 8), "L segments for the stretch ACK");
        for _ in 0..81 {
            host.ack(1);
        }
        assert_eq!((phase(&host), host.cwnd()), (Some(ResumePhase::Validating), segments(189)));
        host.ack(1);
        assert_eq!((phase(&host), ssthresh(&host)), (None, None));
    }

    #[test]
    fn congestion_on_trial_leaves_half_of_pipe_size() {
        for report in
            [Report { lost: 1, ..Report::default() }, Report { ce_packets: 1, ..Report::default() }]
        {
            let mut host = validating();
            (0..22).for_each(|_| host.ack(1));
            // 18 before the jump, 18 + 22 delivered since, and one with the news.
            host.feedback(Report { acked: 1, una_advanced: true, ..report });
            assert_eq!(phase(&host), Some(ResumePhase::SafeRetreat));
            assert_eq!(host.cwnd(), segments(59) / 2);
            assert_eq!(host.cc.snapshot().state, "Recovery");
        }
    }

    #[test]
    fn the_retreat_lasts_until_the_last_unvalidated_packet_and_sets_ssthresh() {
        let mut host = validating();
        host.lose(1);
        let cwnd = host.cwnd();
        assert_eq!(cwnd, segments(37) / 2);
        for _ in 0..79 {
            host.ack(1);
            assert_eq!((phase(&host), host.cwnd()), (Some(ResumePhase::SafeRetreat), cwnd));
        }
        host.ack(1);
        assert_eq!((phase(&host), host.cwnd()), (None, cwnd));
        // 18 and, delivered since, 18 + 81.
        assert_eq!(ssthresh(&host), Some(segments(117) / 2));
        host.advance(TimeDelta::from_millis(1));
        host.fill();
        host.advance(RTT);
        host.ack(1);
        assert_eq!(host.cwnd(), cwnd + segments(1), "slow start from there");
    }

    #[test]
    fn a_loss_before_any_proof_is_a_retreat_too() {
        let mut host = jumped();
        host.lose(1);
        assert_eq!(phase(&host), Some(ResumePhase::SafeRetreat));
        assert_eq!(host.cwnd(), segments(19) / 2);
        assert_eq!(host.cc.control().pacing_rate, None);
    }

    #[test]
    fn no_spurious_loss_undoes_a_retreat() {
        let mut host = validating();
        host.lose(1);
        let cwnd = host.cwnd();
        host.cc.on_spurious(host.now, &host.missing());
        assert_eq!((phase(&host), host.cwnd()), (Some(ResumePhase::SafeRetreat), cwnd));
    }

    #[test]
    fn a_timeout_ends_a_trial_and_counts_what_was_proved() {
        let mut host = validating();
        host.cc.on_timeout(host.now, Timeout::Retransmission);
        assert_eq!((phase(&host), host.cwnd()), (None, segments(1)));
        assert_eq!(ssthresh(&host), Some(segments(36) / 2), "18 of before, 18 delivered");
    }

    #[test]
    fn another_path_ends_a_trial() {
        let mut host = jumped();
        host.cc.on_path(host.now, PathEvent::Migrated);
        assert_eq!((phase(&host), host.cwnd()), (None, segments(10)));
        assert_eq!(host.cc.control().pacing_rate, None);
    }

    /// What was paced over a round trip comes back as a train of ACKs of that length.
    #[test]
    fn cubic_does_not_take_a_jump_for_a_long_train() {
        let mut host = Host::new(crate::cubic::Cubic::new(&settings(10), false));
        let hint = ResumeHint { saved_cwnd: segments(200), saved_rtt: RTT };
        host.cc.on_path(host.now, PathEvent::Resume(hint));
        host.fill();
        host.advance(RTT);
        (0..10).for_each(|_| host.ack(1));
        assert_eq!(host.cc.snapshot().resume, Some(ResumePhase::Unvalidated));
        pace(&mut host, 100);
        assert_eq!(host.cc.snapshot().resume, Some(ResumePhase::Validating));
        for _ in 0..80 {
            host.ack(1);
            host.fill();
            host.advance(TimeDelta::from_millis(1));
        }
        assert_eq!(host.cc.snapshot().state, "SlowStart");
        assert_eq!(host.cwnd(), segments(180));
    }
}
