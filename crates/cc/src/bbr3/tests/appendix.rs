//! The test cases of draft-ietf-ccwg-bbr-06, Appendix A, in its order.

use super::super::bounds::UNBOUNDED;
use super::*;
use crate::Controller;
use uncork_units::Ratio;

const RATE: u64 = 12_500_000; // 100 Mbit/s in bytes per second

/// A flow over 100 Mbit/s and 40 ms with a buffer of two BDP.
fn roomy() -> Loop<Bbr3> {
    flow(100, 2_000, Deviations::ALL)
}

/// Lets the application write a fifth of the link's rate for `span`.
fn trickle(flow: &mut Loop<Bbr3>, span: TimeDelta) {
    let end = flow.now + span;
    while flow.now < end {
        flow.write(RATE / 5 / 100);
        flow.run_for(ms(10));
    }
}

//= bbr-06 5.3.1.1-2 5.3.1.2-4 test
#[test]
fn startup_ends_after_three_rounds_of_plateau() {
    let mut flow = roomy();
    let mut grew_at = 0;
    let mut best = 0;
    let left = flow.run_until(secs(10), |flow| {
        if flow.cc.full_pipe.is_full_now() {
            return true;
        }
        let rate = flow.max_bw();
        if rate * 4 >= best * 5 && flow.cc.round.started() {
            best = rate;
            grew_at = flow.cc.round.count();
        }
        false
    });
    assert!(left && flow.cc.full_pipe.reached());
    assert_eq!(flow.cc.round.count() - grew_at, 3);
    assert_eq!(flow.cc.state, State::Drain);
    assert!(is_close(flow.max_bw(), RATE, 2), "max_bw {}", flow.max_bw());
    assert_eq!(flow.stats.lost, 0);
}

//= bbr-06 5.3.1.1-2 5.3.1.3-5 5.5.10.1-1 test
#[test]
fn startup_ends_on_loss_when_application_limited() {
    let mut flow = roomy();
    flow.run_for(ms(120));
    trickle(&mut flow, ms(500));
    assert_eq!(flow.cc.state, State::Startup);
    flow.path.loss_ppm = 200_000;
    trickle(&mut flow, ms(400));
    assert!(flow.cc.full_pipe.reached() && flow.cc.full_pipe.is_full_now());
    assert_ne!(flow.cc.state, State::Startup);
    assert_ne!(flow.cc.bounds.inflight_longterm, UNBOUNDED);
}

//= bbr-06 5.3.2-1 5.3.2-2 5.3.3.9-1 5.6.4.2-3 test
#[test]
fn drain_ends_when_inflight_is_one_bdp() {
    let mut flow = roomy();
    flow.reach(State::Drain);
    assert_eq!(flow.snapshot().pacing_gain, Some(uncork_units::Ratio::new(1, 2)));
    let queue = flow.queue_delay();
    assert!(queue >= ms(38), "queue {queue:?}");
    let round = flow.cc.round.count();
    flow.run_until(secs(60), |flow| flow.cc.state != State::Drain);
    assert!(flow.cc.state.is_probe_bw());
    let most = flow.cc.bdp + flow.cc.send_quantum;
    assert!(flow.in_flight() <= most, "{} > {most}", flow.in_flight());
    assert!(is_close(flow.cc.bdp, flow.path.bdp(), 2));
    assert!(flow.cc.round.count() - round <= 3);
}

//= bbr-06 5.3.2-3 test
#[test]
fn drain_ends_after_three_rounds_whatever_is_in_flight() {
    let mut flow = roomy();
    flow.reach(State::Drain);
    flow.path.steps = std::vec![(flow.now, Rate::from_mbit(20))];
    let round = flow.cc.round.count();
    flow.reach(State::ProbeBwDown);
    assert_eq!(flow.cc.round.count() - round, 3);
    assert!(flow.in_flight() > flow.cc.bdp);
}

//= bbr-06 5.3.3.7-1 5.3.3.9-5 5.3.3.9-10 test
#[test]
fn up_ends_on_a_plateau_of_three_rounds() {
    let mut flow = roomy();
    flow.reach(State::ProbeBwUp);
    let round = flow.cc.round.count();
    flow.reach(State::ProbeBwDown);
    assert_eq!(flow.cc.round.count() - round, 3);
    assert!(flow.cc.full_pipe.is_full_now());
    assert_eq!(flow.stats.lost, 0);
}

