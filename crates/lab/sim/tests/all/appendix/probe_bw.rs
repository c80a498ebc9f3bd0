//! A.5, A.8 and A.9: the bandwidth-probing cycle.

use uncork_units::{Ratio, TimeDelta};

use crate::appendix::grid::{CUT_SHORT, Case, EVERYWHERE, Exception, check};
use crate::appendix::scene::{DOWN, Scene, ensure, one_bdp};

/// Number of cycles checked: some are cut short by ProbeRTT or end differently.
const CYCLES: usize = 5;

#[test]
//= bbr-06 5.3.3.7-1 5.3.3.9-5 5.3.3.9-10 test
fn up_ends_on_a_plateau_of_three_rounds() {
    check(&Case {
        name: "A.5 Exiting PROBE_UP on Bandwidth Plateau",
        subject: EVERYWHERE,
        buffer: 2_000,
        run: plateau,
        exceptions: &[
            Exception {
                at: |point| {
                    let at_600 = point.is_any(&[(600.0, 64), (600.0, 1_000)]);
                    point.rtt >= TimeDelta::from_secs(1) || at_600
                },
                why: CUT_SHORT,
            },
            Exception {
                at: |point| point.is_any(&[(0.2, 100_000)]),
                why: "a round is two packets, and its rate jitters by more than a quarter",
            },
        ],
    });
}

fn plateau(scene: &mut Scene<'_>) -> Result<(), String> {
    for _ in 0..CYCLES {
        let began = scene.reach("ProbeBW_UP")?;
        let left = scene.leave()?;
        match left.snapshot.state {
            "ProbeRTT" => continue,
            next if DOWN.contains(&next) => {}
            next => return Err(format!("UP -> {next}")),
        }
        let lost = left.packets_lost - began.packets_lost;
        ensure(lost == 0, || format!("{lost} packets lost in UP"))?;
        let rounds = left.snapshot.round_count - began.snapshot.round_count;
        return ensure(rounds == 3, || format!("UP took {rounds} rounds"));
    }
    Err("ProbeRTT cuts every probe short".into())
}

#[test]
//= bbr-06 5.3.3.1-1 5.3.3.1-2 5.3.3.1-3 5.3.3.9-3 5.3.3.9-9 test
fn down_ends_when_inflight_leaves_headroom() {
    check(&Case {
        name: "A.8 Exiting PROBE_DOWN on Inflight",
        subject: EVERYWHERE,
        buffer: 500,
        run: inflight,
        exceptions: &[
            Exception {
                at: |point| point.packet_time() > TimeDelta::from_millis(100),
                why: "with a BDP of a packet or two it is time to probe again before DOWN ends",
            },
            Exception {
                at: |point| point.rtt >= TimeDelta::from_millis(300),
                why: "a ProbeRTT comes before DOWN, at 0.9 of the rate, has drained the queue",
            },
        ],
    });
}

fn inflight(scene: &mut Scene<'_>) -> Result<(), String> {
    for _ in 0..CYCLES {
        scene.reach("ProbeBW_UP")?;
        let mut left = scene.leave()?;
        if left.snapshot.state == "ProbeBW_DOWN" {
            let gain = left.snapshot.pacing_gain;
            ensure(gain == Some(Ratio::new(9, 10)), || format!("pacing gain {gain:?}"))?;
            left = scene.leave()?;
        }
        if left.snapshot.state != "ProbeBW_CRUISE" {
            continue;
        }
        let quantum = left.control.send_quantum;
        let longterm = left.snapshot.inflight_longterm.unwrap_or(u64::MAX);
        let headroom = Ratio::new(15, 100).of(longterm).max(1_448);
        let room = (longterm - headroom).max(4 * 1_448).saturating_add(quantum);
        let most = room.min(one_bdp(&left));
        return ensure(left.in_flight <= most, || format!("{} B > {most} B", left.in_flight));
    }
    Err("DOWN never led to CRUISE".into())
}

#[test]
//= bbr-06 5.3.3.8.2-3 5.3.3.8.3-1 5.3.3.9-2 test
fn down_ends_when_it_is_time_to_probe_again() {
    check(&Case {
        name: "A.9 Exiting PROBE_DOWN After Max Time",
        subject: EVERYWHERE,
        buffer: 4_000,
        run: time,
        exceptions: &[
            Exception {
                at: |point| {
                    let slow = point.packet_time() > TimeDelta::from_millis(100);
                    slow || point.rtt >= TimeDelta::from_millis(100)
                },
                why: "the next ProbeRTT is due before the next probe",
            },
            Exception {
                at: |point| point.bdp_packets() < 3.0 || point.is_any(&[(0.2, 1_000_000)]),
                why: "Inflight(1.0) is the floor of four packets or the send quantum, 1 ms of the \
                      rate: what is in flight is within it",
            },
        ],
    });
}

/// The draft reduces the rate by a tenth. DOWN sends at 0.9 · 0.99 of the known rate, slightly less
/// than that, and empties the queue slowly. With a reduction by a fifth the queue stays.
fn time(scene: &mut Scene<'_>) -> Result<(), String> {
    let mut rate = scene.point.rate;
    for _ in 0..CYCLES {
        scene.reach("ProbeBW_UP")?;
        if scene.leave()?.snapshot.state != "ProbeBW_DOWN" {
            continue;
        }
        let began = scene.now();
        rate = rate.scaled(Ratio::new(4, 5));
        scene.set_rate(rate);
        let next = scene.leave()?.snapshot.state;
        if next == "ProbeRTT" {
            continue;
        }
        ensure(next == "ProbeBW_REFILL", || format!("DOWN -> {next}"))?;
        let lasted = scene.now().since(began);
        let most = TimeDelta::from_secs(3) + scene.point.round().times(4);
        return ensure(lasted <= most, || format!("DOWN lasted {} ms", lasted.as_millis_f64()));
    }
    Err("ProbeRTT comes before the next probe".into())
}
