//! A.1, A.2 and A.7: leaving Startup.

use uncork_units::{Rate, Ratio, TimeDelta};

use crate::appendix::grid::{Case, EVERYWHERE, Exception, check};
use crate::appendix::scene::{DOWN, Scene, ensure, ensure_max_bw, in_startup};

#[test]
//= bbr-06 5.3.1.1-2 5.3.1.2-4 test
fn startup_ends_on_a_bandwidth_plateau() {
    check(&Case {
        name: "A.1 Exiting STARTUP on Bandwidth Plateau",
        subject: EVERYWHERE,
        buffer: 2_000,
        run: plateau,
        exceptions: &[],
    });
}

fn plateau(scene: &mut Scene<'_>) -> Result<(), String> {
    let (mut round, mut grew_at, mut best, mut is_disturbed) = (0, 0, 0, false);
    let within = scene.patience();
    let left = scene.run_until(within, |view| {
        let snapshot = &view.snapshot;
        let max_bw = snapshot.max_bw.map_or(0, Rate::bytes_per_sec);
        if snapshot.round_count != round && max_bw * 4 >= best * 5 {
            (grew_at, best) = (snapshot.round_count, max_bw);
        }
        round = snapshot.round_count;
        is_disturbed |= snapshot.state == "ProbeRTT";
        !in_startup(view)
    });
    let left = left.ok_or("forever in Startup")?;
    let next = left.snapshot.state;
    ensure(next == "Drain" || DOWN.contains(&next), || format!("Startup -> {next}"))?;
    ensure_max_bw(&left, scene.point.payload_rate())?;
    let plateau = left.snapshot.round_count - grew_at;
    // Rounds in ProbeRTT are application-limited and do not count. BBR uses one sample per round;
    // with rounds of a few packets, max_bw may come from another sample, a round later.
    let least = if scene.point.bdp_packets() < 4.0 { 2 } else { 3 };
    let is_right = plateau >= least && (plateau <= 3 || is_disturbed);
    ensure(is_right, || format!("left {plateau} rounds after the last growth"))
}

#[test]
//= bbr-06 5.3.1.1-2 5.5.10.1-1 test
fn startup_ends_on_loss_when_application_limited() {
    check(&Case {
        name: "A.2 Exiting STARTUP on Loss When Application-Limited",
        subject: EVERYWHERE,
        buffer: 2_000,
        run: loss,
        exceptions: &[Exception {
            at: |point| point.bdp_packets() < 16.0,
            why: "two fifths of a BDP are too few packets for six lost ranges in a round",
        }],
    });
}

/// The application limits the flow to two fifths of the rate during Startup.
fn trickle_in_startup(scene: &mut Scene<'_>) -> Result<(), String> {
    let half = scene.point.payload_rate().scaled(Ratio::new(1, 2));
    let within = scene.patience();
    let at_half = scene.run_until(within, |view| view.snapshot.max_bw.is_some_and(|bw| bw >= half));
    at_half.ok_or("never at half the rate")?;
    scene.trickle(Ratio::new(2, 5));
    Ok(())
}

fn loss(scene: &mut Scene<'_>) -> Result<(), String> {
    trickle_in_startup(scene)?;
    let clean = scene.run_for(scene.point.round().times(8));
    ensure(in_startup(&clean), || format!("{} before loss", clean.snapshot.state))?;
    scene.lose_every(2);
    let within = TimeDelta::from_secs(1) + scene.point.round().times(12);
    let left = scene.run_until(within, |view| !in_startup(view));
    let lost = scene.view().packets_lost;
    let left = left.ok_or_else(|| format!("still in Startup after {lost} losses"))?;
    // Inflight below one BDP needs no draining: Drain ends with the ACK that began it.
    let next = left.snapshot.state;
    ensure(next == "Drain" || DOWN.contains(&next), || format!("Startup -> {next}"))?;
    ensure(left.snapshot.inflight_longterm.is_some(), || "inflight_longterm is unset".into())
}

#[test]
//= bbr-06 4.1.2.4-2 5.3.1.2-2 test
fn startup_lasts_while_application_limited_without_loss() {
    check(&Case {
        name: "A.7 Never Exiting STARTUP When Application-Limited With No Loss",
        subject: EVERYWHERE,
        buffer: 2_000,
        run: lasting,
        exceptions: &[],
    });
}

/// Twelve seconds cover two ProbeRTTs, both return to Startup.
fn lasting(scene: &mut Scene<'_>) -> Result<(), String> {
    trickle_in_startup(scene)?;
    let within = TimeDelta::from_secs(12) + scene.point.round().times(30);
    let left = scene.run_until(within, |view| !in_startup(view));
    let state = scene.view().snapshot.state;
    ensure(left.is_none(), || format!("{state} in spite of it"))
}

#[test]
//= bbr-06 5.3.4.1-2 5.3.4.1-4 5.3.4.4-2 test
fn probe_rtt_in_startup_returns_to_startup() {
    check(&Case {
        name: "A.20 Entering and Exiting PROBE_RTT During STARTUP",
        subject: EVERYWHERE,
        buffer: 2_000,
        run: probe_rtt,
        exceptions: &[Exception {
            at: |point| point.bdp_packets() < 1.0,
            why: "the flow is idle between any two packets, which makes ProbeRTT needless (A.11)",
        }],
    });
}

fn probe_rtt(scene: &mut Scene<'_>) -> Result<(), String> {
    trickle_in_startup(scene)?;
    scene.reach("ProbeRTT")?;
    let next = scene.leave()?.snapshot.state;
    ensure(next == "Startup", || format!("ProbeRTT -> {next}"))?;
    scene.resume();
    let left = scene.leave_startup()?;
    ensure_max_bw(&left, scene.point.payload_rate())
}
