//! A.3 and A.4: leaving Drain.

use uncork_units::{Ratio, TimeDelta};

use crate::appendix::grid::{Case, EVERYWHERE, Exception, check};
use crate::appendix::scene::{DOWN, Scene, ensure, one_bdp};

/// The send quantum is part of Inflight(1.0). At the end of Startup it still follows Startup's
/// pacing rate, at least the initial window per handshake RTT.
const NO_DRAIN: Exception = Exception {
    at: |point| {
        let sub_packet = [(0.2, 1_000), (1.0, 1_000), (0.2, 10_000)];
        point.is_any(&sub_packet) || point.is_any(&[(0.2, 100_000), (1.0, 100_000)])
    },
    why: "Startup's send quantum, up to 64 kB, exceeds what is in flight: nothing needs to be drained",
};

const PROBE_RTT: Exception = Exception {
    at: |point| {
        let slow = point.packet_time() > TimeDelta::from_millis(100);
        slow || point.rtt >= TimeDelta::from_secs(1) || point.is_any(&[(600.0, 10_000)])
    },
    why: "a ProbeRTT, due 5 s after the handshake, comes during Drain",
};

const SLOW_PROBE_RTT: Exception = Exception {
    at: |point| {
        let slow = point.packet_time() > TimeDelta::from_millis(100);
        slow || point.rtt >= TimeDelta::from_millis(300) && !point.is_any(&[(300.0, 100_000)])
    },
    why: "a ProbeRTT comes before three rounds, which the slower link makes longer",
};

const SHORT_DRAIN: Exception = Exception {
    at: |point| point.is_any(&[(10.0, 1_000), (1.0, 10_000), (0.2, 1_000_000)]),
    why: "less than a round needs to be drained",
};

#[test]
//= bbr-06 5.3.2-1 5.3.2-2 5.3.3.9-1 5.6.4.2-3 test
fn drain_ends_when_inflight_is_one_bdp() {
    check(&Case {
        name: "A.3 Exiting DRAIN Based on Inflight",
        subject: EVERYWHERE,
        buffer: 2_000,
        run: inflight,
        exceptions: &[PROBE_RTT, NO_DRAIN],
    });
}

fn inflight(scene: &mut Scene<'_>) -> Result<(), String> {
    let mut left = scene.leave_startup()?;
    // If inflight is within one BDP or the minimum window, Drain ends with the ACK that began it.
    if left.snapshot.state == "Drain" {
        let gain = left.snapshot.pacing_gain;
        ensure(gain == Some(Ratio::new(1, 2)), || format!("pacing gain {gain:?}"))?;
        left = scene.leave()?;
    }
    let next = left.snapshot.state;
    ensure(DOWN.contains(&next), || format!("Drain -> {next}"))?;
    let most = one_bdp(&left);
    ensure(left.in_flight <= most, || format!("{} B in flight, BDP {most} B", left.in_flight))
}

#[test]
//= bbr-06 5.3.2-3 test
fn drain_ends_after_three_rounds_regardless_of_inflight() {
    check(&Case {
        name: "A.4 Exiting DRAIN Based on Time",
        subject: EVERYWHERE,
        buffer: 2_000,
        run: time,
        exceptions: &[SLOW_PROBE_RTT, NO_DRAIN, SHORT_DRAIN],
    });
}

/// The draft reduces the rate by a tenth, which does not stop Drain: it sends at half the known
/// rate and empties the queue within two rounds. Here the remaining rate is so low that the queue
/// stops shrinking.
fn time(scene: &mut Scene<'_>) -> Result<(), String> {
    let began = scene.leave_startup()?.snapshot;
    ensure(began.state == "Drain", || format!("already in {}", began.state))?;
    scene.set_rate(scene.point.rate.scaled(Ratio::new(2, 5)));
    let left = scene.leave()?;
    let rounds = left.snapshot.round_count - began.round_count;
    let next = left.snapshot.state;
    ensure(DOWN.contains(&next), || format!("Drain -> {next}"))?;
    ensure(rounds == 3, || format!("after {rounds} rounds"))?;
    let bdp = one_bdp(&left);
    ensure(left.in_flight > bdp, || format!("{} B in flight, BDP {bdp} B", left.in_flight))
}
