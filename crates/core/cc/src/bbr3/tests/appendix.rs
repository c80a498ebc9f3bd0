//! Test cases of draft-ietf-ccwg-bbr-06, Appendix A, that need a host which reverts losses on
//! command, or internal state that a snapshot lacks. The others run in the simulator: `uncork-sim`,
//! `tests/all/appendix`.

use std::vec::Vec;

use super::super::bounds::Bounds;
use super::*;
use crate::Controller;

const RATE: u64 = 12_500_000; // 100 Mbit/s in bytes per second

/// A flow over 100 Mbit/s and 40 ms with a buffer of two BDP.
fn roomy() -> Loop<Bbr3> {
    flow(100, 2_000, Deviations::ALL)
}

/// The draft's suggested grid of RTTs in microseconds and rates in kbit/s. `UNCORK_GRID=full` runs
/// all of it except the three points with more than 100 000 packets in flight, which take minutes
/// on this link; the default is a sample.
fn grid() -> Vec<(u64, u64)> {
    const RTTS: [u64; 8] = [200, 1_000, 10_000, 40_000, 100_000, 300_000, 600_000, 1_000_000];
    const RATES: [u64; 6] = [64, 1_000, 10_000, 100_000, 1_000_000, 10_000_000];
    if std::env::var_os("UNCORK_GRID").is_some_and(|grid| grid == "full") {
        let points = RTTS.iter().flat_map(|rtt| RATES.map(|rate| (*rtt, rate)));
        return points.filter(|(rtt, rate)| rtt * rate <= 1_000_000_000_000).collect();
    }
    std::vec![
        (200, 64),
        (1_000_000, 64),
        (10_000, 1_000),
        (40_000, 100_000),
        (1_000, 1_000_000),
        (200, 10_000_000),
    ]
}

/// Runs `case` on a flow in `state`, with a buffer of two BDP plus twenty packets, at each point of
/// the grid.
fn everywhere(state: State, case: fn(Loop<Bbr3>, &str)) {
    for (rtt_us, kbit) in grid() {
        let rate = Rate::from_bits_per_sec(kbit * 1_000);
        let mut path = Path::new(rate, TimeDelta::from_micros(rtt_us), 2_000);
        path.buffer += 20 * u64::from(MSS);
        let patience = TimeDelta::from_secs(60) + path.rtt.times(60);
        let mut flow = Loop::new(bbr(Deviations::ALL), path, 1);
        let at = std::format!("{rtt_us} us, {kbit} kbit/s");
        assert!(flow.run_until(Time::ZERO + patience, |flow| flow.cc.state == state), "{at}");
        flow.cc.min_rtt.schedule_probe(flow.now); // no ProbeRTT meanwhile
        flow.lost_packets.clear();
        flow.stats.timeouts = 0;
        case(flow, &at);
    }
}

/// Declares every loss spurious; returns the bounds before and after.
fn take_back(flow: &mut Loop<Bbr3>) -> (Bounds, Bounds) {
    let after_loss = flow.cc.bounds;
    let lost = core::mem::take(&mut flow.lost_packets);
    flow.cc.on_spurious(flow.now, &lost);
    (after_loss, flow.cc.bounds)
}

/// Runs until `done`; fails after 60 s plus 60 round trips.
fn lose_until(flow: &mut Loop<Bbr3>, at: &str, done: fn(&Loop<Bbr3>) -> bool) {
    let patience = flow.now + TimeDelta::from_secs(60) + flow.path.rtt.times(60);
    assert!(flow.run_until(patience, done), "{at}: in {:?}", flow.cc.state);
}

/// A.18: every second packet seems lost until UP is over; then all turn out to be late.
#[test]
//= bbr-06 5.2.5-1 5.5.10.2-5 5.5.11.2-4 5.5.11.2-6 test
fn spurious_loss_in_up_resumes_the_probe() {
    everywhere(State::ProbeBwUp, |mut flow, at| {
        let before = flow.cc.bounds;
        flow.path.loss_ppm = 500_000;
        lose_until(&mut flow, at, |flow| flow.cc.state != State::ProbeBwUp);
        assert!(flow.cc.cycle.prev_probe_too_high, "{at}: {:?}", flow.cc.state);
        let (after_loss, restored) = take_back(&mut flow);
        assert_ne!(after_loss, before, "{at}");
        assert_eq!((restored, flow.cc.state), (before, State::ProbeBwRefill), "{at}");
        flow.path.loss_ppm = 0;
        let round = flow.cc.round.count();
        flow.reach(State::ProbeBwUp);
        assert_eq!(flow.cc.round.count() - round, 1, "{at}");
    });
}

