//! A.12 to A.14: aggregated ACKs, and paths with a BDP below one packet.

use uncork_sim::MSS_BYTES;
use uncork_units::TimeDelta;

use crate::appendix::grid::{Case, EVERYWHERE, Point, check};
use crate::appendix::scene::{Scene, bdp, ensure, percent};

/// Aggregates half a round trip of ACKs, up to BBR.extra_acked's limit of 100 ms.
fn slot(point: &Point) -> TimeDelta {
    point.rtt.divided_by(2).min(TimeDelta::from_millis(100))
}

#[test]
//= bbr-06 5.5.9-5 test
fn startup_finds_the_bandwidth_despite_aggregation() {
    check(&Case {
        name: "A.12 Achieving Expected STARTUP Bandwidth on a Link With Aggregation",
        subject: EVERYWHERE,
        buffer: 2_000,
        run: startup,
        exceptions: &[],
    });
}

/// Aggregated ACKs inflate the rate: a packet sent between two ACKs of a burst counts the rest of
/// the burst as delivered in its interval, one burst too many out of four per round trip with a
/// full queue. The sending rate, the other bound on a sample, exceeds the link's in Startup.
fn startup(scene: &mut Scene<'_>) -> Result<(), String> {
    scene.aggregate_acks(slot(&scene.point));
    let left = scene.leave_startup()?;
    let percent = percent(&left, scene.point.payload_rate());
    ensure((98.0..=130.0).contains(&percent), || format!("max_bw is {percent:.1} %"))?;
    let (cwnd, bdp) = (left.control.cwnd, bdp(&left));
    ensure(cwnd > 2 * bdp, || format!("cwnd {cwnd} B, BDP {bdp} B"))
}

#[test]
//= bbr-06 5.5.9-5 test
fn cruise_keeps_the_link_busy_despite_aggregation() {
    check(&Case {
        name: "A.13 Achieving Expected Cruise Bandwidth on a Link With Aggregation",
        subject: EVERYWHERE,
        buffer: 2_000,
        run: cruise,
        exceptions: &[],
    });
}

/// Long-term utilization of a single flow at this RTT: limited by the pacing margin and by
/// ProbeRTT, which lasts a round trip if that is longer than 200 ms.
fn expected(rtt: TimeDelta) -> f64 {
    f64::min(95.0, 97.0 - 13.0 * rtt.as_secs_f64())
}

fn cruise(scene: &mut Scene<'_>) -> Result<(), String> {
    scene.reach("ProbeBW_CRUISE")?;
    let slot = slot(&scene.point);
    scene.aggregate_acks(slot);
    scene.run_for(TimeDelta::from_secs(1) + scene.point.round().times(10));
    let cruise = scene.reach("ProbeBW_CRUISE")?;
    let (cwnd, bdp) = (cruise.control.cwnd, bdp(&cruise));
    ensure(cwnd > 2 * bdp, || format!("cwnd {cwnd} B, BDP {bdp} B"))?;
    let utilisation = scene.utilisation(TimeDelta::from_secs(10) + scene.point.round().times(20));
    ensure(utilisation >= expected(scene.point.rtt + slot), || format!("{utilisation:.1} %"))
}

#[test]
//= bbr-06 2.8-4 5.6.4.3-1 5.6.4.6-4 test
fn minimum_window_is_four_packets() {
    check(&Case {
        name: "A.14 Correctly Managing Sub-Packet BDPs",
        subject: |point| point.bdp_packets() < 4.0,
        buffer: 2_000,
        run: sub_packet,
        exceptions: &[],
    });
}

fn sub_packet(scene: &mut Scene<'_>) -> Result<(), String> {
    scene.reach("ProbeBW_CRUISE")?;
    let before = scene.view().delivered_bytes;
    let span = TimeDelta::from_secs(20) + scene.point.round().times(60);
    let floor = 4 * u64::from(MSS_BYTES);
    let below = scene.run_until(span, |view| view.control.cwnd < floor);
    ensure(below.is_none(), || "the window fell below four packets".into())?;
    let capacity = scene.point.payload_rate().bytes_in(span) as f64;
    let percent = (scene.view().delivered_bytes - before) as f64 * 100.0 / capacity;
    ensure(percent >= expected(scene.point.rtt), || format!("{percent:.1} %"))
}
