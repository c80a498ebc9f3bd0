//! The ACK frequency BBRv3 requests in each state: draft-ietf-ccwg-bbr-06 §4.1.3.3.

use super::*;
use crate::{AckFrequency, Controller};

fn wish(flow: &Loop<Bbr3>) -> AckFrequency {
    flow.cc.ack_frequency().expect("there is a round-trip time")
}

/// Minimum ACKs per round trip for one BDP of packets.
fn acks_per_round_trip(flow: &Loop<Bbr3>) -> u64 {
    let wish = wish(flow);
    let packets = flow.cc.bdp / u64::from(MSS);
    let by_count = packets / (u64::from(wish.ack_eliciting_threshold) + 1);
    let min_rtt = flow.cc.min_rtt.get().expect("it is measured");
    let by_time = min_rtt.as_nanos() / wish.max_ack_delay.as_nanos();
    by_count.min(by_time)
}

fn flow_in(state: State) -> Loop<Bbr3> {
    let mut flow = flow(100, 2_000, Deviations::ALL);
    flow.reach(state);
    flow
}

#[test]
fn no_request_without_an_rtt() {
    assert_eq!(bbr(Deviations::ALL).ack_frequency(), None);
}

/// "SHOULD request parameters that yield at least 4 acknowledgments per round trip"; REFILL does so
/// from its start, independent of what CRUISE requested.
#[test]
//= bbr-06 4.1.3.3-2 4.1.3.3-3 4.1.3.3-4 4.1.3.3-5 test
fn startup_refill_and_up_want_four_acks_per_round_trip() {
    let mut flow = flow(100, 2_000, Deviations::ALL);
    flow.run_for(ms(200));
    assert_eq!(flow.cc.state, State::Startup);
    assert!(acks_per_round_trip(&flow) >= 4);
    for state in [State::ProbeBwRefill, State::ProbeBwUp] {
        flow.reach(state);
        assert!(acks_per_round_trip(&flow) >= 4, "{state:?}: {:?}", wish(&flow));
        assert!(!wish(&flow).immediate_ack);
    }
}

/// "MAY request an ACK delay of up to 0.5 * C.srtt and an ACK threshold of up to roughly a quarter of
/// the current congestion window."
#[test]
//= bbr-06 4.1.3.3-2 4.1.3.3-6 4.1.3.3-7 test
fn down_and_cruise_accept_half_a_round_trip_and_a_quarter_window() {
    for state in [State::ProbeBwDown, State::ProbeBwCruise] {
        let mut flow = flow_in(state);
        assert!(flow.run_until(secs(60), |flow| !flow.cc.cwnd_usage.is_limited()));
        assert!(matches!(flow.cc.state, State::ProbeBwDown | State::ProbeBwCruise));
        let wish = wish(&flow);
        let packets = flow.cc.cwnd / u64::from(MSS);
        assert_eq!(u64::from(wish.ack_eliciting_threshold) + 1, packets / 4);
        let min_rtt = flow.cc.min_rtt.get().expect("it is measured");
        assert_eq!(wish.max_ack_delay, min_rtt.divided_by(2));
        assert!(!wish.immediate_ack);
    }
}

/// "If a sender that has requested reduced ACK frequency observes that it frequently exhausts C.cwnd
/// before the next ACK arrives, it SHOULD increase the requested ACK frequency."
#[test]
//= bbr-06 4.1.3.3-1 test
fn a_window_that_runs_out_in_cruise_wants_more_acks() {
    let mut flow = flow_in(State::ProbeBwCruise);
    assert!(flow.run_until(secs(60), |flow| !flow.cc.cwnd_usage.is_limited()));
    let sparse = wish(&flow);
    flow.cc.cwnd_usage.on_full(flow.cc.sampler.delivered());
    assert!(wish(&flow).ack_eliciting_threshold < sparse.ack_eliciting_threshold);
    assert!(wish(&flow).max_ack_delay < sparse.max_ack_delay);
    assert!(acks_per_round_trip(&flow) >= 4);
}

/// "SHOULD solicit a prompt acknowledgment … on the last packet of each flight of data."
#[test]
//= bbr-06 4.1.3.3-8 4.1.3.3-9 test
fn probe_rtt_requests_an_immediate_ack_of_the_last_packet() {
    let flow = flow_in(State::ProbeRtt);
    assert!(wish(&flow).immediate_ack);
    assert!(wish(&flow).max_ack_delay.times(4) <= flow.path.rtt.times(2));
}

#[test]
fn other_states_use_the_transport_default() {
    for name in ["reno", "cubic", "bbr1"] {
        let spec: crate::CcSpec = name.parse().expect("a controller");
        let known = Settings { initial_rtt: Some(ms(40)), ..settings() };
        assert_eq!(spec.build(&known).ack_frequency(), None, "{name}");
    }
}