/// A.19: nothing arrives until the timer expires; then everything does.
#[test]
//= bbr-06 5.5.11.1-1 5.5.11.2-2 5.6.4.4-5 test
fn spurious_timeout_restores_window_and_bounds() {
    everywhere(State::ProbeBwCruise, |mut flow, at| {
        flow.path.loss_ppm = 1_000_000;
        let mut before = (0, flow.cc.bounds);
        let patience = flow.now + TimeDelta::from_secs(60) + flow.path.rtt.times(60);
        let timed_out = flow.run_until(patience, |flow| {
            if flow.stats.timeouts == 0 {
                before = (flow.cc.cwnd, flow.cc.bounds);
            }
            flow.stats.timeouts > 0
        });
        assert!(timed_out, "{at}");
        assert!(flow.cc.cwnd <= flow.in_flight() + u64::from(MSS), "{at}");
        take_back(&mut flow);
        assert_eq!((flow.cc.cwnd, flow.cc.bounds), before, "{at}");
    });
}

/// A.19 in UP, and the retransmission is late too.
#[test]
//= bbr-06 5.6.4.4-4 test
fn spurious_timeouts_in_up_resume_the_probe() {
    everywhere(State::ProbeBwUp, |mut flow, at| {
        let before = flow.cc.bounds;
        flow.path.loss_ppm = 1_000_000;
        lose_until(&mut flow, at, |flow| flow.stats.timeouts == 2);
        assert_eq!(flow.cc.state, State::ProbeBwDown, "{at}");
        let (_, restored) = take_back(&mut flow);
        assert_eq!((restored, flow.cc.state), (before, State::ProbeBwRefill), "{at}");
    });
}

/// A.11, step 4.
#[test]
//= bbr-06 5.3.4.3-4 test
fn a_restart_from_idle_lasts_until_the_first_delivery() {
    let mut flow = roomy();
    flow.reach(State::ProbeBwCruise);
    flow.write(0);
    flow.run_for(TimeDelta::from_secs(6));
    assert_eq!(flow.in_flight(), 0);
    flow.write(10_000_000);
    assert!(flow.cc.idle_restart);
    flow.run_for(ms(50));
    assert!(!flow.cc.idle_restart);
}

/// A.15, step 3: the buffer has limited inflight; then buffer and rate grow.
#[test]
//= bbr-06 5.3.3.5-3 5.3.3.7-2 5.3.3.9-13 5.3.3.9-14 test
fn longterm_bound_grows_twice_as_fast_each_round() {
    let mut flow = flow(100, 400, Deviations::ALL);
    flow.run(secs(4), |_| {});
    flow.path.buffer *= 20;
    flow.path.steps = std::vec![(flow.now, Rate::from_mbit(300))];
    assert!(flow.run_until(secs(60), |flow| {
        flow.cc.state == State::ProbeBwUp && !flow.cc.cycle.prev_probe_too_high
    }));
    let mut growth = Vec::new();
    let mut last = (flow.cc.round.count(), flow.cc.bounds.inflight_longterm);
    flow.run_until(secs(60), |flow| {
        let now = (flow.cc.round.count(), flow.cc.bounds.inflight_longterm);
        if now.0 != last.0 {
            growth.push((now.1 - last.1) / u64::from(MSS));
            last = now;
        }
        flow.cc.state != State::ProbeBwUp
    });
    let doubled =
        growth.windows(2).filter(|pair| pair[0] > 1 && is_close(pair[1], pair[0] * 2, 20));
    assert!(doubled.count() >= 4, "{growth:?}");
}

/// A.16, step 3.
#[test]
//= bbr-06 5.3.3.2-2 5.3.3.3-1 5.3.3.9-4 5.5.10.3-4 test
fn loss_in_cruise_sets_the_short_term_bounds_and_refill_lifts_them() {
    let mut flow = roomy();
    flow.reach(State::ProbeBwCruise);
    flow.path.loss_ppm = 50_000;
    flow.run_for(ms(160));
    flow.path.loss_ppm = 0;
    let snapshot = flow.snapshot();
    let bw = snapshot.bw_shortterm.expect("loss bounds the rate").bytes_per_sec();
    assert!(bw < RATE * 99 / 100 && bw > RATE / 2, "{bw}");
    assert!(snapshot.inflight_shortterm.is_some() && snapshot.inflight_longterm.is_none());
    flow.reach(State::ProbeBwRefill);
    assert_eq!(flow.snapshot().bw_shortterm, None);
}