//= bbr-06 5.3.3.7-3 test
#[test]
fn up_ends_on_loss_when_application_limited() {
    let mut flow = roomy();
    flow.reach(State::ProbeBwUp);
    trickle(&mut flow, ms(400));
    assert_eq!(flow.cc.state, State::ProbeBwUp);
    flow.path.loss_ppm = 100_000;
    trickle(&mut flow, ms(300));
    assert_ne!(flow.cc.state, State::ProbeBwUp);
    assert!(flow.cc.cycle.prev_probe_too_high);
}

//= bbr-06 4.1.2.4-2 5.3.1.2-2 test
#[test]
fn startup_lasts_while_application_limited_without_loss() {
    let mut flow = roomy();
    flow.run_for(ms(60));
    trickle(&mut flow, TimeDelta::from_secs(4));
    assert_eq!(flow.cc.state, State::Startup);
    assert!(!flow.cc.full_pipe.reached());
}

//= bbr-06 5.3.1.2-2 test
#[test]
fn up_lasts_while_application_limited_without_loss() {
    let mut flow = roomy();
    flow.reach(State::ProbeBwUp);
    trickle(&mut flow, TimeDelta::from_secs(2));
    assert_eq!(flow.cc.state, State::ProbeBwUp);
}

//= bbr-06 5.3.3.1-1 5.3.3.1-2 5.3.3.1-3 5.3.3.9-3 5.3.3.9-9 test
#[test]
fn down_ends_when_inflight_leaves_headroom() {
    let mut flow = flow(100, 300, Deviations::ALL);
    flow.reach(State::ProbeBwUp);
    flow.reach(State::ProbeBwDown);
    assert_eq!(flow.snapshot().pacing_gain, Some(uncork_units::Ratio::new(9, 10)));
    assert!(flow.in_flight() > flow.cc.inflight_with_headroom());
    flow.reach(State::ProbeBwCruise);
    assert!(flow.in_flight() <= flow.cc.inflight_with_headroom());
    assert!(flow.in_flight() <= flow.cc.inflight_at_max_bw(Ratio::ONE));
}

//= bbr-06 5.3.3.8.2-3 5.3.3.8.3-1 test
#[test]
fn down_ends_when_it_is_time_to_probe_again() {
    let mut flow = roomy();
    flow.reach(State::ProbeBwUp);
    flow.reach(State::ProbeBwDown);
    flow.path.steps = std::vec![(flow.now, Rate::from_mbit(80))];
    flow.cc.min_rtt.schedule_probe(flow.now); // no ProbeRTT meanwhile
    let began = flow.now;
    flow.run_until(secs(60), |flow| flow.cc.state != State::ProbeBwDown);
    assert_eq!(flow.cc.state, State::ProbeBwRefill);
    let lasted = flow.now.since(began);
    assert!(lasted >= ms(1_900) && lasted <= ms(3_100), "{lasted:?}");
}

//= bbr-06 2.16-3 5.3.4.1-3 5.3.4.1-4 5.3.4.3-5 5.3.4.3-7 5.3.4.3-8 5.3.4.4-2 test
#[test]
fn probe_rtt_lasts_200_ms_and_returns_to_probe_bw() {
    let mut flow = roomy();
    flow.reach(State::ProbeRtt);
    assert_eq!(flow.snapshot().cwnd_gain, Some(uncork_units::Ratio::new(1, 2)));
    let began = flow.now;
    flow.reach(State::ProbeBwCruise);
    let lasted = flow.now.since(began);
    assert!(lasted >= ms(200) && lasted <= ms(320), "{lasted:?}");
    assert_eq!(flow.cc.control().cwnd, flow.cc.cwnd);
    assert!(flow.cc.cwnd > flow.path.bdp(), "the window is restored");
}

//= bbr-06 5.2.2-1 5.3.4.2-2 5.3.4.3-4 5.4.1-1 5.4.1-3 test
#[test]
fn probe_rtt_is_skipped_after_idle_time() {
    let mut flow = roomy();
    flow.reach(State::ProbeBwCruise);
    flow.write(0);
    flow.run_for(TimeDelta::from_secs(6));
    assert_eq!(flow.in_flight(), 0);
    flow.write(10_000_000);
    assert!(flow.cc.idle_restart);
    assert!(is_close(flow.cc.pacing_rate.bytes_per_sec(), RATE, 2));
    let mut seen = false;
    flow.run_until(flow.now + ms(500), |flow| {
        seen |= flow.cc.state == State::ProbeRtt;
        false
    });
    assert!(!seen && !flow.cc.idle_restart);
}

