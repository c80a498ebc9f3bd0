//! Golden traces: the behaviour of each controller over a path, one line per state change, so that
//! a change of behaviour shows as a diff. All figures are integers and equal on every machine.
//!
//! `UPDATE_GOLDEN=1 cargo test -p uncork-sim --test all golden` rewrites them.

use std::fmt::Write as _;
use std::path::Path;

use crate::common::{Case, case, spec};
use uncork_sim::{FlowSpec, FlowView, RunSpec, Simulation, Workload};
use uncork_units::{Rate, Time, TimeDelta};

const HEADER: &str = "\
# Rates are in kbit/s of payload, volumes in bytes of payload, times in microseconds; st and lt are
# the short-term and long-term bounds; `-` is unset. * in the state: losses are being repaired.
#  time_us flow state                  cwnd inflight   pacing   max_bw min_rtt   bw_st inflight_st \
inflight_lt    srtt lost_packets
";

/// Runs the flows and compares the result with `golden/NAME.txt`.
fn check(name: &str, about: &str, case: &Case, flows: &[(&str, u64)], secs: u64) {
    check_written(name, about, case, flows, secs, &[]);
}

/// The same, with pauses or writes by the first flow's application: time in ms and segments.
fn check_written(
    name: &str,
    about: &str,
    case: &Case,
    flows: &[(&str, u64)],
    secs: u64,
    writes: &[(u64, u64)],
) {
    let end = Time::ZERO + TimeDelta::from_secs(secs);
    let flows = flows.iter().map(|(cc, start_ms)| FlowSpec {
        start: at(*start_ms),
        ..FlowSpec::new(spec(cc), Workload::Until(end))
    });
    let path = case.path.clone();
    let run = RunSpec::over(path, flows.collect(), 1, end);
    let trace = format!("# {about}\n{HEADER}{}", trace(&run, writes));
    compare(name, &trace);
}

/// Instead of a number of segments.
const PAUSE: u64 = 0;

fn at(millis: u64) -> Time {
    Time::ZERO + TimeDelta::from_millis(millis)
}

fn trace(run: &RunSpec, writes: &[(u64, u64)]) -> String {
    let mut simulation = Simulation::new(run);
    let mut lines = String::new();
    let mut states = vec![None; run.flows.len()];
    let mut writes = writes.iter().copied().peekable();
    loop {
        let until = writes.peek().map_or(run.end, |(millis, _)| at(*millis));
        let is_event = simulation.step_until(until);
        if !is_event {
            match writes.next() {
                None => return lines,
                Some((_, PAUSE)) => simulation.pause(0),
                Some((_, segments)) => simulation.write(0, segments),
            }
        }
        for (index, last) in (0..).zip(&mut states) {
            let Some(view) = simulation.view(index) else { continue };
            let state = state(&view);
            if last.as_ref() != Some(&state) {
                line(&mut lines, simulation.now(), index, &state, &view);
                *last = Some(state);
            }
        }
    }
}

/// The state's name. Recovery is a separate state of controllers with an ssthresh; BBR's states
/// continue during recovery.
fn state(view: &FlowView) -> String {
    let is_state = view.snapshot.pacing_gain.is_none() && view.snapshot.in_recovery;
    format!("{}{}", view.snapshot.state, if is_state { "*" } else { "" })
}

fn line(lines: &mut String, now: Time, flow: u32, state: &str, view: &FlowView) {
    let FlowView { snapshot, control, .. } = view;
    let kbit = |rate: Option<Rate>| or_dash(rate.map(|rate| rate.bits_per_sec() / 1_000));
    let micros = |span: TimeDelta| span.as_micros();
    writeln!(
        lines,
        "{:>10} {flow:>4} {state:<20} {:>6} {:>8} {:>8} {:>8} {:>7} {:>7} {:>11} {:>11} {:>7} {:>12}",
        now.as_nanos() / 1_000,
        control.cwnd,
        view.in_flight,
        kbit(control.pacing_rate),
        kbit(snapshot.max_bw),
        or_dash(snapshot.min_rtt.map(micros)),
        kbit(snapshot.bw_shortterm),
        or_dash(snapshot.inflight_shortterm),
        or_dash(snapshot.inflight_longterm),
        micros(view.smoothed_rtt),
        view.packets_lost,
    )
    .expect("a string takes anything");
}

