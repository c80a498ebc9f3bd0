//! Individual rules of the draft that the closed loops do not cover.

use super::super::ack_aggregation::AckAggregation;
use super::super::bounds::Bounds;
use super::super::deviations::Deviation;
use super::script::Script;
use super::*;
use crate::sampler::RateSample;
use crate::{AppState, Controller, Feedback, Lost, SentPacket};

const MSS64: u64 = MSS as u64;

fn reached(state: State) -> Loop<Bbr3> {
    let mut flow = flow(100, 2_000, Deviations::ALL);
    flow.reach(state);
    flow
}

/// Declares a packet lost that left with `tx_in_flight` bytes in flight, `lost` bytes ago.
fn lose_one(bbr: &mut Bbr3, now: Time, tx_in_flight: u64, lost: u64) {
    let in_flight = bbr.sampler.in_flight();
    let packet = SentPacket { bytes: MSS, in_flight: tx_in_flight, unacked: tx_in_flight };
    let token = bbr.sampler.on_sent(now, packet, AppState::Backlogged, None);
    bbr.sampler.count_marked(lost - MSS64);
    let feedback = Feedback {
        acked: &[],
        lost: &[Lost { token, bytes: MSS, contiguous: false }],
        rtt: None,
        ce_packets: 0,
        in_flight,
        unacked: in_flight,
        una_advanced: false,
        oldest_sent: Time::NEVER,
        repaired_by_probe: false,
    };
    bbr.on_feedback(now, &feedback);
}

#[test]
//= bbr-06 5.2.4-1 5.5.10.2-9 test
fn longterm_bound_is_where_losses_crossed_the_threshold() {
    let mut flow = reached(State::ProbeBwUp);
    lose_one(&mut flow.cc, flow.now, 600_000, 20_000);
    assert_eq!(flow.cc.bounds.inflight_longterm, 600_000 - MSS64);
}

#[test]
//= bbr-06 5.5.10.2-4 test
fn longterm_bound_is_at_least_beta_of_the_bdp() {
    let mut flow = reached(State::ProbeBwUp);
    let target = flow.cc.target_inflight();
    lose_one(&mut flow.cc, flow.now, 30_000, 20_000);
    assert_eq!(flow.cc.bounds.inflight_longterm, target * 7 / 10);
}

#[test]
//= bbr-06 5.5.10.2-8 test
fn losses_before_departure_do_not_count_for_a_packet() {
    let mut flow = reached(State::ProbeBwUp);
    flow.cc.sampler.count_marked(10_000_000);
    lose_one(&mut flow.cc, flow.now, 500_000, MSS64);
    assert_eq!(flow.cc.state, State::ProbeBwUp);
}

#[test]
//= bbr-06 5.5.10.2-3 test
fn probe_is_judged_too_high_only_once() {
    let mut flow = reached(State::ProbeBwUp);
    lose_one(&mut flow.cc, flow.now, 600_000, 20_000);
    lose_one(&mut flow.cc, flow.now, 500_000, 40_000);
    assert_eq!(flow.cc.bounds.inflight_longterm, 600_000 - MSS64);
}

#[test]
//= bbr-06 5.3.3.9-2 5.3.3.9-15 5.3.3.9-16 5.5.10.2-8 test
fn a_probe_is_judged_until_its_last_ack() {
    let mut flow = reached(State::ProbeBwUp);
    flow.reach(State::ProbeBwDown);
    let mut late = flow.cc.clone();
    lose_one(&mut late, flow.now, 600_000, 20_000);
    assert!(late.snapshot().inflight_longterm.is_some());
    flow.reach(State::ProbeBwCruise);
    lose_one(&mut flow.cc, flow.now, 600_000, 20_000);
    assert_eq!(flow.snapshot().inflight_longterm, None);
}

#[test]
//= bbr-06 5.3.3.9-17 test
fn a_safe_flight_above_the_longterm_bound_raises_it() {
    let mut flow = reached(State::ProbeBwCruise);
    flow.cc.bounds.inflight_longterm = 100_000;
    flow.run_for(ms(2));
    assert!(flow.cc.bounds.inflight_longterm > 450_000);
}

