//! Recovery after a start that triples the window: draft-kazuho-ccwg-rapid-start-02 §3.3.

use uncork_units::Ratio;

use super::{Congestion, LossUndo, LossWindow, WindowRule};
use crate::event::Feedback;

/// Lowers the window by a part of each byte that is acknowledged or lost, so that it ends recovery at `beta` of what
/// path and buffer hold, however far the start has exceeded that (Appendix A).
///
/// Parts are in units of 2⁻³²: an ACK needs no division.
#[derive(Clone, Copy, Debug)]
pub(super) struct Convergence {
    /// The window is not reduced below this.
    floor: u64,
    of_acked: u32,
    of_lost: u32,
}

/// 2³² times 2 (1 - beta) / 3, the part of acknowledged bytes.
const fn ack_factor(beta: Ratio) -> u64 {
    Ratio::new(2 * (beta.den() - beta.num()), 3 * beta.den()).of(1 << 32)
}

/// 2³² times (beta + 2 (1 - beta) / 3), the part of lost bytes, and of the window that recovery begins with.
const fn silence_factor(beta: Ratio) -> u64 {
    Ratio::new(beta.num() + 2 * beta.den(), 3 * beta.den()).of(1 << 32)
}

fn part(bytes: u64, factor: u32) -> u64 {
    uncork_units::wide::saturating_mul(bytes, u64::from(factor)) >> 32
}

impl LossWindow {
    /// Response to [`super::LossReaction::Congestion`] that ends a start which converges.
    //= rapid-start 3.3-1 3.3-4 3.3-5 3.3-6 3.3.1-1
    pub(crate) fn converge(&mut self, event: Congestion, beta: Ratio, feedback: &Feedback<'_>) {
        self.undo = LossUndo { cwnd: event.cwnd, ssthresh: self.ssthresh };
        let of_start = beta.of(self.initial_window);
        let rule = Convergence {
            floor: (beta.of(event.used) / 3).max(of_start).max(2 * self.mss()),
            of_acked: ack_factor(beta) as u32,
            of_lost: silence_factor(beta) as u32,
        };
        self.cwnd = part(event.used, rule.of_lost);
        self.follow_convergence(rule, feedback);
        self.rule = WindowRule::Convergence(rule);
    }

    /// A feedback in recovery. ssthresh is the window, which stays when recovery ends.
    //= rapid-start 3.3-2 3.3-3
    pub(super) fn follow_convergence(&mut self, rule: Convergence, feedback: &Feedback<'_>) {
        let reduction = part(feedback.acked_bytes(), rule.of_acked)
            .saturating_add(part(feedback.lost_bytes(), rule.of_lost));
        self.cwnd = self.cwnd.saturating_sub(reduction).max(rule.floor);
        self.ssthresh = self.cwnd;
    }
}

#[cfg(test)]
mod tests {
    use uncork_units::{Rate, TimeDelta};

    use crate::controller::{Controller, Settings};
    use crate::cubic::Cubic;
    use crate::inheritance::Inheritance;
    use crate::newreno::NewReno;
    use crate::script::{Host, Report, segments, settings};
    use crate::start::RapidStart;

    /// A window of `sent` segments over a path that holds 100 with its buffer. Returns the segments acknowledged
    /// before the sender sends again, and the window at the end of recovery.
    fn overflow<C: Controller>(cc: C, sent: usize) -> (usize, u64) {
        let mut host = Host::new(cc);
        assert_eq!(host.fill(), sent);
        host.advance(host.rtt);
        let mut silent_until = None;
        // Losses before `acked` segments are acknowledged: the first ACK reports one.
        let lost_by = |acked: usize| (sent * acked).div_ceil(100) - acked;
        for acked in 1..=100 {
            let lost = lost_by(acked) - lost_by(acked - 1);
            host.feedback(Report { lost, acked: 1, ..Report::default() });
            if host.fill() > 0 {
                silent_until.get_or_insert(acked);
            }
        }
        assert!(host.cc.snapshot().in_recovery);
        host.advance(host.rtt);
        host.ack(1);
        assert!(!host.cc.snapshot().in_recovery);
        (silent_until.expect("it sends again"), host.cwnd() / segments(1))
    }

    /// A connection with a window that has grown to this many segments from 10.
    fn grown_to(window: u64) -> Settings {
        let rtt = TimeDelta::from_millis(100);
        let window = segments(window);
        let bw = Rate::of(window, rtt);
        let inherited = Inheritance { window, min_rtt: rtt, bw, has_filled_pipe: false };
        Settings { inherited: Some(inherited), ..settings(10) }
    }

    fn reno(window: u64) -> NewReno<RapidStart> {
        NewReno::with_start(&grown_to(window))
    }

    fn cubic(window: u64) -> Cubic<RapidStart> {
        Cubic::with_start(&grown_to(window))
    }

    /// Appendix A: the window ends at beta of what path and buffer hold, after a silence of at most 1 - beta of it.
    #[test]
    //= rapid-start 3.3-1 3.3-2 3.3.1-1 test
    fn window_ends_at_beta_of_the_full_bdp() {
        for sent in [150, 200, 300] {
            let (silence, window) = overflow(cubic(sent), sent as usize);
            assert!((69..=71).contains(&window), "{sent}: {window}");
            assert!(silence <= 31, "{sent}: {silence}");
            let (silence, window) = overflow(reno(sent), sent as usize);
            assert!((49..=51).contains(&window), "{sent}: {window}");
            assert!(silence <= 51, "{sent}: {silence}");
        }
    }

    #[test]
    //= rapid-start 3.3-6 test
    fn mark_alone_reduces_by_beta() {
        let mut host = Host::new(cubic(100));
        host.fill();
        host.advance(host.rtt);
        host.feedback(Report { acked: 1, ce_packets: 1, una_advanced: true, ..Report::default() });
        (0..99).for_each(|_| host.ack(1));
        assert_eq!(host.cwnd() / segments(1), 70);
    }

    #[test]
    //= rapid-start 3.3-3 3.3-4 3.3-5 test
    fn window_is_not_reduced_below_a_third_of_beta_nor_below_the_start() {
        let lose_all_but_one = |window: u64| {
            let mut host = Host::new(cubic(window));
            host.fill();
            host.advance(host.rtt);
            host.lose(window as usize - 1);
            host.cwnd()
        };
        assert_eq!(lose_all_but_one(300), segments(300) * 7 / 10 / 3);
        assert_eq!(lose_all_but_one(12), segments(10) * 7 / 10);
    }

    #[test]
    //= rapid-start 3.3-7 test
    fn second_loss_is_reduced_as_any_other() {
        let mut host = Host::new(cubic(100));
        host.lose_one_and_recover();
        let window = host.cwnd();
        host.lose_one_and_recover();
        let ssthresh = host.cc.snapshot().ssthresh.expect("two losses");
        assert!(ssthresh < window * 3 / 4, "{ssthresh} of {window}");
    }

    #[test]
    fn spurious_loss_restores_the_start() {
        let mut host = Host::new(cubic(100));
        host.fill();
        host.advance(host.rtt);
        host.lose(1);
        let missing = host.missing();
        host.cc.on_spurious(host.now, &missing);
        assert_eq!((host.cwnd(), host.cc.snapshot().ssthresh), (segments(100), None));
    }
}