/// ACKs for 40 packets at once: 4.6 ms of the link's rate, nearly half a BDP.
fn aggregated() -> Loop<Bbr3> {
    let mut path = Path::new(Rate::from_mbit(100), ms(10), 2_000);
    path.ack_every = 40;
    Loop::new(bbr(Deviations::ALL), path, 1)
}

//= bbr-06 5.5.9-5 test
#[test]
fn startup_finds_the_bandwidth_behind_aggregation() {
    let mut flow = aggregated();
    flow.reach(State::Drain);
    assert!(is_close(flow.max_bw(), RATE, 2), "max_bw {}", flow.max_bw());
    assert!(flow.cc.aggregation.extra_acked() >= 39 * u64::from(MSS));
    assert!(flow.cc.cwnd > 2 * flow.path.bdp());
}

//= bbr-06 5.5.9-5 test
#[test]
fn cruise_keeps_the_link_busy_behind_aggregation() {
    let mut flow = aggregated();
    flow.run(secs(1), |_| {});
    let before = flow.stats.acked_bytes;
    flow.run(secs(11), |_| {});
    let utilisation = (flow.stats.acked_bytes - before) * 100 / (10 * RATE);
    assert!(utilisation >= 95, "{utilisation} %");
}

//= bbr-06 2.8-4 5.6.4.3-1 5.6.4.6-4 test
#[test]
fn window_floor_is_four_packets_below_one_packet_of_bdp() {
    let mut path = Path::new(Rate::from_bits_per_sec(1_000_000), ms(5), 0);
    path.buffer = 20 * u64::from(MSS);
    let mut flow = Loop::new(bbr(Deviations::ALL), path, 1);
    flow.reach(State::ProbeBwCruise);
    let before = (flow.now, flow.stats.acked_bytes);
    flow.run(secs(20), |flow| assert!(flow.cc.cwnd >= 4 * u64::from(MSS)));
    let rate = Rate::of(flow.stats.acked_bytes - before.1, flow.now.since(before.0));
    assert!(is_close(rate.bytes_per_sec(), 125_000, 5), "{rate:?}");
}

#[test]
fn ten_times_the_bandwidth_is_found_within_20_round_trips_of_probing() {
    let mut flow = flow(10, 20_000, Deviations::ALL);
    flow.run(secs(10), |_| {});
    flow.path.steps = std::vec![(flow.now, Rate::from_mbit(100))];
    flow.reach(State::ProbeBwUp);
    let began = flow.now;
    flow.run_until(secs(60), |flow| flow.max_bw() >= RATE * 98 / 100);
    let lasted = flow.now.since(began);
    // A rate sample averages a round, so a gain of 1.25 grows it by 15 %, not 25 %, each round.
    assert!(lasted <= ms(20 * 40), "{lasted:?}");
}