#[test]
//= bbr-06 5.3.1.3-3 test
fn lost_ranges_do_not_carry_over_to_the_next_round() {
    let mut script = Script::new(Deviations::ALL);
    script.send(10).wait(ms(40)).ack(10).send(50);
    for _ in 0..6 {
        script.bbr.sampler.mark_app_limited(); // no plateau
        script.wait(ms(40)).ack_and_lose(3, &[false]).send(20).ack_and_lose(27, &[false; 2]);
        script.wait(ms(40)).ack(17).send(30).wait(ms(40)).ack(20).send(20);
    }
    assert_eq!(script.bbr.state, State::Startup);
}

#[test]
//= bbr-06 5.3.1.3-5 5.5.11.2-3 5.5.11.2-5 test
fn spurious_loss_exit_from_startup_is_undone() {
    let mut flow = flow(100, 100, Deviations::ALL);
    flow.reach(State::Drain);
    let lost = core::mem::take(&mut flow.lost_packets);
    flow.cc.on_spurious(flow.now, &lost);
    assert_eq!(flow.cc.state, State::Startup);
    assert!(!flow.cc.full_pipe.reached() && !flow.cc.signals.is_loss_in_round);
    assert_eq!(flow.cc.bounds, Bounds::NONE);
}

#[test]
fn no_undo_after_idle() {
    let mut flow = reached(State::ProbeBwUp);
    lose_one(&mut flow.cc, flow.now, 600_000, 20_000);
    flow.write(0);
    flow.run_for(TimeDelta::from_secs(1));
    flow.write(MSS64);
    let bounds = flow.cc.bounds;
    let token = flow.cc.clone().on_sent(
        flow.now,
        SentPacket { bytes: MSS, in_flight: MSS64, unacked: MSS64 },
        AppState::Backlogged,
    );
    flow.cc.on_spurious(flow.now, &[Lost { token, bytes: MSS, contiguous: false }]);
    assert_eq!(flow.cc.bounds, bounds);
}

#[test]
//= bbr-06 5.3.4.4-1 test
fn probe_rtt_resets_the_short_term_bounds() {
    let mut flow = reached(State::ProbeRtt);
    flow.cc.bounds.inflight_shortterm = 100_000;
    flow.cc.bounds.bw_shortterm = Rate::from_mbit(50);
    flow.reach(State::ProbeBwCruise);
    assert_eq!((flow.snapshot().bw_shortterm, flow.snapshot().inflight_shortterm), (None, None));
}

#[test]
//= bbr-06 5.3.4.1-2 5.5.6-1 test
fn probe_cut_short_advances_the_filter_on_exit_from_probe_rtt() {
    let mut flow = reached(State::ProbeRtt);
    flow.reach(State::ProbeBwUp);
    flow.cc.min_rtt.schedule_probe(Time::ZERO); // due since five seconds later
    flow.cc.max_bw.update(Rate::from_mbit(200));
    flow.run_for(ms(5));
    assert_eq!(flow.cc.state, State::ProbeRtt);
    flow.reach(State::ProbeBwCruise);
    let mut filter = flow.cc.max_bw;
    filter.update(Rate::from_mbit(1));
    filter.advance();
    assert!(
        filter.get() < Rate::from_mbit(110),
        "200 Mbit/s already belongs to the previous cycle"
    );
}

/// Without (n), which would mask the bug: draft-05 aged the filter in every round of CRUISE. The
/// rate of CRUISE is 1 % below max_bw.
#[test]
fn cruise_does_not_age_max_bw() {
    let mut flow = flow(100, 2_000, Deviations::ALL.without(Deviation::AdvanceEveryCycle));
    flow.reach(State::ProbeBwUp);
    flow.reach(State::ProbeBwCruise);
    let of_the_probe = flow.cc.max_bw.get();
    flow.run_until(secs(60), |flow| flow.cc.state != State::ProbeBwCruise);
    assert!(flow.cc.cycle.rounds_since_up > 20);
    assert_eq!(flow.cc.max_bw.get(), of_the_probe);
}