fn or_dash(value: Option<u64>) -> String {
    value.map_or("-".into(), |value| value.to_string())
}

fn compare(name: &str, trace: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.txt"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, trace).expect("the trace can be written");
        return;
    }
    let golden = std::fs::read_to_string(&file).expect("the trace exists");
    assert!(
        golden == trace,
        "tests/golden/{name}.txt does not match this run:\n{}\nIf the new one is right: \
         UPDATE_GOLDEN=1 cargo test -p uncork-sim --test all golden",
        difference(&golden, trace)
    );
}

/// A diff of the lines between the first and the last difference, at most a dozen of each.
fn difference(old: &str, new: &str) -> String {
    let [mut old, mut new] = [old, new].map(|text| text.lines().collect::<Vec<_>>());
    let same = |pair: &(&&str, &&str)| pair.0 == pair.1;
    let head = old.iter().zip(&new).take_while(same).count();
    old.drain(..head);
    new.drain(..head);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(same).count();
    let excerpt = |sign: char, lines: &[&str]| {
        let changed = &lines[..lines.len() - tail];
        let mut text = String::new();
        for line in changed.iter().take(12) {
            writeln!(text, "{sign}{line}").expect("a string takes anything");
        }
        if changed.len() > 12 {
            writeln!(text, "{sign} and {} lines more", changed.len() - 12).expect("as before");
        }
        text
    };
    format!("line {}:\n{}{}", head + 1, excerpt('-', &old), excerpt('+', &new))
}

#[test]
fn differences_are_reported_line_by_line() {
    let report = difference("a\nb\nc\nd\n", "a\nx\ny\nd\n");
    assert_eq!(report, "line 2:\n-b\n-c\n+x\n+y\n");
    assert_eq!(difference("a\nb\n", "a\nb\nc\n"), "line 3:\n+c\n");
}

#[test]
fn bbr3_on_a_clean_path() {
    let about = "bbr3 alone: 100 Mbit/s, 40 ms, 2 BDP of buffer";
    check("bbr3_clean", about, &case(100, 40, 2_000), &[("bbr3", 0)], 15);
}

#[test]
fn bbr3_in_a_deep_buffer() {
    let about = "bbr3 alone: 50 Mbit/s, 30 ms, 16 BDP of buffer";
    check("bbr3_deep_buffer", about, &case(50, 30, 16_000), &[("bbr3", 0)], 12);
}

#[test]
fn bbr3_in_a_shallow_buffer() {
    let about = "bbr3 alone: 100 Mbit/s, 40 ms, 0.1 BDP of buffer";
    check("bbr3_shallow_buffer", about, &case(100, 40, 100), &[("bbr3", 0)], 12);
}

#[test]
fn bbr3_with_random_loss() {
    let about = "bbr3 alone: 50 Mbit/s, 30 ms, 1 BDP of buffer, 1 % random loss";
    check("bbr3_random_loss", about, &case(50, 30, 1_000).loss("1%"), &[("bbr3", 0)], 12);
}

#[test]
fn bbr3_when_the_rate_rises() {
    let about =
        "bbr3 alone: 10 Mbit/s, from 8 s on 100 Mbit/s, 40 ms, 2 of the first BDP of buffer";
    check("bbr3_rate_up", about, &case(10, 40, 2_000).step(8, 100), &[("bbr3", 0)], 16);
}

#[test]
fn bbr3_when_the_rate_falls() {
    let about =
        "bbr3 alone: 100 Mbit/s, from 8 s on 10 Mbit/s, 40 ms, 1 of the first BDP of buffer";
    check("bbr3_rate_down", about, &case(100, 40, 1_000).step(8, 10), &[("bbr3", 0)], 30);
}

