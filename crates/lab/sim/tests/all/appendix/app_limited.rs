//! A.7 and A.22: probing while the application has little data to send.

use uncork_units::{Ratio, TimeDelta};

use crate::appendix::grid::{CUT_SHORT, Case, EVERYWHERE, Exception, check};
use crate::appendix::scene::{DOWN, Scene, ensure, percent};

const CYCLES: usize = 5;

#[test]
//= bbr-06 5.3.1.2-2 test
fn up_lasts_while_application_limited_without_loss() {
    check(&Case {
        name: "A.7 Never Exiting PROBE_UP When Application-Limited With No Loss",
        subject: EVERYWHERE,
        buffer: 2_000,
        run: up,
        exceptions: &[Exception {
            at: |point| point.rtt >= TimeDelta::from_millis(600),
            why: CUT_SHORT,
        }],
    });
}

/// Only a ProbeRTT may end it, because that is independent of the application. Checked over at
/// least six rounds, enough for a plateau to be detected.
fn up(scene: &mut Scene<'_>) -> Result<(), String> {
    scene.settle()?;
    for _ in 0..CYCLES {
        let began = scene.reach("ProbeBW_UP")?.snapshot.round_count;
        scene.trickle(Ratio::new(2, 5));
        let left = scene
            .run_until(TimeDelta::from_secs(20) + scene.point.round().times(20), |view| {
                view.snapshot.state != "ProbeBW_UP"
            });
        let rounds = scene.view().snapshot.round_count - began;
        let next = left.map_or("ProbeRTT", |view| view.snapshot.state);
        // A cautious probe ends at its bound, possibly at once because of the data already in
        // flight.
        let is_cautious = DOWN.contains(&next) && rounds <= 1;
        ensure(next == "ProbeRTT" || is_cautious, || {
            format!("UP -> {next} after {rounds} rounds")
        })?;
        if rounds >= 6 {
            return Ok(());
        }
        scene.resume();
    }
    Err("ProbeRTT cuts every probe short".into())
}

#[test]
//= bbr-06 5.5.4-1 test
fn application_limited_refill_does_not_lower_max_bw() {
    check(&Case {
        name: "A.22 Handling Application-Limited Sending During PROBE_REFILL",
        subject: EVERYWHERE,
        buffer: 2_000,
        run: refill,
        exceptions: &[],
    });
}

fn refill(scene: &mut Scene<'_>) -> Result<(), String> {
    let before = scene.reach("ProbeBW_REFILL")?.snapshot.max_bw;
    scene.trickle(Ratio::new(1, 5));
    let up = scene.leave()?;
    let next = up.snapshot.state;
    ensure(next == "ProbeBW_UP", || format!("REFILL -> {next}"))?;
    ensure(up.snapshot.max_bw == before, || {
        format!("max_bw {before:?} -> {:?}", up.snapshot.max_bw)
    })?;
    scene.resume();
    for _ in 0..2 {
        scene.leave()?;
        let probed = scene.reach("ProbeBW_UP")?;
        let percent = percent(&probed, scene.point.payload_rate());
        ensure((95.0..=105.0).contains(&percent), || format!("then max_bw is {percent:.1} %"))?;
    }
    Ok(())
}