#[test]
//= bbr-06 5.3.3.2-3 5.3.3.8.2-2 5.3.3.8.2-3 5.5.1-3 test
fn large_pipes_probe_after_at_most_63_rounds() {
    let path = Path::new(Rate::from_mbit(100), ms(10), 2_000);
    let mut flow = Loop::new(bbr(Deviations::ALL), path, 1);
    flow.reach(State::ProbeBwCruise);
    assert!(flow.cc.bdp > 70 * MSS64);
    flow.reach(State::ProbeBwRefill);
    assert_eq!(flow.cc.cycle.rounds_since_up, 63);
}

#[test]
//= bbr-06 2.5-3 3.5-1 5.3.3.2-1 5.6.2-5 test
fn cruise_paces_one_percent_below_the_bandwidth() {
    let flow = reached(State::ProbeBwCruise);
    let rate = flow.cc.pacing_rate.bytes_per_sec();
    assert_eq!(rate, flow.cc.bw.bytes_per_sec() * 99 / 100);
}

#[test]
//= bbr-06 5.6.4.2-2 5.6.4.2-4 test
fn up_allows_two_more_packets_in_flight() {
    let mut flow = reached(State::ProbeBwUp);
    flow.run_for(ms(1));
    let extra = flow.cc.aggregation.extra_acked();
    assert_eq!(flow.cc.max_inflight(), flow.cc.bdp * 9 / 4 + extra + 2 * MSS64);
}

#[test]
//= bbr-06 5.6.4.6-3 test
fn initial_window_grows_regardless_of_the_first_samples() {
    let mut script = Script::new(Deviations::ALL);
    script.send(10).wait(ms(40)).ack(1);
    assert!(script.bbr.max_inflight() < 10 * MSS64);
    assert_eq!(script.bbr.cwnd, 11 * MSS64);
}

#[test]
//= bbr-06 2.2-12 test
fn window_counts_as_used_for_one_round() {
    let mut usage = super::super::control::CwndUsage::UNUSED;
    usage.on_full(1_000);
    usage.on_ack(500);
    usage.on_ack(1_000);
    assert!(usage.is_limited());
    usage.on_ack(1_001);
    assert!(!usage.is_limited());
}

#[test]
//= bbr-06 5.5.4-1 5.5.5-1 test
fn application_limited_rate_counts_if_higher() {
    let mut bbr = bbr(Deviations::ALL);
    let limited = |mbit| RateSample {
        has_data: true,
        delivery_rate: Rate::from_mbit(mbit),
        is_app_limited: true,
        ..RateSample::default()
    };
    bbr.update_max_bw(&limited(50));
    bbr.max_bw.advance();
    bbr.update_max_bw(&limited(40));
    bbr.max_bw.advance();
    assert_eq!(bbr.max_bw.get(), Rate::from_mbit(50));
    bbr.update_max_bw(&limited(60));
    assert_eq!(bbr.max_bw.get(), Rate::from_mbit(60));
}

#[test]
//= bbr-06 5.4.1-2 test
fn idle_before_a_restart_is_not_aggregation() {
    let ack = |now, newly_acked| super::super::ack_aggregation::AckArrival {
        now: Time::ZERO + now,
        newly_acked,
        bw: Rate::from_bytes_per_sec(1_000_000),
        cwnd: 1_000_000,
        round: 1,
        window: 10,
    };
    let mut aggregation = AckAggregation::new(Time::ZERO);
    aggregation.update(ack(ms(1), 20_000));
    aggregation.restart_interval(Time::ZERO + ms(10));
    // 20 000 bytes in 10 ms, when 5 000 were expected.
    aggregation.update(ack(ms(15), 1_000));
    assert_eq!(aggregation.extra_acked(), 20_000);
    aggregation.update(ack(ms(16), 9_000));
    assert_eq!(aggregation.extra_acked(), 24_000);
}
