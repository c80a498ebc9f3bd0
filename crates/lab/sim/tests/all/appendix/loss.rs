//! A.6 and A.21: loss while probing.

use uncork_units::{Ratio, TimeDelta};

use crate::appendix::grid::{CUT_SHORT, Case, EVERYWHERE, Exception, check};
use crate::appendix::scene::{DOWN, Scene, bdp, ensure};

const CYCLES: usize = 5;

#[test]
//= bbr-06 5.3.3.7-3 test
fn up_ends_on_loss_when_application_limited() {
    check(&Case {
        name: "A.6 Exiting PROBE_UP on Loss When Application-Limited",
        subject: EVERYWHERE,
        buffer: 2_000,
        run: limited,
        exceptions: &[Exception {
            at: |point| {
                let at_600 = point.is_any(&[(600.0, 64), (600.0, 10_000)]);
                point.rtt >= TimeDelta::from_secs(1) || at_600
            },
            why: CUT_SHORT,
        }],
    });
}

/// The flow is application-limited when the probe begins; packets are lost a round later. The
/// pseudocode keeps inflight_longterm if the lost packet's flight was application-limited
/// (HandleInflightTooHigh(), §5.5.10.2), because too little was in flight.
fn limited(scene: &mut Scene<'_>) -> Result<(), String> {
    scene.settle()?;
    for _ in 0..CYCLES {
        scene.reach("ProbeBW_UP")?;
        scene.trickle(Ratio::new(2, 5));
        let round = scene.point.round();
        if scene.run_for(round.times(3)).snapshot.state == "ProbeBW_UP" {
            let before = scene.view().packets_lost;
            scene.lose_every(3);
            let within = round.times(8) + scene.point.packet_time().times(60);
            let left = scene.run_until(within, |view| view.snapshot.state != "ProbeBW_UP");
            scene.lose_every(0);
            let lost = scene.view().packets_lost - before;
            let left = left.ok_or_else(|| format!("still in UP after {lost} losses"))?;
            let next = left.snapshot.state;
            // Without loss the cause was ProbeRTT, or a cautious probe at its bound.
            if next != "ProbeRTT" && lost > 0 {
                return ensure(DOWN.contains(&next), || format!("UP -> {next}"));
            }
        }
        scene.resume();
    }
    Err("ProbeRTT cuts every probe short".into())
}

#[test]
//= bbr-06 5.3.3.7-3 test
fn loss_in_up_lowers_the_longterm_bound_and_ends_the_probe() {
    check(&Case {
        name: "A.21 Handling Loss During PROBE_UP After inflight_longterm is Set",
        subject: EVERYWHERE,
        buffer: 500,
        run: bounded,
        exceptions: &[Exception {
            at: |point| {
                let at_64k = point.is_any(&[(0.2, 64), (1.0, 64), (10.0, 64), (40.0, 64)]);
                at_64k || point.is_any(&[(300.0, 64), (600.0, 64), (10.0, 1_000)])
            },
            why: "five packets are in flight: few probes lose one, and the bound is at its floor",
        }],
    });
}

/// The first loss in a probe sets the bound, unless the buffer already has. Then a cautious probe
/// may end at the bound without a loss, so several probes are checked.
fn bounded(scene: &mut Scene<'_>) -> Result<(), String> {
    for _ in 0..CYCLES {
        let up = scene.reach("ProbeBW_UP")?;
        scene.lose_every(7);
        let left = scene.leave()?;
        scene.lose_every(0);
        let next = left.snapshot.state;
        let after = left.snapshot.inflight_longterm.unwrap_or(u64::MAX);
        let is_lowered = up.snapshot.inflight_longterm.is_some_and(|before| after < before);
        if next == "ProbeRTT" || !is_lowered {
            continue;
        }
        ensure(DOWN.contains(&next), || format!("UP -> {next}"))?;
        let least = Ratio::new(7, 10).of(bdp(&left).min(left.control.cwnd));
        return ensure(after >= least, || format!("{after} B < {least} B"));
    }
    Err("no probe with a bound met loss".into())
}
