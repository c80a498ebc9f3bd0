//! A.15 and A.16: the bandwidth grows tenfold, or falls to a tenth.

use uncork_units::{Ratio, TimeDelta};

use crate::appendix::grid::{Case, EVERYWHERE, Exception, check, payload};
use crate::appendix::scene::{Scene, ensure, ensure_max_bw, percent};

const TENTH: Ratio = Ratio::new(1, 10);

#[test]
fn tenfold_bandwidth_is_found_within_20_rounds_of_probing() {
    check(&Case {
        name: "A.15 Increasing Bandwidth 10x and Ensuring Full Bandwidth is Reached",
        subject: EVERYWHERE,
        buffer: 2_000,
        run: increase,
        exceptions: &[Exception {
            at: |point| point.packet_time() > TimeDelta::from_millis(100),
            why: "a tenth of the rate takes 1.9 s for a packet: Startup and ProbeRTT last minutes",
        }],
    });
}

/// Until then the rate was a tenth of the point's. A sample averages over a round, so a gain of
/// 1.25 makes it grow by 15 % per round instead of 25 %: 17 rounds for a factor of ten.
fn increase(scene: &mut Scene<'_>) -> Result<(), String> {
    let full = scene.point.payload_rate();
    scene.set_rate(scene.point.rate.scaled(TENTH));
    scene.reach("ProbeBW_CRUISE")?;
    scene.set_rate(scene.point.rate);
    let (mut probing, mut last, mut probes, mut was_up) = (0, 0, 0, false);
    let within = scene.patience();
    let found = scene.run_until(within, |view| {
        let (round, is_up) = (view.snapshot.round_count, view.snapshot.state == "ProbeBW_UP");
        probing += u64::from(round != last && is_up);
        probes += u64::from(is_up && !was_up);
        (last, was_up) = (round, is_up);
        percent(view, full) >= 98.0
    });
    let reached = percent(&scene.view(), full);
    found.ok_or_else(|| format!("{reached:.1} % after {probing} rounds of probing"))?;
    // The first round of a probe yields no growth yet; ProbeRTT splits one probe into several.
    let most = 18 + 2 * probes;
    ensure(probing <= most, || format!("{probing} rounds of probing in {probes} probes"))
}

#[test]
//= bbr-06 5.3.3.9-16 test
fn tenth_of_the_bandwidth_is_learned() {
    check(&Case {
        name: "A.16 Decreasing Bandwidth 10x and Ensuring Max Bandwidth Adapts Down",
        subject: EVERYWHERE,
        buffer: 1_000,
        run: decrease,
        exceptions: &[
            Exception {
                at: |point| {
                    let slow = point.packet_time() > TimeDelta::from_millis(100);
                    slow && point.rtt <= TimeDelta::from_millis(100)
                },
                why: "a tenth of the rate takes 1.9 s for a packet, 38 s for the full queue",
            },
            Exception {
                at: |point| {
                    let at_600 = [(600.0, 1_000), (600.0, 10_000), (600.0, 100_000)];
                    point.is_any(&at_600) || point.is_any(&[(1_000.0, 100_000)])
                },
                why: "a round in the full queue, 10 RTT, outlasts the ProbeRTT interval: it is chance \
                      whether any sample counts (DEVIATIONS.md)",
            },
        ],
    });
}

/// Step 3, the short-term bound, is only visible if a round with a full queue, which takes eleven
/// base RTTs, ends before the next probe. `uncork-cc` checks it in its own test of this case.
fn decrease(scene: &mut Scene<'_>) -> Result<(), String> {
    scene.reach("ProbeBW_CRUISE")?;
    let rate = scene.point.rate.scaled(TENTH);
    scene.set_rate(rate);
    let within = TimeDelta::from_secs(30) + scene.point.round().times(60);
    let found = scene.run_until(within, |view| percent(view, payload(rate)) <= 102.0);
    let left = percent(&scene.view(), payload(rate));
    let found = found.ok_or_else(|| format!("max_bw is {left:.0} % of the rate"))?;
    ensure_max_bw(&found, payload(rate))
}
