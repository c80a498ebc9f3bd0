//! The option `rtt_fair`. Its effect on flows that share a queue is tested in `uncork-sim`.

use super::*;
use crate::bbr3::rtt_fair::Horizon;
use crate::controller::Controller;

fn cruising(rtt: TimeDelta, rtt_fair: bool) -> Loop<Bbr3> {
    let path = Path::new(Rate::from_mbit(100), rtt, 2_000);
    let mut flow = Loop::new(bbr(Deviations::ALL).with_rtt_fairness(rtt_fair), path, 1);
    flow.reach(State::ProbeBwCruise);
    flow
}

#[test]
fn queue_allowance_is_25_ms_but_at_most_3_bdp() {
    for millis in [10, 40, 100] {
        let bbr = cruising(ms(millis), true).cc;
        assert_eq!(bbr.window_target() - bbr.bdp, bbr.bw.bytes_in(ms(25)), "{millis} ms");
    }
    let bbr = cruising(ms(2), true).cc;
    assert_eq!(bbr.window_target() - bbr.bdp, 3 * bbr.bdp);
}

#[test]
fn without_the_option_the_window_is_twice_the_bdp() {
    let bbr = cruising(ms(100), false).cc;
    assert_eq!(bbr.window_target(), 2 * bbr.bdp);
}

/// A pipe of eight packets probes several times a second.
#[test]
fn max_bw_ages_every_two_seconds_even_if_a_small_pipe_probes_more_often() {
    let path = Path::new(Rate::from_mbit(10), ms(10), 2_000);
    let mut flow = Loop::new(bbr(Deviations::ALL).with_rtt_fairness(true), path, 1);
    let (mut seconds, mut probes, mut was_up) = (std::vec![0], 0, false);
    flow.run(secs(30), |flow| {
        let second = flow.cc.cycle.advanced_second;
        if seconds.last() != Some(&second) {
            seconds.push(second);
        }
        let is_up = flow.cc.state == State::ProbeBwUp;
        probes += u32::from(is_up && !was_up);
        was_up = is_up;
    });
    assert!(probes > 60, "{probes}");
    assert!(seconds.len() > 10 && seconds.windows(2).all(|pair| pair[1] - pair[0] >= 2));
}

#[test]
fn option_survives_migration() {
    let mut flow = cruising(ms(40), true);
    flow.cc.on_path(flow.now, crate::PathEvent::Migrated);
    assert!(flow.cc.cycle.horizon == Horizon::Time);
}
