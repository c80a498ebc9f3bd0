//! Individual rules for pacing rate, send quantum and window.

use uncork_units::Ratio;

use super::script::Script;
use super::*;
use crate::bbr3::bounds::UNBOUNDED;
use crate::full_pipe::FullPipe;
use crate::sampler::RateSample;

const MSS64: u64 = MSS as u64;

/// A flow in CRUISE with a frozen model, while the tests change its inputs.
fn cruising() -> Bbr3 {
    let mut flow = flow(100, 2_000, Deviations::ALL);
    flow.reach(State::ProbeBwCruise);
    flow.cc
}

/// The window after an ACK for `newly_acked` bytes that does not change the model.
fn window_after(bbr: &mut Bbr3, newly_acked: u64) -> u64 {
    bbr.update_control_parameters(&RateSample { newly_acked, ..RateSample::default() });
    bbr.cwnd
}

#[test]
//= bbr-06 5.6.3-1 5.6.3-3 test
fn quantum_is_a_millisecond_between_two_packets_and_64_kb() {
    let mut bbr = bbr(Deviations::ALL);
    let mut quantum = |mbit| {
        bbr.pacing_rate = Rate::from_mbit(mbit);
        bbr.set_send_quantum();
        bbr.send_quantum
    };
    assert_eq!(quantum(80), 10_000);
    assert_eq!(quantum(1), 2 * MSS64);
    assert_eq!(quantum(10_000), 64 * 1_024);
}

#[test]
//= bbr-06 5.6.4.2-1 test
fn without_an_rtt_the_initial_window_replaces_the_bdp() {
    let mut bbr = bbr(Deviations::ALL);
    assert_eq!(bbr.min_rtt.get(), None);
    bbr.send_quantum = 0; // a millisecond of a rate that was made up
    assert_eq!(bbr.inflight(Ratio::new(1, 2)), 10 * MSS64);
    assert_eq!(bbr.inflight_at_max_bw(Ratio::ONE), 10 * MSS64);
}

#[test]
//= bbr-06 5.5.8.2-1 5.6.4.2-2 5.6.4.3-1 test
fn budget_adds_a_quantum_and_is_at_least_four_packets() {
    let mut bbr = cruising();
    bbr.bdp = 0;
    bbr.send_quantum = 20 * MSS64;
    assert_eq!(bbr.inflight(Ratio::ONE), 20 * MSS64);
    bbr.send_quantum = 2 * MSS64;
    assert_eq!(bbr.inflight(Ratio::ONE), 4 * MSS64);
    bbr.bdp = 100 * MSS64;
    assert_eq!(bbr.inflight(Ratio::ONE), 100 * MSS64);
}

#[test]
//= bbr-06 5.5.8.1-1 test
fn with_segmentation_offload_the_budget_is_three_quanta() {
    let settings = Settings::new(MSS, 1, Time::ZERO).with_segmentation_offload(true);
    let mut bbr = Bbr3::new(&settings, false);
    bbr.min_rtt = cruising().min_rtt;
    bbr.send_quantum = 20 * MSS64;
    bbr.bdp = 50 * MSS64;
    assert_eq!(bbr.inflight(Ratio::ONE), 60 * MSS64);
    bbr.bdp = 70 * MSS64;
    assert_eq!(bbr.inflight(Ratio::ONE), 70 * MSS64);
}

#[test]
//= bbr-06 5.3.3.8.3-4 test
fn target_inflight_is_the_bdp_unless_the_window_is_smaller() {
    let mut bbr = cruising();
    assert_eq!(bbr.target_inflight(), bbr.bdp);
    bbr.cwnd = bbr.bdp / 3;
    assert_eq!(bbr.target_inflight(), bbr.cwnd);
}

#[test]
//= bbr-06 5.6.2-3 test
fn until_the_pipe_is_full_the_pacing_rate_only_rises() {
    let mut script = Script::new(Deviations::ALL);
    script.send(10).wait(ms(40)).ack(10);
    let rate = script.bbr.pacing_rate;
    script.bbr.bw = Rate::from_mbit(1);
    script.bbr.set_pacing_rate(Ratio::ONE);
    assert_eq!(script.bbr.pacing_rate, rate);
    script.bbr.bw = Rate::from_mbit(100);
    script.bbr.set_pacing_rate(Ratio::ONE);
    assert_eq!(script.bbr.pacing_rate, Rate::from_mbit(99));
    script.bbr.full_pipe.declare_full();
    script.bbr.bw = Rate::from_mbit(1);
    script.bbr.set_pacing_rate(Ratio::ONE);
    assert_eq!(script.bbr.pacing_rate.bytes_per_sec(), 123_750);
}