//= bbr-06 5.3.3.5-3 5.3.3.7-2 5.3.3.9-13 5.3.3.9-14 test
#[test]
fn longterm_bound_grows_twice_as_fast_each_round() {
    let mut flow = flow(100, 400, Deviations::ALL);
    flow.run(secs(4), |_| {});
    flow.path.buffer *= 20;
    flow.path.steps = std::vec![(flow.now, Rate::from_mbit(300))];
    assert!(flow.run_until(secs(60), |flow| {
        flow.cc.state == State::ProbeBwUp && !flow.cc.cycle.prev_probe_too_high
    }));
    let mut growth = std::vec::Vec::new();
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

//= bbr-06 5.3.3.9-16 test
#[test]
fn a_tenth_of_the_bandwidth_is_learned_within_20_seconds() {
    let mut flow = flow(100, 1_000, Deviations::ALL);
    flow.path.steps = std::vec![(secs(10), Rate::from_mbit(10))];
    flow.run(secs(30), |_| {});
    assert!(is_close(flow.max_bw(), RATE / 10, 2), "max_bw {}", flow.max_bw());
}

//= bbr-06 5.3.3.2-2 5.3.3.3-1 5.3.3.9-4 5.5.10.3-4 test
#[test]
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

//= bbr-06 5.2.5-1 5.5.10.2-5 5.5.11.2-4 5.5.11.2-6 test
#[test]
fn spurious_loss_in_up_resumes_the_probe() {
    let mut flow = roomy();
    flow.reach(State::ProbeBwUp);
    flow.run_for(ms(20));
    let (before, cwnd) = (flow.cc.bounds, flow.cc.cwnd);
    flow.path.loss_ppm = 100_000;
    flow.reach(State::ProbeBwDown);
    flow.path.loss_ppm = 0;
    assert_ne!(flow.cc.bounds, before);
    let lost = core::mem::take(&mut flow.lost_packets);
    flow.cc.on_spurious(flow.now, &lost);
    assert_eq!(flow.cc.bounds, before);
    assert!(flow.cc.cwnd >= cwnd);
    assert_eq!(flow.cc.state, State::ProbeBwRefill);
    let round = flow.cc.round.count();
    flow.reach(State::ProbeBwUp);
    assert_eq!(flow.cc.round.count() - round, 1);
}

//= bbr-06 5.5.11.1-1 5.5.11.2-2 5.6.4.4-5 test
#[test]
fn spurious_timeout_restores_window_and_bounds() {
    let mut flow = roomy();
    flow.reach(State::ProbeBwCruise);
    flow.path.loss_ppm = 1_000_000;
    let mut before = (0, flow.cc.bounds);
    assert!(flow.run_until(secs(60), |flow| {
        if flow.stats.timeouts == 0 {
            before = (flow.cc.cwnd, flow.cc.bounds);
        }
        flow.stats.timeouts > 0
    }));
    let mss = u64::from(MSS);
    assert!(flow.cc.cwnd <= flow.in_flight() + mss);
    let lost = core::mem::take(&mut flow.lost_packets);
    flow.cc.on_spurious(flow.now, &lost);
    assert_eq!((flow.cc.cwnd, flow.cc.bounds), before);
}

//= bbr-06 5.6.4.4-4 test
#[test]
fn spurious_timeouts_in_up_resume_the_probe() {
    let mut flow = roomy();
    flow.reach(State::ProbeBwUp);
    flow.run_for(ms(20));
    let before = flow.cc.bounds;
    flow.path.loss_ppm = 1_000_000;
    assert!(flow.run_until(secs(60), |flow| flow.stats.timeouts == 2));
    assert_eq!(flow.cc.state, State::ProbeBwDown);
    let lost = core::mem::take(&mut flow.lost_packets);
    flow.cc.on_spurious(flow.now, &lost);
    assert_eq!((flow.cc.bounds, flow.cc.state), (before, State::ProbeBwRefill));
}

//= bbr-06 5.3.4.1-2 5.3.4.1-4 5.3.4.4-2 test
#[test]
fn probe_rtt_in_startup_returns_to_startup() {
    let mut flow = roomy();
    flow.run_for(ms(60));
    trickle(&mut flow, TimeDelta::from_secs(4));
    flow.reach_while_trickling(State::ProbeRtt);
    flow.reach_while_trickling(State::Startup);
    assert!(!flow.cc.full_pipe.reached());
}

impl Loop<Bbr3> {
    fn reach_while_trickling(&mut self, state: State) {
        for _ in 0..500 {
            trickle(self, ms(10));
            if self.cc.state == state {
                return;
            }
        }
        panic!("never in {state:?}");
    }
}

//= bbr-06 5.3.3.7-3 test
#[test]
fn loss_in_up_lowers_the_longterm_bound_and_ends_the_probe() {
    let mut flow = flow(100, 400, Deviations::ALL);
    flow.run(secs(4), |_| {});
    flow.reach(State::ProbeBwUp);
    let before = flow.cc.bounds.inflight_longterm;
    flow.path.loss_ppm = 150_000;
    flow.reach(State::ProbeBwDown);
    assert!(flow.cc.cycle.prev_probe_too_high);
    assert!(flow.cc.bounds.inflight_longterm < before);
    assert!(flow.cc.bounds.inflight_longterm >= flow.path.bdp() * 7 / 10);
}

//= bbr-06 5.5.4-1 test
#[test]
fn application_limited_refill_does_not_lower_max_bw() {
    let mut flow = roomy();
    flow.reach(State::ProbeBwRefill);
    let before = flow.max_bw();
    trickle(&mut flow, ms(120));
    assert_eq!(flow.cc.state, State::ProbeBwUp);
    assert_eq!(flow.max_bw(), before);
}
