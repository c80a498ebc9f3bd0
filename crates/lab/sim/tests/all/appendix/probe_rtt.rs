//! A.10 and A.11: ProbeRTT, and when it is skipped.

use uncork_sim::MSS_BYTES;
use uncork_units::{Rate, Ratio, TimeDelta};

use crate::appendix::grid::{Case, EVERYWHERE, check};
use crate::appendix::scene::{Scene, bdp, ensure};

const INTERVAL: TimeDelta = TimeDelta::from_secs(5);
const DURATION: TimeDelta = TimeDelta::from_millis(200);

#[test]
//= bbr-06 2.16-3 5.3.4.1-3 5.3.4.1-4 5.3.4.3-5 5.3.4.3-7 5.3.4.3-8 5.3.4.4-2 test
fn probe_rtt_starts_after_five_seconds_and_lasts_200_ms_and_a_round() {
    check(&Case {
        name: "A.10 Entering and Exiting PROBE_RTT",
        subject: EVERYWHERE,
        buffer: 2_000,
        run: visit,
        exceptions: &[],
    });
}

/// Checks the second ProbeRTT: it is due five seconds after the end of the first, or after a sample
/// below all of the first's.
fn visit(scene: &mut Scene<'_>) -> Result<(), String> {
    scene.leave_startup()?;
    scene.reach("ProbeRTT")?;
    scene.leave()?;
    let exit = scene.now();
    let entry = scene.reach("ProbeRTT")?;
    let pause = scene.now().since(exit);
    let round = scene.point.round();
    let due = INTERVAL..=INTERVAL.times(2) + round.times(3);
    ensure(due.contains(&pause), || format!("after {} ms", pause.as_millis_f64()))?;
    let gain = entry.snapshot.cwnd_gain;
    ensure(gain == Some(Ratio::new(1, 2)), || format!("cwnd gain {gain:?}"))?;
    let half = (bdp(&entry) / 2).max(4 * u64::from(MSS_BYTES));
    let within = scene.patience();
    let low = scene.run_until(within, |view| view.in_flight <= half).ok_or("no drain")?;
    ensure(low.snapshot.state == "ProbeRTT", || "left before inflight was low".into())?;
    let began = scene.now();
    let left = scene.leave()?;
    let lasted = scene.now().since(began);
    // Four packets may be in flight, however small the BDP, and the last ACK may be delayed.
    let round = round + scene.point.packet_time().times(4);
    let most = DURATION.max(round) + round.times(2) + TimeDelta::from_millis(50);
    let due = DURATION.max(scene.point.rtt)..=most;
    ensure(due.contains(&lasted), || format!("lasted {} ms", lasted.as_millis_f64()))?;
    let next = left.snapshot.state;
    ensure(next == "ProbeBW_CRUISE", || format!("ProbeRTT -> {next}"))?;
    let sent = scene.run_for(round.times(4)).delivered_bytes - left.delivered_bytes;
    ensure(sent > 2 * half, || format!("only {sent} B in the next rounds"))
}

#[test]
//= bbr-06 5.2.2-1 5.3.4.2-2 5.4.1-1 5.4.1-3 test
fn probe_rtt_is_skipped_after_idle_time() {
    check(&Case {
        name: "A.11 Skipping PROBE_RTT Due to Application-Limited Sending",
        subject: EVERYWHERE,
        buffer: 2_000,
        run: idle,
        exceptions: &[],
    });
}

fn idle(scene: &mut Scene<'_>) -> Result<(), String> {
    scene.reach("ProbeBW_CRUISE")?;
    scene.pause();
    let within = scene.patience();
    scene.run_until(within, |view| view.in_flight == 0).ok_or("never idle")?;
    let idle = scene.run_for(TimeDelta::from_secs(6));
    ensure(idle.in_flight == 0, || format!("{} B in flight", idle.in_flight))?;
    scene.resume();
    let paced = scene.view().control.pacing_rate.map_or(0, Rate::bytes_per_sec);
    let due = idle.snapshot.bw.map_or(0, |bw| bw.scaled(Ratio::new(99, 100)).bytes_per_sec());
    ensure(paced.abs_diff(due) <= 1, || format!("paced at {paced} B/s, not {due} B/s"))?;
    let within = TimeDelta::from_millis(500) + scene.point.round().times(3);
    let probed = scene.run_until(within, |view| view.snapshot.state == "ProbeRTT");
    ensure(probed.is_none(), || "ProbeRTT after all".into())
}