/// 17 segments every 10 ms are a fifth of the rate.
#[test]
fn bbr3_when_the_application_limits_it() {
    let about = "bbr3 alone: 100 Mbit/s, 40 ms, 2 BDP; a fifth of the rate from 0.2 s to 3 s, all \
                 there is to 6 s, nothing to 12 s, all again";
    let trickle = (20..300).map(|tick| (tick * 10, 17));
    let then = [(3_000, 25_000), (12_000, u64::MAX)];
    let writes: Vec<_> = [(200, PAUSE)].into_iter().chain(trickle).chain(then).collect();
    let case = case(100, 40, 2_000);
    check_written("bbr3_app_limited", about, &case, &[("bbr3", 0)], 16, &writes);
}

#[test]
fn bbr3_against_a_late_bbr3() {
    let about = "two flows of bbr3, the second from 3 s on: 50 Mbit/s, 30 ms, 1 BDP of buffer";
    check("bbr3_two_flows", about, &case(50, 30, 1_000), &[("bbr3", 0), ("bbr3", 3_000)], 12);
}

#[test]
fn bbr3_on_a_long_path() {
    let about = "bbr3 alone: 20 Mbit/s, 600 ms, 2 BDP of buffer";
    check("bbr3_long_rtt", about, &case(20, 600, 2_000), &[("bbr3", 0)], 30);
}

#[test]
fn bbr3_against_cubic() {
    let about = "bbr3 and, from 1 s on, cubic: 50 Mbit/s, 30 ms, 2 BDP of buffer";
    check("bbr3_and_cubic", about, &case(50, 30, 2_000), &[("bbr3", 0), ("cubic", 1_000)], 15);
}

#[test]
fn bbr3_behind_a_policer() {
    let about =
        "bbr3 alone: 100 Mbit/s, 40 ms, 1 BDP of buffer, policed to 10 Mbit/s, bucket 100 kB";
    check("bbr3_policer", about, &case(100, 40, 1_000).policed("10mbit:100kB"), &[("bbr3", 0)], 15);
}

#[test]
fn bbr1_on_a_clean_path() {
    let about = "bbr1 alone: 100 Mbit/s, 40 ms, 2 BDP of buffer";
    check("bbr1_clean", about, &case(100, 40, 2_000), &[("bbr1", 0)], 25);
}

#[test]
fn bbr1_with_random_loss() {
    let about = "bbr1 alone: 50 Mbit/s, 30 ms, 1 BDP of buffer, 1 % random loss";
    check("bbr1_random_loss", about, &case(50, 30, 1_000).loss("1%"), &[("bbr1", 0)], 25);
}

#[test]
fn bbr1_behind_a_policer() {
    let about =
        "bbr1 alone: 100 Mbit/s, 40 ms, 1 BDP of buffer, policed to 10 Mbit/s, bucket 100 kB";
    check("bbr1_policer", about, &case(100, 40, 1_000).policed("10mbit:100kB"), &[("bbr1", 0)], 15);
}

#[test]
fn cubic_on_a_clean_path() {
    let about =
        "cubic alone, which a long ACK train takes out of slow start: 100 Mbit/s, 40 ms, 1 BDP";
    check("cubic_clean", about, &case(100, 40, 1_000), &[("cubic", 0)], 30);
}

#[test]
fn cubic_on_a_slow_path() {
    let about =
        "cubic alone, which HyStart++ takes out of slow start: 2 Mbit/s, 80 ms, 8 BDP of buffer";
    check("cubic_hystart", about, &case(2, 80, 8_000), &[("cubic", 0)], 30);
}

#[test]
fn reno_on_a_clean_path() {
    let about = "reno alone: 20 Mbit/s, 40 ms, 1 BDP of buffer";
    check("reno_clean", about, &case(20, 40, 1_000), &[("reno", 0)], 30);
}
