//! A.17: a policer drops packets above its rate.

use uncork_path::PolicerSpec;
use uncork_sim::PACKET_BYTES;
use uncork_units::{ByteCount, Ratio, TimeDelta};

use crate::appendix::grid::{Case, EVERYWHERE, Exception, Point, check};
use crate::appendix::scene::{Scene, ensure};
use crate::common::is_complete;

#[test]
fn a_policer_is_conformed_to() {
    check(&Case {
        name: "A.17 Handling Token Bucket Policers",
        subject: EVERYWHERE,
        buffer: 2_000,
        run: conform,
        exceptions: &[Exception {
            at: |point| point.bdp_packets() < 3.0,
            why: "the minimum window, four packets a round trip, is above the policed rate with any \
                  bounds: a third and more is lost, or timeouts leave a tenth of the rate",
        }],
    });
}

/// The point's rate is the policer's, in front of a link ten times as fast. Its bucket holds one
/// BDP, but at least twenty packets.
fn conform(begun: &mut Scene<'_>) -> Result<(), String> {
    let point = begun.point;
    let fast = Point { rate: point.rate.scaled(Ratio::new(10, 1)), ..point };
    let mut spec = Scene::spec(&fast, 2_000);
    let bucket = point.rate.bytes_in(point.rtt).max(20 * u64::from(PACKET_BYTES));
    spec.paths[0].link.policer =
        Some(PolicerSpec { rate: point.rate, burst: ByteCount::new(bucket) });
    let mut scene = Scene::begin(&spec, point)?;
    scene.leave_startup()?;
    let within = scene.patience();
    let bound = scene.run_until(within, |view| {
        let snapshot = &view.snapshot;
        snapshot.bw_shortterm.is_some() && snapshot.inflight_shortterm.is_some()
    });
    bound.ok_or("no short-term bounds")?;
    // Each second is a million packets at the highest rate.
    let [settled, counted] = if is_complete() { [10, 15] } else { [5, 10] };
    scene.run_for(TimeDelta::from_secs(settled) + point.round().times(40));
    let before = scene.view();
    let span = TimeDelta::from_secs(counted) + point.round().times(40);
    let used = scene.utilisation(span);
    let after = scene.view();
    let lost = (after.packets_lost - before.packets_lost) as f64 * f64::from(PACKET_BYTES) * 100.0
        / point.rate.bytes_in(span) as f64;
    ensure(lost <= 10.0, || format!("{lost:.1} % lost, {used:.1} % used"))?;
    ensure(used >= 85.0, || format!("{used:.1} % used, {lost:.1} % lost"))
}