#[test]
//= bbr-06 5.5.10.3-9 5.6.1-2 test
fn the_rate_is_bounded_by_the_short_term_model() {
    let mut bbr = cruising();
    assert_eq!(bbr.bw, bbr.max_bw.get());
    bbr.bounds.bw_shortterm = Rate::from_mbit(40);
    bbr.bound_bw_for_model();
    assert_eq!(bbr.bw, Rate::from_mbit(40));
    let min_rtt = bbr.min_rtt.get().expect("it was measured");
    assert_eq!(bbr.bdp, bbr.bw.bytes_in(min_rtt));
}

#[test]
//= bbr-06 5.6.4.6-1 5.6.4.6-2 test
fn a_window_above_the_model_is_cut_at_once() {
    let mut bbr = cruising();
    let most = bbr.max_inflight();
    bbr.cwnd = 3 * most;
    assert_eq!(window_after(&mut bbr, MSS64), most);
    // Below it, the window grows by the bytes acknowledged, up to the target.
    bbr.cwnd = most - 3 * MSS64;
    assert_eq!(window_after(&mut bbr, MSS64), most - 2 * MSS64);
    assert_eq!(window_after(&mut bbr, 9 * MSS64), most);
}

#[test]
//= bbr-06 5.6.4.6-2 test
fn before_the_pipe_is_full_a_window_at_the_target_does_not_grow() {
    let mut bbr = cruising();
    bbr.full_pipe = FullPipe::default();
    let most = bbr.max_inflight();
    bbr.cwnd = most;
    assert_eq!(window_after(&mut bbr, MSS64), most);
    bbr.cwnd = most - 1;
    assert_eq!(window_after(&mut bbr, MSS64), most - 1 + MSS64);
}

#[test]
//= bbr-06 5.6.4.5-1 5.6.4.5-2 test
fn probe_rtt_halves_the_window() {
    let mut flow = flow(100, 2_000, Deviations::ALL);
    flow.reach(State::ProbeRtt);
    let half = flow.cc.probe_rtt_cwnd();
    assert_eq!(half, flow.cc.bdp / 2);
    assert_eq!(flow.cc.cwnd, half);
    flow.run_for(ms(100));
    assert!(flow.cc.state == State::ProbeRtt && flow.in_flight() <= half);
    flow.cc.bdp = 0;
    assert_eq!(flow.cc.probe_rtt_cwnd(), 4 * MSS64);
}

#[test]
//= bbr-06 5.3.3.3-4 5.6.1-3 5.6.4.7-1 5.6.4.7-2 test
fn the_window_is_capped_by_what_the_state_allows() {
    let mut bbr = cruising();
    let mut window = |state, longterm, shortterm| {
        bbr.state = state;
        bbr.bounds.inflight_longterm = longterm;
        bbr.bounds.inflight_shortterm = shortterm;
        bbr.cwnd = 200_000;
        window_after(&mut bbr, 0)
    };
    for state in [State::ProbeBwDown, State::ProbeBwRefill, State::ProbeBwUp] {
        assert_eq!(window(state, 100_000, UNBOUNDED), 100_000, "{state:?}");
        assert_eq!(window(state, 100_000, 90_000), 90_000, "{state:?}");
    }
    for state in [State::ProbeBwCruise, State::ProbeRtt] {
        assert_eq!(window(state, 100_000, UNBOUNDED), 85_000, "{state:?}");
        assert_eq!(window(state, 100_000, 80_000), 80_000, "{state:?}");
    }
    for state in [State::Startup, State::Drain] {
        assert_eq!(window(state, 100_000, UNBOUNDED), 200_000, "{state:?}");
        assert_eq!(window(state, 100_000, 90_000), 90_000, "{state:?}");
    }
    assert_eq!(window(State::ProbeBwCruise, 0, 0), 4 * MSS64, "never below the floor");
}

#[test]
fn send_quantum_follows_the_first_rtt_sample_even_with_a_known_rate() {
    let mut script = Script::new(Deviations::ALL);
    script.measures_rtt = false;
    script.send(10).wait(ms(100)).ack(5);
    assert!(script.bbr.send_quantum > 20 * MSS64, "a millisecond of the nominal rate");
    script.measures_rtt = true;
    script.wait(ms(100)).ack(1);
    assert_eq!(script.bbr.send_quantum, 2 * MSS64);
}
